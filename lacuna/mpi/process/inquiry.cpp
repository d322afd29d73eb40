#include "lacuna/mpi/process/inquiry.hpp"

#include <algorithm>
#include <new>

namespace lacuna::mpi {

void Circle::answer(unsigned char says, unsigned char sizes) {
  Answer& mine = all_[rank_].entry->answers[++now_ % 2];
  mine.says = says;
  mine.sizes = sizes;
  mine.inquiry.store(now_, std::memory_order_release);
}

const Answer* Circle::hear(std::size_t rank) {
  Side& side = all_[rank];
  if (side.entry == nullptr) {
    const std::span entries(side.page->entries(), std::min<std::size_t>(side.page->used.load(std::memory_order_acquire), kCircles));
    const auto found = std::ranges::find(entries, key_, &Entry::key);
    if (found == entries.end()) return nullptr;
    side.entry = &*found;
  }
  const Answer& theirs = side.entry->answers[now_ % 2];
  return theirs.inquiry.load(std::memory_order_acquire) == now_ ? &theirs : nullptr;
}

Inquiries::Inquiries(NodePeers& peers) : peers_(peers), places_(peers.size()) {
  base::Result<nic::RegisteredBuffer> memory = nic::RegisteredBuffer::create(peers.context(), kBytes);
  if (!memory) return;
  memory_ = std::make_shared<nic::RegisteredBuffer>(std::move(*memory));
  new (page()) Circle::Page;
}

// Slower ranks read there still.
Inquiries::~Inquiries() {
  if (memory_ != nullptr) peers_.keep(memory_);
}

std::byte* Inquiries::orders(int local) const {
  if (local < 0) return memory_->buffer.data() + kCircleBytes;
  const MemoryPlace& theirs = places_.at(static_cast<std::size_t>(local));
  std::byte* const page = peers_.reach(local, theirs.addr, theirs.rkey, kBytes);
  return page != nullptr && reinterpret_cast<std::uintptr_t>(page) % alignof(Circle::Entry) == 0 ? page + kCircleBytes : nullptr;
}

void Inquiries::become_deaf() {
  deaf_ = true;
  page()->deaf.store(1, std::memory_order_release);
}

// Null: there is no room or no memory, or a rank is not to be reached.
std::unique_ptr<Circle> Inquiries::make(std::uint64_t name, std::span<const RankPlace> ranks, std::size_t rank) try {
  const std::uint32_t used = page()->used.load(std::memory_order_relaxed);
  if (used == Circle::kCircles) return nullptr;
  auto made = std::make_unique<Circle>();
  made->key_ = name;
  made->rank_ = rank;
  for (const RankPlace& place : ranks) {
    Circle::Side side{.page = page()};
    if (made->all_.size() != rank) {
      const MemoryPlace& theirs = places_.at(static_cast<std::size_t>(place.local));
      side.page = reinterpret_cast<Circle::Page*>(peers_.reach(place.local, theirs.addr, theirs.rkey, kBytes));
      if (side.page == nullptr || reinterpret_cast<std::uintptr_t>(side.page) % alignof(Circle::Entry) != 0) return nullptr;
    }
    made->all_.push_back(side);
  }
  circles_.reserve(circles_.size() + 1);
  auto* const entry = new (page()->entries() + used) Circle::Entry;
  entry->key = name;
  made->all_[rank].entry = entry;
  page()->used.store(used + 1, std::memory_order_release);
  return made;
} catch (const std::bad_alloc&) {
  return nullptr;
}

Circle* Inquiries::circle(std::uint64_t name, std::span<const RankPlace> ranks, std::size_t rank) {
  if (deaf_) return nullptr;
  const auto found = std::ranges::find(circles_, name, [](const auto& one) { return one->key_; });
  if (found != circles_.end()) return found->get();
  std::unique_ptr<Circle> made = make(name, ranks, rank);
  if (made == nullptr) {
    become_deaf();
    return nullptr;
  }
  circles_.push_back(std::move(made));
  return circles_.back().get();
}

}  // namespace lacuna::mpi
