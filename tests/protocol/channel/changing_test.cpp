// A peer that changes what it wrote into shared memory while its victim looks at it: what was checked is what is used.
#include "lacuna/protocol/channel/head.hpp"
#include "tests/protocol/message/hostile_rig.hpp"
#include "tests/support/channel.hpp"

namespace lacuna::test {
namespace LACUNA_TEST_FILE {

using protocol::Channel;
using protocol::Head;
using protocol::HeadKind;
using protocol::Request;
using protocol::RingDescriptor;
using protocol::RingMemory;
using protocol::StreamRings;

constexpr std::uint64_t kBytes = 100'000;
constexpr std::uint16_t kPages = StreamRings::kBytes / protocol::kPage, kLines = 128;
constexpr std::uint64_t kChunks = StreamRings::kBytes / (kLines * protocol::kLine);

// The victim's end. When the victim resolves an address, which is in the middle of its checks, the peer is quick enough
// to do something.
class Interrupted final : public support::AroundChannel {
 public:
  Interrupted(std::unique_ptr<Channel> inside, const std::function<void()>& meanwhile)
      : AroundChannel(std::move(inside)), meanwhile_(meanwhile) {}
  [[nodiscard]] std::byte* rkey_ptr(std::uint64_t addr, std::uint32_t rkey, std::size_t bytes) const override {
    if (meanwhile_) meanwhile_();
    return AroundChannel::rkey_ptr(addr, rkey, bytes);
  }

 private:
  const std::function<void()>& meanwhile_;
};

// A message that moves from one ring of the hostile rank's to another.
struct Moving {
  std::function<void()> meanwhile;
  Den den{setting(), 0, 0};
  nic::RegisteredBuffer first = buffer(), second = buffer();
  RingMemory& from = *reinterpret_cast<RingMemory*>(first.buffer.data());
  RingMemory& to = *reinterpret_cast<RingMemory*>(second.buffer.data());
  Guarded target{support::value(layout::Layout::bytes(kBytes)), 1};
  Request* receive = support::value(den.rank(0).irecv(target.base(), target.layout, 1, 1));

  Setting setting() {
    Setting made;
    made.options.wrap_channel = [this](std::unique_ptr<Channel> channel) -> std::unique_ptr<Channel> {
      return std::make_unique<Interrupted>(std::move(channel), meanwhile);
    };
    return made;
  }
  nic::RegisteredBuffer buffer() {
    return support::value(
        nic::RegisteredBuffer::create(den.context(1), static_cast<std::int64_t>(sizeof(RingMemory) + StreamRings::kBytes)));
  }
  static RingDescriptor describe(RingMemory& memory, const nic::RegisteredBuffer& buffer) {
    return {reinterpret_cast<std::uint64_t>(&memory), 0, buffer.region.rkey(), 0, 0, kPages, kLines};
  }

  // Says it, with two chunks in the first ring and `chunks` in the second one, which `change` makes another one in the
  // middle of the checks.
  std::optional<base::Result<protocol::Status>> say(std::uint64_t chunks, const std::function<void(RingDescriptor&)>& change) {
    from.filled = from.moved = 3;
    from.rest = describe(to, second);
    to.filled = chunks;
    Head head;
    head.kind = HeadKind::stream;
    head.tag = 1;
    head.bytes = kBytes;
    protocol::put_body(head, describe(from, first));
    meanwhile = [&, looks = 0]() mutable {
      if (++looks == 2) change(from.rest);  // first it looks for the first ring
    };
    den.tap().say(head);
    den.victim_moves();
    meanwhile = {};
    return den.rank(0).test(receive);
  }
  void expect_malformed(std::uint64_t chunks, const std::function<void(RingDescriptor&)>& change) {
    const auto ended = say(chunks, change);
    ASSERT_TRUE(ended);
    ASSERT_FALSE(*ended);
    EXPECT_EQ(ended->error().code, base::Code::malformed);
    EXPECT_TRUE(target.intact());
  }
  void expect_received(const std::function<void(RingDescriptor&)>& change) {
    const auto ended = say(11, change);
    ASSERT_TRUE(ended);
    EXPECT_TRUE(*ended) << ended->error().text();
    EXPECT_TRUE(target.intact());
  }
};

TEST(ChangingWindow, ThatDoesNotChangeIsTaken) {  // so that the others tell of what changes
  Moving().expect_received([](RingDescriptor&) {});
  Moving().expect_malformed(kChunks + 1, [](RingDescriptor&) {});
}
TEST(ChangingWindow, ThatGrowsHasItsFirstSize) {
  Moving().expect_malformed(kChunks + 1, [](RingDescriptor& rest) { rest.pages = 0xffff; });
}
TEST(ChangingWindow, OfOtherChunksHasTheFirstOnes) {
  for (const std::uint16_t lines : {0, 1, 3, 0xffff}) Moving().expect_received([&](RingDescriptor& rest) { rest.lines = lines; });
}
TEST(ChangingWindow, ThatBeginsElsewhereBeginsWhereItDid) {
  for (const std::uint32_t at : {1U, StreamRings::kBytes, ~0U}) Moving().expect_received([&](RingDescriptor& rest) { rest.at = at; });
}
TEST(ChangingWindow, ThatGoesElsewhereIsWhereItWas) {
  Moving().expect_received([](RingDescriptor& rest) { rest.addr = rest.first = ~std::uint64_t{0}; });
}

}  // namespace LACUNA_TEST_FILE
}  // namespace lacuna::test
