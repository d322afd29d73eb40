// Registered memory of an operation's own: for packed data, and for flags.
#pragma once

#include "lacuna/method/method.hpp"

namespace lacuna::method {

struct Staging {
  nic::Buffer buffer;
  nic::Region region;

  static Result<Staging> create(nic::Context& context, std::int64_t bytes);
  [[nodiscard]] nic::Sge sge(std::int64_t offset, std::int64_t length) const {
    return {region.addr() + static_cast<std::uint64_t>(offset), static_cast<std::uint32_t>(length), region.lkey()};
  }
};

/// Whether the peer can write this region over the endpoint's path.
[[nodiscard]] bool reachable(const Endpoint& endpoint, const nic::Region& region);

/// The word behind a one-sided method's data. Both ends count transfers; the word holds the number of the last one that arrived.
class Flag {
 public:
  static Result<Flag> create(nic::Context& context);
  [[nodiscard]] std::uint64_t addr() const { return staging_.region.addr(); }
  [[nodiscard]] std::uint32_t rkey() const { return staging_.region.rkey(); }
  [[nodiscard]] nic::Sge sge() const { return staging_.sge(0, sizeof(std::uint64_t)); }
  void count() { ++transfers_; }
  /// Sender: sets the word that will be written. Receiver: whether it has arrived.
  void raise() { *word() = transfers_; }
  [[nodiscard]] bool raised(nic::Context& context) const { return context.load_flag(word()) >= transfers_; }

 private:
  explicit Flag(Staging staging) : staging_(std::move(staging)) {}
  [[nodiscard]] std::uint64_t* word() const { return reinterpret_cast<std::uint64_t*>(staging_.buffer.data()); }
  Staging staging_;
  std::uint64_t transfers_ = 0;
};

}  // namespace lacuna::method
