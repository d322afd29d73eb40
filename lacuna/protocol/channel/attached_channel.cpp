// A channel to a peer that this end reached by itself: it carries no heads, since the peer may not know of it. What is
// said in streams travels in their rings.
#include <utility>

#include "lacuna/protocol/channel/channel.hpp"

namespace lacuna::protocol {
namespace {

class AttachedChannel final : public Channel {
 public:
  explicit AttachedChannel(std::unique_ptr<nic::QueuePair> qp) : qp_(std::move(qp)) {}
  std::byte* claim(std::size_t /*bytes*/) override { return nullptr; }
  void commit(Head& /*head*/) override {}
  Result<bool> next(Arrival& /*arrival*/) override { return false; }
  void pop() override {}
  const base::Error* fault() override { return qp_->fault(); }
  [[nodiscard]] std::byte* rkey_ptr(std::uint64_t addr, std::uint32_t rkey, std::size_t bytes) const override {
    return qp_->rkey_ptr(addr, rkey, bytes);
  }
  void keep(const nic::SharedBuffer& memory) override { qp_->keep(memory); }
  [[nodiscard]] bool shares_memory() const override { return true; }
  [[nodiscard]] bool carries() const override { return false; }
  [[nodiscard]] nic::QueuePair* copying() const override { return qp_->copies() ? qp_.get() : nullptr; }

 private:
  std::unique_ptr<nic::QueuePair> qp_;
};

}  // namespace

Result<std::unique_ptr<Channel>> make_attached_channel(nic::Context& context, const nic::Card& card) {
  return std::make_unique<AttachedChannel>(LACUNA_TRY(context.attach(card)));
}

}  // namespace lacuna::protocol
