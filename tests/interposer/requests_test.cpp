// Many requests through the interposer, on the fake host: whichever call completes them, each ends once, with its
// message and its status.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "lacuna/mpi/job/job.hpp"
#include "tests/interposer/fake.hpp"
#include "tests/support/random.hpp"

namespace lacuna::test {
namespace LACUNA_TEST_FILE {

using namespace fake;

constexpr int kMessages = 60;

// Of each length: left to the host, packed, offered.
int ints_of(int message) { return message % 3 == 0 ? 2 : message % 3 == 1 ? 40 : 3000; }

struct Message {
  Datatype type{};
  std::vector<int> memory;
};

// `whole`: rank 1 receives the same numbers without gaps.
std::vector<Message> messages(const Host& mpi, int rank, bool whole = false) {
  std::vector<Message> all(kMessages);
  for (int m = 0; m < kMessages; ++m) {
    Message& message = all[static_cast<std::size_t>(m)];
    message.type = fake::vector(ints_of(m), 1, 2, int_type());
    mpi.Type_commit(&message.type);
    message.memory.resize(static_cast<std::size_t>((whole && rank == 1 ? 1 : 2) * ints_of(m)), -1);
    if (rank == 0) std::iota(message.memory.begin(), message.memory.end(), 10'000 * m);
  }
  return all;
}

void expect_message(const std::vector<Message>& all, int m, const Status& status) {
  EXPECT_EQ(status.tag, m);
  EXPECT_EQ(mpi::bytes_of(status), 4 * ints_of(m));
  const std::vector<int>& memory = all[static_cast<std::size_t>(m)].memory;
  const bool whole = std::cmp_equal(memory.size(), ints_of(m));
  for (std::size_t i = 0; i < memory.size(); ++i) {
    const std::size_t sent = whole ? 2 * i : i;
    ASSERT_EQ(memory[i], sent % 2 == 0 ? 10'000 * m + static_cast<int>(sent) : -1) << m;
  }
}

enum class By { waitany, testany, waitsome, testsome, waitall, testall, test, status, wait };
constexpr std::pair<const char*, By> kAll[] = {{"waitany", By::waitany},   {"testany", By::testany}, {"waitsome", By::waitsome},
                                               {"testsome", By::testsome}, {"waitall", By::waitall}, {"testall", By::testall},
                                               {"test", By::test},         {"status", By::status},   {"wait", By::wait}};

// Completes all, and says of each which call did: the indices, and their statuses.
void complete(const Host& mpi, By by, std::vector<Request>& requests, std::vector<int>& indices, std::vector<Status>& statuses) {
  const auto count = static_cast<int>(requests.size());
  indices.clear();
  statuses.assign(requests.size(), {});
  const auto one = [&](int index, const Status& status) {
    indices.push_back(index);
    statuses[static_cast<std::size_t>(index)] = status;
  };
  const auto first = [&] {
    return static_cast<int>(std::ranges::find_if(requests, [&](Request r) { return r != mpi.no_request; }) - requests.begin());
  };
  while (std::cmp_less(indices.size(), count)) {
    int index = 0, flag = 1, ended = 0;
    Status status{};
    std::vector<int> some(requests.size());
    std::vector<Status> each(requests.size());
    switch (by) {
      case By::waitany: mpi.Waitany(count, requests.data(), &index, &status); break;
      case By::testany: mpi.Testany(count, requests.data(), &index, &flag, &status); break;
      case By::waitsome: mpi.Waitsome(count, requests.data(), &ended, some.data(), each.data()); break;
      case By::testsome: mpi.Testsome(count, requests.data(), &ended, some.data(), each.data()); break;
      case By::waitall: mpi.Waitall(count, requests.data(), each.data()); break;
      case By::testall: mpi.Testall(count, requests.data(), &flag, each.data()); break;
      case By::test:
        index = first();
        mpi.Test(&requests[static_cast<std::size_t>(index)], &flag, &status);
        break;
      case By::wait:
        index = first();
        mpi.Wait(&requests[static_cast<std::size_t>(index)], &status);
        break;
      case By::status:
        index = first();
        mpi.Request_get_status(requests[static_cast<std::size_t>(index)], &flag, &status);
        if (flag != 0) mpi.Wait(&requests[static_cast<std::size_t>(index)], mpi::ignored());
        break;
    }
    if (by == By::waitsome || by == By::testsome) {
      for (int k = 0; k < ended; ++k) one(some[static_cast<std::size_t>(k)], each[static_cast<std::size_t>(k)]);
    } else if (by == By::waitall || by == By::testall) {
      for (int k = 0; flag != 0 && k < count; ++k) one(k, each[static_cast<std::size_t>(k)]);
    } else if (flag != 0) {
      ASSERT_GE(index, 0);
      one(index, status);
    }
  }
}

struct Case {
  const char* name;
  By by;
  bool threads;
  bool slow;
  bool probed;  ///< some have been taken by a probe before they are received
  bool whole;   ///< the receives are of numbers without gaps
};

class InterposedRequests : public testing::TestWithParam<Case> {};

TEST_P(InterposedRequests, EndOnceEach) {
  const Case& of = GetParam();
  const Outcome outcome = run_preloaded({.threads = of.threads, .slow = of.slow ? 5U : 0U}, [&](const Host& mpi, int rank) {
    std::vector<Message> all = messages(mpi, rank, of.whole);
    std::vector<Request> requests(kMessages, mpi.no_request);
    support::Random random(7);
    std::vector<int> order(kMessages);
    std::iota(order.begin(), order.end(), 0);
    random.shuffle(order);
    if (rank == 1 && of.probed) mpi.Probe(0, kMessages - 1, mpi.world, mpi::ignored());
    for (const int m : rank == 0 ? std::vector<int>(order.rbegin(), order.rend()) : order) {
      Message& message = all[static_cast<std::size_t>(m)];
      Request& request = requests[static_cast<std::size_t>(m)];
      if (rank == 0) {
        mpi.Isend(message.memory.data(), 1, message.type, 1, m, mpi.world, &request);
      } else {
        mpi.Irecv(message.memory.data(), of.whole ? ints_of(m) : 1, of.whole ? int_type() : message.type, 0, m, mpi.world, &request);
      }
    }
    std::vector<int> indices;
    std::vector<Status> statuses;
    complete(mpi, rank == 0 ? By::waitall : of.by, requests, indices, statuses);
    std::ranges::sort(indices);
    for (int m = 0; m < kMessages; ++m) {
      EXPECT_EQ(indices[static_cast<std::size_t>(m)], m);
      EXPECT_EQ(requests[static_cast<std::size_t>(m)], mpi.no_request);
      if (rank == 1) expect_message(all, m, statuses[static_cast<std::size_t>(m)]);
      mpi.Type_free(&all[static_cast<std::size_t>(m)].type);
    }
    int index = 0;
    mpi.Waitany(kMessages, requests.data(), &index, mpi::ignored());
    EXPECT_EQ(index, mpi::kUndefined);
  });
  for (const std::string& wrong : outcome.wrong) ADD_FAILURE() << wrong;
}

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const auto& [name, by] : kAll) {
    for (const int bits : {0, 1, 2, 3, 4, 5}) {
      for (const bool whole : {false, true}) all.push_back({name, by, (bits & 1) != 0, (bits & 2) != 0, (bits & 4) != 0, whole});
    }
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(Every, InterposedRequests, testing::ValuesIn(cases()), [](const auto& info) {
  const Case& of = info.param;
  return std::string(of.name) + (of.threads ? "_threads" : "") + (of.slow ? "_slow" : "") + (of.probed ? "_probed" : "") +
         (of.whole ? "_whole" : "");
});

// Started together again and again, and completed by each call.
class InterposedStarts : public testing::TestWithParam<bool> {};  // whether the host renews requests that it starts
INSTANTIATE_TEST_SUITE_P(Renewed, InterposedStarts, testing::Bool());
TEST_P(InterposedStarts, ArePersistentInEachOrder) {
  const Outcome outcome = run_preloaded({.threads = false, .renews = GetParam()}, [&](const Host& mpi, int rank) {
    std::vector<Message> all = messages(mpi, rank);
    std::vector<Request> requests(kMessages);
    for (int m = 0; m < kMessages; ++m) {
      Message& message = all[static_cast<std::size_t>(m)];
      Request& request = requests[static_cast<std::size_t>(m)];
      if (rank == 0) {
        mpi.Send_init(message.memory.data(), 1, message.type, 1, m, mpi.world, &request);
      } else {
        mpi.Recv_init(message.memory.data(), 1, message.type, 0, m, mpi.world, &request);
      }
    }
    for (const auto& [name, by] : kAll) {
      if (by == By::test || by == By::status || by == By::wait) continue;  // they look for requests that are not null
      mpi.Startall(kMessages, requests.data());
      std::vector<int> indices;
      std::vector<Status> statuses;
      complete(mpi, rank == 0 ? By::waitall : by, requests, indices, statuses);
      for (int m = 0; rank == 1 && m < kMessages; ++m) {
        expect_message(all, m, statuses[static_cast<std::size_t>(m)]);
        std::ranges::fill(all[static_cast<std::size_t>(m)].memory, -1);
      }
      Request barrier{};
      mpi.Ibarrier(mpi.world, &barrier);
      mpi.Wait(&barrier, mpi::ignored());
    }
    for (int m = 0; m < kMessages; ++m) {
      mpi.Request_free(&requests[static_cast<std::size_t>(m)]);
      mpi.Type_free(&all[static_cast<std::size_t>(m)].type);
    }
  });
  for (const std::string& wrong : outcome.wrong) ADD_FAILURE() << wrong;
}

// The host says what is wrong with it, also while others are under way.
// However many there are, the host is asked about each so many times: not about all of them for each that ends.
TEST(InterposedCounts, OfManyRequestsAreLookedAtFewAtATime) {
  for (const bool offered : {false, true}) {
    const int many = offered ? 600 : 3000, ints = offered ? 2500 : 100;
    const Outcome outcome = run_preloaded({.singly = true}, [&](const Host& mpi, int rank) {
      Datatype type = fake::vector(ints, 1, 2, int_type());
      mpi.Type_commit(&type);
      std::vector<int> memory(static_cast<std::size_t>(2 * ints), rank);
      std::vector<std::vector<int>> received(static_cast<std::size_t>(many), memory);
      if (rank == 0) {
        for (int i = many; i-- > 0;) mpi.Send(memory.data(), 1, type, 1, i, mpi.world);  // the last one first
      } else {
        std::vector<Request> requests(static_cast<std::size_t>(many), mpi.no_request);
        for (int i = 0; i < many; ++i)
          mpi.Irecv(received[static_cast<std::size_t>(i)].data(), 1, type, 0, i, mpi.world, &requests[static_cast<std::size_t>(i)]);
        EXPECT_EQ(mpi.Waitall(many, requests.data(), mpi::ignored()), mpi::kSuccess);
        for (const std::vector<int>& one : received) ASSERT_EQ(one.front(), 0);
        EXPECT_LT(calls_of(kLooks), 400 * many);
      }
      mpi.Type_free(&type);
    });
    for (const std::string& wrong : outcome.wrong) ADD_FAILURE() << wrong;
  }
}

// What a loop completes one by one leaves the table once, also where threads may call MPI at once.
TEST(InterposedCounts, OfManyRequestsAreTakenOutOnceEach) {
  constexpr int kMany = 500;
  for (const bool threads : {false, true}) {
    for (const bool some : {false, true}) {
      run_preloaded({.threads = threads, .singly = true}, [&](const Host& mpi, int rank) {
        Datatype type = fake::vector(100, 1, 2, int_type());
        mpi.Type_commit(&type);
        std::vector<int> memory(200, rank);
        std::vector<std::vector<int>> received(kMany, memory);
        std::vector<Request> requests(kMany, mpi.no_request);
        for (int i = 0; i < kMany && rank == 0; ++i) mpi.Send(memory.data(), 1, type, 1, i, mpi.world);
        for (int i = 0; i < kMany && rank == 1; ++i)
          mpi.Irecv(received[static_cast<std::size_t>(i)].data(), 1, type, 0, i, mpi.world, &requests[static_cast<std::size_t>(i)]);
        for (int i = 0; i < kMany && rank == 1; ++i) {
          int index = 0, ended = 1;
          if (some) {
            mpi.Waitsome(kMany, requests.data(), &ended, &index, mpi::ignored());
          } else {
            mpi.Waitany(kMany, requests.data(), &index, mpi::ignored());
          }
          ASSERT_EQ(ended, 1);
          ASSERT_EQ(received[static_cast<std::size_t>(index)].front(), 0);
        }
        EXPECT_LE(mpi::job->operations.moves(), kMany);
        mpi.Type_free(&type);
      });
    }
  }
}

TEST(InterposedCounts, BelowZeroEndNothing) {
  const Outcome outcome = run_preloaded({.threads = false}, [&](const Host& mpi, int rank) {
    std::vector<Message> all = messages(mpi, rank);
    Message& message = all[2];
    if (rank == 0) {
      mpi.Ssend(message.memory.data(), 1, message.type, 1, 2, mpi.world);
    } else {
      Request request{};
      mpi.Irecv(message.memory.data(), 1, message.type, 0, 2, mpi.world, &request);
      int index = 0, flag = 0;
      mpi.Waitany(-1, &request, &index, mpi::ignored());
      mpi.Testany(-1, &request, &index, &flag, mpi::ignored());
      mpi.Waitsome(-1, &request, &flag, &index, mpi::ignored());
      mpi.Testall(-1, &request, &flag, mpi::ignored());
      mpi.Waitall(-1, &request, mpi::ignored());
      mpi.Startall(-1, &request);
      Status status{};
      mpi.Wait(&request, &status);
      expect_message(all, 2, status);
    }
    for (Message& each : all) mpi.Type_free(&each.type);
  });
  for (const std::string& wrong : outcome.wrong) ADD_FAILURE() << wrong;
}

// As by an error handler of the program's.
TEST(InterposedOperations, MayChangeWhileTheyAreVisited) {
  constexpr std::uintptr_t kFirst = 1, kLater = 6, kEnd = 200;
  const auto name = [](std::uintptr_t number) { return reinterpret_cast<Request>(64 * number); };
  mpi::Operations all;
  for (std::uintptr_t i = kFirst; i < kLater; ++i) all.add(name(i), std::make_unique<mpi::Operation>());
  std::set<Request> visited;
  all.each([&](const mpi::Operation& operation) {
    const Request own = operation.handle;
    visited.insert(own);
    if (visited.size() > 1) return;
    all.remove(own);
    for (std::uintptr_t i = kLater; i < kEnd; ++i) all.add(name(i), std::make_unique<mpi::Operation>());
  });
  EXPECT_EQ(visited.size(), kEnd - kFirst);
}

}  // namespace LACUNA_TEST_FILE
}  // namespace lacuna::test
