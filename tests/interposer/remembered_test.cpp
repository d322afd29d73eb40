// Requests that the host completes alone, and what is remembered of them: in programs without threads, whatever comes.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "lacuna/mpi/job/job.hpp"
#include "tests/interposer/fake.hpp"
#include "tests/support/environment.hpp"
#include "tests/support/random.hpp"

namespace lacuna::test {
namespace LACUNA_TEST_FILE {

using namespace fake;

constexpr int kInts = 3000;  // more than is packed
const Options kNoThreads{.threads = false};

Datatype gaps(const Host& mpi, int ints) {
  Datatype type = fake::vector(ints, 1, 2, int_type());
  mpi.Type_commit(&type);
  return type;
}

std::vector<int> numbers(int count, int step = 1) {
  std::vector<int> made(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) made[static_cast<std::size_t>(i)] = i * step;
  return made;
}

void expect_sound(const Options& options, const Program& program) {
  const Outcome outcome = run_preloaded(options, program);
  for (const std::string& wrong : outcome.wrong) ADD_FAILURE() << wrong;
}

// Against a map, with few handles, so that many are in one another's places.
TEST(RememberedRequests, AreFoundUntilTheyAreTaken) {
  run_plain({.ranks = 1}, [](const Host&, int) {
    support::Random random(3);
    mpi::RememberedRequests table;
    std::map<Request, Count> map;
    for (int step = 0; step < 20'000; ++step) {
      const auto handle = reinterpret_cast<Request>(0x1000 + 64 * random.below(300));
      const auto known = map.find(handle);
      const mpi::Remembered* const found = table.find(handle);
      ASSERT_EQ(found != nullptr, known != map.end());
      if (found != nullptr) {
        ASSERT_EQ(found->count, known->second);
      }
      if (random.one_in(2)) {
        table.make_room();
        table.add(handle, {.count = step, .buffered = {}});
        map[handle] = step;
      } else if (const std::optional<mpi::Remembered> taken = table.take(handle); taken) {
        ASSERT_EQ(taken->count, known->second);
        map.erase(handle);
      }
      ASSERT_EQ(table.empty(), map.empty());
    }
    ASSERT_EQ(table.take(mpi::host().no_request), std::nullopt);
  });
}

// What many of them needed is given back once they are over.
TEST(RememberedRequests, GiveBackWhatManyNeeded) {
  run_plain({.ranks = 1}, [](const Host&, int) {
    const auto handle = [](std::size_t i) { return reinterpret_cast<Request>(0x1000 + 64 * i); };
    mpi::RememberedRequests table;
    constexpr std::size_t kMany = mpi::RememberedRequests::kMostKept;
    for (std::size_t i = 0; i < kMany; ++i) {
      table.make_room();
      table.add(handle(i), {.buffered = {}});
    }
    EXPECT_GE(table.places(), 2 * kMany);
    for (std::size_t i = 0; i < kMany; ++i) ASSERT_NE(table.take(handle(i)), std::nullopt);
    table.make_room();
    EXPECT_LE(table.places(), 64);
  });
}

// However many a visitor takes out, each is shown, and few twice.
TEST(RememberedRequests, AreShownOnce) {
  run_plain({.ranks = 1}, [](const Host&, int) {
    constexpr std::size_t kMany = 3000;
    support::Random random(5);
    mpi::RememberedRequests table;
    std::map<Request, bool> shown;
    while (shown.size() < kMany) {
      const auto handle = reinterpret_cast<Request>(0x1000 + 64 * random.below(100'000));
      table.make_room();
      table.add(handle, {.buffered = {}});
      shown[handle] = false;
    }
    std::size_t visits = 0;
    table.each([&](const mpi::RememberedRequests::Entry& entry) {
      ++visits;
      shown[entry.handle] = true;
      if (visits % 3 != 0) {
        EXPECT_NE(table.take(entry.handle), std::nullopt);
      }
    });
    EXPECT_TRUE(std::ranges::all_of(shown, [](const auto& each) { return each.second; }));
    EXPECT_LT(visits, kMany + kMany / 10);
  });
}

// While a call ends requests, an error handler begins another, which gets the handle of one of them.
TEST(RememberedRequests, LoseNothingWithTheirHandles) {
  run_plain({.ranks = 1}, [](const Host&, int) {
    const auto handle = reinterpret_cast<Request>(0x1000);
    mpi::RememberedRequests table;
    mpi::Remembered taken;
    const auto add = [&](Count count) {
      table.make_room();
      table.add(handle, {.count = count, .buffered = {}});
    };
    add(1);
    {
      const mpi::RememberedRequests::Ending ending(table);
      add(2);
      ASSERT_TRUE(table.take_ended(handle, taken));
      EXPECT_EQ(taken.count, 1);
    }
    ASSERT_NE(table.find(handle), nullptr);
    EXPECT_EQ(table.find(handle)->count, 2);
    add(3);  // completed where no call of ours saw it
    const mpi::RememberedRequests::Ending ending(table);
    ASSERT_TRUE(table.take_ended(handle, taken));
    EXPECT_EQ(taken.count, 3);
    EXPECT_TRUE(table.empty());
  });
}

// Of each of them nothing but that is known: no operation is made.
TEST(RememberedRequests, AreNoOperations) {
  expect_sound(kNoThreads, [](const Host& mpi, int rank) {
    Datatype type = gaps(mpi, 100);
    std::vector<int> out = numbers(200), in(100), in_gaps(200);
    Request requests[4];
    mpi.Irecv(in.data(), 100, int_type(), 1 - rank, 1, mpi.world, &requests[0]);
    mpi.Irecv(in_gaps.data(), 1, type, 1 - rank, 2, mpi.world, &requests[1]);
    mpi.Isend(out.data(), 100, int_type(), 1 - rank, 1, mpi.world, &requests[2]);
    mpi.Isend(out.data(), 1, type, 1 - rank, 2, mpi.world, &requests[3]);
    EXPECT_TRUE(mpi::job->operations.empty());
    EXPECT_EQ(mpi.Waitall(4, requests, mpi::ignored()), mpi::kSuccess);
    EXPECT_TRUE(mpi::job->remembered.empty());
    EXPECT_EQ(in, numbers(100));
    for (int i = 0; i < 200; ++i) EXPECT_EQ(in_gaps[static_cast<std::size_t>(i)], i % 2 == 0 ? i : 0);
    mpi.Type_free(&type);
  });
}

// The type is gone before the message comes.
TEST(RememberedRequests, OutliveTheirTypes) {
  expect_sound(kNoThreads, [](const Host& mpi, int rank) {
    std::vector<int> memory = rank == 0 ? numbers(200) : std::vector<int>(200, -1);
    Datatype type = gaps(mpi, 100);
    Request request{};
    if (rank == 1) mpi.Irecv(memory.data(), 1, type, 0, 1, mpi.world, &request);
    if (rank == 0) mpi.Isend(memory.data(), 1, type, 1, 1, mpi.world, &request);
    mpi.Type_free(&type);
    mpi.Wait(&request, mpi::ignored());
    for (int i = 0; i < 200 && rank == 1; ++i) EXPECT_EQ(memory[static_cast<std::size_t>(i)], i % 2 == 0 ? i : -1);
  });
}

// What is cancelled gets nothing, and what is freed its message all the same.
TEST(RememberedRequests, AreCancelledAndFreed) {
  for (const bool has_gaps : {false, true}) {
    expect_sound(kNoThreads, [&](const Host& mpi, int rank) {
      Datatype type = gaps(mpi, kInts);
      std::vector<int> memory = rank == 0 ? numbers(2 * kInts) : std::vector<int>(2 * kInts, -1);
      std::vector<int> other(2 * kInts, -1);
      int ready = 0;
      if (rank == 0) {
        mpi.Recv(&ready, 1, int_type(), 1, 3, mpi.world, mpi::ignored());
        mpi.Send(memory.data(), 1, type, 1, 2, mpi.world);
        mpi.Recv(&ready, 1, int_type(), 1, 3, mpi.world, mpi::ignored());
      } else {
        Request cancelled{}, freed{};
        mpi.Irecv(other.data(), has_gaps ? 1 : kInts, has_gaps ? type : int_type(), 0, 1, mpi.world, &cancelled);
        mpi.Irecv(memory.data(), has_gaps ? 1 : kInts, has_gaps ? type : int_type(), 0, 2, mpi.world, &freed);
        mpi.Cancel(&cancelled);
        Status status{};
        int was = 0;
        mpi.Wait(&cancelled, &status);
        mpi.Test_cancelled(&status, &was);
        EXPECT_EQ(was, 1);
        EXPECT_EQ(other, std::vector<int>(2 * kInts, -1));
        mpi.Request_free(&freed);
        mpi.Send(&ready, 1, int_type(), 0, 3, mpi.world);
        const volatile int* const last = &memory[static_cast<std::size_t>(has_gaps ? 2 * kInts - 2 : kInts - 1)];
        while (*last == -1) mpi.Iprobe(0, 4, mpi.world, &ready, mpi::ignored());
        EXPECT_EQ(*last, 2 * kInts - 2);
        mpi.Send(&ready, 1, int_type(), 0, 3, mpi.world);
      }
      mpi.Type_free(&type);
    });
  }
}

// One of several is too short for its message: all statuses say what each of them came to.
TEST(RememberedRequests, TellWhichOfThemFailed) {
  for (const bool offered : {false, true}) {
    for (const int receives : {2, 40}) {
      expect_sound(kNoThreads, [&](const Host& mpi, int rank) {
        return_errors(mpi.world);
        Datatype type = gaps(mpi, kInts);
        std::vector<int> memory = numbers(2 * kInts);
        if (rank == 0) {
          for (int i = 0; i < receives; ++i) mpi.Send(memory.data(), offered ? 1 : kInts, offered ? type : int_type(), 1, i, mpi.world);
        } else {
          std::vector<std::vector<int>> in(static_cast<std::size_t>(receives), std::vector<int>(kInts));
          std::vector<Request> requests(in.size());
          std::vector<Status> statuses(in.size());
          for (Status& each : statuses) each.error = 77;
          for (int i = 0; i < receives; ++i)
            mpi.Irecv(in[static_cast<std::size_t>(i)].data(), i == 1 ? kInts / 2 : kInts, int_type(), 0, i, mpi.world,
                      &requests[static_cast<std::size_t>(i)]);
          EXPECT_EQ(mpi.Waitall(receives, requests.data(), statuses.data()), mpi::kErrInStatus);
          for (int i = 0; i < receives; ++i) {
            EXPECT_EQ(statuses[static_cast<std::size_t>(i)].error, i == 1 ? mpi::kErrTruncate : mpi::kSuccess) << i;
            const std::vector<int> whole = numbers(kInts, offered ? 2 : 1);
            EXPECT_TRUE(i == 1 || in[static_cast<std::size_t>(i)] == whole) << i;
            EXPECT_EQ(requests[static_cast<std::size_t>(i)], mpi.no_request);
          }
        }
        mpi.Type_free(&type);
      });
    }
  }
}

// The host tells nothing of its predefined types. What comes is as long as a descriptor, and is none, or it is one.
TEST(RememberedRequests, AreOfTypesThatTheHostDoesNotTellOf) {
  for (const char* const how : {"Wait", "Irecv of a pair", "Recv"}) {
    SCOPED_TRACE(how);
    const Outcome outcome = run_preloaded(
        kNoThreads,
        [&](const Host& mpi, int rank) {
          Datatype type = gaps(mpi, kInts);
          std::vector<int> out = numbers(2 * kInts), in(kInts, -1);
          std::vector<char> bytes(300, static_cast<char>(rank));
          for (const bool offered : {false, true}) {
            const auto count = offered ? 4 * kInts : 300;
            void* const to = offered ? static_cast<void*>(in.data()) : bytes.data();
            Request request{};
            if (rank == 0) {
              mpi.Send(offered ? static_cast<void*>(out.data()) : bytes.data(), offered ? 1 : 253, offered ? type : byte_type(), 1, 1,
                       mpi.world);
            } else if (std::string_view(how) == "Recv") {
              mpi.Recv(to, count, byte_type(), 0, 1, mpi.world, mpi::ignored());
            } else if (std::string_view(how) == "Wait") {
              mpi.Irecv(to, count, byte_type(), 0, 1, mpi.world, &request);
              mpi.Wait(&request, mpi::ignored());
            } else {
              mpi.Isendrecv(nullptr, 0, byte_type(), mpi::kProcNull, 1, to, count, byte_type(), 0, 1, mpi.world, &request);
              mpi.Wait(&request, mpi::ignored());
            }
          }
          EXPECT_EQ(std::ranges::count(bytes, 0), rank == 0 ? 300 : 253);
          EXPECT_EQ(in, rank == 0 ? std::vector<int>(kInts, -1) : numbers(kInts, 2));
          mpi.Type_free(&type);
        },
        {{.call = "Type_get_envelope", .n = Fault::kAll, .rank = 1}, {.call = "Type_get_envelope_c", .n = Fault::kAll, .rank = 1}});
    for (const std::string& wrong : outcome.wrong) ADD_FAILURE() << wrong;
  }
}

// While one waits for what it sends, what it receives moves: neither gives up its stream for want of a receiver.
TEST(RememberedRequests, MoveWhileTheirRankSends) {
  const Set patience("LACUNA_MPI_PATIENCE", "3600000000");  // longer than a test may take
  expect_sound(kNoThreads, [](const Host& mpi, int rank) {
    constexpr int kLong = 2'000'000;  // more than the windows of a stream hold
    Datatype type = gaps(mpi, kLong);
    const std::vector<int> out = numbers(2 * kLong);
    std::vector<int> in(kLong, -1);
    Request request{};
    mpi.Irecv(in.data(), kLong, int_type(), 1 - rank, 1, mpi.world, &request);
    mpi.Send(out.data(), 1, type, 1 - rank, 1, mpi.world);
    mpi.Wait(&request, mpi::ignored());
    EXPECT_EQ(in, numbers(kLong, 2));
    mpi.Type_free(&type);
  });
}

}  // namespace LACUNA_TEST_FILE
}  // namespace lacuna::test
