// umr_read: umr_write the other way round: the receiver reads through an indirect key at the source into one of its own.
#include "lacuna/method/part_keys.hpp"

namespace lacuna::method {
namespace {

class Sender final : public Source {
 public:
  Sender(Endpoint& endpoint, const Transfer& transfer, const Memory& memory, Notice notice, Flag ready, PartKeys keys)
      : Source(endpoint, transfer, memory, std::move(notice), std::move(ready), Staging()), keys_(std::move(keys)) {}

 private:
  Result<bool> prepare_more() override { return keys_.hold(base_, counters_); }
  [[nodiscard]] Target offer() const override { return {keys_.offer(), notice_.part()}; }

  PartKeys keys_;
};

class Receiver final : public Reader {
 public:
  Receiver(Endpoint& endpoint, const Transfer& transfer, const Memory& memory, Notice notice, Flag ready, PartKeys keys)
      : Reader(endpoint, transfer.dst, memory, std::move(notice), std::move(ready)), keys_(std::move(keys)) {}

 private:
  Result<bool> prepare_more() override { return keys_.warm(base_, counters_); }
  void finished() override { keys_.release(); }
  Result<void> begin() override {
    keys_.rewind();
    return Reader::begin();
  }
  [[nodiscard]] bool exhausted() const override { return keys_.exhausted(); }
  [[nodiscard]] std::size_t remote_parts() const override { return keys_.size(); }
  Result<bool> add_next(Chain& chain) override {
    const std::size_t part = keys_.next();
    const std::optional<nic::Sge> entry = LACUNA_TRY(keys_.take(base_, sends_in_flight(), counters_));
    if (!entry) return false;
    chain.append(*entry);
    chain.add(nic::Opcode::read, remote(part).addr, remote(part).rkey).signaled = true;  // so that its key comes back
    return true;
  }

  PartKeys keys_;
};

Made make(Role role, Endpoint& endpoint, const Transfer& transfer, const Memory& memory) {
  Notice notice = LACUNA_TRY(Notice::create(endpoint.context(), transfer.notify));
  Flag ready = LACUNA_TRY(Flag::create(endpoint.context()));
  if (role == Role::receiver) {
    return std::make_unique<Receiver>(endpoint, transfer, memory, std::move(notice), std::move(ready),
                                      LACUNA_TRY(PartKeys::for_active(endpoint, role, transfer, memory)));
  }
  PartKeys keys = LACUNA_TRY(
      PartKeys::for_passive(endpoint, role, transfer, memory, {.local_write = false, .remote_write = false, .remote_read = true}));
  return std::make_unique<Sender>(endpoint, transfer, memory, std::move(notice), std::move(ready), std::move(keys));
}

}  // namespace

extern const Method kUmrRead{.name = "umr_read",
                             .summary = "indirect keys on both sides, the receiver reads",
                             .notifies = kOneSided,
                             .initiator = Role::receiver,
                             .exposes = Exposes::source,
                             .indirect_keys = true,
                             .make = &make};

}  // namespace lacuna::method
