// Indirect keys of an endpoint: a pool, because creating one is expensive, and a cache of what they are bound to,
// because binding is not free.
//
//   lease(layout, base, part) ──▶ a key that is bound to just that ── given back ▶ stays bound, until the pool is full
//                                                                                  and it was not used for longest
//
// A binding is named by the layout's digest, the part, the address, the region's key and the rights. A region's key is
// never used again for another region soon, so a binding over a region that is gone is not found by mistake; on devices
// that recycle keys fast, forget() has to be called before a region goes.
#pragma once

#include <list>
#include <map>

#include "lacuna/method/method.hpp"
#include "lacuna/method/parts.hpp"

namespace lacuna::method {

[[nodiscard]] KeyRoom key_room(const nic::Limits& limits);

class KeyCache {
 private:
  struct Entry;

 public:
  /// A part of a layout in memory, as an address that work requests can name. While it lives, no other binds its
  /// key.
  class Lease {
   public:
    Lease() = default;
    Lease(Lease&& other) noexcept { swap(other); }
    Lease& operator=(Lease&& other) noexcept {
      swap(other);
      return *this;
    }
    Lease(const Lease&) = delete;
    Lease& operator=(const Lease&) = delete;
    ~Lease();
    [[nodiscard]] std::uint64_t addr() const { return addr_; }
    [[nodiscard]] std::uint32_t key() const { return key_; }
    [[nodiscard]] nic::Sge sge(std::int64_t bytes) const { return {addr_, static_cast<std::uint32_t>(bytes), key_}; }
    /// Whether others than the requests behind it in the same queue may use it.
    [[nodiscard]] bool bound() const;

   private:
    friend class KeyCache;
    void swap(Lease& other) noexcept {
      std::swap(entry_, other.entry_);
      std::swap(addr_, other.addr_);
      std::swap(key_, other.key_);
    }
    Entry* entry_ = nullptr;  // null: a region's own key
    std::uint64_t addr_ = 0;
    std::uint32_t key_ = 0;
  };

  /// What to lease: a part of `layout` at `base` in `region`.
  struct Wish {
    const Layout& layout;
    std::byte* base;
    const nic::Region& region;
    StreamRange part;
    KeyRoom room;  ///< the same for which the part was cut
    nic::Rights rights;
    bool may_wait = false;  ///< something of the asker's own is in flight that will give a key back
  };

  KeyCache(Endpoint& endpoint, int capacity) : endpoint_(endpoint), capacity_(static_cast<std::size_t>(capacity)) {}
  /// Nothing if no place in the send queue is free now, or no key but one will be. A bind request is posted if need be.
  /// Errors: out_of_memory, limit (no key is free, and none will be).
  Result<std::optional<Lease>> lease(const Wish& wish, Counters& counters);
  /// Unbinds what stands for a part of `region`; true once that is done. Errors: limit (a lease is out).
  Result<bool> forget(const nic::Region& region);
  /// The oldest bind or invalidate request is done.
  void complete(const nic::Completion& completion);
  [[nodiscard]] std::size_t size() const { return entries_.size(); }
  [[nodiscard]] std::size_t capacity() const { return capacity_; }

 private:
  struct Name {
    layout::Digest digest;
    StreamRange part;
    std::uint64_t base = 0;
    std::uint32_t lkey = 0;
    std::uint32_t rights = 0;
    auto operator<=>(const Name&) const = default;
  };
  enum class State { free, binding, bound, unbinding };
  struct Entry {
    nic::IndirectKey key;
    Name name;
    State state = State::free;
    int leases = 0;
  };

  Result<Entry*> take(std::int64_t entries, Counters& counters);
  Result<void> bind(Entry& entry, const Wish& wish, const Shape& shape, Counters& counters);

  Endpoint& endpoint_;
  std::size_t capacity_;
  std::list<Entry> entries_;  // the last used one at the back
  std::size_t free_ = 0;      // of them, bound to nothing
  std::map<Name, std::list<Entry>::iterator> bound_;
  std::deque<Entry*> in_flight_;  // their bind and invalidate requests complete in order
};

/// Binds the keys of a layout's parts ahead of a transfer, as many as the pool has room for beside others'.
class Warming {
 public:
  /// One step; true once it is done for `wish.base`. The wish's part is filled in. Errors: as lease().
  Result<bool> step(KeyCache& keys, KeyCache::Wish wish, std::span<const StreamRange> parts, Counters& counters);

 private:
  std::byte* base_ = nullptr;
  std::size_t done_ = 0;  // parts, for base_
};

}  // namespace lacuna::method
