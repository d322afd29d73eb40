#include "lacuna/mpi/process/order.hpp"

#include <algorithm>

namespace lacuna::mpi {
namespace {

// Null: there is none yet.
OrderEntry* look_for(OrderTable& table, std::uint64_t key) {
  const auto found = std::ranges::find_if(table, [&](const OrderEntry& one) { return one.key.load(std::memory_order_acquire) == key; });
  return found != table.end() ? &*found : nullptr;
}

}  // namespace

// An entry stays whose it is. So a rank that finds a table full finds it so for ever, as all others do.
OrderEntry* entry_in(OrderTable& table, std::uint64_t key) {
  for (OrderEntry& one : table) {
    std::uint64_t seen = 0;
    if (one.key.compare_exchange_strong(seen, key, std::memory_order_acq_rel) || seen == key) return &one;
  }
  return nullptr;
}

std::unique_ptr<Order> Order::find(std::uint64_t key, std::vector<OrderTable*> tables, std::size_t rank) {
  auto made = std::make_unique<Order>();
  made->key_ = key;
  made->rank_ = rank;
  made->entries_.resize(tables.size());
  made->leader_ = entry_in(*tables.front(), key);
  made->own_ = rank == 0 ? made->leader_ : entry_in(*tables[rank], key);
  made->tables_ = std::move(tables);
  return made->leader_ != nullptr && made->own_ != nullptr ? std::move(made) : nullptr;
}

// A board says so itself: calls may still be under way on it.
void Order::leave() {
  if (board_ == nullptr) own_->made.fetch_or(OrderEntry::kGone, std::memory_order_release);
}

OrderEntry* Order::entry_of(std::size_t rank) {
  OrderEntry*& known = entries_[rank];
  if (known == nullptr) known = look_for(*tables_[rank], key_);
  return known;
}

// The first two have room from the beginning.
void Order::begin_generation(std::uint64_t generation) {
  own_->begun.store(generation, std::memory_order_release);
  if (generation < 2 || closed_) return;
  std::uint64_t last = leader_->generation.load(std::memory_order_acquire);
  if (last / 2 < generation && last % 2 == 0) {
    bool all = true;
    for (std::size_t rank = 0; all && rank < tables_.size(); ++rank) {
      const OrderEntry* const entry = entry_of(rank);
      all = entry != nullptr && entry->begun.load(std::memory_order_acquire) + 1 >= generation;
    }
    const std::uint64_t mine = 2 * generation + (all ? 0 : 1);
    if (leader_->generation.compare_exchange_strong(last, mine, std::memory_order_acq_rel)) last = mine;
  }
  closed_ = last % 2 != 0 && last / 2 <= generation;
}

void Order::prepare(Boards& boards, std::span<const RankPlace> ranks) try {
  if (board_ == nullptr) {
    std::vector<int> locals;
    locals.reserve(ranks.size());
    for (const RankPlace& place : ranks) locals.push_back(place.local);
    auto made = std::make_shared<BoardUse>(boards.make_queue(std::move(locals), rank_));
    if (made->get() == nullptr) return;
    board_ = std::move(made);
    board_->get()->stands_for(own_->made, OrderEntry::kGone, [tables = tables_, key = key_] {
      return std::ranges::all_of(tables, [&](OrderTable* table) {
        const OrderEntry* const entry = look_for(*table, key);
        return entry != nullptr && (entry->made.load(std::memory_order_acquire) & OrderEntry::kGone) != 0;
      });
    });
    own_->place = board_->get()->place();
    own_->made.fetch_or(OrderEntry::kMade, std::memory_order_release);
  }
  if (own_->reaches()) return;
  std::vector<Board::Place> places;
  for (std::size_t rank = 0; rank < tables_.size(); ++rank) {
    const OrderEntry* const entry = entry_of(rank);
    if (entry == nullptr || !entry->has_made()) return;
    places.push_back(entry->place);
  }
  if (boards.reach(*board_->get(), places)) own_->made.fetch_or(OrderEntry::kReaches, std::memory_order_release);
} catch (const std::bad_alloc&) {
  return;  // at another call
}

bool Order::is_ready() {
  if (board_ == nullptr) return false;
  for (std::size_t rank = 0; !ready_ && rank < tables_.size(); ++rank) {
    const OrderEntry* const entry = entry_of(rank);
    if (entry == nullptr || !entry->reaches()) return false;
  }
  return ready_ = true;
}

}  // namespace lacuna::mpi
