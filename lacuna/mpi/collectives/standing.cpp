// Persistent collectives by boards.
#include <algorithm>

#include "lacuna/copy/copy.hpp"
#include "lacuna/mpi/collectives/collectives.hpp"

namespace lacuna::mpi {

Standing::Standing(const Pattern& pattern, std::vector<Block> out, std::vector<Block> in)
    : neighbors_(pattern.neighbors() != nullptr ? std::optional(*pattern.neighbors()) : std::nullopt),
      pattern_(pattern.with(neighbors_ ? &*neighbors_ : nullptr)),
      out_(std::move(out)),
      in_(std::move(in)),
      at_(pattern.one_for_all() ? 1 : static_cast<std::size_t>(pattern.outs())),
      packed_(at_.size()),
      awaited_(static_cast<std::size_t>(pattern.size())) {
  for (std::size_t i = 0; i < at_.size(); ++i) {
    const Block* const block = out_block(static_cast<int>(i));
    at_[i] = room_;
    const bool own = !pattern_.one_for_all() && std::cmp_equal(i, pattern_.own_out());
    if (block != nullptr && block->moves && !own) room_ += Board::lines(block->bytes);
  }
}

void Standing::use(BoardUse board, std::vector<int> numbers) {
  board_ = std::move(board);
  numbers_ = std::move(numbers);
}

const Block* Standing::out_block(int i) const {
  const std::size_t place = pattern_.one_for_all() ? 0 : static_cast<std::size_t>(i);
  return place < out_.size() ? &out_[place] : nullptr;
}

const Block* Standing::in_block(int i) const { return std::cmp_less(i, in_.size()) ? &in_[static_cast<std::size_t>(i)] : nullptr; }

void Standing::pack(int i, Note& note) {
  const std::size_t place = pattern_.one_for_all() ? 0 : static_cast<std::size_t>(i);
  const Block* const block = out_block(i);
  note.at = static_cast<std::uint32_t>(at_[place]);
  note.bytes = block != nullptr && block->moves ? block->bytes : 0;
  if (note.bytes == 0 || std::exchange(packed_[place], 1) != 0) return;
  pack_onto(*board_.get(), note.at, *block);
}

void Standing::unpack(int i, int rank, const Note& note) {
  if (!unpack_from(*board_.get(), rank, note, in_block(i))) error_ = kErrTruncate;
}

// What one rank gets.
void Standing::show(int rank) {
  Board& board = *board_.get();
  if (const Neighbors* const neighbors = pattern_.neighbors(); neighbors != nullptr) {
    for (std::size_t i = 0; i < neighbors->destinations.size(); ++i) {
      if (neighbors->destinations[i] == rank) pack(static_cast<int>(i), board.note_of(board.rank(), i));
    }
  } else if (const int i = pattern_.block_to(rank); i >= 0) {
    pack(i, board.note_for(static_cast<std::size_t>(rank)));
  }
  board.tell(static_cast<std::size_t>(rank));
}

// What one rank has sent.
void Standing::hear(int rank, const Note& note) {
  const Board& board = *board_.get();
  const auto from = static_cast<std::size_t>(rank);
  if (const Neighbors* const neighbors = pattern_.neighbors(); neighbors != nullptr) {
    for (std::size_t i = 0; i < neighbors->sources.size(); ++i) {
      const auto number = static_cast<std::size_t>(numbers_[i]);
      if (neighbors->sources[i] == rank && board.has_note(from, number)) unpack(static_cast<int>(i), rank, board.note_of(from, number));
    }
  } else if (const int i = pattern_.block_from(rank); i >= 0) {
    unpack(i, rank, note);
  }
}

// Each rank begins with the one behind it, so that not all read one board at once. Who has heard all others in a call
// knows that they have read what the call before had, so all wait for all.
void Standing::start() {
  const int size = pattern_.size(), rank = pattern_.rank();
  error_ = kSuccess;
  board_.get()->begin();
  std::ranges::fill(packed_, 0);
  for (int step = 1; step < size; ++step) show((rank + step) % size);
  std::ranges::fill(awaited_, 1);
  awaited_[static_cast<std::size_t>(rank)] = 0;
  left_ = size - 1;
  copy_own();
}

// A rank may be its own neighbor.
void Standing::copy_own() {
  const auto copy = [&](int out, int in) {
    const Block* const from = out < 0 ? nullptr : out_block(out);
    const Block* const to = in < 0 ? nullptr : in_block(in);
    if (from != nullptr && to != nullptr && from->bytes > 0 && !copy_block(*from, *to)) error_ = kErrTruncate;
  };
  copy(pattern_.own_out(), pattern_.own_in());
  for (std::size_t i = 0; neighbors_ && i < neighbors_->sources.size(); ++i) {
    if (neighbors_->sources[i] == pattern_.rank()) copy(numbers_[i], static_cast<int>(i));
  }
}

bool Standing::move() {
  const int size = pattern_.size(), rank = pattern_.rank();
  for (int step = 1; step < size && left_ > 0; ++step) {
    const int other = (rank + size - step) % size;
    const Note* const note = awaited_[static_cast<std::size_t>(other)] != 0 ? board_.get()->hear(static_cast<std::size_t>(other)) : nullptr;
    if (note == nullptr) continue;
    awaited_[static_cast<std::size_t>(other)] = 0;
    --left_;
    hear(other, *note);
  }
  return left_ == 0;
}

void Standing::each(const std::function<void(bool out, const Block& block, int peer)>& visit) const {
  for (int i = 0; i < pattern_.outs(); ++i) {
    const Block* const block = out_block(i);
    if (block != nullptr && block->moves && block->bytes > 0 && i != pattern_.own_out()) visit(true, *block, pattern_.to(i));
  }
  for (int i = 0; i < pattern_.ins(); ++i) {
    const Block* const block = in_block(i);
    if (block != nullptr && block->moves && block->bytes > 0 && i != pattern_.own_in()) visit(false, *block, pattern_.from(i));
  }
}

}  // namespace lacuna::mpi
