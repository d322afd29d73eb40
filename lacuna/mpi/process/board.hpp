// Boards: memory by which the ranks of a communicator on one node say what a collective needs, and pass short blocks,
// without the host. Each rank writes its own board, and reads the others'.
//
//   wishes │
//   half 0 │ a note for each rank │ a note for each block to a neighbor │ room: blocks, packed │   calls take the
//   half 1 │ ...                                                                                │   halves by turns
//   parts  │ a note for each rank │ room │ ...                                  calls in which not all wait for all
//
// A persistent collective has a board of its own, without parts, whose room fits its blocks. So have a communicator's
// collectives with requests, with as many parts in the halves' place as calls may be under way (order.hpp).
//
// A rank that has seen the notes of all ranks of a call knows that they have read all that was written for the calls
// before, so two halves are enough. Of a call in which not all wait for all that is not known; so it has a part of its
// own, and after as many as there are parts one waits for all. Who waits has to be scheduled once for each call,
// however many ranks share a CPU. What another rank's board says may be false: places are within its room, or not read.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "lacuna/mpi/process/inquiry.hpp"

namespace lacuna::mpi {

/// What the first rank of a communicator has all its ranks do, and what it has learned by that: of two ways, how long
/// the second takes beside the first.
struct TrialOrder {
  Ordered next{};
  std::uint8_t first = 0, second = 0, distance = 0;
  float log_ratio = 0;  ///< 0: nothing was learned
};

/// What one rank says to another in a call. The first line is enough for a block that lies in the room.
struct alignas(64) Note {
  static constexpr unsigned char kRefuses = 8;  ///< that rank has no memory for its part in the call
  static constexpr unsigned char kAside = 64;   ///< of a queue: the block lies aside, at the Place in `offer`
  std::atomic<std::uint32_t> call = 0;          ///< of which it is; written last
  unsigned char says = 0, sizes = 0;            ///< as in Slot (exchange.hpp)
  std::uint32_t at = 0;                         ///< in the room, of a block that lies there
  std::atomic<std::uint32_t> left = 0;          ///< its reader reads there no more; the reader's word
  std::int64_t bytes = 0;
  TrialOrder order;
  alignas(64) std::array<std::byte, 64> offer{};
};
static_assert(sizeof(Note) == 128);

/// The boards of one communicator, as one of its ranks sees them.
class Board {
 public:
  static constexpr std::int64_t kRoom = 256 << 10;     ///< bytes of the blocks of a call: 8 of 32 KiB
  static constexpr std::int64_t kPartRoom = 32 << 10;  ///< and of a call that has a part
  static constexpr std::uint32_t kParts = 8;
  static constexpr std::uint32_t kQueue = 4;             ///< calls with requests that are under way, and
  static constexpr std::int64_t kQueueRoom = 128 << 10;  ///< bytes of the blocks of one

  /// Bytes of a block there, where each begins a line.
  static constexpr std::int64_t lines(std::int64_t bytes) { return (bytes + 63) / 64 * 64; }
  /// What a rank tells the others, so that they find its board.
  struct Place {
    std::uint64_t addr = 0;
    std::uint32_t rkey = 0;
    std::uint32_t notes = 0;  ///< of a half; 0: there is no board
    std::int64_t room = 0;    ///< of a half
  };
  [[nodiscard]] Place place() const {
    return {.addr = memory_->region.addr(),
            .rkey = memory_->region.rkey(),
            .notes = static_cast<std::uint32_t>(all_[rank_].notes),
            .room = all_[rank_].room};
  }

