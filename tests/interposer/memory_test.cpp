// Where there is no memory, a call does what the host does, or is an error of MPI's; nothing ends the program, and
// later messages arrive. Each allocation of the interposer and of what it calls fails once; of a sender, from each on
// all of them do, too.
#include <gtest/gtest.h>

#include <atomic>

#include "lacuna/copy/copy.hpp"
#include "lacuna/nic/nic.hpp"
#include "tests/interposer/every_second.hpp"
#include "tests/interposer/fake.hpp"
#include "tests/interposer/scarce.hpp"
#include "tests/support/environment.hpp"
#include "tests/support/patience.hpp"
#include "tests/support/tier.hpp"

namespace lacuna::test {
namespace LACUNA_TEST_FILE {

using namespace fake;

using scarce::Scarcity;

using Send = int (*)(const Host& mpi, Scarcity& scarcity, std::vector<int>& memory, Datatype type);
int blocking_send(const Host& mpi, Scarcity& scarcity, std::vector<int>& memory, Datatype type) {
  return scarcity([&] { return mpi.Send(memory.data(), 1, type, 1, 7, mpi.world); });
}
int begun_send(const Host& mpi, Scarcity& scarcity, std::vector<int>& memory, Datatype type) {
  Request request{};
  const int result = scarcity([&] { return mpi.Isend(memory.data(), 1, type, 1, 7, mpi.world, &request); });
  if (result != mpi::kSuccess) return result;
  return scarcity([&] { return mpi.Wait(&request, mpi::ignored()); });
}
int persistent_send(const Host& mpi, Scarcity& scarcity, std::vector<int>& memory, Datatype type) {
  Request request{};
  int result = scarcity([&] { return mpi.Send_init(memory.data(), 1, type, 1, 7, mpi.world, &request); });
  if (result != mpi::kSuccess) return result;
  result = scarcity([&] { return mpi.Start(&request); });
  if (result == mpi::kSuccess) result = scarcity([&] { return mpi.Wait(&request, mpi::ignored()); });
  mpi.Request_free(&request);
  return result;
}

using Receive = int (*)(const Host& mpi, Scarcity& scarcity, std::vector<int>& memory, Datatype type);
int blocking_receive(const Host& mpi, Scarcity& scarcity, std::vector<int>& memory, Datatype type) {
  return scarcity([&] { return mpi.Recv(memory.data(), 1, type, 0, 7, mpi.world, mpi::ignored()); });
}
int begun_receive(const Host& mpi, Scarcity& scarcity, std::vector<int>& memory, Datatype type) {
  Request request{};
  int result = scarcity([&] { return mpi.Irecv(memory.data(), 1, type, 0, 7, mpi.world, &request); });
  if (result != mpi::kSuccess) return result;
  result = scarcity([&] { return mpi.Waitall(1, &request, mpi::ignored()); });
  return result == mpi::kErrNoMem && request != mpi.no_request ? mpi.Waitall(1, &request, mpi::ignored()) : result;
}
// The same numbers without gaps, put where the others would be.
template <class Into>
int of_numbers(std::vector<int>& memory, const Into& receive) {
  std::vector<int> whole(memory.size() / 2, 0);
  const int result = receive(whole);
  for (std::size_t i = 0; i < whole.size() && result == mpi::kSuccess; ++i) memory[2 * i] = whole[i];
  return result;
}
int receive_of_numbers(const Host& mpi, Scarcity& scarcity, std::vector<int>& memory, Datatype /*type*/) {
  return of_numbers(memory, [&](std::vector<int>& to) {
    return scarcity([&] { return mpi.Recv(to.data(), kCount, int_type(), 0, 7, mpi.world, mpi::ignored()); });
  });
}
template <class Wait>
int begun_of_numbers(const Host& mpi, Scarcity& scarcity, std::vector<int>& memory, const Wait& wait) {
  return of_numbers(memory, [&](std::vector<int>& to) {
    Request request{};
    const int result = scarcity([&] { return mpi.Irecv(to.data(), kCount, int_type(), 0, 7, mpi.world, &request); });
    if (result != mpi::kSuccess) return result;
    const int waited = scarcity([&] { return wait(&request); });
    return waited == mpi::kErrNoMem && request != mpi.no_request ? wait(&request) : waited;
  });
}
int waited_of_numbers(const Host& mpi, Scarcity& scarcity, std::vector<int>& memory, Datatype /*type*/) {
  return begun_of_numbers(mpi, scarcity, memory, [&](Request* request) { return mpi.Wait(request, mpi::ignored()); });
}
int all_of_numbers(const Host& mpi, Scarcity& scarcity, std::vector<int>& memory, Datatype /*type*/) {
  return begun_of_numbers(mpi, scarcity, memory, [&](Request* request) { return mpi.Waitall(1, request, mpi::ignored()); });
}
int any_of_numbers(const Host& mpi, Scarcity& scarcity, std::vector<int>& memory, Datatype /*type*/) {
  return begun_of_numbers(mpi, scarcity, memory, [&](Request* request) {
    int index = 0;
    return mpi.Waitany(1, request, &index, mpi::ignored());
  });
}
// A message that is matched already is received at the second try.
int matched_receive(const Host& mpi, Scarcity& scarcity, std::vector<int>& memory, Datatype type) {
  mpi::Message message{};
  int result = scarcity([&] { return mpi.Mprobe(0, 7, mpi.world, &message, mpi::ignored()); });
  if (result != mpi::kSuccess) return result;
  result = scarcity([&] { return mpi.Mrecv(memory.data(), 1, type, &message, mpi::ignored()); });
  return result == mpi::kSuccess ? result : mpi.Mrecv(memory.data(), 1, type, &message, mpi::ignored());
}
int begun_matched_receive(const Host& mpi, Scarcity& scarcity, std::vector<int>& memory, Datatype type) {
  mpi::Message message{};
  Request request{};
  int result = scarcity([&] { return mpi.Mprobe(0, 7, mpi.world, &message, mpi::ignored()); });
  if (result != mpi::kSuccess) return result;
  result = scarcity([&] { return mpi.Imrecv(memory.data(), 1, type, &message, &request); });
  if (result != mpi::kSuccess) result = mpi.Imrecv(memory.data(), 1, type, &message, &request);
  return result != mpi::kSuccess ? result : mpi.Wait(&request, mpi::ignored());
}

// One message, where `scarce_rank` has scarcity; whether an allocation failed.
bool exchange(const Options& options, const Send& send, const Receive& receive, int scarce_rank, long after, bool all) {
  std::atomic<bool> failed = false, sent = false;
  const Outcome outcome = run_preloaded(options, [&](const Host& mpi, int rank) {
    return_errors(mpi.world);
    Datatype type = every_second(mpi);
    std::vector<int> memory = numbers(rank == 0 ? 1 : -100'000);
    Scarcity scarcity{.after = rank == scarce_rank ? after : Scarcity::kNever, .all = all};
    if (rank == 0) {
      // One that failed sends nothing, and may be tried again.
      for (int result = mpi::kErrOther; result != mpi::kSuccess;) result = send(mpi, scarcity, memory, type);
      sent = true;
    } else if (const int result = receive(mpi, scarcity, memory, type); result == mpi::kSuccess) {
      EXPECT_EQ(memory, received(1, -100'000)) << "after " << after;
    } else {
      EXPECT_TRUE(rank == scarce_rank && scarcity.failed) << "error " << result << " after " << after;
      int still = 0;  // what was not received is there still
      EXPECT_EQ(await("the message", [&] { return sent.load(); }), "");
      mpi.Iprobe(0, 7, mpi.world, &still, mpi::ignored());
      EXPECT_NE(still, 0) << "error " << result << " after " << after;
      if (still != 0) {
        mpi.Recv(memory.data(), 1, type, 0, 7, mpi.world, mpi::ignored());
        EXPECT_EQ(memory, received(1, -100'000)) << "after " << after;
      }
    }
    if (rank == scarce_rank && scarcity.failed) failed = true;
    Request barrier{};
    mpi.Ibarrier(mpi.world, &barrier);
    mpi.Wait(&barrier, mpi::ignored());
    // What comes later is as ever.
    std::vector<int> later = numbers(rank == 0 ? 5 : -100'000);
    if (rank == 0) mpi.Send(later.data(), 1, type, 1, 8, mpi.world);
    if (rank == 1) {
      EXPECT_EQ(mpi.Recv(later.data(), 1, type, 0, 8, mpi.world, mpi::ignored()), mpi::kSuccess);
      EXPECT_EQ(later, received(5, -100'000)) << "after " << after;
    }
    mpi.Type_free(&type);
  });
  for (const std::string& wrong : outcome.wrong) ADD_FAILURE() << wrong << ", after " << after;
  return failed;
}

constexpr std::pair<const char*, Send> kSends[] = {{"Send", blocking_send}, {"Isend", begun_send}, {"Send_init", persistent_send}};
constexpr std::pair<const char*, Receive> kReceives[] = {{"Recv", blocking_receive},
                                                         {"Irecv", begun_receive},
                                                         {"Mprobe, Mrecv", matched_receive},
                                                         {"Mprobe, Imrecv", begun_matched_receive},
                                                         {"Recv of numbers", receive_of_numbers},
                                                         {"Irecv of numbers, Wait", waited_of_numbers},
                                                         {"Irecv of numbers, Waitall", all_of_numbers},
                                                         {"Irecv of numbers, Waitany", any_of_numbers}};

void expect_sound(const Send& send, const Receive& receive, int scarce_rank, bool all, const Options& options = {}) {
  long after = 0;
  while (!testing::Test::HasFailure() && exchange(options, send, receive, scarce_rank, after, all)) ++after;
  EXPECT_GT(after, 0);
}

TEST(InterposedScarcity, OfSenders) {
  for (const auto& [name, send] : kSends) {
    SCOPED_TRACE(name);
    for (const bool all : {false, true}) expect_sound(send, blocking_receive, 0, all);
    expect_sound(send, blocking_receive, 0, false, {.eager = 300});
  }
}

TEST(InterposedScarcity, OfReceivers) {
  for (const auto& [name, receive] : kReceives) {
    SCOPED_TRACE(name);
    for (const bool threads : {false, true}) expect_sound(blocking_send, receive, 1, false, {.threads = threads});
  }
}

// To another node, in chunks. Not by a device: the one here is a fake, whose own memory could not be told from the
// interposer's.
TEST(InterposedScarcity, BetweenNodes) {
  setenv("LACUNA_MPI_OFFER_INTER_NODE", "300", 1);
  setenv("LACUNA_MPI_CHUNK", "3000", 1);
  for (const auto& [name, send] : kSends) {
    SCOPED_TRACE(name);
    for (const bool all : {false, true}) {
      for (const std::int64_t eager : {300, 4096}) expect_sound(send, blocking_receive, 0, all, {.eager = eager, .nodes = 2});
    }
  }
  for (const auto& [name, receive] : kReceives) {
    SCOPED_TRACE(name);
    for (const bool threads : {false, true}) expect_sound(blocking_send, receive, 1, false, {.threads = threads, .nodes = 2});
  }
  unsetenv("LACUNA_MPI_OFFER_INTER_NODE");
  unsetenv("LACUNA_MPI_CHUNK");
}

// MPI_Alltoallw of blocks of so many ints with gaps, where one rank has scarcity; whether an allocation failed.
bool exchange_all(const Options& options, int count, long after, bool all, bool on_duplicate) {
  std::atomic<bool> failed = false;
  const auto size = static_cast<std::size_t>(options.ranks), room = 2 * static_cast<std::size_t>(count);
  const Outcome outcome = run_preloaded(options, [&](const Host& mpi, int rank) {
    Comm comm = mpi.world;
    if (on_duplicate) mpi.Comm_dup(mpi.world, &comm);
    Datatype type = fake::vector(count, 1, 2, int_type());
    mpi.Type_commit(&type);
    const std::vector<Datatype> types(size, type);
    const std::vector<int> counts(size, 1);
    std::vector<int> places, out(size * room);
    for (std::size_t i = 0; i < size; ++i) places.push_back(static_cast<int>(i * room * sizeof(int)));
    const auto sent = [&](int from, int to, std::size_t i) { return 10 * from + 7 * to + static_cast<int>(i); };
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = sent(rank, static_cast<int>(i / room), i % room);
    Scarcity scarcity{.after = rank == 1 ? after : Scarcity::kNever, .all = all};
    for (int round = 0; round < 3; ++round) {
      std::vector<int> in(out.size(), -1);
      const auto call = [&] {
        return mpi.Alltoallw(out.data(), counts.data(), places.data(), types.data(), in.data(), counts.data(), places.data(), types.data(),
                             comm);
      };
      EXPECT_EQ(scarcity(call), mpi::kSuccess) << "after " << after;
      for (std::size_t i = 0; i < in.size(); ++i)
        ASSERT_EQ(in[i], i % 2 == 0 ? sent(static_cast<int>(i / room), rank, i % room) : -1) << "after " << after;
    }
    if (rank == 1) failed = scarcity.failed;
    mpi.Type_free(&type);
    if (on_duplicate) mpi.Comm_free(&comm);
  });
  for (const std::string& wrong : outcome.wrong) ADD_FAILURE() << wrong << ", after " << after;
  return failed;
}

void expect_exchanges(const Options& options, int count, bool all, bool on_duplicate) {
  long after = 0;
  while (!testing::Test::HasFailure() && exchange_all(options, count, after, all, on_duplicate)) ++after;
  EXPECT_GT(after, 0);
}

TEST(InterposedScarcity, OfExchanges) {
  for (const bool on_duplicate : {false, true}) {
    SCOPED_TRACE(on_duplicate);
    expect_exchanges({}, kCount, false, on_duplicate);
  }
}

// Without any memory a rank takes nothing that is offered. So nothing is.
TEST(InterposedScarcity, OfExchangesThatOfferNothing) {
  const Set offer("LACUNA_MPI_OFFER", "1000000");
  for (const bool on_duplicate : {false, true}) {
    SCOPED_TRACE(on_duplicate);
    expect_exchanges({}, kCount, true, on_duplicate);
  }
}

// So many ranks that what they tell one another is long. The first allocations are what a rank needs to tell the
// others.
LACUNA_TIER(gate, "InterposedScarcity.OfExchangesOfManyRanks");
LACUNA_LEFT_OUT(thread, "InterposedScarcity.OfExchangesOfManyRanks");  // 70 threads
LACUNA_LEFT_OUT(address, "InterposedScarcity.OfExchangesOfManyRanks");
TEST(InterposedScarcity, OfExchangesOfManyRanks) {
  constexpr long kFirst = 6;
  for (long after = 0; after < kFirst && !HasFailure(); ++after)
    EXPECT_TRUE(exchange_all({.ranks = 70, .nodes = 70}, 5, after, false, false));
}

// A rank that cannot know a communicator, since its host does not say of which ranks that is.
TEST(InterposedScarcity, OfCommunicators) {
  for (const char* call : {"Comm_group", "Group_size", "Group_translate_ranks", "Comm_set_attr"}) {
    SCOPED_TRACE(call);
    for (const int rank_without : {0, 1}) {
      std::vector<Fault> faults;  // from the second on: the first is MPI_Init's
      for (int n = 2; n < 100; ++n) faults.push_back({.call = call, .n = n, .rank = rank_without});
      const Outcome outcome = run_preloaded(
          {},
          [&](const Host& mpi, int rank) {
            Comm comm{};
            mpi.Comm_dup(mpi.world, &comm);
            return_errors(comm);
            Datatype type = every_second(mpi);
            const Datatype types[] = {type, type};
            const int counts[] = {1, 1}, places[] = {0, 2 * kCount * static_cast<int>(sizeof(int))};
            for (int round = 0; round < 3; ++round) {
              std::vector<int> out = numbers(rank == 0 ? round : -100'000);
              if (rank == 0) mpi.Send(out.data(), 1, type, 1, 7, comm);
              if (rank == 1) {
                EXPECT_EQ(mpi.Recv(out.data(), 1, type, 0, 7, comm, mpi::ignored()), mpi::kSuccess);
                EXPECT_EQ(out, received(round, -100'000));
              }
              std::vector<int> all(4 * kCount, rank), in(4 * kCount, -1);
              EXPECT_EQ(mpi.Alltoallw(all.data(), counts, places, types, in.data(), counts, places, types, comm), mpi::kSuccess);
              EXPECT_EQ(in[2 * kCount], 1);
            }
            mpi.Type_free(&type);
            mpi.Comm_free(&comm);
          },
          faults);
      for (const std::string& wrong : outcome.wrong) ADD_FAILURE() << wrong;
    }
  }
}

// Without memory in MPI_Init the job goes on, by the host where ours cannot.
bool init(Options options, long after) {
  bool failed = true;
  options.scarce_after = after;
  options.was_scarce = &failed;
  const Outcome outcome = run_preloaded(options, one_message);
  for (const std::string& wrong : outcome.wrong) ADD_FAILURE() << wrong << ", after " << after;
  return failed;
}

TEST(InterposedScarcity, InInit) {
  for (const Options& options : {Options{.nodes = 2}, Options{}, Options{.scarce_once = true}, Options{.ranks = 3, .scarce_once = true}}) {
    SCOPED_TRACE(testing::Message() << options.ranks << " ranks on " << options.nodes << " nodes" << (options.scarce_once ? ", one" : ""));
    long after = 0;
    while (!HasFailure() && init(options, after)) ++after;
    EXPECT_GT(after, 5);
  }
}

TEST(InterposedScarcity, SharedMemoryIsGivenBack) {
  const auto context = nic::open("local");
  ASSERT_TRUE(context.has_value());
  std::vector<nic::Buffer> buffers;
  for (int i = 0; i < 3; ++i) {
    auto buffer = (*context)->allocate(5000);
    ASSERT_TRUE(buffer.has_value());
    buffers.push_back(std::move(*buffer));
  }
  scarce::call(0, true, [&] {
    buffers.erase(buffers.begin() + 1);
    return 0;
  });
  EXPECT_TRUE((*context)->allocate(5000).has_value());
}

// Layouts of each kind of node, any part of each, where no plan of the copy can be made.
TEST(InterposedScarcity, OfPlans) {
  using layout::Layout;
  std::vector<std::int64_t> places(300), lengths(300);
  for (std::size_t i = 0; i < places.size(); ++i) {
    places[i] = static_cast<std::int64_t>(i * 40 + i * i % 7);
    lengths[i] = static_cast<std::int64_t>(1 + i * i % 5);
  }
  const auto made = [&](int kind) {
    const Layout bytes = *Layout::bytes(3), rows = *Layout::hvector(5, 1, 7, bytes), blocks = *Layout::blocks(places, lengths);
    const Layout list = *Layout::hindexed_block(1, places, bytes), planes = *Layout::hvector(4, 1, 90, rows);
    const std::vector<Layout> members{rows, blocks, planes, bytes};
    const std::vector<std::int64_t> counts{2, 1, 3, 1}, at{0, 1000, 20'000, 30'000};
    const Layout all[] = {bytes, rows, planes, blocks, list, *Layout::structure(counts, at, members)};
    return *Layout::contiguous(2, all[kind]);
  };
  std::vector<std::byte> memory(70'000);
  for (std::size_t i = 0; i < memory.size(); ++i) memory[i] = static_cast<std::byte>(i * 7 >> 2);
  for (int kind = 0; kind < 6; ++kind) {
    const std::int64_t size = made(kind).size();
    for (std::int64_t from = 0; from < size; from += 1 + size / 13) {
      const Layout fresh = made(kind);  // no plan is kept with it
      const std::int64_t length = (size - from + 1) / 2;
      std::vector<std::byte> packed(static_cast<std::size_t>(length)), wanted = packed, back(memory.size()), wanted_back = back;
      const auto both = [&] {
        copy::pack(fresh, memory.data(), from, length, packed.data());
        copy::unpack(fresh, back.data(), from, length, packed.data());
        return 0;
      };
      EXPECT_TRUE(scarce::call(0, true, both).second);
      copy::reference::pack(fresh, memory.data(), from, length, wanted.data());
      copy::reference::unpack(fresh, wanted_back.data(), from, length, wanted.data());
      ASSERT_EQ(packed, wanted) << "kind " << kind << " from " << from;
      ASSERT_EQ(back, wanted_back) << "kind " << kind << " from " << from;
    }
  }
}

}  // namespace LACUNA_TEST_FILE
}  // namespace lacuna::test
