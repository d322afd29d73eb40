// Ranks that die between two calls, over a host that returns errors then: no rank waits for a dead one for ever, not
// even where it waits without the host.
#include <gtest/gtest.h>

#include <array>
#include <atomic>

#include "tests/interposer/collective_kinds.hpp"
#include "tests/interposer/every_second.hpp"
#include "tests/interposer/fake.hpp"
#include "tests/support/environment.hpp"
#include "tests/support/patience.hpp"
#include "tests/support/tier.hpp"

namespace lacuna::test {
namespace LACUNA_TEST_FILE {

LACUNA_TIER(test, "Deaths.*");

using namespace fake;
using namespace collectives;

constexpr int kDead = kRanks - 1;
static_assert(kDead != kRoot);

void expect_sound(const Outcome& outcome) {
  for (const std::string& wrong : outcome.wrong) ADD_FAILURE() << wrong;
}

// The last rank dies once the others have ended the calls before.
class Calls {
 public:
  explicit Calls(int before) : before_(before) {}
  /// Before each call, from 0 on. False: this rank is dead.
  bool goes_on(int rank, int call) {
    if (call != before_) return true;
    ++through_;
    if (rank != kDead) return true;
    EXPECT_EQ(await("the other ranks", [&] { return through_ == kRanks; }), "");
    die();
    return false;
  }

 private:
  const int before_;
  std::atomic<int> through_ = 0;
};

bool waits_for_all(const Kind& kind) { return kind.host == std::string_view("Alltoallv") || kind.host == std::string_view("Allgather"); }

// Some calls that go by boards; then those that live make two more. The first waits for the dead rank's board, where it
// waits for all; the second finds that the first has failed.
TEST(Deaths, EndCollectivesByBoards) {
  const Set offers("LACUNA_MPI_WAY", "offered");
  for (const Kind& kind : kKinds) {
    for (const int before : {0, 3}) {
      for (const bool threads : {false, true}) {
        SCOPED_TRACE(kind.name);
        const Options options{.ranks = kRanks, .threads = threads, .decode_at = 1};
        Calls calls(before);
        expect_sound(run_preloaded(options, [&](const Host& mpi, int rank) {
          return_errors(mpi.world);
          Datatype type = gaps(mpi);
          Comm ring = cart(mpi.world, std::array{kRanks}, std::array{true});
          return_errors(ring);
          for (int call = 0; call < before + 2; ++call) {
            if (!calls.goes_on(rank, call)) return;
            Memory memory(rank);
            const int by_host = calls_of(kind.host);
            const int result = kind.call(mpi, memory, type, ring, rank);
            if (call == 2 && before == 3) {
              EXPECT_EQ(calls_of(kind.host), by_host) << "not by boards";
            }
            if (call < before || waits_for_all(kind)) {
              EXPECT_EQ(result, call < before ? mpi::kSuccess : kErrProcFailed) << "call " << call;
            }
            if (result == mpi::kSuccess) kind.expect(memory, rank);
          }
          mpi.Comm_free(&ring);
          mpi.Type_free(&type);
        }));
      }
    }
  }
}

// With a request: after calls that have got boards, and as the first one.
TEST(Deaths, EndCollectivesWithRequests) {
  const Set offers("LACUNA_MPI_WAY", "offered");
  for (const int before : {0, 6}) {
    Calls calls(before);
    expect_sound(run_preloaded({.ranks = kRanks, .threads = false, .decode_at = 1}, [&](const Host& mpi, int rank) {
      return_errors(mpi.world);
      Datatype type = gaps(mpi);
      for (int call = 0; call < before + 6; ++call) {
        if (!calls.goes_on(rank, call)) return;
        Memory memory(rank);
        Request request{};
        const int by_host = calls_of("Iallgather");
        int result = mpi.Iallgather(memory.out.data(), 1, type, memory.in.data(), 1, type, mpi.world, &request);
        if (result == mpi::kSuccess) result = mpi.Wait(&request, mpi::ignored());
        EXPECT_EQ(result, call < before ? mpi::kSuccess : kErrProcFailed) << "call " << call;
        if (call + 1 == before) {
          EXPECT_EQ(calls_of("Iallgather"), by_host) << "not by boards";
        }
      }
      mpi.Type_free(&type);
    }));
  }
}

// One that is persistent, and is started again after that.
TEST(Deaths, EndPersistentCollectives) {
  const Set offers("LACUNA_MPI_WAY", "offered");
  Calls calls(2);
  expect_sound(run_preloaded({.ranks = kRanks, .threads = false, .decode_at = 1}, [&](const Host& mpi, int rank) {
    return_errors(mpi.world);
    Datatype type = gaps(mpi);
    Memory memory(rank);
    Request request{};
    EXPECT_EQ(mpi.Allgather_init(memory.out.data(), 1, type, memory.in.data(), 1, type, mpi.world, Info{}, &request), mpi::kSuccess);
    for (int call = 0; call < 4; ++call) {
      if (!calls.goes_on(rank, call)) return;
      EXPECT_EQ(mpi.Start(&request), mpi::kSuccess);
      EXPECT_EQ(mpi.Wait(&request, mpi::ignored()), call < 2 ? mpi::kSuccess : kErrProcFailed) << "start " << call;
    }
    EXPECT_EQ(mpi.Request_free(&request), mpi::kSuccess);
    mpi.Type_free(&type);
  }));
}

// What a rank has offered before it dies still comes, and what it has not sent is an error; on one node and on two.
TEST(Deaths, LeaveWhatWasOffered) {
  for (const int nodes : {1, 2}) {
    expect_sound(run_preloaded({.eager = 1 << 20, .nodes = nodes}, [&](const Host& mpi, int rank) {
      return_errors(mpi.world);
      Datatype type = every_second(mpi);
      std::vector<int> memory = numbers(rank == 0 ? 1 : -100'000);
      if (rank == 0) {
        Request request{};
        mpi.Isend(memory.data(), 1, type, 1, 7, mpi.world, &request);
        return die();
      }
      EXPECT_EQ(mpi.Recv(memory.data(), 1, type, 0, 7, mpi.world, mpi::ignored()), mpi::kSuccess);
      EXPECT_EQ(memory, received(1, -100'000));
      EXPECT_EQ(mpi.Recv(memory.data(), 1, type, 0, 7, mpi.world, mpi::ignored()), kErrProcFailed);
      EXPECT_NE(mpi.Send(memory.data(), 1, type, 0, 7, mpi.world), mpi::kSuccess);
      mpi.Type_free(&type);
    }));
  }
}

}  // namespace LACUNA_TEST_FILE
}  // namespace lacuna::test