  void wish(std::size_t kind, std::uint32_t n) const { wishes(rank_)[kind].store(n, std::memory_order_release); }
  [[nodiscard]] bool wishes(std::size_t rank, std::size_t kind, std::uint32_t n) const {
    return wishes(rank)[kind].load(std::memory_order_acquire) == n;
  }
  [[nodiscard]] bool is_of(int rank) const { return std::cmp_equal(rank, rank_); }
  /// Begins a call in which each rank waits for all others. All ranks begin the same calls.
  void begin() {
    read_by_all_ = parts_;
    in_part_ = false;
    now_ = ++calls_;
  }
  /// Begins one in which not all wait, of which all know that there is a part for it.
  void begin_part() {
    in_part_ = true;
    now_ = ++parts_;
  }
  /// A call of a queue: which of them, from 1. What is asked then is of that call.
  void begin(std::uint32_t call) {
    in_part_ = false;
    now_ = call;
  }
  /// Of a queue: this rank has read all that it reads of a call.
  void read(std::uint32_t call) const { done(rank_, call).store(call, std::memory_order_release); }
  /// Whether all ranks have read what was where such a call would be.
  [[nodiscard]] bool has_place(std::uint32_t call) const {
    for (std::size_t rank = 0; call > kQueue && rank < all_.size(); ++rank) {
      if (done(rank, call).load(std::memory_order_acquire) != call - kQueue) return false;
    }
    return true;
  }
  /// Whether all ranks have read that call, or one behind it.
  [[nodiscard]] bool was_read(std::uint32_t call) const {
    for (std::size_t rank = 0; rank < all_.size(); ++rank) {
      if (static_cast<std::int32_t>(done(rank, call).load(std::memory_order_acquire) - call) < 0) return false;
    }
    return true;
  }
  /// A hint, before begin(): notes and so many bytes of this rank's room will be written in that call. Lines that
  /// others have read come back while the call's blocks are looked at.
  void expect(std::int64_t bytes) const {
    constexpr std::int64_t kMost = 2 << 10;
    constexpr std::size_t kMostNotes = 8;
    std::byte* const next = half(rank_, calls_ + 1);
    for (std::size_t rank = 0; rank < std::min(all_.size(), kMostNotes); ++rank)
      if (rank != rank_) base::prefetch_to_write(next + rank * sizeof(Note));
    for (std::int64_t line = 0; line < std::min(bytes, kMost); line += alignof(Note))
      base::prefetch_to_write(next + notes_bytes(rank_) + line);
  }
  [[nodiscard]] bool has_part() const { return parts_ - read_by_all_ < kParts; }
  [[nodiscard]] std::int64_t room_bytes(std::size_t rank) const { return in_part_ ? kPartRoom : all_[rank].room; }
  [[nodiscard]] std::int64_t room_bytes() const { return room_bytes(rank_); }
  /// Where this rank packs what others are to read.
  [[nodiscard]] std::byte* room() const { return aside() != nullptr ? aside()->buffer.data() : room(rank_); }
  /// Of a queue: memory of this rank for the call that has begun, whose blocks have no room on the board. Null: they
  /// have, or there is none.
  [[nodiscard]] const nic::RegisteredBuffer* aside() const {
    const Aside& one = asides_[now_ % kQueue];
    return one.call == now_ ? one.memory.get() : nullptr;
  }
  /// So many bytes that lie aside, as a rank's note says. Null: they are not to be reached.
  [[nodiscard]] const std::byte* aside(std::size_t rank, const Note& note, std::int64_t bytes) const noexcept;
  /// A hint that so many bytes of this rank's room are written now. Their lines are with the ranks that have read what
  /// was there before, and many short stores to lines that are taken one by one take three times as long.
  void own(std::int64_t at, std::int64_t bytes) const {
    constexpr std::int64_t kMost = 16 << 10;  // of the L1 cache
    for (std::int64_t line = 0; line < std::min(bytes, kMost); line += alignof(Note)) base::prefetch_to_write(room() + at + line);
  }
  /// For this rank to write; tell() shows it to that rank.
  [[nodiscard]] Note& note_for(std::size_t rank) const { return notes(rank_)[rank]; }
  void tell(std::size_t rank) const { note_for(rank).call.store(now_, std::memory_order_release); }
  /// Of a block to a neighbor, before tell(). Whose notes there are is known: has_note().
  [[nodiscard]] Note& note_of(std::size_t rank, std::size_t block) const { return notes(rank)[all_.size() + block]; }
  [[nodiscard]] bool has_note(std::size_t rank, std::size_t block) const { return block < all_[rank].notes - all_.size(); }
  /// A persistent collective's that not all ranks have: none reads it, and this rank reads none.
  void withdraw();
  /// Of an order: `leave` is called once this rank reads no more here; `all_left`: whether all ranks have left.
  void stands_for(std::function<void()> leave, std::function<bool()> all_left) noexcept {
    says_ = std::move(leave);
    all_left_ = std::move(all_left);
  }
  [[nodiscard]] std::size_t rank() const { return rank_; }
  [[nodiscard]] std::size_t size() const { return all_.size(); }
  /// What that rank says to this one; null: nothing yet.
  [[nodiscard]] const Note* hear(std::size_t rank) const {
    const Note& note = notes(rank)[rank_];
    return note.call.load(std::memory_order_acquire) == now_ ? &note : nullptr;
  }
  /// So many bytes of a rank's room; null: it has not as many there.
  [[nodiscard]] const std::byte* block(std::size_t rank, std::uint32_t at, std::int64_t bytes) const {
    const std::int64_t most = room_bytes(rank);
    return bytes >= 0 && bytes <= most && at <= most - bytes ? room(rank) + at : nullptr;
  }

