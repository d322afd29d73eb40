// One end's indirect keys for the parts of a stream, for the one-sided methods: the active end takes one after the
// other, the passive end offers all at once.
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
  /// The entry of the next part; nothing if that has to wait. `in_flight`: requests with earlier entries that are not
  /// done.
  Result<std::optional<nic::Sge>> take(std::byte* base, std::size_t in_flight, Counters& counters);

  // The passive end.
  /// True once all keys are bound for `base`.
  Result<bool> hold(std::byte* base, Counters& counters);
  [[nodiscard]] std::vector<Target::Part> offer() const;

 private:
  PartKeys(Endpoint& endpoint, const Layout& own, const Memory& memory, nic::Rights rights, std::vector<StreamRange> parts)
      : endpoint_(&endpoint), own_(own), memory_(memory), rights_(rights), parts_(std::move(parts)) {}
  static PartKeys create(Endpoint& endpoint, Role role, const Transfer& transfer, const Memory& memory, nic::Rights rights);
  Result<bool> lease(std::size_t part, std::byte* base, bool may_wait, Counters& counters);

  Endpoint* endpoint_;
  Layout own_;
  Memory memory_;
  nic::Rights rights_;
  std::vector<StreamRange> parts_;
  std::size_t next_ = 0;
  Warming warming_;
  bool pending_ = false;       // the last lease is that of part next_, not used yet
  std::byte* base_ = nullptr;  // of leases_
  std::deque<KeyCache::Lease> leases_;
};

/// The active end, an Initiator or a Reader, whose requests of one opcode each have one key at either side.
template <class Base, nic::Opcode opcode>
class WithKeys : public Base {
 public:
  template <class... Args>
  explicit WithKeys(PartKeys keys, Args&&... args) : Base(std::forward<Args>(args)...), keys_(std::move(keys)) {}

 private:
  Result<bool> prepare_more() override { return keys_.warm(this->base_, this->counters_); }
  void finished() override { keys_.release(); }
  Result<void> begin() override {
    keys_.rewind();
    return Base::begin();
  }
  [[nodiscard]] bool exhausted() const override { return keys_.exhausted(); }
  [[nodiscard]] std::size_t remote_parts() const override { return keys_.size(); }
  Result<bool> add_next(Chain& chain, int /*room*/) override {
    const Target::Part& remote = this->remote(keys_.next());
    const std::optional<nic::Sge> entry = LACUNA_TRY(keys_.take(this->base_, this->sends_in_flight(), this->counters_));
    if (!entry) return false;
    chain.append(*entry);
    chain.add(opcode, remote.addr, remote.rkey).signaled = true;  // so that its key comes back
    return true;
  }

  PartKeys keys_;
};

/// The passive end, a Landing or a Source, that offers its own memory through keys.
template <class Base>
class OffersKeys final : public Base {
 public:
  template <class... Args>
  explicit OffersKeys(PartKeys keys, Args&&... args) : Base(std::forward<Args>(args)...), keys_(std::move(keys)) {}

 private:
  Result<bool> prepare_more() override { return keys_.hold(this->base_, this->counters_); }
  [[nodiscard]] Target offer() const override { return {keys_.offer(), this->notice_.part()}; }

  PartKeys keys_;
};

}  // namespace lacuna::method
