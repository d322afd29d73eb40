#include "tests/simulate/nonsense.hpp"

#include <algorithm>
#include <utility>

#include "lacuna/method/method.hpp"
#include "tests/support/channel.hpp"

namespace lacuna::simulate {
namespace {

using protocol::Head;
using protocol::HeadKind;

constexpr std::uint32_t kNoKey = 0x80000000;  // the model counts keys from 1 on

class Lying final : public support::AroundChannel {
 public:
  Lying(std::unique_ptr<protocol::Channel> inside, std::uint64_t seed, Lies lies)
      : AroundChannel(std::move(inside)), random_(seed), lies_(std::move(lies)), keys_only_(random_.one_in(4)) {}

  std::byte* claim(std::size_t bytes) override { return room_ = inside().claim(bytes); }
  void commit(Head& head) override {
    const bool names_keys = head.kind == HeadKind::answer || head.kind == HeadKind::part;
    if (names_keys && (lies_.wants() || lies_.wants())) name_other_keys(head);
    inside().commit(head);
    if (!keys_only_ && lies_.wants()) lie();
  }
  void give_up() override { inside().give_up(); }

 private:
  // Often one that means something.
  std::uint64_t number() {
    if (random_.one_in(4)) return random_.next();
    return random_.one_in(2) ? 0 : static_cast<std::uint64_t>(random_.below(40));
  }
  // Keys that are none, so that its NIC refuses what the other one writes.
  void name_other_keys(const Head& head) {
    if (room_ == nullptr) return;
    base::Result<method::Target> target = method::Target::decode({room_, head.payload});
    if (!target) return;
    for (method::Target::Part& part : target->parts) part.rkey |= kNoKey;
    target->flag.rkey |= kNoKey;
    const std::vector<std::byte> encoded = target->encode();
    if (encoded.size() != head.payload || std::ranges::equal(encoded, std::span(room_, head.payload))) return;
    lies_.tells();
    std::ranges::copy(encoded, room_);
  }
  void lie() {
    const std::size_t payload = random_.one_in(2) ? 0 : static_cast<std::size_t>(random_.between(1, 200));
    std::byte* const room = inside().claim(payload);
    if (room == nullptr) return;
    lies_.tells();
    std::generate_n(room, payload, [this] { return static_cast<std::byte>(random_.next()); });
    Head head;
    head.kind = static_cast<HeadKind>(random_.between(1, static_cast<int>(HeadKind::lost) + 1));
    if (random_.one_in(2)) head.kind = random_.pick<HeadKind>({HeadKind::eager, HeadKind::announce, HeadKind::part, HeadKind::ready});
    head.tag = static_cast<std::int32_t>(random_.one_in(3) ? random_.next() : number());
    if (random_.one_in(3)) head.tag = -2 - static_cast<std::int32_t>(random_.below(1 << 20));  // of an access
    head.number = static_cast<std::uint32_t>(number());
    head.bytes = random_.one_in(2) ? payload : number();
    head.payload = static_cast<std::uint32_t>(payload);
    for (std::size_t at = 0; at + sizeof(std::uint32_t) <= protocol::kBody; at += sizeof(std::uint32_t)) {
      const auto word = static_cast<std::uint32_t>(number());
      std::memcpy(head.body + at, &word, sizeof word);
    }
    inside().commit(head);
  }

  support::Random random_;
  Lies lies_;
  bool keys_only_;             // no heads of its own
  std::byte* room_ = nullptr;  // that was claimed last
};

}  // namespace

std::unique_ptr<protocol::Channel> make_lying_channel(std::unique_ptr<protocol::Channel> inside, std::uint64_t seed, Lies lies) {
  return std::make_unique<Lying>(std::move(inside), seed, std::move(lies));
}

}  // namespace lacuna::simulate