 private:
  friend class Boards;
  friend class BoardUse;
  void leave();
  [[nodiscard]] bool is_left_by_all() const;
  static constexpr std::int64_t kWishBytes = (sizeof(Wishes) + alignof(Note) - 1) / alignof(Note) * alignof(Note);
  [[nodiscard]] Wishes& wishes(std::size_t rank) const { return *reinterpret_cast<Wishes*>(all_[rank].at); }
  struct Side {
    std::byte* at = nullptr;
    std::size_t notes = 0;
    std::int64_t room = 0;
    [[nodiscard]] std::int64_t half_bytes() const { return static_cast<std::int64_t>(notes * sizeof(Note)) + room; }
  };
  [[nodiscard]] std::int64_t bytes_of(const Side& side) const {
    return kWishBytes + halves_ * side.half_bytes() + (stands_ ? 0 : kParts * part_bytes(all_.size()));
  }
  [[nodiscard]] std::size_t notes_bytes(std::size_t rank) const { return all_[rank].notes * sizeof(Note); }
  [[nodiscard]] std::byte* half(std::size_t rank, std::uint32_t call) const {
    return all_[rank].at + kWishBytes + call % halves_ * all_[rank].half_bytes();
  }
  [[nodiscard]] static std::int64_t part_bytes(std::size_t ranks) { return static_cast<std::int64_t>(ranks * sizeof(Note)) + kPartRoom; }
  [[nodiscard]] std::byte* part(std::size_t rank, std::uint32_t call) const {
    return all_[rank].at + kWishBytes + 2 * all_[rank].half_bytes() + call % kParts * part_bytes(all_.size());
  }
  // Of the call that has begun.
  [[nodiscard]] Note* notes(std::size_t rank) const { return reinterpret_cast<Note*>(in_part_ ? part(rank, now_) : half(rank, now_)); }
  [[nodiscard]] std::byte* room(std::size_t rank) const {
    return reinterpret_cast<std::byte*>(notes(rank) + (in_part_ ? all_.size() : all_[rank].notes));
  }
  std::size_t rank_ = 0;
  std::uint32_t calls_ = 0, parts_ = 0;  // begun
  std::uint32_t read_by_all_ = 0;        // of those with parts
  std::uint32_t now_ = 0;                // the one that has begun
  bool in_part_ = false;
  // What a rank says in a board that it reads no more.
  [[nodiscard]] std::atomic<std::uint32_t>& left(std::size_t owner, std::size_t reader) const {
    return reinterpret_cast<Note*>(half(owner, 0))[reader].left;
  }
  // Each on a line of its own, where others wish
  [[nodiscard]] std::atomic<std::uint32_t>& done(std::size_t rank, std::uint32_t call) const {
    constexpr std::size_t kLine = alignof(Note) / sizeof(std::atomic<std::uint32_t>);
    static_assert((kQueue - 1) * kLine < std::tuple_size_v<Wishes>);
    return wishes(rank)[call % kQueue * kLine];
  }
  std::function<void()> says_;  // none: ranks say on one another's boards that they have left
  std::function<bool()> all_left_;
  bool stands_ = false;  // it is a persistent collective's, or a queue
  std::uint32_t halves_ = 2;
  bool withdrawn_ = false;
  std::vector<Side> all_;    // by rank
  std::vector<int> locals_;  // of each rank, as Boards counts them
  struct Aside {
    std::uint32_t call = 0;
    std::int64_t bytes = 0;
    nic::SharedBuffer memory;
  };
  std::array<Aside, kQueue> asides_;
  NodePeers* peers_ = nullptr;
  nic::SharedBuffer memory_;
  bool used_ = false;
};

/// A communicator's use of its board, or a persistent collective's. The memory stays when that ends: a slower rank may
/// be reading there.
class BoardUse {
 public:
  BoardUse() = default;
  explicit BoardUse(std::shared_ptr<Board> board) : board_(std::move(board)) { board_->used_ = true; }
  BoardUse(BoardUse&&) = default;
  BoardUse& operator=(BoardUse&& other) noexcept {
    board_.swap(other.board_);
    return *this;
  }
  BoardUse(const BoardUse&) = delete;
  BoardUse& operator=(const BoardUse&) = delete;
  ~BoardUse() {
    if (board_ != nullptr) board_->leave();
  }
  [[nodiscard]] Board* get() const { return board_.get(); }

