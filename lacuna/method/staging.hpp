// Registered memory of an operation's own: for packed data, and for flags.
#pragma once

#include "lacuna/method/method.hpp"

namespace lacuna::method {

using Staging = nic::RegisteredBuffer;

/// Whether the peer can reach this region over the endpoint's path.
[[nodiscard]] bool reachable(const Endpoint& endpoint, const nic::Region& region);

/// A word that one end polls and the other writes. Both count transfers; the word holds the number of the last one that was announced.
class Flag {
 public:
  static Result<Flag> create(nic::Context& context);
  [[nodiscard]] Target::Part part() const { return {staging_.region.addr(), staging_.region.rkey()}; }
  /// At both ends, once for each transfer.
  void count() { ++transfers_; }
  /// A write of the number to the peer's word.
  [[nodiscard]] nic::SendRequest raise(const Endpoint& endpoint, const Target::Part& peers);
  [[nodiscard]] bool raised(nic::Context& context) const { return context.load_flag(word()) >= transfers_; }

 private:
  explicit Flag(Staging staging) : staging_(std::move(staging)), sge_(staging_.sge(0, sizeof(std::uint64_t))) {}
  [[nodiscard]] std::uint64_t* word() const { return reinterpret_cast<std::uint64_t*>(staging_.buffer.data()); }
  Staging staging_;
  nic::Sge sge_;
  std::uint64_t transfers_ = 0;
};

}  // namespace lacuna::method
