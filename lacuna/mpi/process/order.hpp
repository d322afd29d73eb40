// Orders: memory of each rank of a node, there since MPI_Init, by which the ranks of a communicator decide how each of
// its collectives with a request goes, though none of them may wait for another in such a call.
//
//   a table of each rank   communicator: key, generations │ what its rank has made │ a word for each call
//                          communicator: ...
//
// All ranks begin these calls of a communicator in the same order. The rank that begins the n-th first decides for all
// how it goes: by one exchange of the call's word, which the communicator's rank 0 has. The others find the decision
// there. Words are used again. They come in generations, of which two have room: the rank that begins a generation
// first looks whether all ranks have begun the one before, and so have left the last but one. If one has not, the
// generation is closed: its calls are the host's on all ranks, as are those of further ones until no rank is so far
// behind.
//
// A board is decided for only if every rank has said that it has its board and reaches those of the others. So a rank
// that has no memory for an order, or a table without room, tells no other rank: it leaves all such calls to the host,
// and so do the others.
//
// Each rank counts itself in the entry of rank 0 when it leaves the order: its communicator is freed, and its calls are
// over. The last one frees all entries.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "lacuna/mpi/process/board.hpp"
#include "lacuna/mpi/process/node_peers.hpp"
#include "lacuna/mpi/process/rank_place.hpp"

namespace lacuna::mpi {

/// How a collective with a request goes.
enum class Decision : std::uint8_t {
  left = 1,  ///< by the host
  wished,    ///< by the host, but it had better gone by a board: all are to make theirs
  board,
};

/// What a rank has of a communicator's order; all ranks of a node have a table of these.
struct alignas(64) OrderEntry {
  static constexpr std::uint32_t kMade = 1, kReaches = 2, kPairs = 4, kLong = 8;
  [[nodiscard]] bool has_made() const { return (made.load(std::memory_order_acquire) & (kMade | kReaches)) != 0; }
  [[nodiscard]] bool reaches() const { return (made.load(std::memory_order_acquire) & kReaches) != 0; }
  void free();
  static constexpr std::size_t kCalls = 64;
  std::atomic<std::uint64_t> key = 0;          ///< 0: free
  std::atomic<std::uint64_t> generations = 0;  ///< of its rank 0: which are closed (order.cpp)
  std::atomic<std::uint64_t> begun = 0;        ///< of its own: the last generation of which this rank knows that
  /// kMade: a board; kReaches: and the others' are reached; kPairs: no neighbor of this rank is one twice; kLong: its
  /// blocks had no room on its board a short while ago
  std::atomic<std::uint32_t> made = 0;
  std::atomic<std::uint32_t> left = 0;  ///< of its rank 0: ranks that have left the order
  Board::Place place;
  alignas(64) std::array<std::atomic<std::uint64_t>, kCalls> words{};  ///< of its rank 0: which call, and its decision
};
struct OrderTable {
  static constexpr std::uint32_t kFree = 0, kTaken = 1, kLost = 2;
  static constexpr std::int64_t kLongest = 1'000'000'000;  ///< ns that a rank waits for another one's look
  std::atomic<std::uint32_t> taken = kFree;                ///< by a rank that looks for an entry, or takes one
  std::array<OrderEntry, 64> entries;
};
static_assert(sizeof(OrderTable) <= Inquiries::kOrderBytes);
/// The entry of that key, taken if there is none. Null: there is no room, or a rank has had the table for so long.
OrderEntry* entry_in(OrderTable& table, std::uint64_t key, std::int64_t longest_ns = OrderTable::kLongest);

/// A rank's part in an order, until the rank leaves it.
class OrderPart {
 public:
  /// `tables`: of each rank. Throws std::bad_alloc.
  OrderPart(std::uint64_t key, std::vector<OrderTable*> tables, std::size_t rank);
  /// Whether the tables have room for it.
  [[nodiscard]] bool is_there() const { return leader_ != nullptr && own_ != nullptr; }
  [[nodiscard]] OrderEntry& leader() const { return *leader_; }
  [[nodiscard]] OrderEntry& own() const { return *own_; }
  [[nodiscard]] std::size_t size() const { return tables_.size(); }
  /// Null: there is none yet.
  [[nodiscard]] OrderEntry* of(std::size_t rank);
  /// This rank begins no more calls, and reads no board. Once.
  void leave() const;
  /// Whether all ranks have left, of one that is there.
  [[nodiscard]] bool is_over() const { return leader_->key.load(std::memory_order_acquire) != key_; }

