// Registered memory for packed data, and for flags.
#pragma once

#include "lacuna/method/method.hpp"

namespace lacuna::method {

/// Memory of Endpoint::staging(); null where a side is contiguous and needs none.
using Staging = std::shared_ptr<const nic::RegisteredBuffer>;

/// Whether the peer can reach this region over the endpoint's path.
[[nodiscard]] bool reachable(const Endpoint& endpoint, const nic::Region& region);

/// A word that one end polls and the other writes. Both count transfers; the word holds the number of the last one that was announced.
class Flag {
 public:
  static Result<Flag> create(nic::Context& context);
  [[nodiscard]] Target::Part part() const { return {memory_.region.addr(), memory_.region.rkey()}; }
  /// At both ends, once for each transfer.
  void count() { ++transfers_; }
  /// A write of the number to the peer's word.
  [[nodiscard]] nic::SendRequest raise(const Endpoint& endpoint, const Target::Part& peers);
  [[nodiscard]] bool raised(nic::Context& context) const { return context.load_flag(word()) >= transfers_; }

 private:
  explicit Flag(nic::RegisteredBuffer memory) : memory_(std::move(memory)), sge_(memory_.sge(0, sizeof(std::uint64_t))) {}
  [[nodiscard]] std::uint64_t* word() const { return reinterpret_cast<std::uint64_t*>(memory_.buffer.data()); }
  nic::RegisteredBuffer memory_;
  nic::Sge sge_;
  std::uint64_t transfers_ = 0;
};

}  // namespace lacuna::method
