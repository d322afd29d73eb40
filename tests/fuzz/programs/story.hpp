// Stories of preloaded programs: some ranks over the fake MPI, what they send and receive, and what goes wrong. A seed
// is a story. Ranks are threads of one process, so who comes first differs from run to run: what has to come out does
// not depend on that.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tests/fuzz/programs/shape.hpp"

namespace lacuna::fuzz {

enum class SendWay : std::uint8_t { send, ssend, bsend, isend, issend, ibsend, send_init };
enum class ReceiveWay : std::uint8_t { recv, probe, mprobe, improbe, irecv, recv_init };
/// What a receiver of a round asks for: a message of that rank and tag, of that tag from anyone, or any.
enum class Wild : std::uint8_t { no, source, both };

struct StoryMessage {
  int from = 0, to = 0, tag = 0;
  SendWay send{};
  ReceiveWay receive{};
  Shape out, in;
  std::uint64_t data = 0;  ///< the seed of its bytes
  [[nodiscard]] bool send_begins() const { return send >= SendWay::isend; }
  [[nodiscard]] bool receive_begins() const { return receive >= ReceiveWay::irecv; }
};

enum class Collected : std::uint8_t {
  alltoall,
  allgather,
  bcast,
  gather,
  scatter,
  later_alltoall,
  later_allgather,
  last = later_allgather
};
struct StoryCollective {
  Collected kind{};
  int root = 0;
  std::vector<Shape> out, in;  ///< of each rank, one block
  std::uint64_t data = 0;
};

struct StoryAccess {
  int from = 0, to = 0;
  bool gets = false;
  Shape here, there;         ///< at the origin, and at the target
  std::int64_t place = 0;    ///< in the target's window, in its units
  std::uint64_t data = 0;    ///< the seed of what is put
  bool freed_early = false;  ///< its datatypes, before it is complete
};
enum class WindowMade : std::uint8_t { create, allocate, allocate_shared, last = allocate_shared };
/// How accesses are completed at their origin, before the fence that ends the epoch.
enum class WindowEnd : std::uint8_t {
  fence,
  complete,
  unlock,
  unlock_all,
  flush,
  flush_all,
  flush_local,
  flush_local_all,
  last = flush_local_all
};
struct StoryEpoch {
  WindowEnd end{};
  std::vector<StoryAccess> accesses;
};
struct StoryWindow {
  WindowMade made{};
  int unit = 1;
  std::vector<std::int64_t> bytes;  ///< of each rank
  std::uint64_t data = 0;           ///< the seed of what windows have at first
  std::vector<StoryEpoch> epochs;
};

struct StoryRound {
  std::vector<StoryMessage> messages;
  std::vector<Wild> wild;    ///< of each receiver
  std::vector<int> cancels;  ///< ranks that take a receive back, for which nothing is sent
  std::vector<int> late;     ///< of each rank, milliseconds for which it is stopped before it begins
  bool own_comm = false;     ///< made for the round
  bool freed_early = false;  ///< while its messages are under way
  int completion = 0;
  std::optional<StoryCollective> collective;
  std::optional<StoryWindow> window;
};

/// A rank that dies in a round, after so many of its calls there; at the latest where the round ends.
struct StoryDeath {
  int rank = 0;
  std::size_t round = 0;
  int calls = 0;
};

struct Story {
  test::fake::Options options;
  std::vector<test::fake::Fault> faults;  ///< of calls that only the interposer makes
  int scarce_rank = -1;                   ///< has no memory now and then; -1: none
  std::uint64_t scarce = 0;
  std::vector<int> ends;  ///< of each rank, the round before which it is through
  std::vector<StoryRound> rounds;
  std::optional<StoryDeath> death;
  [[nodiscard]] bool dies(int rank, std::size_t round) const { return death && death->rank == rank && death->round == round; }
  [[nodiscard]] bool has_death(std::size_t round) const { return death && death->round == round; }
  [[nodiscard]] bool is_there(int rank, std::size_t round) const { return ends[static_cast<std::size_t>(rank)] > static_cast<int>(round); }
  [[nodiscard]] std::string describe() const;
};

Story draw_story(std::uint64_t seed);
/// Plays it; what is wrong with what came of it. `planted`: a byte of what should have come is another.
std::string play(const Story& story, bool preloaded, bool planted);
/// The shortest one found that still fails.
Story shorter(Story story);

}  // namespace lacuna::fuzz