 private:
  std::uint64_t key_;
  std::vector<OrderTable*> tables_;
  std::vector<OrderEntry*> entries_;  // of each rank, once it was found
  OrderEntry *leader_ = nullptr, *own_ = nullptr;
};

/// A communicator's, as one of its ranks sees it. Not for threads that call MPI at once.
class Order {
 public:
  /// As OrderPart(). Throws std::bad_alloc.
  Order(std::uint64_t key, std::vector<OrderTable*> tables, std::size_t rank)
      : part_(std::make_shared<OrderPart>(key, std::move(tables), rank)), rank_(rank) {}
  /// False: a table has no room, and all calls are the host's.
  [[nodiscard]] bool is_there() const { return part_->is_there(); }
  /// Its communicator is freed: this rank begins no more calls, and ends those that it has begun.
  void leave();
  /// Begins the next call. False: all ranks leave it to the host.
  bool begin() {
    const std::uint64_t call = calls_++;
    if (call % kGeneration == 0) open_ = begin_generation(call / kGeneration);
    return open_;
  }
  /// How the call goes that has begun. `mine` says how if this rank is the first.
  template <class Mine>
  Decision decide(const Mine& mine) {
    std::atomic<std::uint64_t>& word = part_->leader().words[(calls_ - 1) % OrderEntry::kCalls];
    std::uint64_t seen = word.load(std::memory_order_acquire);
    if (seen >> 2 != calls_) {
      const auto decision = static_cast<std::uint64_t>(mine());
      if (word.compare_exchange_strong(seen, calls_ << 2 | decision, std::memory_order_acq_rel)) seen = decision;
    }
    return static_cast<Decision>(seen & 3);
  }
  /// Makes what there is not yet of this rank's board, and of the way to the others', if all have theirs. `ranks` has
  /// each rank's place; `pairs`: no neighbor of this rank is one twice.
  void prepare(Boards& boards, std::span<const RankPlace> ranks, bool pairs);
  /// Whether all have said that they have done so. `uneven`: for a call of which no rank knows how long all blocks are;
  /// `of_neighbors`: one of those.
  [[nodiscard]] bool is_ready(bool uneven, bool of_neighbors);
  /// Of each uneven call, whether this rank's blocks had room. Some have not that went by the board: no rank decides so
  /// for a while, and for twice as long each time.
  void heed_room(bool had_room, bool by_board);
  [[nodiscard]] const std::shared_ptr<BoardUse>& board() const { return board_; }

  Askings askings;                                   ///< of its calls, the same on all ranks
  std::array<std::uint8_t, Askings::kAll> wished{};  ///< by kind: calls that were, one after the other
  std::uint32_t boarded = 0;                         ///< calls that went by the board

 private:
  static constexpr std::uint64_t kGeneration = OrderEntry::kCalls / 2;
  bool begin_generation(std::uint64_t generation);
  bool is_open(std::uint64_t generation);
  std::shared_ptr<OrderPart> part_;
  std::uint64_t calls_ = 0;
  std::size_t rank_ = 0;
  bool open_ = false, ready_ = false;
  std::uint32_t shorts_ = 0;    // uneven calls with room that this rank wants to see before it takes kLong back,
  std::uint32_t patience_ = 8;  // and half as many as it will want next time
  std::shared_ptr<BoardUse> board_;
};

}  // namespace lacuna::mpi
