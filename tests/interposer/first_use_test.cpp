// Datatypes that are used once, as programs make them for one message, and those that cannot be decoded: the host moves
// them, and what was offered arrives.
#include <gtest/gtest.h>

#include <numeric>

#include "tests/interposer/fake.hpp"

namespace lacuna::test {
namespace LACUNA_TEST_FILE {

using namespace fake;

constexpr int kBlocks = 3000;

// One int of every two or three: a list that is long for what it moves.
std::vector<Count> places() {
  std::vector<Count> made(kBlocks);
  for (int i = 0; i < kBlocks; ++i) made[static_cast<std::size_t>(i)] = 12 * i + (i % 3 == 0 ? 4 : 0);
  return made;
}
Datatype scattered(const Host& mpi) {
  const std::vector<Count> lengths(kBlocks, 1);
  Datatype type = hindexed(lengths, places(), int_type());
  mpi.Type_commit(&type);
  return type;
}

std::vector<int> numbers(int first) {
  std::vector<int> made(3 * kBlocks);
  std::iota(made.begin(), made.end(), first);
  return made;
}
std::vector<int> taken(const std::vector<int>& memory) {
  std::vector<int> made;
  for (const Count place : places()) made.push_back(memory[static_cast<std::size_t>(place / 4)]);
  return made;
}
// What scattered() has of numbers(sent) is there, and all else is what numbers(own) has.
void expect_received(const std::vector<int>& memory, int sent, int own) {
  std::vector<int> wanted = numbers(own);
  for (const Count place : places()) wanted[static_cast<std::size_t>(place / 4)] += sent - own;
  ASSERT_EQ(memory, wanted);
}

int decodings(const Outcome& outcome) {
  const auto found = outcome.calls.find("Type_get_contents_c");
  return found == outcome.calls.end() ? 0 : found->second;
}

// How a message is received, with a type that may be freed at once.
using Receive = void (*)(const Host& mpi, std::vector<int>& memory, Datatype type, int tag);
void receive(const Host& mpi, std::vector<int>& memory, Datatype type, int tag) {
  Status status{};
  EXPECT_EQ(mpi.Recv(memory.data(), 1, type, 0, tag, mpi.world, &status), mpi::kSuccess);
  EXPECT_EQ(mpi::bytes_of(status), 4 * kBlocks);
  mpi.Type_free(&type);
}
void receive_later(const Host& mpi, std::vector<int>& memory, Datatype type, int tag) {
  Request request{};
  EXPECT_EQ(mpi.Irecv(memory.data(), 1, type, 0, tag, mpi.world, &request), mpi::kSuccess);
  mpi.Type_free(&type);
  EXPECT_EQ(type, mpi.no_type);
  int ready = 1;
  mpi.Send(&ready, 1, int_type(), 0, 99, mpi.world);
  Status status{};
  EXPECT_EQ(mpi.Wait(&request, &status), mpi::kSuccess);
  EXPECT_EQ(mpi::bytes_of(status), 4 * kBlocks);
}
void receive_again(const Host& mpi, std::vector<int>& memory, Datatype type, int tag) {
  Request request{};
  EXPECT_EQ(mpi.Recv_init(memory.data(), 1, type, 0, tag, mpi.world, &request), mpi::kSuccess);
  mpi.Type_free(&type);
  EXPECT_EQ(mpi.Start(&request), mpi::kSuccess);
  EXPECT_EQ(mpi.Wait(&request, mpi::ignored()), mpi::kSuccess);
  EXPECT_EQ(mpi.Request_free(&request), mpi::kSuccess);
}
void receive_matched(const Host& mpi, std::vector<int>& memory, Datatype type, int tag) {
  Message message{};
  Status status{};
  EXPECT_EQ(mpi.Mprobe(0, tag, mpi.world, &message, &status), mpi::kSuccess);
  EXPECT_EQ(mpi::bytes_of(status), 4 * kBlocks);
  Request request{};
  EXPECT_EQ(mpi.Imrecv(memory.data(), 1, type, &message, &request), mpi::kSuccess);
  mpi.Type_free(&type);
  EXPECT_EQ(mpi.Wait(&request, mpi::ignored()), mpi::kSuccess);
}
void receive_probed(const Host& mpi, std::vector<int>& memory, Datatype type, int tag) {
  Status status{};
  EXPECT_EQ(mpi.Probe(0, tag, mpi.world, &status), mpi::kSuccess);
  receive(mpi, memory, type, tag);
}
void receive_exchanged(const Host& mpi, std::vector<int>& memory, Datatype type, int tag) {
  Status status{};
  EXPECT_EQ(mpi.Sendrecv_replace(memory.data(), 1, type, 0, 98, 0, tag, mpi.world, &status), mpi::kSuccess);
  EXPECT_EQ(mpi::bytes_of(status), 4 * kBlocks);
  mpi.Type_free(&type);
}

struct Case {
  const char* name;
  Receive receive;
  bool says_ready, sends;
};
constexpr Case kCases[] = {
    {.name = "Recv", .receive = receive, .says_ready = false, .sends = false},
    {.name = "Irecv", .receive = receive_later, .says_ready = true, .sends = false},
    {.name = "Recv_init", .receive = receive_again, .says_ready = false, .sends = false},
    {.name = "Mprobe", .receive = receive_matched, .says_ready = false, .sends = false},
    {.name = "Probe", .receive = receive_probed, .says_ready = false, .sends = false},
    {.name = "Sendrecv_replace", .receive = receive_exchanged, .says_ready = false, .sends = true},
};

// Each case twice on either kind of host, from a sender that sends by `send`.
template <class Send>
Outcome run_all(std::span<const Case> cases, bool open_mpi, const Send& send, const std::vector<Fault>& faults = {}) {
  const std::size_t before = types_made();
  Outcome outcome = run_preloaded(
      {.open_mpi = open_mpi, .decode_at = 2},
      [&](const Host& mpi, int rank) {
        for (const Case& one : cases) {
          SCOPED_TRACE(std::string(one.name) + (open_mpi ? ", Open MPI" : ", MPICH"));
          for (int round = 0; round < 2; ++round) {
            std::vector<int> memory = numbers(rank == 0 ? 1 + round : -100'000);
            if (rank == 1) {
              one.receive(mpi, memory, scattered(mpi), 7);
              expect_received(memory, 1 + round, -100'000);
              continue;
            }
            int ready = 0;
            if (one.says_ready) mpi.Recv(&ready, 1, int_type(), 1, 99, mpi.world, mpi::ignored());
            Request request{};
            std::vector<int> theirs(kBlocks);
            if (one.sends) mpi.Irecv(theirs.data(), kBlocks, int_type(), 1, 98, mpi.world, &request);
            send(mpi, memory);
            if (!one.sends) continue;
            mpi.Wait(&request, mpi::ignored());
            EXPECT_EQ(theirs, taken(numbers(-100'000)));
          }
        }
      },
      faults);
  for (const std::string& wrong : outcome.wrong) ADD_FAILURE() << wrong;
  EXPECT_EQ(types_made(), before) << "types are left over";
  return outcome;
}

// Neither rank decodes anything, but for requests that are there to be started again, and what has to be packed before
// it is received over.
TEST(InterposedFirstUse, IsTheHosts) {
  const auto send = [](const Host& mpi, const std::vector<int>& memory) {
    Datatype type = scattered(mpi);
    mpi.Send(memory.data(), 1, type, 1, 7, mpi.world);
    mpi.Type_free(&type);
  };
  for (const bool open_mpi : {false, true}) {
    EXPECT_EQ(decodings(run_all(std::span(kCases).first(2), open_mpi, send)), 0);
    run_all(kCases, open_mpi, send);
  }
}

// A receiver's first use meets a sender that knows its type well.
TEST(InterposedFirstUse, TakesWhatIsOffered) {
  const auto send = [](const Host& mpi, const std::vector<int>& memory) {
    static thread_local Datatype type{};
    static thread_local int uses = 0;
    if (uses++ == 0) {
      type = scattered(mpi);
      std::vector<int> packed(kBlocks);
      for (int use = 0; use < 2; ++use) {  // by the second it is decoded
        int position = 0;
        mpi.Pack(memory.data(), 1, type, packed.data(), 4 * kBlocks, &position, mpi.self);
      }
    }
    mpi.Send(memory.data(), 1, type, 1, 7, mpi.world);
    if (uses == 2 * std::ssize(kCases)) {
      mpi.Type_free(&type);
      uses = 0;
    }
  };
  for (const bool open_mpi : {false, true}) EXPECT_GT(decodings(run_all(kCases, open_mpi, send)), 0);
}

// The receiver's host does not say what its types are made of.
TEST(InterposedFirstUse, OfWhatCannotBeDecoded) {
  const auto send = [](const Host& mpi, const std::vector<int>& memory) {
    const std::vector<int> some = taken(memory);
    Datatype apart = fake::vector(kBlocks, 1, 2, int_type());
    mpi.Type_commit(&apart);
    std::vector<int> spread(2 * kBlocks);
    for (std::size_t i = 0; i < some.size(); ++i) spread[2 * i] = some[i];
    Request request{};
    mpi.Send_init(spread.data(), 1, apart, 1, 7, mpi.world, &request);  // decoded at once
    mpi.Start(&request);
    mpi.Wait(&request, mpi::ignored());
    mpi.Request_free(&request);
    mpi.Type_free(&apart);
  };
  const std::vector<Fault> faults{{.call = "Type_get_contents_c", .n = Fault::kAll, .rank = 1}};
  for (const bool open_mpi : {false, true}) run_all(kCases, open_mpi, send, faults);
}

TEST(InterposedFirstUse, IsFollowedByUsesOfOurs) {
  for (const char* const call : {"Send", "Pack"}) {
    int decoded[2] = {0, 0};
    for (const int uses : {1, 2}) {
      decoded[uses - 1] = decodings(run_preloaded({.decode_at = 2}, [&](const Host& mpi, int rank) {
        if (rank == 1 && call == std::string("Pack")) return;
        std::vector<int> memory = numbers(1), packed(kBlocks);
        Datatype type = scattered(mpi);
        for (int use = 0; use < uses; ++use) {
          int position = 0;
          if (call == std::string("Pack")) {
            mpi.Pack(memory.data(), 1, type, packed.data(), 4 * kBlocks, &position, mpi.world);
          } else if (rank == 0) {
            mpi.Send(memory.data(), 1, type, 1, 7, mpi.world);
            continue;
          } else {
            mpi.Recv(packed.data(), kBlocks, int_type(), 0, 7, mpi.world, mpi::ignored());
          }
          EXPECT_EQ(packed, taken(memory));
        }
        mpi.Type_free(&type);
      }));
    }
    EXPECT_EQ(decoded[0], 0) << call;
    EXPECT_EQ(decoded[1], 1) << call;
  }
}

// How often a type is used before it is decoded; below 0: it is not within 100 uses.
int uses_before_decoding(const Host& mpi, Datatype type, int count) {
  mpi.Type_commit(&type);
  int size = 0;
  Aint low = 0, extent = 0;
  mpi.Type_size(type, &size);
  mpi.Type_get_extent(type, &low, &extent);
  std::vector<std::byte> memory(static_cast<std::size_t>(low + count * extent)), packed(static_cast<std::size_t>(count * size));
  int found = -1;
  for (int use = 0; use < 100 && found < 0; ++use) {
    const int before = calls_of("Pack");
    int position = 0;
    mpi.Pack(memory.data(), count, type, packed.data(), count * size, &position, mpi.self);
    if (calls_of("Pack") == before) found = use;
  }
  mpi.Type_free(&type);
  return found;
}

// What takes the host long is decoded at once, and what takes it little after many uses: decoding takes a tenth of what
// the host has taken.
TEST(InterposedFirstUse, IsOursOnceThatPays) {
  run_preloaded({.ranks = 1, .decode_at = 0}, [](const Host& mpi, int) {
    EXPECT_EQ(uses_before_decoding(mpi, fake::vector(64, 4096, 8192, byte_type()), 1), 0);
    EXPECT_EQ(uses_before_decoding(mpi, fake::vector(64, 64, 128, byte_type()), 1), 11);
    const std::vector<Count> ones(kBlocks, 1);
    EXPECT_EQ(uses_before_decoding(mpi, hindexed(ones, places(), int_type()), 1), -1);
    EXPECT_EQ(uses_before_decoding(mpi, hindexed(ones, places(), int_type()), 100), 6);
    Datatype inner = hindexed(ones, places(), int_type());
    EXPECT_EQ(uses_before_decoding(mpi, contiguous(100, inner), 1), 6);  // as long a list, though it is another's
    mpi.Type_free(&inner);
  });
}

}  // namespace LACUNA_TEST_FILE
}  // namespace lacuna::test
