// One end's indirect keys for the parts of a stream, for the one-sided methods: the active end takes one after the other, the passive end
// offers all at once.
#pragma once

#include "lacuna/method/key_cache.hpp"
#include "lacuna/method/one_sided.hpp"

namespace lacuna::method {

class PartKeys {
 public:
  /// Errors: limit (more keys at once than the NIC has).
  static Result<PartKeys> for_active(Endpoint& endpoint, Role role, const Transfer& transfer, const Memory& memory);
  static Result<PartKeys> for_passive(Endpoint& endpoint, Role role, const Transfer& transfer, const Memory& memory, nic::Rights rights);

  [[nodiscard]] std::size_t size() const { return parts_.size(); }

  // The active end.
  /// Binds ahead what the pool has room for; true once that is done.
  Result<bool> warm(std::byte* base, Counters& counters);
  /// Gives all keys back. They stay bound.
  void release() { leases_.clear(); }
  void rewind() {
    next_ = 0;
    pending_ = false;
  }
  [[nodiscard]] std::size_t next() const { return next_; }
  [[nodiscard]] bool exhausted() const { return next_ == parts_.size(); }
  /// The entry of the next part; nothing if that has to wait. `in_flight`: requests with earlier entries that are not done.
  Result<std::optional<nic::Sge>> take(std::byte* base, std::size_t in_flight, Counters& counters);

  // The passive end.
  /// True once all keys are bound for `base`.
  Result<bool> hold(std::byte* base, Counters& counters);
  [[nodiscard]] std::vector<Target::Part> offer() const;

 private:
  PartKeys(Endpoint& endpoint, const Layout& own, const Memory& memory, nic::Rights rights, std::vector<Part> parts)
      : endpoint_(&endpoint), own_(own), memory_(memory), rights_(rights), parts_(std::move(parts)) {}
  static PartKeys create(Endpoint& endpoint, Role role, const Transfer& transfer, const Memory& memory, nic::Rights rights);
  Result<bool> lease(std::size_t part, std::byte* base, bool may_wait, Counters& counters);

  Endpoint* endpoint_;
  Layout own_;
  Memory memory_;
  nic::Rights rights_;
  std::vector<Part> parts_;
  std::size_t next_ = 0;
  std::size_t warmed_ = 0;  // parts, for warmed_for_
  std::byte* warmed_for_ = nullptr;
  bool pending_ = false;       // the last lease is that of part next_, not used yet
  std::byte* base_ = nullptr;  // of leases_
  std::deque<KeyCache::Lease> leases_;
};

}  // namespace lacuna::method
