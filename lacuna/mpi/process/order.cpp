#include "lacuna/mpi/process/order.hpp"

#include <sched.h>
#include <unistd.h>

#include <algorithm>

#include "lacuna/base/base.hpp"

namespace lacuna::mpi {
namespace {

OrderEntry* look_for(OrderTable& table, std::uint64_t key) {
  const auto found =
      std::ranges::find_if(table.entries, [&](const OrderEntry& one) { return one.key.load(std::memory_order_acquire) == key; });
  return found != table.entries.end() ? &*found : nullptr;
}

// A table is taken for a look at its entries, some hundred ns. The rank that has it may have lost its CPU meanwhile,
// for as long as all others of the node and a hypervisor want it; so the others sleep, too. One that ended has the
// table for ever: the table is lost then, without room.
class TakenTable {
 public:
  TakenTable(OrderTable& table, std::int64_t longest_ns) : table_(table) {
    const std::int64_t since = base::now_ns();
    for (int tries = 0; !take(); ++tries) {
      if (table.taken == OrderTable::kLost) return;
      if (tries < kYields) {
        sched_yield();
      } else if (base::now_ns() - since < longest_ns) {
        usleep(kNap);
      } else {
        std::uint32_t seen = OrderTable::kTaken;  // not if it was given back since
        table.taken.compare_exchange_strong(seen, OrderTable::kLost);
      }
    }
    taken_ = true;
  }
  ~TakenTable() {
    if (taken_) table_.taken.store(OrderTable::kFree, std::memory_order_release);
  }
  TakenTable(const TakenTable&) = delete;
  TakenTable& operator=(const TakenTable&) = delete;
  explicit operator bool() const { return taken_; }

