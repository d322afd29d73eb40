// Exchanges by boards: what ranks tell one another, and blocks that fit.
#include <algorithm>
#include <array>
#include <cstring>

#include "lacuna/mpi/messages/exchange.hpp"
#include "lacuna/mpi/messages/messages.hpp"

namespace lacuna::mpi::detail {
namespace {

// Bytes of a block, up to which packing all of it and then unpacking all of it takes less than a stream, whose receiver
// unpacks while its sender packs.
constexpr std::int64_t kMostLaid = 8 << 10;

// Bytes of a block on a board, where each begins a line.
constexpr std::int64_t lines(std::int64_t bytes) { return (bytes + 63) / 64 * 64; }

// The block of a side that another rank sends or gets; below 0: none.
int block_to(const Pattern& pattern, int rank) {
  switch (pattern.kind()) {
    case Collective::alltoall:
    case Collective::allgather: return rank;
    case Collective::gather: return rank == pattern.root() ? 0 : -1;
    default: return pattern.is_root() ? rank : -1;
  }
}
int block_from(const Pattern& pattern, int rank) {
  switch (pattern.kind()) {
    case Collective::alltoall:
    case Collective::allgather: return rank;
    case Collective::gather: return pattern.is_root() ? rank : -1;
    default: return rank == pattern.root() ? 0 : -1;
  }
}

}  // namespace

// Which of two blocks between the same ranks is which, the host alone knows: each block to a neighbor says its number.
int agree_on_boards(Job& job, Comm comm, CommOf& of) {
  const Host& h = host();
  int rank = 0;
  h.Comm_rank(comm, &rank);
  constexpr int kBytes = sizeof(Board::Place);
  static_assert(sizeof(Board::Place) <= sizeof(Slot));
  auto* const places = reinterpret_cast<Board::Place*>(of.exchange_memory.data());
  const bool neighbors = of.neighbors && of.neighbors->has_ranks;
  const std::size_t outs = neighbors ? of.neighbors->out.size() : 0;
  Board::Place mine;
  try {
    const auto lock = job.enter();
    std::vector<int> locals;
    locals.reserve(of.places.size());
    for (const RankPlace& place : of.places) locals.push_back(place.local);
    if (neighbors) of.neighbor_blocks.resize(of.neighbors->in.size() + 1);
    of.board = job.boards->make(std::move(locals), static_cast<std::size_t>(rank), outs, !Mutex::multiple());
    if (of.board.get() != nullptr) mine = of.board.get()->place();
  } catch (const std::bad_alloc&) {
    mine = {};  // which the others are told
  }
  if (const int result = h.Allgather(&mine, kBytes, h.byte, places, kBytes, h.byte, comm); result != kSuccess) return result;
  unsigned char reaches = 0, all = 0;
  try {
    const auto lock = job.enter();
    reaches = of.board.get() != nullptr && job.boards->reach(*of.board.get(), std::span(places, of.places.size())) ? 1 : 0;
  } catch (const std::bad_alloc&) {
    reaches = 0;
  }
  int result = h.Allreduce(&reaches, &all, 1, h.byte, h.band, comm);
  if (result == kSuccess && all != 0 && neighbors) {
    auto* const numbers = reinterpret_cast<int*>(of.exchange_memory.data());
    for (std::size_t i = 0; i < outs; ++i) numbers[i] = static_cast<int>(i);
    result = h.Neighbor_alltoall(numbers, sizeof(int), h.byte, of.neighbor_blocks.data(), sizeof(int), h.byte, comm);
  }
  if (result != kSuccess || all == 0) of.board = {};
  return result;
}

// Whether a block goes by the board, and where. One that all others get lies there once.
bool Exchange::lay(std::size_t i, const Block& block) {
  if (board_ == nullptr || (!job_.crowded && block.bytes > kMostLaid)) return false;
  if (!pattern_.one_for_all() || laid_ == 0) {
    if (block.bytes > board_->room_bytes() - laid_) return false;
    at_[i] = static_cast<std::uint32_t>(laid_);
    laid_ += lines(block.bytes);
  }
  tells_[i].says = Slot::offers | Slot::on_board;
  return true;
}

// Packs a block, if it goes by the board, and says where it is.
void Exchange::describe(std::size_t i, Note& note) {
  const Slot& slot = tells_[i];
  const Block* const block = out_block(i);
  note.says |= slot.says;
  if ((slot.says & Slot::on_board) != 0 && block != nullptr) {
    const std::size_t lies = pattern_.one_for_all() ? 0 : i;
    note.at = at_[lies];
    note.bytes = block->bytes;
    if (std::exchange(packed_[lies], 1) != 0) return;
    copy::pack(block->layout, block->base, 0, block->bytes, board_->room() + note.at, copy::Caching::kept);
  } else if ((slot.says & Slot::offers) != 0) {
    std::memcpy(note.offer.data(), slot.said.data(), slot.said.size());
  }
}

// What one rank gets.
void Exchange::show(int rank, const Said& all) {
  Note& note = board_->note_for(static_cast<std::size_t>(rank));
  note.says = all.says;
  note.sizes = all.sizes;
  if (const Neighbors* const neighbors = pattern_.neighbors(); neighbors != nullptr) {
    for (std::size_t i = 0; i < neighbors->destinations.size(); ++i) {
      if (neighbors->destinations[i] != rank) continue;
      Note& of_block = board_->note_of(board_->rank(), i);
      of_block.says = 0;
      describe(i, of_block);
    }
  } else if (const int i = block_to(pattern_, rank); i >= 0) {
    describe(static_cast<std::size_t>(i), note);
  }
  board_->tell(static_cast<std::size_t>(rank));
}

// What was laid on the board is unpacked: if it turns out that the host moves everything, that puts the same bytes
// there.
void Exchange::take_from_board(std::size_t i, int rank, const Note& note) {
  Slot& slot = told_[i];
  slot.says = base::read_once(note.says);
  if ((slot.says & Slot::offers) == 0) return;
  if ((slot.says & Slot::on_board) == 0) {
    std::memcpy(slot.said.data(), note.offer.data(), slot.said.size());
    return;
  }
  const std::int64_t bytes = base::read_once(note.bytes);
  const std::byte* const there = board_->block(static_cast<std::size_t>(rank), base::read_once(note.at), bytes);
  const Block* const block = in_block(i);
  if (there == nullptr || block == nullptr || block->bytes < bytes) {
    error_ = kErrTruncate;
  } else {
    copy::unpack(block->layout, block->base, 0, bytes, there, copy::Caching::kept);
  }
}

// What one rank has said.
void Exchange::hear(int rank, const Note& note) {
  const auto from = static_cast<std::size_t>(rank);
  if (const Neighbors* const neighbors = pattern_.neighbors(); neighbors != nullptr) {
    for (std::size_t i = 0; i < neighbors->sources.size(); ++i) {
      const auto number = static_cast<std::size_t>(of_.neighbor_blocks[i]);
      if (neighbors->sources[i] == rank && board_->has_note(from, number)) take_from_board(i, rank, board_->note_of(from, number));
    }
  } else if (const int i = block_from(pattern_, rank); i >= 0) {
    take_from_board(static_cast<std::size_t>(i), rank, note);
  }
}

// Each rank begins with the one behind it, so that not all read one board at once.
Said Exchange::tell_by_board(Said all) {
  const auto size = static_cast<int>(of_.places.size()), rank = pattern_.rank();
  const bool each = !all_with_all(pattern_.kind());
  board_->begin();
  if ((all.says & Slot::refuses) == 0) {
    const unsigned char offered = offer_all(each);
    all.says = each ? static_cast<unsigned char>((all.says & Slot::offers_some) | (offered & Slot::has_rest)) : offered;
  }
  for (int step = 1; step < size; ++step) show((rank + step) % size, all);
  if ((all.says & Slot::offers_some) != 0) copy_own();
  std::ranges::fill(awaited_, 1);
  awaited_[static_cast<std::size_t>(rank)] = 0;
  return hear_all(all);
}

// Waits for those that are awaited.
Said Exchange::hear_all(Said all) {
  const auto size = static_cast<int>(of_.places.size()), rank = pattern_.rank();
  std::int64_t since = 0;
  auto left = std::ranges::count(awaited_, 1);
  for (int spins = 1; left > 0; ++spins) {
    const auto before = left;
    for (int step = 1; step < size; ++step) {
      const int other = (rank + size - step) % size;
      unsigned char& awaited = awaited_[static_cast<std::size_t>(other)];
      const Note* const note = awaited != 0 ? board_->hear(static_cast<std::size_t>(other)) : nullptr;
      if (note == nullptr) continue;
      awaited = 0;
      --left;
      all.add(note->says, note->sizes);
      hear(other, *note);
    }
    if (left == before) await(job_, offers_, spins, since);
  }
  return all;
}

bool Exchange::passes(const Pattern& pattern, const CommOf& of, const Asking& asking, std::int64_t bytes, bool crowded) {
  const Board* const board = of.board.get();
  if (board == nullptr || !asking.gained || !board->has_part() || all_with_all(pattern.kind()) || bytes <= 0) return false;
  if (bytes > (crowded ? Board::kPartRoom : std::min(kMostLaid, Board::kPartRoom))) return false;
  const auto blocks = pattern.kind() == Collective::scatter ? static_cast<std::int64_t>(of.places.size()) : 1;
  return lines(bytes) * blocks <= Board::kPartRoom;
}

void Exchange::pass(bool understood) {
  begin();
  board_->begin_part();
  if (understood) offer_all(true);
  if (!understood) error_ = kErrNoMem;
  const Said all{.says = static_cast<unsigned char>(understood ? 0 : Slot::refuses)};
  const auto size = static_cast<int>(of_.places.size()), rank = pattern_.rank();
  for (int step = 1; step < size; ++step) {
    const int other = (rank + step) % size;
    if (block_to(pattern_, other) >= 0) show(other, all);
    awaited_[static_cast<std::size_t>(other)] = block_from(pattern_, other) >= 0 ? 1 : 0;
  }
  if (understood) copy_own();
  if ((hear_all(all).says & Slot::refuses) != 0 && error_ == kSuccess) error_ = kErrOther;
}

}  // namespace lacuna::mpi::detail
