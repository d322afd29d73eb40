// Orders: memory of each rank of a node, there since MPI_Init, by which the ranks of a communicator decide how each of
// its collectives with a request goes, though none of them may wait for another in such a call.
//
//   a table of each rank   communicator: key, generations │ what its rank has made │ a word for each call
//                          communicator: ...
//
// All ranks begin these calls of a communicator in the same order. The rank that begins the n-th first decides for all
// how it goes: by one exchange of the call's word, which the communicator's rank 0 has. The others find the decision
// there. Words are used again. They come in generations, of which two have room: the rank that begins a generation
// first looks whether all ranks have left the last but one, and closes the order if one has not. From there on all is
// the host's.
//
// A board is decided for only if every rank has said that it has its board and reaches those of the others. So a rank
// that has no memory for an order, or a table without room, tells no other rank: it leaves all such calls to the host,
// and so do the others.
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
  static constexpr std::uint32_t kMade = 1, kReaches = 2, kGone = 4;
  [[nodiscard]] bool has_made() const { return (made.load(std::memory_order_acquire) & (kMade | kReaches)) != 0; }
  [[nodiscard]] bool reaches() const { return (made.load(std::memory_order_acquire) & kReaches) != 0; }
  static constexpr std::size_t kCalls = 64;
  std::atomic<std::uint64_t> key = 0;         ///< 0: free; the owner or any rank of the communicator takes it
  std::atomic<std::uint64_t> generation = 0;  ///< of its rank 0: the last that was begun, twice; odd: closed from there
  std::atomic<std::uint64_t> begun = 0;       ///< of its own: the generation in which this rank is
  /// kMade: a board; kReaches: and the others' are reached; kGone: the rank reads no board of this communicator more
  std::atomic<std::uint32_t> made = 0;
  Board::Place place;
  alignas(64) std::array<std::atomic<std::uint64_t>, kCalls> words{};  ///< of its rank 0: which call, and its decision
};
using OrderTable = std::array<OrderEntry, 64>;
static_assert(sizeof(OrderTable) <= Inquiries::kOrderBytes);
/// The entry of that key, taken if there is none. Null: there is no room.
OrderEntry* entry_in(OrderTable& table, std::uint64_t key);

/// A communicator's, as one of its ranks sees it. Not for threads that call MPI at once.
class Order {
 public:
  /// `tables`: of each rank. Null: a table has no room. Throws std::bad_alloc.
  static std::unique_ptr<Order> find(std::uint64_t key, std::vector<OrderTable*> tables, std::size_t rank);

  /// Its communicator is freed: this rank begins no more calls, and ends those that it has begun.
  void leave();
  /// Begins the next call: how it goes. `mine` says how if this rank is the first to begin it.
  template <class Mine>
  Decision decide(const Mine& mine) {
    const std::uint64_t call = calls_++;
    if (call % kGeneration == 0) begin_generation(call / kGeneration);
    if (closed_) return Decision::left;
    std::atomic<std::uint64_t>& word = leader_->words[call % OrderEntry::kCalls];
    std::uint64_t seen = word.load(std::memory_order_acquire);
    if (seen >> 2 != call + 1) {
      const auto decision = static_cast<std::uint64_t>(mine());
      if (word.compare_exchange_strong(seen, (call + 1) << 2 | decision, std::memory_order_acq_rel)) seen = decision;
    }
    return static_cast<Decision>(seen & 3);
  }
  /// Makes what there is not yet of this rank's board, and of the way to the others', if all have theirs. `reach` has
  /// each rank's place.
  void prepare(Boards& boards, std::span<const RankPlace> ranks);
  /// Whether all have said that they have done so.
  [[nodiscard]] bool is_ready();
  [[nodiscard]] const std::shared_ptr<BoardUse>& board() const { return board_; }

  Askings askings;                                   ///< of its calls, the same on all ranks
  std::array<std::uint8_t, Askings::kAll> wished{};  ///< by kind: calls that were, one after the other
  std::uint32_t boarded = 0;                         ///< calls that went by the board

 private:
  static constexpr std::uint64_t kGeneration = OrderEntry::kCalls / 2;
  void begin_generation(std::uint64_t generation);
  OrderEntry* entry_of(std::size_t rank);
  std::uint64_t key_ = 0, calls_ = 0;
  std::size_t rank_ = 0;
  bool closed_ = false, ready_ = false;
  OrderEntry *leader_ = nullptr, *own_ = nullptr;
  std::vector<OrderTable*> tables_;
  std::vector<OrderEntry*> entries_;  // of each rank, once it was found
  std::shared_ptr<BoardUse> board_;
};

}  // namespace lacuna::mpi