 private:
  static constexpr int kYields = 1000, kNap = 100;  // us
  bool take() {
    std::uint32_t seen = OrderTable::kFree;
    return table_.taken.compare_exchange_strong(seen, OrderTable::kTaken, std::memory_order_acquire, std::memory_order_relaxed);
  }
  OrderTable& table_;
  bool taken_ = false;
};

}  // namespace

void OrderEntry::free() {
  for (std::atomic<std::uint64_t>* const one : {&generations, &begun}) one->store(0, std::memory_order_relaxed);
  for (std::atomic<std::uint64_t>& word : words) word.store(0, std::memory_order_relaxed);
  for (std::atomic<std::uint32_t>* const one : {&made, &left}) one->store(0, std::memory_order_relaxed);
  key.store(0, std::memory_order_release);
}

OrderEntry* entry_in(OrderTable& table, std::uint64_t key, std::int64_t longest_ns) {
  const TakenTable taken(table, longest_ns);
  if (!taken) return nullptr;
  if (OrderEntry* const known = look_for(table, key); known != nullptr) return known;
  OrderEntry* const room = look_for(table, 0);
  if (room != nullptr) room->key.store(key, std::memory_order_release);
  return room;
}

OrderPart::OrderPart(std::uint64_t key, std::vector<OrderTable*> tables, std::size_t rank)
    : key_(key),
      tables_(std::move(tables)),
      entries_(tables_.size()),
      leader_(entry_in(*tables_.front(), key)),
      own_(rank != 0 && leader_ != nullptr ? entry_in(*tables_[rank], key) : leader_) {}

OrderEntry* OrderPart::of(std::size_t rank) {
  OrderEntry*& known = entries_[rank];
  if (known == nullptr) known = look_for(*tables_[rank], key_);
  return known;
}

// A rank that has found no room leaves an entry which others may have found. The others' entries go first: as long as
// the leader's is there, all are.
void OrderPart::leave() const {
  OrderEntry* const leader = leader_ != nullptr ? leader_ : look_for(*tables_.front(), key_);
  if (leader == nullptr || leader->left.fetch_add(1, std::memory_order_acq_rel) + 1 < tables_.size()) return;
  for (std::size_t rank = tables_.size(); rank-- > 0;) {
    OrderEntry* const entry = look_for(*tables_[rank], key_);
    if (entry != nullptr) entry->free();
  }
}

// A board says so itself: calls may still be under way on it.
void Order::leave() {
  if (board_ == nullptr) part_->leave();
}

// What a rank has begun it says once it knows whether that is closed. So none may forget that before.
bool Order::begin_generation(std::uint64_t generation) {
  const bool open = generation < 2 || is_open(generation);
  part_->own().begun.store(generation, std::memory_order_release);
  return open;
}

// `generations` says up to which all are decided, and how many of these, the last ones, are closed. One is opened once
// all ranks have begun the one before, so which were closed before that no rank has to know any more.
bool Order::is_open(std::uint64_t generation) {
  constexpr int kHalf = 32;
  OrderEntry& leader = part_->leader();
  const auto asked = static_cast<std::uint32_t>(generation);
  std::uint64_t seen = leader.generations.load(std::memory_order_acquire);
  while (true) {
    const auto decided = static_cast<std::uint32_t>(seen >> kHalf), closed = static_cast<std::uint32_t>(seen);
    if (static_cast<std::int32_t>(asked - decided) <= 0) return decided - asked >= closed;
    bool all = true;
    for (std::size_t rank = 0; all && rank < part_->size(); ++rank) {
      const OrderEntry* const entry = part_->of(rank);
      all = entry != nullptr && entry->begun.load(std::memory_order_acquire) + 1 >= generation;
    }
    const std::uint64_t mine = std::uint64_t{asked} << kHalf | (all ? 0 : closed + 1);
    if (leader.generations.compare_exchange_strong(seen, mine, std::memory_order_acq_rel)) return all;
  }
}

void Order::prepare(Boards& boards, std::span<const RankPlace> ranks, bool pairs) try {
  OrderEntry& own = part_->own();
  if (board_ == nullptr) {
    std::vector<int> locals;
    locals.reserve(ranks.size());
    for (const RankPlace& place : ranks) locals.push_back(place.local);
    std::function<void()> leave = [part = part_] { part->leave(); };
    std::function<bool()> is_over = [part = part_] { return part->is_over(); };
    auto use = std::make_shared<BoardUse>();
    *use = boards.make_queue(std::move(locals), rank_);
    if (use->get() == nullptr) return;
    use->get()->stands_for(std::move(leave), std::move(is_over));
    board_ = std::move(use);
    own.place = board_->get()->place();
    own.made.fetch_or(OrderEntry::kMade | (pairs ? OrderEntry::kPairs : 0), std::memory_order_release);
  }
  if (own.reaches()) return;
  std::vector<Board::Place> places;
  for (std::size_t rank = 0; rank < part_->size(); ++rank) {
    const OrderEntry* const entry = part_->of(rank);
    if (entry == nullptr || !entry->has_made()) return;
    places.push_back(entry->place);
  }
  if (boards.reach(*board_->get(), places)) own.made.fetch_or(OrderEntry::kReaches, std::memory_order_release);
} catch (const std::bad_alloc&) {
  return;  // at another call
}

bool Order::is_ready(bool uneven, bool of_neighbors) {
  const std::uint32_t wanted = OrderEntry::kReaches | (of_neighbors ? OrderEntry::kPairs : 0);
  if (board_ == nullptr) return false;
  for (std::size_t rank = 0; (uneven || !ready_) && rank < part_->size(); ++rank) {
    const OrderEntry* const entry = part_->of(rank);
    const std::uint32_t made = entry != nullptr ? entry->made.load(std::memory_order_acquire) : 0;
    if ((made & wanted) != wanted || (uneven && (made & OrderEntry::kLong) != 0)) return false;
  }
  return ready_ = true;
}

void Order::heed_room(bool had_room, bool by_board) {
  constexpr std::uint32_t kMost = 1 << 16;
  OrderEntry& own = part_->own();
  if (!had_room) {
    if (by_board) patience_ = std::min(2 * patience_, kMost);
    own.made.fetch_or(OrderEntry::kLong, std::memory_order_release);
    shorts_ = patience_;
    return;
  }
  if (shorts_ == 0) return;
  --shorts_;
  if (shorts_ == 0) own.made.fetch_and(~OrderEntry::kLong, std::memory_order_release);
}

}  // namespace lacuna::mpi
