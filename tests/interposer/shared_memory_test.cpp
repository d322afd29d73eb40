// Where no memory can be had that other processes reach, messages go all the same, in their order, and nothing waits
// for more than the host would wait for.
#include <gtest/gtest.h>

#include <numeric>
#include <optional>

#include "lacuna/mpi/job/job.hpp"
#include "tests/interposer/every_second.hpp"
#include "tests/interposer/fake.hpp"

namespace lacuna::test {
namespace LACUNA_TEST_FILE {

using namespace fake;

void expect_sound(const Outcome& outcome) {
  for (const std::string& wrong : outcome.wrong) ADD_FAILURE() << wrong;
}

// All memory that this rank could share.
class Hog {
 public:
  Hog() {
    const auto lock = mpi::job->enter();
    for (std::size_t bytes = std::size_t{1} << 46; bytes >= 4096; bytes /= 2) {
      for (auto got = mpi::job->context->allocate(bytes); got; got = mpi::job->context->allocate(bytes)) taken_.push_back(std::move(*got));
    }
  }
  ~Hog() {
    const auto lock = mpi::job->enter();
    taken_.clear();
  }
  Hog(const Hog&) = delete;
  Hog& operator=(const Hog&) = delete;

 private:
  std::vector<nic::Buffer> taken_;
};

Datatype every_second_of(const Host& mpi, int count) {
  Datatype type = fake::vector(count, 1, 2, int_type());
  mpi.Type_commit(&type);
  return type;
}

std::vector<int> numbers_of(int count, int first) {
  std::vector<int> made(2 * static_cast<std::size_t>(count));
  std::iota(made.begin(), made.end(), first);
  return made;
}

std::vector<int> received(int count, int sent, int own) {
  std::vector<int> made = numbers_of(count, own);
  for (std::size_t i = 0; i < made.size(); i += 2) made[i] += sent - own;
  return made;
}

// So that there are windows.
void exchange_once(const Host& mpi, int rank) {
  Datatype type = every_second(mpi);
  std::vector<int> out = numbers(1), in = numbers(2);
  Request request{};
  mpi.Irecv(in.data(), 1, type, 1 - rank, 5, mpi.world, &request);
  mpi.Send(out.data(), 1, type, 1 - rank, 5, mpi.world);
  mpi.Wait(&request, mpi::ignored());
  mpi.Type_free(&type);
}

// Each sends more than a window has room for, and receives what the other sends while it does.
TEST(InterposedSharedMemory, SendersServeTheirReceives) {
  constexpr int kInts = 3 << 20;
  expect_sound(run_preloaded({}, [](const Host& mpi, int rank) {
    exchange_once(mpi, rank);
    Datatype type = every_second_of(mpi, kInts);
    const std::vector<int> out = numbers_of(kInts, rank);
    std::vector<int> in = numbers_of(kInts, -100'000);
    Request request{};
    mpi.Irecv(in.data(), 1, type, 1 - rank, 7, mpi.world, &request);
    const Hog hog;
    EXPECT_EQ(mpi.Send(out.data(), 1, type, 1 - rank, 7, mpi.world), mpi::kSuccess);
    EXPECT_EQ(mpi.Wait(&request, mpi::ignored()), mpi::kSuccess);
    EXPECT_TRUE(in == received(kInts, 1 - rank, -100'000));
    mpi.Type_free(&type);
  }));
}

// Before their receives, so that nothing is left behind for which there is no room; longer than a place that is.
TEST(InterposedSharedMemory, BothBeginTheirSendsFirst) {
  constexpr std::size_t kBytes = std::size_t{70} << 20;
  expect_sound(run_preloaded({}, [](const Host& mpi, int rank) {
    exchange_once(mpi, rank);
    std::vector<std::byte> out(kBytes, static_cast<std::byte>(rank + 1)), in(kBytes);
    Request request{};
    {
      const Hog hog;
      EXPECT_EQ(mpi.Isend(out.data(), static_cast<int>(kBytes), mpi.byte, 1 - rank, 7, mpi.world, &request), mpi::kSuccess);
    }
    EXPECT_EQ(mpi.Recv(in.data(), static_cast<int>(kBytes), mpi.byte, 1 - rank, 7, mpi.world, mpi::ignored()), mpi::kSuccess);
    EXPECT_EQ(mpi.Wait(&request, mpi::ignored()), mpi::kSuccess);
    EXPECT_TRUE(in == std::vector<std::byte>(kBytes, static_cast<std::byte>(2 - rank)));
  }));
}

// Short ones of the host's around one of ours, all with one tag. The last round has memory again.
TEST(InterposedSharedMemory, PersistentSendsStartInOrder) {
  using End = int (*)(const Host&, Request*);
  constexpr End kEnds[] = {[](const Host& mpi, Request* requests) { return mpi.Waitall(3, requests, mpi::ignored()); },
                           [](const Host& mpi, Request* requests) {
                             int over = 0;
                             while (over == 0 && mpi.Testall(3, requests, &over, mpi::ignored()) == mpi::kSuccess) {
                             }
                             return over != 0 ? mpi::kSuccess : mpi::kErrOther;
                           },
                           [](const Host& mpi, Request* requests) {
                             for (int left = 3, index = 0; left > 0; --left) {
                               const int error = mpi.Waitany(3, requests, &index, mpi::ignored());
                               if (error != mpi::kSuccess || index == mpi::kUndefined) return mpi::kErrOther;
                             }
                             return mpi::kSuccess;
                           }};
  for (const bool renews : {false, true})
    expect_sound(run_preloaded({.renews = renews}, [&](const Host& mpi, int rank) {
      Datatype type = every_second(mpi);
      int before = rank == 0 ? 41 : 0, after = rank == 0 ? 43 : 0;
      std::vector<int> memory = numbers(1);
      Request requests[3];
      if (rank == 0) {
        mpi.Send_init(&before, 1, int_type(), 1, 7, mpi.world, &requests[0]);
        mpi.Send_init(memory.data(), 1, type, 1, 7, mpi.world, &requests[1]);
        mpi.Send_init(&after, 1, int_type(), 1, 7, mpi.world, &requests[2]);
      }
      for (int round = 0; round < 4; ++round) {
        if (rank == 0) {
          std::optional<Hog> hog;
          if (round < 3) hog.emplace();
          const int before_start = calls_of("Isend");
          EXPECT_EQ(mpi.Startall(3, requests), mpi::kSuccess);
          EXPECT_EQ(calls_of("Isend") - before_start, round < 3 ? 1 : 0);
          EXPECT_EQ(kEnds[round % 3](mpi, requests), mpi::kSuccess);
          continue;
        }
        memory = numbers(-100'000);
        before = after = 0;
        mpi.Recv(&before, 1, int_type(), 0, 7, mpi.world, mpi::ignored());
        EXPECT_EQ(mpi.Recv(memory.data(), 1, type, 0, 7, mpi.world, mpi::ignored()), mpi::kSuccess);
        mpi.Recv(&after, 1, int_type(), 0, 7, mpi.world, mpi::ignored());
        EXPECT_EQ(before, 41) << "round " << round;
        EXPECT_EQ(after, 43) << "round " << round;
        EXPECT_EQ(memory, received(kCount, 1, -100'000)) << "round " << round;
      }
      for (Request& request : requests) {
        if (rank == 0) mpi.Request_free(&request);
      }
      mpi.Type_free(&type);
    }));
}

// Freed while it is under way.
TEST(InterposedSharedMemory, FreedPersistentSendsArrive) {
  expect_sound(run_preloaded({}, [](const Host& mpi, int rank) {
    Datatype type = every_second(mpi);
    std::vector<int> memory = numbers(rank == 0 ? 1 : -100'000);
    if (rank == 0) {
      Request request{};
      mpi.Send_init(memory.data(), 1, type, 1, 7, mpi.world, &request);
      const Hog hog;
      EXPECT_EQ(mpi.Start(&request), mpi::kSuccess);
      EXPECT_EQ(mpi.Request_free(&request), mpi::kSuccess);
    } else {
      EXPECT_EQ(mpi.Recv(memory.data(), 1, type, 0, 7, mpi.world, mpi::ignored()), mpi::kSuccess);
      EXPECT_EQ(memory, received(kCount, 1, -100'000));
    }
    mpi.Type_free(&type);
  }));
}

// The host takes none of it.
TEST(InterposedSharedMemory, StartsThatTheHostRefuses) {
  run_preloaded({},
                [](const Host& mpi, int rank) {
                  if (rank != 0) return;
                  return_errors(mpi.world);
                  Datatype type = every_second(mpi);
                  const std::vector<int> memory = numbers(1);
                  Request request{};
                  mpi.Send_init(memory.data(), 1, type, 1, 7, mpi.world, &request);
                  const Hog hog;
                  EXPECT_EQ(mpi.Start(&request), mpi::kErrOther);
                  mpi.Request_free(&request);
                  mpi.Type_free(&type);
                },
                {{.call = "Isend"}});
}

// The host refuses three starts. The fourth has their memory, though no more can be had.
TEST(InterposedSharedMemory, OfStartsThatTheHostRefusesIsGivenBack) {
  constexpr int kInts = 3 << 20;
  run_preloaded({},
                [](const Host& mpi, int rank) {
                  return_errors(mpi.world);
                  Datatype type = every_second_of(mpi, kInts);
                  std::vector<int> memory = numbers_of(kInts, rank == 0 ? 1 : -100'000);
                  if (rank == 0) {
                    Request request{};
                    mpi.Send_init(memory.data(), 1, type, 1, 7, mpi.world, &request);
                    EXPECT_EQ(mpi.Start(&request), mpi::kErrOther);
                    const Hog hog;
                    for (int again = 1; again < 3; ++again) EXPECT_EQ(mpi.Start(&request), mpi::kErrOther);
                    EXPECT_EQ(mpi.Start(&request), mpi::kSuccess);
                    EXPECT_EQ(calls_of("Isend"), 0);
                    EXPECT_EQ(mpi.Wait(&request, mpi::ignored()), mpi::kSuccess);
                    mpi.Request_free(&request);
                  } else {
                    EXPECT_EQ(mpi.Recv(memory.data(), 1, type, 0, 7, mpi.world, mpi::ignored()), mpi::kSuccess);
                    EXPECT_TRUE(memory == received(kInts, 1, -100'000));
                  }
                  mpi.Type_free(&type);
                },
                {{.call = "Start", .n = 1}, {.call = "Start", .n = 2}, {.call = "Start", .n = 3}});
}

}  // namespace LACUNA_TEST_FILE
}  // namespace lacuna::test
