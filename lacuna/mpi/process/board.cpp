#include "lacuna/mpi/process/board.hpp"

#include <algorithm>
#include <cstring>

namespace lacuna::mpi {

// Communicators that the program has not freed know their boards still, and slower ranks read there.
Boards::~Boards() {
  for (const std::shared_ptr<Board>& board : boards_) {
    peers_.keep(board->memory_);
    board->memory_.reset();
  }
}

BoardUse Boards::make(std::vector<int> locals, std::size_t rank, std::size_t blocks, bool again) {
  const std::size_t notes = locals.size() + blocks;
  const auto serves = [&](const std::shared_ptr<Board>& board) {
    return !board->used_ && board->locals_ == locals && board->rank_ == rank && board->all_[rank].notes == notes;
  };
  if (const auto found = std::ranges::find_if(boards_, serves); again && found != boards_.end()) {
    Board& board = **found;
    board.calls_ = board.parts_ = board.read_by_all_ = 0;
    std::memset(board.all_[rank].at, 0, static_cast<std::size_t>(Board::kWishBytes));
    for (const std::uint32_t call : {0U, 1U}) std::memset(board.half(rank, call), 0, board.notes_bytes(rank));
    for (std::uint32_t call = 0; call < Board::kParts; ++call) std::memset(board.part(rank, call), 0, locals.size() * sizeof(Note));
    return BoardUse(*found);
  }
  const std::int64_t bytes = Board::bytes_for(notes, locals.size());
  if (bytes > left_) return {};
  base::Result<nic::RegisteredBuffer> memory = nic::RegisteredBuffer::create(peers_.context(), bytes);
  if (!memory) return {};
  auto made = std::make_shared<Board>();
  made->rank_ = rank;
  made->all_.resize(locals.size());
  made->locals_ = std::move(locals);
  made->memory_ = std::make_shared<nic::RegisteredBuffer>(std::move(*memory));
  made->all_[rank] = {.at = made->memory_->buffer.data(), .notes = notes};
  boards_.push_back(made);
  left_ -= bytes;
  return BoardUse(std::move(made));
}

bool Boards::reach(Board& board, std::span<const Board::Place> places) {
  constexpr std::size_t kMostNotes = 1 << 20;
  for (std::size_t rank = 0; rank < places.size(); ++rank) {
    const Board::Place& place = places[rank];
    if (place.notes < places.size() || place.notes > kMostNotes) return false;
    if (rank == board.rank_) continue;
    const auto bytes = static_cast<std::size_t>(Board::bytes_for(place.notes, places.size()));
    std::byte* const at = peers_.reach(board.locals_[rank], place.addr, place.rkey, bytes);
    if (at == nullptr || reinterpret_cast<std::uintptr_t>(at) % alignof(Note) != 0) return false;
    board.all_[rank] = {.at = at, .notes = place.notes};
  }
  return true;
}

}  // namespace lacuna::mpi
