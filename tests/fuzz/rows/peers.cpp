// Peers that have the right to talk, and say anything: in the inbox of a channel, as agents of NIXL, on the board of a
// collective.
#include <algorithm>

#include "lacuna/mpi/messages/exchange.hpp"
#include "tests/fuzz/mutate.hpp"
#include "tests/fuzz/rows/rows.hpp"
#include "tests/interposer/fake.hpp"
#include "tests/nixl/stranger.hpp"
#include "tests/protocol/channel/rings.hpp"
#include "tests/support/environment.hpp"

namespace lacuna::fuzz {
namespace {

// --- the inbox of a channel through shared memory ---

// Bytes of the inbox become anything while both ends go on. Whatever arrives lies in the inbox, and an error is one of
// those there are. A planted fault: the inbox is thought shorter than it is.
Verdict judge_ring(const Bytes& input, bool planted) {
  const std::size_t inbox_bytes = planted ? 64 + 256 * 64 : 64 + 256 * 64 + (256 << 10);
  Random random(seed_of(input));
  test::Rings rings;
  std::byte* inbox = rings.bootstrap[0]->inbox();
  std::uint64_t sum = 0;
  for (int i = 0; i < 2000; ++i) {
    const int at = static_cast<int>(random.below(2));
    rings.send(at, 1, random.one_in(2) ? 0 : static_cast<std::size_t>(random.scaled(16'384)));
    if (random.one_in(3)) {
      const std::size_t where = random.one_in(4) ? random.next() % 16 : random.next() % (64 + 16 * 64);
      inbox[where] = static_cast<std::byte>(random.next());
    }
    protocol::Channel::Arrival arrival;
    const auto came = rings.end[0]->next(arrival);
    if (!came) return {.taken = true, .wrong = came.error().code == base::Code::malformed ? "" : came.error().text()};
    if (!*came) continue;
    if (arrival.head.payload > 0) {
      if (arrival.payload < inbox || arrival.payload + arrival.head.payload > inbox + inbox_bytes)
        return {.taken = true, .wrong = "a payload that is not in the inbox"};
      for (std::uint32_t k = 0; k < arrival.head.payload; ++k) sum += static_cast<std::uint64_t>(arrival.payload[k]);
    }
    rings.end[0]->pop();
  }
  return {.taken = true, .wrong = sum < ~std::uint64_t{0} ? "" : "a sum that cannot be"};
}

// --- an agent's words ---

// A peer that has the secret, and says anything: the connection ends, or the words mean nothing. A planted fault: a
// byte of the agent's memory is thought to be another.
Verdict judge_words(const Bytes& input, bool planted) {
  Random random(seed_of(input));
  test::Stranger stranger(random.one_in(2) ? nixl::Connection::Role::first : nixl::Connection::Role::second);
  int said = 0;
  for (; said < 20 && !stranger.connection().lost(); ++said) {
    std::vector<std::byte> words(static_cast<std::size_t>(random.one_in(2) ? 16 : random.one_in(2) ? 48 : random.scaled(3000)));
    for (std::byte& byte : words) byte = static_cast<std::byte>(random.below(256));
    const int kind = static_cast<int>(random.one_in(4) ? random.below(1000) : random.between(1, 3));
    if (!stranger.say(kind, std::move(words))) break;
    for (int step = 0; step < 20; ++step) stranger.step();
  }
  const bool same = stranger.memory() == std::vector<std::byte>(4096, std::byte{static_cast<unsigned char>(planted ? 8 : 7)});
  return {.taken = said > 1, .wrong = same ? "" : "memory was written that no agent was told of"};
}

// --- notes of a collective ---

namespace fake = test::fake;

constexpr int kInts = 300;  // of a block, every second one
constexpr int kCalls = 4;   // after which all ranks have boards

bool gaps_intact(const std::vector<int>& memory) {
  for (std::size_t i = 1; i < memory.size(); i += 2) {
    if (memory[i] != -7) return false;
  }
  return true;
}

// What rank 0 says in a call of MPI_Alltoall, in which rank 1 does what it always does. Nothing of it asks for the
// host's part, for which rank 1 would wait.
void lie(Random& random, const mpi::Board& board) {
  mpi::Note& note = board.note_for(1);
  const std::int64_t bytes = kInts * 4;
  using mpi::detail::Slot;
  note.says = static_cast<unsigned char>(Slot::offers_some | (random.one_in(8) ? 0 : Slot::offers | Slot::on_board) |
                                         (random.one_in(8) ? 0xc0 : 0));
  note.sizes = static_cast<unsigned char>(random.next());
  note.at = random.one_in(2) ? 0 : static_cast<std::uint32_t>(odd_number(random));
  note.bytes = random.one_in(3) ? bytes : static_cast<std::int64_t>(odd_number(random));
  note.left.store(static_cast<std::uint32_t>(odd_number(random)));
  note.order = {};
  note.order.first = static_cast<std::uint8_t>(odd_number(random));
  note.order.second = static_cast<std::uint8_t>(odd_number(random));
  const auto bits = static_cast<std::uint32_t>(random.next());
  if (random.one_in(2)) std::memcpy(&note.order.log_ratio, &bits, sizeof bits);
  board.tell(1);
}

// A planted fault: an int in a gap is another.
Verdict judge_note(const Bytes& input, bool planted) {
  const test::Set way("LACUNA_MPI_WAY", "offered");
  std::string wrong;
  bool boards = false, taken = false;
  const fake::Outcome outcome = fake::run_preloaded({.threads = false}, [&](const fake::Host& mpi, int rank) {
    fake::return_errors(mpi.world);
    fake::Datatype dense = fake::vector(kInts, 1, 2, fake::int_type());
    fake::Datatype type = fake::resized(dense, 0, 2 * kInts * 4);
    mpi.Type_free(&dense);
    mpi.Type_commit(&type);
    std::vector<int> out(4 * kInts, rank), in(4 * kInts, -7);
    for (int call = 0; call < kCalls; ++call) mpi.Alltoall(out.data(), 1, type, in.data(), 1, type, mpi.world);
    const mpi::CommOf* const of = mpi::detail::find(*mpi::job, mpi.world);
    mpi::Board* const board = of != nullptr ? of->board.get() : nullptr;
    if (board != nullptr && rank == 0) {
      Random random(seed_of(input));
      board->begin();
      lie(random, *board);
    } else if (board != nullptr) {
      boards = true;
      taken = mpi.Alltoall(out.data(), 1, type, in.data(), 1, type, mpi.world) == mpi::kSuccess;
      if (planted) in[1] = 0;
      if (!gaps_intact(in)) wrong = "bytes were written that no block has";
    }
    mpi.Type_free(&type);
  });
  for (const std::string& one : outcome.wrong) {
    if (!one.ends_with("requests are left over")) wrong = one;
  }
  if (!boards && wrong.empty()) wrong = "the ranks have no boards";
  return {.taken = taken, .wrong = wrong};
}

}  // namespace

Fuzzer ring_channel() {
  return {.name = "ring_channel",
          .what = "bytes that a peer writes into the inbox that it shares",
          .smoke = 300,
          .least_taken = 1,
          .draw = draw_seed,
          .judge = judge_ring};
}
Fuzzer nixl_words() {
  return {.name = "nixl_words",
          .what = "what a connected agent says: questions, answers and notifications",
          .smoke = 300,
          .least_taken = 0.02,
          .draw = draw_seed,
          .judge = judge_words};
}
Fuzzer mpi_note() {
  return {.name = "mpi_note",
          .what = "notes of a collective that a peer of a preloaded program writes on its board",
          .smoke = 200,
          .least_taken = 0.1,
          .draw = draw_seed,
          .judge = judge_note};
}

}  // namespace lacuna::fuzz
