// A channel around another one, for tests that change some of what it does.
#pragma once

#include <memory>
#include <utility>

#include "lacuna/protocol/channel/channel.hpp"

namespace lacuna::support {

class AroundChannel : public protocol::Channel {
 public:
  explicit AroundChannel(std::unique_ptr<protocol::Channel> inside) : inside_(std::move(inside)) {}
  std::byte* claim(std::size_t bytes) override { return inside_->claim(bytes); }
  void commit(protocol::Head& head) override { inside_->commit(head); }
  base::Result<bool> next(Arrival& arrival) override { return inside_->next(arrival); }
  void pop() override { inside_->pop(); }
  const base::Error* fault() override { return inside_->fault(); }
  [[nodiscard]] std::byte* rkey_ptr(std::uint64_t addr, std::uint32_t rkey, std::size_t bytes) const override {
    return inside_->rkey_ptr(addr, rkey, bytes);
  }
  void keep(const nic::SharedBuffer& memory) override { inside_->keep(memory); }
  [[nodiscard]] bool shares_memory() const override { return inside_->shares_memory(); }

 protected:
  [[nodiscard]] protocol::Channel& inside() { return *inside_; }
  [[nodiscard]] const protocol::Channel& inside() const { return *inside_; }

 private:
  std::unique_ptr<protocol::Channel> inside_;
};

}  // namespace lacuna::support
