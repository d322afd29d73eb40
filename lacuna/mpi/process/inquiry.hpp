// Inquiries: memory of each rank of a node, there since MPI_Init, by which the ranks of a circle ask one another
// whether a collective is worth a board, without the host.
//
//   deaf │ used │ circle: key, answer, answer, wishes │ circle: ... │ orders (order.hpp)
//
// A circle is some ranks of one node in one order, whichever communicators have them. All its ranks make its blocking
// collectives in the same order, also those on different communicators: else each would wait for another where
// collectives wait for all. So the n-th inquiry of a circle is the same one on all its ranks. Of programs whose threads
// call MPI at once that is not true; their communicators ask by the host.
//
// A rank that has heard all answers to an inquiry knows that all have read those to the one before: two places are
// enough. A rank that has no memory for a circle becomes deaf: it answers nothing more, and a rank that asks it learns
// so.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "lacuna/guide/mpi_ways.hpp"
#include "lacuna/mpi/process/node_peers.hpp"
#include "lacuna/mpi/process/rank_place.hpp"

namespace lacuna::mpi {

/// What all ranks do in a call like the last one because the first of them said so, which tries a way (LACUNA_LEARN):
/// the call is left to other ways, or each rank offers what it has.
enum class Ordered : std::uint8_t { nothing, leave, offer };

/// How often the ranks of a communicator or circle ask one another about a collective, the same on all of them.
struct Asking {
  std::uint16_t unasked = 0;   ///< calls that are left to other ways,
  std::uint16_t patience = 0;  ///< and how many more after the next that has nothing to gain
  std::uint8_t hope = 0;       ///< questions that may be in vain before patience grows: some call has gained
  bool gained = false;         ///< the last question
  Ordered next{};              ///< in the last call
  std::uint32_t left = 0;      ///< calls that were left so far,
  int heard = -1;              ///< and of whom all ranks heard in the last one: of this root, or of kAll or kNone
  static constexpr int kAll = -2, kNone = -1;
  static constexpr std::uint8_t kHopes = 8;
};

/// By use, and size of blocks: below 4 KiB, below 16 KiB, and so on; where no rank knows it the first.
class Askings {
 public:
  static constexpr std::size_t kSizes = 8, kAll = kSizes * guide::kMpiUses;
  static constexpr std::size_t number(guide::MpiUse use, std::size_t size) { return static_cast<std::size_t>(use) * kSizes + size; }
  [[nodiscard]] Asking& operator[](std::size_t number) { return all_[number]; }

 private:
  std::array<Asking, kAll> all_{};
};

/// What each rank wishes of a kind of calls, by a number below Askings::kAll: that the n-th call which was left to the
/// host had better been Lacuna's. For those that have heard of this rank by the host in that call.
using Wishes = std::array<std::atomic<std::uint32_t>, Askings::kAll>;

/// What a rank answers to an inquiry.
struct alignas(64) Answer {
  std::atomic<std::uint32_t> inquiry = 0;  ///< written last
  unsigned char says = 0, sizes = 0;       ///< as in Slot (exchange.hpp)
};

/// A circle, as one of its ranks sees it.
class Circle {
 public:
  Askings askings;
  bool refused = false;  ///< a rank of it is deaf

  [[nodiscard]] std::size_t rank() const { return rank_; }
  [[nodiscard]] std::size_t size() const { return all_.size(); }
  [[nodiscard]] bool is_of(int rank) const { return std::cmp_equal(rank, rank_); }
  void wish(std::size_t kind, std::uint32_t n) const { all_[rank_].entry->wishes[kind].store(n, std::memory_order_release); }
  [[nodiscard]] bool wishes(std::size_t rank, std::size_t kind, std::uint32_t n) const {
    const Entry* const entry = all_[rank].entry;
    return entry != nullptr && entry->wishes[kind].load(std::memory_order_acquire) == n;
  }

  /// Answers the next inquiry, which all ranks begin alike.
  void answer(unsigned char says, unsigned char sizes);
  /// What that rank has answered; null: nothing yet.
  [[nodiscard]] const Answer* hear(std::size_t rank);
  /// Whether it answers no more. What it has answered before counts: look again with hear().
  [[nodiscard]] bool is_deaf(std::size_t rank) const { return all_[rank].page->deaf.load(std::memory_order_acquire) != 0; }

 private:
  friend class Inquiries;
  struct alignas(64) Entry {
    std::array<Answer, 2> answers;
    std::uint64_t key = 0;
    Wishes wishes{};
  };
  static constexpr std::size_t kCircles = 64;  // of a rank; after as many it is deaf
  struct Page {
    std::atomic<std::uint32_t> deaf = 0, used = 0;
    // An entry is written before `used` counts it
    [[nodiscard]] Entry* entries() { return reinterpret_cast<Entry*>(reinterpret_cast<std::byte*>(this) + sizeof(Entry)); }
  };
  static_assert(sizeof(Page) <= sizeof(Entry));
  struct Side {
    Page* page = nullptr;
    Entry* entry = nullptr;  // null: not found yet
  };
  std::uint64_t key_ = 0;
  std::size_t rank_ = 0;
  std::uint32_t now_ = 0;  // inquiries so far
  std::vector<Side> all_;  // by rank
};

/// Those of this process.
class Inquiries {
 public:
  explicit Inquiries(NodePeers& peers);
  ~Inquiries();
  Inquiries(const Inquiries&) = delete;
  Inquiries& operator=(const Inquiries&) = delete;

  /// What a rank tells the others in MPI_Init.
  [[nodiscard]] MemoryPlace place() const { return MemoryPlace::of(memory_); }
  /// That of each rank of this node. False: it has none.
  bool know(std::size_t local, const MemoryPlace& place) {
    places_.at(local) = place;
    return place.there != 0;
  }
  /// The circle of that name, which has these ranks. Null: this rank is deaf.
  Circle* circle(std::uint64_t name, std::span<const RankPlace> ranks, std::size_t rank);
  /// This rank has no memory for what it would be asked about. Wants none.
  void become_deaf();
  [[nodiscard]] bool is_deaf() const { return deaf_; }
  /// Of orders, behind the circles: so many bytes of the rank of that number on the node; of this one, if it is below
  /// 0. Null: they are not to be reached. Throws std::bad_alloc.
  [[nodiscard]] std::byte* orders(int local) const;
  static constexpr std::size_t kOrderBytes = 64 << 10;

 private:
  static constexpr std::size_t kCircleBytes = (1 + Circle::kCircles) * sizeof(Circle::Entry);
  static constexpr std::size_t kBytes = kCircleBytes + kOrderBytes;
  [[nodiscard]] Circle::Page* page() const { return reinterpret_cast<Circle::Page*>(memory_->buffer.data()); }
  std::unique_ptr<Circle> make(std::uint64_t name, std::span<const RankPlace> ranks, std::size_t rank);
  NodePeers& peers_;
  nic::SharedBuffer memory_;  // null: there is none
  std::vector<MemoryPlace> places_;
  std::vector<std::unique_ptr<Circle>> circles_;
  bool deaf_ = false;
};

}  // namespace lacuna::mpi
