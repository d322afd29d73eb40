// Memory that this end has registered: by our own 32-bit keys, which the layers above pass on, with the provider's.
//
// A key of ours is a number of the region and a mark, so that a key which is off by some never fits another region.
// What the provider takes instead, 64 bits and an address or an offset, is told to a peer that asks for a key.
#pragma once

#include <random>
#include <span>
#include <unordered_map>

#include "lacuna/nic/nic.hpp"
#include "lacuna/nic/ofi/provider.hpp"

namespace lacuna::nic::ofi {

struct LocalRegion {
  std::uint64_t addr = 0;
  std::uint64_t bytes = 0;
  Rights rights;
  Owned<fid_mr> memory;
  bool going = false;  // no request of either end begins to use it

  [[nodiscard]] bool holds(std::uint64_t at, std::uint64_t length) const {
    return at >= addr && length <= bytes && at - addr <= bytes - length;
  }
};

/// A list as libfabric takes it.
struct Pieces {
  std::array<iovec, kMostSge> iov;
  std::array<void*, kMostSge> desc;
  std::size_t count = 0;
  std::uint64_t bytes = 0;
};

class Regions {
 public:
  explicit Regions(const Provider& provider) : provider_(provider) {}

  /// The key. Errors: out_of_memory, limit, io: the provider's.
  Result<std::uint32_t> add(std::span<std::byte> bytes, Rights rights);
  /// From now on find() does not know it; what was begun may end until it is removed.
  void retire(std::uint32_t key) { regions_[key].going = true; }
  void remove(std::uint32_t key) { regions_.erase(key); }
  [[nodiscard]] const LocalRegion* find(std::uint32_t key) const;
  /// False: an entry is outside its region, or has a wrong key, or is to be written and may not be.
  [[nodiscard]] bool resolve(std::span<const Sge> list, bool written, Pieces& pieces) const;

 private:
  const Provider& provider_;
  std::unordered_map<std::uint32_t, LocalRegion> regions_;
  std::uint32_t numbers_ = 0;
  std::random_device random_;
};

}  // namespace lacuna::nic::ofi
