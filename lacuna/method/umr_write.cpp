// umr_write: an indirect key on either side, one write for each part of the stream that one key can hold: usually one for all. Nobody
// copies; the receiver posts nothing and polls nothing but the notification.
#include "lacuna/method/part_keys.hpp"

namespace lacuna::method {
namespace {

class Sender final : public Initiator {
 public:
  Sender(Endpoint& endpoint, const Transfer& transfer, const Memory& memory, Notice notice, PartKeys keys)
      : Initiator(endpoint, transfer.src, memory, std::move(notice), 1), keys_(std::move(keys)) {}

 private:
  Result<bool> prepare_more() override { return keys_.warm(base_, counters_); }
  void finished() override { keys_.release(); }
  Result<void> begin() override {
    keys_.rewind();
    return Initiator::begin();
  }
  [[nodiscard]] bool exhausted() const override { return keys_.exhausted(); }
  [[nodiscard]] std::size_t remote_parts() const override { return keys_.size(); }
  Result<bool> add_next(Chain& chain) override {
    const std::size_t part = keys_.next();
    const std::optional<nic::Sge> entry = LACUNA_TRY(keys_.take(base_, sends_in_flight(), counters_));
    if (!entry) return false;
    chain.append(*entry);
    chain.add(nic::Opcode::write, remote(part).addr, remote(part).rkey).signaled = true;  // so that its key comes back
    return true;
  }

  PartKeys keys_;
};

class Receiver final : public Landing {
 public:
  Receiver(Endpoint& endpoint, const Transfer& transfer, const Memory& memory, Notice notice, PartKeys keys)
      : Landing(endpoint, transfer, memory, std::move(notice), Staging(), 0), keys_(std::move(keys)) {}

 private:
  Result<bool> prepare_more() override { return keys_.hold(base_, counters_); }
  [[nodiscard]] Target offer() const override { return {keys_.offer(), notice_.part()}; }

  PartKeys keys_;
};

Made make(Role role, Endpoint& endpoint, const Transfer& transfer, const Memory& memory) {
  Notice notice = LACUNA_TRY(Notice::create(endpoint.context(), transfer.notify));
  if (role == Role::sender) {
    return std::make_unique<Sender>(endpoint, transfer, memory, std::move(notice),
                                    LACUNA_TRY(PartKeys::for_active(endpoint, role, transfer, memory)));
  }
  PartKeys keys = LACUNA_TRY(PartKeys::for_passive(endpoint, role, transfer, memory, {.remote_write = true, .remote_read = false}));
  return std::make_unique<Receiver>(endpoint, transfer, memory, std::move(notice), std::move(keys));
}

}  // namespace

extern const Method kUmrWrite{.name = "umr_write",
                              .summary = "indirect keys on both sides, one write",
                              .notifies = kOneSided,
                              .initiator = Role::sender,
                              .exposes = Exposes::destination,
                              .indirect_keys = true,
                              .make = &make};

}  // namespace lacuna::method
