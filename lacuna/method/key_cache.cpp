#include "lacuna/method/key_cache.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "lacuna/base/rarely.hpp"

namespace lacuna::method {
namespace {

constexpr std::int64_t kFewestEntries =
    64;  // keys differ little in cost up to there (paper, figure 20), and small ones serve again more often

std::uint32_t bits(const nic::Rights& rights) {
  return (rights.local_write ? 1U : 0U) | (rights.remote_write ? 2U : 0U) | (rights.remote_read ? 4U : 0U);
}

}  // namespace

KeyRoom key_room(const nic::Limits& limits) { return {limits.indirect.entries, limits.indirect.strided_entries, limits.indirect.stride}; }

KeyCache::Lease::~Lease() {
  if (entry_ != nullptr) --entry_->leases;
}

bool KeyCache::Lease::bound() const { return entry_ == nullptr || entry_->state == State::bound; }

Result<std::optional<KeyCache::Lease>> KeyCache::lease(const Wish& wish, Counters& counters) {
  const Name name{wish.layout.digest(), wish.part, reinterpret_cast<std::uint64_t>(wish.base), wish.region.lkey(), bits(wish.rights)};
  Lease lease;
  if (const auto found = bound_.find(name); found != bound_.end()) {
    entries_.splice(entries_.end(), entries_, found->second);
    lease.entry_ = &*found->second;
  } else {
    const Shape shape = shape_of(wish.layout, wish.part, wish.room);
    if (shape.direct()) {
      lease.addr_ = name.base + static_cast<std::uint64_t>(shape.runs.empty() ? 0 : shape.runs.front().offset);
      lease.key_ = wish.region.lkey();
      return lease;
    }
    if (endpoint_.send_room() < 1) return std::nullopt;
    Entry* entry = LACUNA_TRY(take(shape.entries(), counters));
    if (entry == nullptr && (wish.may_wait || !in_flight_.empty())) {
      LACUNA_RARELY("keys: all are in use, and one will be free");
      return std::nullopt;
    }
    if (entry == nullptr) {
      return base::fail(base::Code::limit,
                        fmt::format("all {} indirect keys are held by operations of this endpoint; end or destroy some of them", size()));
    }
    entry->name = name;
    LACUNA_TRY(bind(*entry, wish, shape, counters));
    bound_[name] = std::prev(entries_.end());
    lease.entry_ = entry;
  }
  ++lease.entry_->leases;
  lease.key_ = lease.entry_->key.lkey();
  return lease;
}

// A key with room for so many entries that no transfer uses, moved to the back: a new one while there may be more, else
// the one not used for longest. Null if all are in use.
Result<KeyCache::Entry*> KeyCache::take(std::int64_t entries, Counters& counters) {
  const auto spare = [](const Entry& entry) { return entry.leases == 0 && (entry.state == State::free || entry.state == State::bound); };
  auto chosen = entries_.end();
  if (free_ > 0)
    chosen = std::ranges::find_if(entries_, [&](const Entry& e) { return e.state == State::free && e.key.entries() >= entries; });
  const auto rounded = static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(std::max(entries, kFewestEntries))));
  const int room = static_cast<int>(std::min<std::int64_t>(rounded, endpoint_.limits().indirect.entries));
  while (chosen == entries_.end()) {
    if (entries_.size() < capacity_) {
      // The NIC's keys and their entries belong to all endpoints of the context, so there may be fewer than our own
      // capacity.
      Result<nic::IndirectKey> key = endpoint_.context().create_indirect_key(room);
      if (key) {
        ++counters.keys_created;
        ++free_;
        chosen = entries_.emplace(entries_.end());
        chosen->key = std::move(*key);
        break;
      }
      if (key.error().code != base::Code::limit || std::ranges::none_of(entries_, spare)) return std::unexpected(key.error());
    }
    const auto oldest = std::ranges::find_if(entries_, spare);
    if (oldest == entries_.end()) return nullptr;
    if (oldest->state == State::bound) {
      LACUNA_RARELY("keys: one goes to another layout");
      bound_.erase(oldest->name);
      oldest->state = State::free;
      ++free_;
    }
    if (oldest->key.entries() >= entries) {
      chosen = oldest;
    } else {
      LACUNA_RARELY("keys: one is too short");
      entries_.erase(oldest);
      --free_;
    }
  }
  entries_.splice(entries_.end(), entries_, chosen);
  return &entries_.back();
}

Result<void> KeyCache::bind(Entry& entry, const Wish& wish, const Shape& shape, Counters& counters) {
  std::vector<nic::Sge> list;
  nic::Strided strided{};
  nic::Binding binding{.key = entry.key.lkey(), .rights = wish.rights};
  const auto address = [&](const layout::Run& run) { return reinterpret_cast<std::uint64_t>(wish.base + run.offset); };
  if (shape.repeat > 0) {
    const layout::Run& first = shape.runs.front();
    strided = {address(first), static_cast<std::uint32_t>(first.length), static_cast<std::uint32_t>(shape.stride), wish.region.lkey()};
    binding.repeat = static_cast<std::uint32_t>(shape.repeat);
    binding.strided = {&strided, 1};
  } else {
    list.reserve(shape.runs.size());
    for (const layout::Run& run : shape.runs) list.push_back({address(run), static_cast<std::uint32_t>(run.length), wish.region.lkey()});
    binding.list = list;
  }
  nic::SendRequest request{.opcode = nic::Opcode::bind, .binding = &binding};
  LACUNA_TRY(endpoint_.post({&request, 1}, counters));
  entry.state = State::binding;
  --free_;
  in_flight_.push_back(&entry);
  ++counters.keys_bound;
  counters.key_entries += shape.entries();
  return {};
}

void KeyCache::complete(const nic::Completion& completion) {
  // The queue pair's fault says what happened
  if (completion.status != nic::Status::success || in_flight_.empty()) return;
  Entry& entry = *in_flight_.front();
  in_flight_.pop_front();
  if (entry.state == State::unbinding) ++free_;
  entry.state = entry.state == State::binding ? State::bound : State::free;
}

Result<bool> Warming::step(KeyCache& keys, KeyCache::Wish wish, std::span<const StreamRange> parts, Counters& counters) {
  if (wish.base != base_) done_ = 0;
  base_ = wish.base;
  for (const std::size_t most = std::min(parts.size(), keys.capacity() / 2 + 1); done_ < most; ++done_) {
    wish.part = parts[done_];
    if (!LACUNA_TRY(keys.lease(wish, counters))) return false;
  }
  return true;
}

Result<bool> KeyCache::forget(const nic::Region& region) {
  bool done = true;
  for (Entry& entry : entries_) {
    if (entry.state == State::free || entry.name.lkey != region.lkey()) continue;
    if (entry.leases > 0) return base::fail(base::Code::limit, "an operation still uses an indirect key over the region; end it first");
    done = false;
    if (entry.state != State::bound || endpoint_.send_room() < 1) {
      LACUNA_RARELY("keys: one cannot be unbound yet");
      continue;
    }
    nic::SendRequest request{.opcode = nic::Opcode::invalidate, .rkey = entry.key.rkey()};
    Counters uncounted;
    LACUNA_TRY(endpoint_.post({&request, 1}, uncounted));
    bound_.erase(entry.name);
    entry.state = State::unbinding;
    in_flight_.push_back(&entry);
  }
  return done;
}

}  // namespace lacuna::method
