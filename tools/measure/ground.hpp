// The memory that a case is measured on.
#pragma once

#include "tools/measure/proof.hpp"

namespace lacuna::measure {

/// Memory of a rank for all its cases: allocated and registered once, so that no case pays for page faults and
/// registration. What no case is using holds the pattern.
class Ground {
 public:
  static Result<Ground> create(nic::Context& context);
  [[nodiscard]] std::int64_t capacity() const { return std::ssize(memory_.buffer.bytes()); }
  /// Bytes [0, used()) are ready.
  [[nodiscard]] std::int64_t used() const { return used_; }
  void extend(std::int64_t to);
  [[nodiscard]] std::byte* data() const { return memory_.buffer.data(); }
  [[nodiscard]] const nic::Region& region() const { return memory_.region; }

 private:
  explicit Ground(nic::RegisteredBuffer memory) : memory_(std::move(memory)) {}
  nic::RegisteredBuffer memory_;
  std::int64_t used_ = 0;
};

/// Where the copies of one case lie at one rank. Warm there is one; cold there are so many that their cache lines are
/// twice the last-level cache, and the order in which they are used skips through memory, so that no prefetcher and no
/// TLB entry serves the next one.
class Workspace {
 public:
  /// How much of the ground a case takes at either rank; both know it.
  static std::int64_t bytes_on_ground(const Case& what);
  /// On the ground from `offset` on, which must be ready and large enough.
  Workspace(const Ground& ground, std::int64_t offset, const Case& what, int rank);
  /// In memory of its own, where the case spans more than the ground.
  static Result<Workspace> apart(nic::Context& context, const Case& what, int rank);

  /// The base of the layout for the n-th transfer.
  [[nodiscard]] std::byte* base(std::int64_t transfer) const { return first_ + transfer % copies_ * step_ % copies_ * slot_; }
  [[nodiscard]] std::int64_t copies() const { return copies_; }
  [[nodiscard]] const nic::Region& region() const { return *region_; }

 private:
  Workspace(std::byte* first, const nic::Region& region, const Case& what, int rank);
  std::unique_ptr<nic::RegisteredBuffer> own_;
  std::byte* first_;
  const nic::Region* region_;  // operations hold its address
  std::int64_t copies_;
  std::int64_t slot_;  // from copy to copy
  std::int64_t step_;  // from transfer to transfer, in copies
};

}  // namespace lacuna::measure
