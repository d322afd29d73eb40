#include "lacuna/mpi/process/board.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace lacuna::mpi {

// Communicators that the program has not freed know their boards still, and slower ranks read there.
Boards::~Boards() {
  for (const std::shared_ptr<Board>& board : boards_) {
    peers_.keep(board->memory_);
    board->memory_.reset();
    for (Board::Aside& aside : board->asides_) {
      if (aside.memory != nullptr) peers_.keep(std::exchange(aside.memory, nullptr));
    }
    board->withdraw();
  }
}

// The others are told, if they have been reached.
void Board::leave() {
  used_ = false;
  if (says_) says_();
  for (std::size_t rank = 0; !says_ && stands_ && rank < all_.size(); ++rank) {
    if (all_[rank].at != nullptr && rank != rank_) left(rank, rank_).store(1, std::memory_order_release);
  }
}

bool Board::is_left_by_all() const {
  if (all_left_) return all_left_();
  for (std::size_t rank = 0; rank < all_.size(); ++rank) {
    if (rank != rank_ && left(rank_, rank).load(std::memory_order_acquire) == 0) return false;
  }
  return true;
}

void Board::withdraw() {
  withdrawn_ = true;
  says_ = nullptr;
  for (std::size_t rank = 0; rank < all_.size(); ++rank) {
    if (rank != rank_) all_[rank].at = nullptr;
  }
}

const std::byte* Board::aside(std::size_t rank, const Note& note, std::int64_t bytes) const noexcept try {
  Place place;
  std::memcpy(&place, note.offer.data(), sizeof place);
  return bytes > 0 ? peers_->reach(locals_[rank], place.addr, place.rkey, static_cast<std::size_t>(bytes)) : nullptr;
} catch (const std::bad_alloc&) {
  return nullptr;
}

BoardUse Boards::make(std::vector<int> locals, std::size_t rank, std::size_t blocks, bool again) {
  const std::size_t notes = locals.size() + blocks;
  const auto serves = [&](const std::shared_ptr<Board>& board) {
    return !board->used_ && !board->stands_ && board->locals_ == locals && board->rank_ == rank && board->all_[rank].notes == notes;
  };
  if (const auto found = std::ranges::find_if(boards_, serves); again && found != boards_.end()) {
    Board& board = **found;
    board.calls_ = board.parts_ = board.read_by_all_ = 0;
    std::memset(board.all_[rank].at, 0, static_cast<std::size_t>(Board::kWishBytes));
    for (const std::uint32_t call : {0U, 1U}) std::memset(board.half(rank, call), 0, board.notes_bytes(rank));
    for (std::uint32_t call = 0; call < Board::kParts; ++call) std::memset(board.part(rank, call), 0, locals.size() * sizeof(Note));
    return BoardUse(*found);
  }
  return add(std::move(locals), rank, {.notes = notes, .room = Board::kRoom});
}

// Those whose ranks all have left them.
void Boards::drop_left() {
  std::erase_if(boards_, [&](const std::shared_ptr<Board>& board) {
    if (!board->stands_ || board->used_ || !(board->withdrawn_ || board->is_left_by_all())) return false;
    left_ += board->bytes_of(board->all_[board->rank_]);
    for (const Board::Aside& aside : board->asides_) left_ += aside.bytes;
    return true;
  });
}

BoardUse Boards::make_standing(std::vector<int> locals, std::size_t rank, std::size_t blocks, std::int64_t room) {
  drop_left();
  if (!std::in_range<std::uint32_t>(room)) return {};  // a note could not say where a block lies
  const std::size_t notes = locals.size() + blocks;
  return add(std::move(locals), rank, {.notes = notes, .room = room, .stands = true});
}

BoardUse Boards::make_queue(std::vector<int> locals, std::size_t rank) {
  drop_left();
  const Form form{.notes = locals.size(), .room = Board::kQueueRoom, .stands = true, .halves = Board::kQueue};
  return add(std::move(locals), rank, form);
}

BoardUse Boards::add(std::vector<int> locals, std::size_t rank, const Form& form) {
  auto made = std::make_shared<Board>();
  made->rank_ = rank;
  made->stands_ = form.stands;
  made->halves_ = form.halves;
  made->all_.resize(locals.size());
  made->all_[rank] = {.notes = form.notes, .room = form.room};
  made->locals_ = std::move(locals);
  made->peers_ = &peers_;
  const std::int64_t bytes = made->bytes_of(made->all_[rank]);
  if (bytes > left_) {
    ++refused_;
    return {};
  }
  base::Result<nic::RegisteredBuffer> memory = nic::RegisteredBuffer::create(peers_.context(), bytes);
  if (!memory) {
    ++refused_;
    return {};
  }
  made->memory_ = std::make_shared<nic::RegisteredBuffer>(std::move(*memory));
  made->all_[rank].at = made->memory_->buffer.data();
  boards_.push_back(made);
  left_ -= bytes;
  most_ = std::max(most_, limit_ - left_);
  return BoardUse(std::move(made));
}

bool Boards::take_aside(Board& board, std::uint32_t call, std::int64_t bytes) try {
  base::Result<nic::RegisteredBuffer> memory = nic::RegisteredBuffer::create(peers_.context(), bytes);
  if (!memory) return false;
  Board::Aside& aside = board.asides_[call % Board::kQueue];  // whose last call has been read by all
  const std::int64_t before = aside.bytes;
  aside = {.call = call, .bytes = bytes, .memory = std::make_shared<nic::RegisteredBuffer>(std::move(*memory))};
  left_ += before - bytes;
  most_ = std::max(most_, limit_ - left_);
  return true;
} catch (const std::bad_alloc&) {
  return false;
}

void Boards::drop_asides(Board& board) {
  for (Board::Aside& aside : board.asides_) {
    if (aside.memory == nullptr || !board.was_read(aside.call)) continue;
    left_ += aside.bytes;
    aside = {};
  }
}

bool Boards::reach(Board& board, std::span<const Board::Place> places) {
  constexpr std::size_t kMostNotes = 1 << 20;
  constexpr std::int64_t kMostRoom = std::int64_t{1} << 40;
  for (std::size_t rank = 0; rank < places.size(); ++rank) {
    const Board::Place& place = places[rank];
    if (place.notes < places.size() || place.notes > kMostNotes) return false;
    if (place.room < 0 || place.room > kMostRoom || place.room % alignof(Note) != 0) return false;
    if (rank == board.rank_) continue;
    Board::Side side{.notes = place.notes, .room = place.room};
    side.at = peers_.reach(board.locals_[rank], place.addr, place.rkey, static_cast<std::size_t>(board.bytes_of(side)));
    if (side.at == nullptr || reinterpret_cast<std::uintptr_t>(side.at) % alignof(Note) != 0) return false;
    board.all_[rank] = side;
  }
  return true;
}

}  // namespace lacuna::mpi
