// Collectives with requests by boards.
#include <algorithm>
#include <cstring>

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
      awaited_(static_cast<std::size_t>(pattern.size())),
      board_(std::make_shared<BoardUse>()) {
  for (std::vector<Block>* const side : {&out_, &in_}) {
    for (Block& block : *side) block.type.keep();  // the program may free it
  }
  for (std::size_t i = 0; i < at_.size(); ++i) {
    const Block* const block = out_block(static_cast<int>(i));
    at_[i] = room_;
    const bool own = !pattern_.one_for_all() && std::cmp_equal(i, pattern_.own_out());
    if (block != nullptr && block->moves && !own) room_ += Board::lines(block->bytes);
  }
}

void Standing::use(BoardUse board, std::vector<int> numbers) {
  *board_ = std::move(board);
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
  const Board& board = *board_->get();
  note.says = 0;
  note.at = static_cast<std::uint32_t>(at_[place]);
  note.bytes = block != nullptr && block->moves ? block->bytes : 0;
  if (note.bytes == 0) return;
  if (const nic::RegisteredBuffer* const aside = board.aside(); aside != nullptr) {
    const Board::Place there{.addr = aside->region.addr() + static_cast<std::uint64_t>(at_[place]), .rkey = aside->region.rkey()};
    note.says = Note::kAside;
    std::memcpy(note.offer.data(), &there, sizeof there);
  }
  if (std::exchange(packed_[place], 1) == 0) pack_onto(board, at_[place], *block);
}

void Standing::unpack(int i, int rank, const Note& note) {
  if ((base::read_once(note.says) & Note::kRefuses) != 0) {
    error_ = kErrOther;
  } else if (!unpack_from(*board_->get(), rank, note, in_block(i))) {
    error_ = kErrTruncate;
  }
}

// What one rank gets.
void Standing::show(int rank) {
  Board& board = *board_->get();
  if (const Neighbors* const neighbors = pattern_.neighbors(); neighbors != nullptr && call_ == 0) {
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
  const Board& board = *board_->get();
  const auto from = static_cast<std::size_t>(rank);
  if (const Neighbors* const neighbors = pattern_.neighbors(); neighbors != nullptr && call_ == 0) {
    for (std::size_t i = 0; i < neighbors->sources.size(); ++i) {
      const auto number = static_cast<std::size_t>(numbers_[i]);
      if (neighbors->sources[i] == rank && board.has_note(from, number)) unpack(static_cast<int>(i), rank, board.note_of(from, number));
    }
  } else if (const int i = pattern_.block_from(rank); i >= 0) {
    unpack(i, rank, note);
  }
}

// Who has heard all others in a call knows that they have read what the call before had, so all wait for all.
void Standing::start() {
  board_->get()->begin();
  begin();
}

// What was there before, all have read.
void Standing::start(std::shared_ptr<BoardUse> queue, std::uint32_t call) {
  board_ = std::move(queue);
  call_ = call;
  board_->get()->begin(call);
  begin();
  if (left_ == 0) board_->get()->read(call);
}

// Each rank begins with the one behind it, so that not all read one board at once.
void Standing::begin() {
  const int size = pattern_.size(), rank = pattern_.rank();
  const bool all = call_ == 0;
  error_ = kSuccess;
  left_ = 0;
  std::ranges::fill(packed_, 0);
  for (int step = 1; step < size; ++step) {
    const int other = (rank + step) % size;
    if (all || pattern_.block_to(other) >= 0) show(other);
    awaited_[static_cast<std::size_t>(other)] = all || pattern_.block_from(other) >= 0 ? 1 : 0;
    left_ += awaited_[static_cast<std::size_t>(other)];
  }
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
    if (neighbors_->sources[i] != pattern_.rank()) continue;
    copy(call_ == 0 ? numbers_[i] : pattern_.block_to(pattern_.rank()), static_cast<int>(i));
  }
}

bool Standing::move() {
  if (left_ == 0) return true;
  const int size = pattern_.size(), rank = pattern_.rank();
  if (call_ != 0) board_->get()->begin(call_);
  for (int step = 1; step < size && left_ > 0; ++step) {
    const int other = (rank + size - step) % size;
    const Note* const note =
        awaited_[static_cast<std::size_t>(other)] != 0 ? board_->get()->hear(static_cast<std::size_t>(other)) : nullptr;
    if (note == nullptr) continue;
    awaited_[static_cast<std::size_t>(other)] = 0;
    --left_;
    hear(other, *note);
  }
  if (left_ == 0 && call_ != 0) board_->get()->read(call_);
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
