// Whether the peer is reaching into this end's memory just now: a word that the peer sets before the first of its
// writes and reads, and clears after the last. It travels as a write on the data endpoint, ahead of what it speaks of.
//
// Providers in software need this. They look at a key once, when a write begins, and go on writing after the region was
// closed: a region that goes waits for a word that is set, and for no other peer.
#pragma once

#include "lacuna/nic/memory.hpp"
#include "lacuna/nic/ofi/said.hpp"

namespace lacuna::nic::ofi {

class Context;

class Usage {
 public:
  /// Errors: out_of_memory, limit, io: those of registering memory.
  static Result<Usage> create(Context& context);

  /// The key of this end's word, for the peer.
  [[nodiscard]] std::uint32_t key() const { return word_.region.rkey(); }
  /// The peer has set it.
  [[nodiscard]] bool set() const;
  /// Of the peer's word: as Said::word.
  void learn(const Said& message) { peer_ = message; }
  [[nodiscard]] bool known() const { return peer_.bytes >= sizeof(std::uint64_t); }
  [[nodiscard]] const Said& peer() const { return peer_; }
  /// Where the peer's word comes from: one that is set, or cleared.
  [[nodiscard]] Sge value(bool set) const { return values_.sge(set ? sizeof(std::uint64_t) : 0, sizeof(std::uint64_t)); }

  bool said = false;         // the peer's word is set
  bool wanted = false;       // for a request that starts next
  std::uint64_t flying = 0;  // writes and reads of this end

 private:
  RegisteredBuffer word_, values_;
  Said peer_;
};

}  // namespace lacuna::nic::ofi
