// Memory that this end has registered: by our own 32-bit keys, which the layers above pass on, with the provider's.
//
// A key of ours is a number of the region and a mark, so that a key which is off by some never fits another region.
// What the provider takes instead, 64 bits and an address or an offset, is told to a peer that asks for a key.
//
// Where registrations belong to an endpoint (FI_MR_ENDPOINT) a region has one for each endpoint that came to use it,
// made at the first use: when a peer asks for the key, or when the endpoint takes from that memory or puts there.
#pragma once

#include <random>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "lacuna/nic/nic.hpp"
#include "lacuna/nic/ofi/provider.hpp"

namespace lacuna::nic::ofi {

struct LocalRegion {
  std::uint64_t addr = 0;
  std::uint64_t bytes = 0;
  Rights rights;
  Owned<fid_mr> memory;  // none where registrations belong to an endpoint; these are:
  std::vector<std::pair<const fid_ep*, Owned<fid_mr>>> bound;
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

  /// The key. Errors: out_of_memory, limit, io: the provider's, where registrations belong to no endpoint.
  Result<std::uint32_t> add(std::span<std::byte> bytes, Rights rights);
  /// From now on find() does not know it; what was begun may end until it is removed.
  void retire(std::uint32_t key) { regions_[key].going = true; }
  void remove(std::uint32_t key) { regions_.erase(key); }
  [[nodiscard]] LocalRegion* find(std::uint32_t key);
  /// The provider's registration of a region that find() knows, for an endpoint. Null: the provider has none for the
  /// endpoint, as the log says.
  [[nodiscard]] fid_mr* memory(LocalRegion& region, fid_ep& endpoint);
  /// False: an entry is outside its region, or has a wrong key, or is to be written and may not be.
  [[nodiscard]] bool resolve(std::span<const Sge> list, bool written, fid_ep& endpoint, Pieces& pieces);
  /// The endpoint will be closed.
  void release(const fid_ep* endpoint);

 private:
  Result<Owned<fid_mr>> enroll(std::span<std::byte> bytes, Rights rights, fid_ep* endpoint);
  fid_mr* bind(LocalRegion& region, fid_ep& endpoint);
  const Provider& provider_;
  std::unordered_map<std::uint32_t, LocalRegion> regions_;
  std::uint32_t numbers_ = 0;
  std::random_device random_;
};

}  // namespace lacuna::nic::ofi
