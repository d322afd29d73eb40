#include "tests/simulate/nonsense.hpp"

#include <algorithm>
#include <utility>

namespace lacuna::simulate {
namespace {

using protocol::Head;
using protocol::HeadKind;

class Lying final : public protocol::Channel {
 public:
  Lying(std::unique_ptr<protocol::Channel> inside, std::uint64_t seed, std::function<bool()> lies)
      : inside_(std::move(inside)), random_(seed), lies_(std::move(lies)) {}

  std::byte* claim(std::size_t bytes) override { return inside_->claim(bytes); }
  void commit(Head& head) override {
    inside_->commit(head);
    if (lies_()) lie();
  }
  base::Result<bool> next(Arrival& arrival) override { return inside_->next(arrival); }
  void pop() override { inside_->pop(); }
  const base::Error* fault() override { return inside_->fault(); }
  [[nodiscard]] std::byte* rkey_ptr(std::uint64_t addr, std::uint32_t rkey, std::size_t bytes) const override {
    return inside_->rkey_ptr(addr, rkey, bytes);
  }
  void keep(const nic::SharedBuffer& memory) override { inside_->keep(memory); }
  [[nodiscard]] bool shares_memory() const override { return inside_->shares_memory(); }

 private:
  // Often one that means something.
  std::uint64_t number() { return random_.one_in(4) ? random_.next() : static_cast<std::uint64_t>(random_.below(40)); }
  void lie() {
    const std::size_t payload = random_.one_in(2) ? 0 : static_cast<std::size_t>(random_.between(1, 200));
    std::byte* const room = inside_->claim(payload);
    if (room == nullptr) return;
    std::generate_n(room, payload, [this] { return static_cast<std::byte>(random_.next()); });
    Head head;
    head.kind = static_cast<HeadKind>(random_.between(1, static_cast<int>(HeadKind::lost) + 1));
    head.tag = random_.one_in(4) ? static_cast<std::int32_t>(random_.next()) : static_cast<std::int32_t>(number());
    head.number = static_cast<std::uint32_t>(number());
    head.bytes = random_.one_in(2) ? payload : number();
    head.payload = static_cast<std::uint32_t>(payload);
    for (std::size_t at = 0; at + sizeof(std::uint32_t) <= protocol::kBody; at += sizeof(std::uint32_t)) {
      const auto word = static_cast<std::uint32_t>(number());
      std::memcpy(head.body + at, &word, sizeof word);
    }
    inside_->commit(head);
  }

  std::unique_ptr<protocol::Channel> inside_;
  support::Random random_;
  std::function<bool()> lies_;
};

}  // namespace

std::unique_ptr<protocol::Channel> make_lying_channel(std::unique_ptr<protocol::Channel> inside, std::uint64_t seed,
                                                      std::function<bool()> lies) {
  return std::make_unique<Lying>(std::move(inside), seed, std::move(lies));
}

}  // namespace lacuna::simulate
