#include "lacuna/mpi/job/gathering.hpp"

#include <algorithm>
#include <cstdio>

#include "lacuna/mpi/host/environment.hpp"
#include "lacuna/mpi/host/host.hpp"
#include "lacuna/mpi/host/pause.hpp"

namespace lacuna::mpi {
namespace {

// Waits until every rank is here, which one without the library never is; one that is late comes at last. By messages
// which no collective of a program meets: each rank has heard of twice as many after each round, those that follow it.
class Gathering {
 public:
  explicit Gathering(std::span<std::byte> told) {
    host().Comm_size(host().world, &size_);
    host().Comm_rank(host().world, &rank_);
    const auto ranks = static_cast<std::size_t>(size_);
    bytes_ = told.size() / (2 * ranks);
    by_rank_ = told.first(ranks * bytes_);
    following_ = told.subspan(ranks * bytes_);
  }
  void wait() {
    std::ranges::copy(part(by_rank_, rank_), following_.begin());
    int heard = 1;
    for (int step = 1; step < size_; step *= 2) {
      const int more = std::min(step, size_ - step);
      if (!exchange((rank_ + size_ - step) % size_, (rank_ + step) % size_, step, more)) break;
      heard += more;
    }
    for (int i = 0; i < heard; ++i) std::ranges::copy(part(following_, i), part(by_rank_, (rank_ + i) % size_).begin());
  }

 private:
  static constexpr int kTag = 32767;  // every MPI has it
  static constexpr std::int64_t kSecond = 1'000'000'000;

  [[nodiscard]] std::span<std::byte> part(std::span<std::byte> of, int index, int parts = 1) const {
    return of.subspan(static_cast<std::size_t>(index) * bytes_, static_cast<std::size_t>(parts) * bytes_);
  }
  // Sends the first `parts` of those that follow, and receives as many behind the first `at`.
  bool exchange(int to, int from, int at, int parts) {
    const Host& h = host();
    Request both[] = {h.no_request, h.no_request};
    const std::span<std::byte> out = part(following_, 0, parts), in = part(following_, at, parts);
    const bool begun = h.Irecv(in.data(), static_cast<int>(in.size()), h.byte, from, kTag, h.world, &both[0]) == kSuccess &&
                       h.Issend(out.data(), static_cast<int>(out.size()), h.byte, to, kTag, h.world, &both[1]) == kSuccess;
    const bool met = begun && wait_for_both(both);
    if (both[0] != h.no_request) h.Cancel(&both[0]);
    for (Request& request : both) {
      if (request != h.no_request) h.Request_free(&request);
    }
    return met;
  }
  bool wait_for_both(Request* both) {
    for (int rounds = 0, over = 0;; pause(rounds)) {
      if (host().Testall(2, both, &over, ignored()) != kSuccess) return false;
      if (over != 0) return true;
      if (!has_patience()) return false;
    }
  }
  bool has_patience() {
    const std::int64_t seconds = (base::now_ns() - began_) / kSecond;
    if (!said_ && seconds >= std::min<std::int64_t>(limit_ / 2, 30)) {
      say(seconds, "it waits on");
      said_ = true;
    }
    if (seconds < limit_) return true;
    say(seconds, "the job ends (LACUNA_MPI_WAIT is how many seconds it waits)");
    host().Abort(host().world, 1);
    return false;
  }
  void say(std::int64_t seconds, const char* end) const {
    std::fprintf(stderr,
                 "lacuna: rank %d has waited %lld s in MPI_Init for ranks that do not say whether they have Lacuna. "
                 "All ranks are to be started with its library (LD_PRELOAD), or none; %s\n",
                 rank_, static_cast<long long>(seconds), end);
  }

  int rank_ = 0, size_ = 1;
  std::size_t bytes_ = 0;           // of a part
  std::span<std::byte> by_rank_;    // all parts,
  std::span<std::byte> following_;  // and those that were heard: of this rank, of the next one, and so on
  bool said_ = false;
  std::int64_t began_ = base::now_ns(), limit_ = number_of_environment("LACUNA_MPI_WAIT", 600, "seconds", 0);
};

}  // namespace

void gather_ranks(std::span<std::byte> told) { Gathering(told).wait(); }

}  // namespace lacuna::mpi