 private:
  std::shared_ptr<Board> board_;
};

/// The boards of this process.
class Boards {
 public:
  /// `most`: bytes of all its boards.
  Boards(NodePeers& peers, std::int64_t most) : peers_(peers), limit_(most), left_(most) {}
  ~Boards();
  Boards(const Boards&) = delete;
  Boards& operator=(const Boards&) = delete;

  /// This rank's board of a communicator whose other ranks have these numbers on this node, and which has so many
  /// blocks to neighbors. `again`: one that the same ranks had before may be taken, since all of them have left its
  /// last call: they are in this one. Empty: there is no memory. Throws std::bad_alloc.
  BoardUse make(std::vector<int> locals, std::size_t rank, std::size_t blocks, bool again);
  /// A persistent collective's, with so many bytes for the blocks of a call. Its memory goes once no rank reads there.
  BoardUse make_standing(std::vector<int> locals, std::size_t rank, std::size_t blocks, std::int64_t room);
  /// The same of a communicator's collectives with requests.
  BoardUse make_queue(std::vector<int> locals, std::size_t rank);
  /// Memory for the blocks of a call of a queue which have no room on the board, also beyond the limit: the others wait
  /// for them. False: there is none.
  bool take_aside(Board& board, std::uint32_t call, std::int64_t bytes);
  /// Gives such memory back that all ranks have read.
  void drop_asides(Board& board);
  /// Finds the others'. False: one has none, or it is not to be reached. Throws std::bad_alloc.
  bool reach(Board& board, std::span<const Board::Place> places);
  /// Bytes that they had, at most, and may have; boards for which there was no room.
  [[nodiscard]] std::int64_t most() const { return most_; }
  [[nodiscard]] std::int64_t limit() const { return limit_; }
  [[nodiscard]] std::int64_t refused() const { return refused_; }

 private:
  struct Form {
    std::size_t notes = 0;
    std::int64_t room = 0;
    bool stands = false;
    std::uint32_t halves = 2;
  };
  BoardUse add(std::vector<int> locals, std::size_t rank, const Form& form);
  void drop_left();
  NodePeers& peers_;
  std::int64_t limit_, left_;
  std::int64_t most_ = 0, refused_ = 0;
  std::vector<std::shared_ptr<Board>> boards_;
};

}  // namespace lacuna::mpi
