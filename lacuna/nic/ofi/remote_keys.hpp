// What this end knows of the peer's regions: by key, asked for when first used, until the peer says that the region
// goes.
#pragma once

#include <unordered_map>

#include "lacuna/base/base.hpp"
#include "lacuna/nic/memory.hpp"
#include "lacuna/nic/ofi/said.hpp"

namespace lacuna::nic::ofi {

struct RemoteRegion {
  enum class State { asked, known, none };
  State state = State::asked;
  std::uint64_t addr = 0;
  std::uint64_t bytes = 0;
  std::uint64_t target = 0;
  std::uint64_t provider_key = 0;
  std::uint64_t rights = 0;
  std::uint64_t flying = 0;  // operations of this end
  bool revoked = false;      // the peer waits until none are flying

  /// Whether a request may reach these bytes; address and key as the provider takes them.
  [[nodiscard]] bool allows(std::uint64_t at, std::uint64_t length, std::uint64_t right) const {
    return (rights & right) != 0 && at >= addr && length <= bytes && at - addr <= bytes - length;
  }
  [[nodiscard]] std::uint64_t place(std::uint64_t at) const { return target + (at - addr); }
};

class RemoteKeys {
 public:
  /// Null: it has to be asked for, and from now on is.
  [[nodiscard]] RemoteRegion* find(std::uint32_t key) {
    const auto found = regions_.find(key);
    return found == regions_.end() ? nullptr : &found->second;
  }
  RemoteRegion& asked(std::uint32_t key) { return regions_[key]; }
  /// What the peer tells. Errors: malformed: it was not asked, or a region that does not fit into 64 bits.
  Result<void> told(const Said& message);
  /// A region that does not exist is asked for again the next time.
  void forget(std::uint32_t key) { regions_.erase(key); }

 private:
  std::unordered_map<std::uint32_t, RemoteRegion> regions_;
};

}  // namespace lacuna::nic::ofi
