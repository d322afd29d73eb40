// The tags of chunks between nodes. What a message leaves behind that was given up is never another message's.
#include <gtest/gtest.h>

#include "lacuna/mpi/job/job.hpp"
#include "tests/interposer/every_second.hpp"
#include "tests/interposer/fake.hpp"
#include "tests/support/environment.hpp"
#include "tests/support/tier.hpp"

namespace lacuna::test {
namespace LACUNA_TEST_FILE {

LACUNA_TIER(test, "ChunkTags.*");

using namespace fake;
using mpi::ChunkTags;

constexpr std::int64_t kChunk = 3000;
const Options kTwoNodes{.threads = false, .nodes = 2};

struct Chunked {
  Set offer{"LACUNA_MPI_OFFER_INTER_NODE", "300"};
  Set chunk{"LACUNA_MPI_CHUNK", "3000"};
};

// Begins messages to rank 1 that are given up before any byte of them goes.
void give_up(int messages) {
  mpi::Job& job = *mpi::job;
  for (int i = 0; i < messages; ++i) {
    mpi::Descriptor::InterNode head;
    const auto lock = job.enter();
    job.transport->begin_outgoing(1, kChunk, kChunk, protocol::Behind::always, head);
  }
}

void send(const Host& mpi, int first, Datatype type) {
  std::vector<int> memory = numbers(first);
  mpi.Send(memory.data(), 1, type, 1, 7, mpi.world);
}
void expect(const Host& mpi, int first, Datatype type) {
  std::vector<int> memory = numbers(-100'000);
  EXPECT_EQ(mpi.Recv(memory.data(), 1, type, 0, 7, mpi.world, mpi::ignored()), mpi::kSuccess);
  for (std::size_t i = 0; i < memory.size(); ++i)
    ASSERT_EQ(memory[i], i % 2 == 0 ? first + static_cast<int>(i) : static_cast<int>(i) - 100'000) << "int " << i;
}
// The program's own word that the other rank may go on.
void tell(const Host& mpi, int rank) { mpi::host().Send(nullptr, 0, mpi.byte, rank, 8, mpi.world); }
void hear(const Host& mpi, int rank) { mpi::host().Recv(nullptr, 0, mpi.byte, rank, 8, mpi.world, mpi::ignored()); }

void run(const Program& program, const std::vector<Fault>& faults = {}) {
  const Chunked chunked;
  const Outcome outcome = run_preloaded(kTwoNodes, program, faults);
  for (const std::string& wrong : outcome.wrong) ADD_FAILURE() << wrong;
}

// A message whose chunks its receiver gives up; then as many messages as there are tags, and one more.
TEST(ChunkTags, OfAMessageThatIsGivenUpAreNotAnothers) {
  run(
      [](const Host& mpi, int rank) {
        return_errors(mpi.world);
        Datatype type = every_second(mpi);
        if (rank == 0) {
          send(mpi, 1, type);
          hear(mpi, 1);
          give_up(ChunkTags::kNone - ChunkTags::kFirst - 1);
          send(mpi, 5, type);
        } else {
          std::vector<int> memory = numbers(0);
          EXPECT_NE(mpi.Recv(memory.data(), 1, type, 0, 7, mpi.world, mpi::ignored()), mpi::kSuccess);
          tell(mpi, 0);
          expect(mpi, 5, type);
        }
        mpi.Type_free(&type);
      },
      {{.call = "Irecv", .n = 3, .rank = 1}});  // the first two are in MPI_Init
}

// A message that the program receives last: its chunks are there all the time.
TEST(ChunkTags, OfAMessageThatWaitsAreNotAnothers) {
  run([](const Host& mpi, int rank) {
    Datatype type = every_second(mpi);
    if (rank == 0) {
      std::vector<int> first = numbers(1);
      Request request{};
      mpi.Isend(first.data(), 1, type, 1, 9, mpi.world, &request);
      give_up(ChunkTags::kNone - ChunkTags::kFirst - 1);
      send(mpi, 5, type);
      mpi.Wait(&request, mpi::ignored());
    } else {
      expect(mpi, 5, type);
      std::vector<int> memory = numbers(-100'000);
      EXPECT_EQ(mpi.Recv(memory.data(), 1, type, 0, 9, mpi.world, mpi::ignored()), mpi::kSuccess);
      EXPECT_EQ(memory[2], 3);
    }
    mpi.Type_free(&type);
  });
}

// Few tags are left: each message has its own again once the receiver has said so.
TEST(ChunkTags, AreUsedAgain) {
  constexpr int kLeft = 3 * ChunkTags::kAtOnce, kMessages = 4 * kLeft;
  run([](const Host& mpi, int rank) {
    Datatype type = every_second(mpi);
    if (rank == 0) give_up(ChunkTags::kNone - ChunkTags::kFirst - kLeft);
    const int before = calls_of("Isend");
    for (int i = 0; i < kMessages; ++i) {
      if (rank == 0) {
        send(mpi, i, type);
        hear(mpi, 1);
      } else {
        expect(mpi, i, type);
        tell(mpi, 0);
      }
    }
    constexpr int kChunks = static_cast<int>((std::int64_t{4} * kCount + kChunk - 1) / kChunk);
    if (rank == 0) {
      EXPECT_EQ(calls_of("Isend") - before, kMessages * kChunks);
    }
    mpi.Type_free(&type);
  });
}

// What no receiver says: tags that are none, or of no message, and more than one says at once.
TEST(ChunkTags, OfALiarAreNoHarm) {
  run([](const Host& mpi, int rank) {
    return_errors(mpi.world);
    if (rank == 1) {
      std::vector<std::uint16_t> said(4 * ChunkTags::kAtOnce);
      for (std::size_t i = 0; i < said.size(); ++i) said[i] = static_cast<std::uint16_t>(i * 1000);
      for (const std::size_t tags : {std::size_t{ChunkTags::kAtOnce}, std::size_t{3}, said.size()})
        mpi::host().Send(said.data(), static_cast<int>(2 * tags), mpi.byte, 0, ChunkTags::kNone, mpi.world);
      tell(mpi, 0);
      return;
    }
    hear(mpi, 1);
    ChunkTags tags(mpi.world, 2);
    for (int tag = ChunkTags::kFirst; tag < ChunkTags::kNone; ++tag) ASSERT_EQ(tags.take(1), tag);
    EXPECT_EQ(tags.take(1), ChunkTags::kNone);
  });
}

}  // namespace LACUNA_TEST_FILE
}  // namespace lacuna::test
