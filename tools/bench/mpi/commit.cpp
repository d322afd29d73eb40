#include "tools/bench/mpi/commit.hpp"

#include <random>
#include <stdexcept>

namespace lacuna::bench {
namespace {

constexpr int kLongest = 16;  // elements of a block, and of a gap
constexpr int kElement = 8;   // bytes

struct Blocks {
  std::vector<int> lengths;
  std::vector<int> displacements;
};

Blocks irregular(int count, std::mt19937_64& random) {
  Blocks blocks;
  int at = 0;
  const auto up_to = [&](int most) { return 1 + static_cast<int>(random() % static_cast<std::uint64_t>(most)); };
  for (int i = 0; i < count; ++i) {
    blocks.lengths.push_back(up_to(kLongest));
    blocks.displacements.push_back(at);
    at += blocks.lengths.back() + up_to(kLongest);
  }
  return blocks;
}

}  // namespace

std::vector<double> commit_times(const Mpi& mpi, int times, int blocks, std::uint64_t seed) {
  const lacuna_mpi_shim& calls = mpi.calls();
  std::mt19937_64 random(seed);
  const Mpi::Type element(calls.basic(kElement), {&calls});
  std::vector<double> us;
  for (int i = 0; i < times; ++i) {
    const Blocks made = irregular(blocks, random);
    const Mpi::Type type(calls.indexed(blocks, made.lengths.data(), made.displacements.data(), element.get()), {&calls});
    if (type == nullptr) throw std::runtime_error("MPI refused a list of blocks");
    const std::int64_t start = base::now_ns();
    const int status = calls.commit(type.get());
    us.push_back(static_cast<double>(base::now_ns() - start) / 1e3);
    if (status != 0) throw std::runtime_error("MPI refused to commit");
  }
  return us;
}

}  // namespace lacuna::bench
