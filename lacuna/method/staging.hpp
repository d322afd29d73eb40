// Registered memory for packed data, and for flags.
#pragma once

#include "lacuna/method/method.hpp"

namespace lacuna::method {

/// Memory of Endpoint::staging(); null where a side is contiguous and needs none.
using Staging = std::shared_ptr<const nic::RegisteredBuffer>;

/// Whether the peer can reach this region over the endpoint's path.
[[nodiscard]] bool reachable(const Endpoint& endpoint, const nic::Region& region);

/// The registered words of an endpoint, each on cache lines of its own. To register one for each transfer would cost
/// more than most transfers do.
class Words {
 public:
  struct Word {
    std::shared_ptr<const nic::RegisteredBuffer> memory;
    std::int64_t offset = 0;
    [[nodiscard]] std::uint64_t* word() const { return reinterpret_cast<std::uint64_t*>(memory->buffer.data() + offset); }
  };
  /// One that is 0. Errors: those of RegisteredBuffer::create().
  Result<Word> take(nic::Context& context);
  /// Nobody writes it any more.
  void give_back(Word place) { free_.push_back(std::move(place)); }

 private:
  std::vector<Word> free_;
};

/// A word that one end polls and the other writes. Both count transfers; the word holds the number of the last one that
/// was announced. A word that the peer, or the device, may yet write or read when the flag goes is used by no other
/// flag.
class Flag {
 public:
  static Result<Flag> create(Endpoint& endpoint);
  Flag(Flag&&) = default;
  Flag& operator=(Flag&&) = delete;
  Flag(const Flag&) = delete;
  Flag& operator=(const Flag&) = delete;
  ~Flag();
  [[nodiscard]] Target::Part part() const;
  /// At both ends, once for each transfer.
  void count() { ++transfers_; }
  /// A write of the number to the peer's word.
  [[nodiscard]] nic::SendRequest raise(const Endpoint& endpoint, const Target::Part& peers);
  /// That write is complete.
  void went() { going_ = false; }
  [[nodiscard]] bool raised(nic::Context& context) const { return context.load_flag(place_.word()) >= transfers_; }

 private:
  Flag(Words& words, Words::Word place);
  Words* words_;
  Words::Word place_;  // null memory: moved from
  nic::Sge sge_;
  std::uint64_t transfers_ = 0;
  bool going_ = false;
  mutable bool named_ = false;  // to the peer
};

}  // namespace lacuna::method
