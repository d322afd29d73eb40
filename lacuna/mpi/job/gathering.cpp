#include "lacuna/mpi/job/gathering.hpp"

#include <algorithm>
#include <cstdio>

#include "lacuna/mpi/host/environment.hpp"
#include "lacuna/mpi/host/host.hpp"
#include "lacuna/mpi/host/pause.hpp"

namespace lacuna::mpi {
namespace {

// Waits until every rank is here, which one without the library never is; one that is late comes at last. By messages
// of no bytes, which no collective of a program meets: each rank hears of twice as many in each round.
class Gathering {
 public:
  Gathering() {
    host().Comm_size(host().world, &size_);
    host().Comm_rank(host().world, &rank_);
  }
  void wait() {
    bool goes_on = true;
    for (int step = 1; goes_on && step < size_; step *= 2) goes_on = exchange((rank_ + step) % size_, (rank_ + size_ - step) % size_);
  }

 private:
  static constexpr int kTag = 32767;  // every MPI has it
  static constexpr std::int64_t kSecond = 1'000'000'000;

  bool exchange(int to, int from) {
    const Host& h = host();
    Request both[] = {h.no_request, h.no_request};
    const bool begun = h.Irecv(nullptr, 0, h.byte, from, kTag, h.world, &both[0]) == kSuccess &&
                       h.Issend(nullptr, 0, h.byte, to, kTag, h.world, &both[1]) == kSuccess;
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
  bool said_ = false;
  std::int64_t began_ = base::now_ns(), limit_ = number_of_environment("LACUNA_MPI_WAIT", 600, "seconds", 0);
};

}  // namespace

void gather_ranks() { Gathering().wait(); }

}  // namespace lacuna::mpi
