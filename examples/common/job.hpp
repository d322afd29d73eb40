// A job of MPI, whose ranks can be connected by Lacuna as well.
#pragma once

#include <dlfcn.h>
#include <sys/random.h>

// Old C++ bindings, which MPI-3 has removed; their headers do not compile without warnings.
#define OMPI_SKIP_MPICXX 1
#define MPICH_SKIP_MPICXX 1
#include <mpi.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <stdexcept>
#include <string>

#include <lacuna.hpp>

namespace examples {

class Job {
 public:
  Job(int* argc, char*** argv) {
    MPI_Init(argc, argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    MPI_Comm_size(MPI_COMM_WORLD, &size_);
  }
  ~Job() {
    ranks_.reset();
    MPI_Finalize();
  }
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;

  [[nodiscard]] int rank() const { return rank_; }
  [[nodiscard]] int size() const { return size_; }

  /// The same ranks by Lacuna. All call it together the first time: they meet by a name that no other job has, so all
  /// have to be on one machine.
  lacuna::Communicator& lacuna() {
    if (!ranks_) {
      std::array<std::uint32_t, 4> name{};
      if (getrandom(name.data(), sizeof name, 0) != sizeof name) throw std::runtime_error("there are no random numbers");
      MPI_Bcast(name.data(), static_cast<int>(name.size()), MPI_UINT32_T, 0, MPI_COMM_WORLD);
      std::array<char, 48> text{};
      std::snprintf(text.data(), text.size(), "example-%08x%08x%08x%08x", name[0], name[1], name[2], name[3]);
      lacuna::Communicator::Options options;
      options.size = size_;
      options.rank = rank_;
      ranks_.emplace(lacuna::Communicator::connect(text.data(), options));
    }
    return *ranks_;
  }

  static void barrier() { MPI_Barrier(MPI_COMM_WORLD); }
  [[nodiscard]] static double largest(double value) { return reduced(value, MPI_DOUBLE, MPI_MAX); }
  [[nodiscard]] static std::uint64_t sum(std::uint64_t value) { return reduced(value, MPI_UINT64_T, MPI_SUM); }

  /// The MPI and its version: the first line of what it says, up to a comma.
  [[nodiscard]] static std::string mpi() {
    std::array<char, MPI_MAX_LIBRARY_VERSION_STRING> text{};
    int length = 0;
    MPI_Get_library_version(text.data(), &length);
    std::string said(text.data());
    said.resize(std::min(said.find_first_of(",\n"), said.size()));
    for (char& c : said) c = c == '\t' ? ' ' : c;
    return said;
  }
  /// The library whose MPI_Send this program calls: MPI's own, or one that is loaded before it.
  [[nodiscard]] static std::string send_in() {
    Dl_info found{};
    void* address = dlsym(RTLD_DEFAULT, "MPI_Send");
    const std::string path = address != nullptr && dladdr(address, &found) != 0 ? found.dli_fname : "";
    return path.substr(path.rfind('/') + 1);
  }

 private:
  template <class T>
  static T reduced(T value, MPI_Datatype type, MPI_Op operation) {
    T all{};
    MPI_Allreduce(&value, &all, 1, type, operation, MPI_COMM_WORLD);
    return all;
  }
  int rank_ = 0;
  int size_ = 1;
  std::optional<lacuna::Communicator> ranks_;
};

}  // namespace examples
