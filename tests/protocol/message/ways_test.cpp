// Each way forced, changed with every message while the other rank forces another one: what arrives is what was sent,
// the gaps are as they were, and the message went the way that it could.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "tests/protocol/message/hostile_rig.hpp"
#include "tests/support/random_layout.hpp"
#include "tests/support/ranks.hpp"
#include "tests/support/tier.hpp"

namespace lacuna::test {
namespace LACUNA_TEST_FILE {

LACUNA_TIER(test, "Ways.*");

using guide::MessageWay;
using layout::Layout;
using protocol::Communicator;
using protocol::Protocol;
using protocol::Request;
using support::Random;

constexpr int kMessages = 250;

Layout bytes(std::int64_t n) { return support::value(Layout::bytes(n)); }

// A message that both ranks draw alike.
struct Drawn {
  Layout send, receive;
  std::optional<MessageWay> way[2];  // that each rank forces
  bool both = false;                 // in both directions at once
  bool early = false;                // before it has a receive

  explicit Drawn(Random& random) {
    const std::int64_t size = random.scaled(random.one_in(8) ? 1 << 20 : 64 << 10);
    if (random.one_in(3)) {
      const std::int64_t run = std::int64_t{1} << random.below(15);
      send = receive = support::value(Layout::hvector(size / run + 1, 1, 2 * run, bytes(run)));
    } else {
      send = support::random_layout_of_size(random, size).layout;
      receive = support::random_receive_layout(random, size).layout;
    }
    for (auto& one : way) {
      const auto drawn = static_cast<std::size_t>(random.below(guide::kMessageWays + 1));
      if (drawn < guide::kMessageWays) one = static_cast<MessageWay>(drawn);
    }
    both = random.one_in(2);
    early = random.one_in(2);
  }
};

// What the receive holds: the sent bytes, and nothing else has changed.
bool arrived(Guarded& receive, Guarded& sent) {
  std::vector<std::byte> packed(static_cast<std::size_t>(sent.layout.size())), got(packed.size());
  copy::reference::pack(sent.layout, sent.base(), 0, sent.layout.size(), packed.data());
  copy::reference::pack(receive.layout, receive.base(), 0, sent.layout.size(), got.data());
  return packed == got && receive.intact();
}

std::string talk(Communicator& ranks) {
  Random random(11);
  const int me = ranks.rank(), peer = 1 - me;
  for (int i = 0; i < kMessages; ++i) {
    const Drawn message(random);
    Guarded sent(message.send, 1), receive(message.receive, 2);
    const bool sends = me == 0 || message.both, receives = me == 1 || message.both;
    ranks.force(message.way[me]);
    Request* posted = nullptr;
    if (receives && !message.early) posted = LACUNA_END_TRY(ranks.irecv(receive.base(), receive.layout, peer, 5));
    Request* begun = nullptr;
    if (sends) begun = LACUNA_END_TRY(ranks.isend(sent.base(), sent.layout, peer, 5));
    if (message.early) {  // both ranks have sent once each has this word
      int word = 0;
      Request* said = LACUNA_END_TRY(ranks.irecv(&word, bytes(sizeof word), peer, 6));
      LACUNA_END_TRY(ranks.send(&i, bytes(sizeof i), peer, 6));
      LACUNA_END_TRY(ranks.wait(said));
    }
    if (receives && message.early) posted = LACUNA_END_TRY(ranks.irecv(receive.base(), receive.layout, peer, 5));
    if (begun != nullptr) LACUNA_END_TRY(ranks.wait(begun));
    if (posted == nullptr) continue;
    const protocol::Status status = LACUNA_END_TRY(ranks.wait(posted));
    LACUNA_END_EXPECT(status.bytes == message.send.size());
    if (!arrived(receive, sent)) return fmt::format("message {} of {} bytes is wrong", i, message.send.size());
  }
  return {};
}

LACUNA_LEFT_OUT(thread, "Ways.AreForcedForEachMessage");  // a minute; AreForcedWhileAThreadMovesThingsOn is for it
TEST(Ways, AreForcedForEachMessage) {
  for (const bool processes : {false, true}) EXPECT_EQ(in_ranks({.processes = processes}, talk), "") << processes;
}
TEST(Ways, AreForcedWhileAThreadMovesThingsOn) { EXPECT_EQ(in_ranks({.options = {.progress_thread = true}}, talk), ""); }
TEST(Ways, OnANicThatSharesNoMemoryAreAsEver) {
  Setting setting;
  setting.nic.forbidden_paths = {nic::Path::mapped};
  EXPECT_EQ(in_ranks(setting, talk), "");
}

bool can_copy() { return support::value(nic::open("local"))->limits().path(nic::Path::kernel)->available; }

// A message of 100 000 bytes, or of 3000 where it is to be eager, that its receiver waits for.
std::string goes(Communicator& ranks, MessageWay way, Protocol wanted) {
  const Layout layout = bytes(way == MessageWay::eager ? 3000 : 100'000);
  Guarded memory(layout, 1);
  constexpr int times = 20;
  for (int i = 0; i < times; ++i) {
    if (ranks.rank() == 0) {
      LACUNA_END_TRY(ranks.recv(nullptr, bytes(0), 1, 2));
      LACUNA_END_TRY(ranks.send(memory.base(), layout, 1, 1));
    } else {
      Request* posted = LACUNA_END_TRY(ranks.irecv(memory.base(), layout, 0, 1));
      LACUNA_END_TRY(ranks.send(nullptr, bytes(0), 0, 2));
      LACUNA_END_TRY(ranks.wait(posted));
    }
  }
  const protocol::Statistics counted = ranks.statistics();
  const auto& count = ranks.rank() == 0 ? counted.sent : counted.received;
  const std::int64_t messages = count[static_cast<std::size_t>(wanted)].messages;
  // A direct copy that its receiver takes too late becomes a stream.
  if (wanted == Protocol::direct) return messages + count[static_cast<std::size_t>(Protocol::stream)].messages == times ? "" : "not direct";
  return messages >= times ? "" : fmt::format("{} of {} went by {}", messages, times, protocol_name(wanted));
}

TEST(Ways, AreThoseOfTheMessages) {
  for (const auto& [way, wanted] :
       {std::pair{MessageWay::eager, Protocol::eager}, std::pair{MessageWay::wide, Protocol::stream},
        std::pair{MessageWay::narrow, Protocol::stream}, std::pair{MessageWay::passed, Protocol::stream},
        std::pair{MessageWay::direct, Protocol::direct}, std::pair{MessageWay::rendezvous, Protocol::rendezvous}}) {
    if (way == MessageWay::direct && !can_copy()) continue;
    const auto program = [way, wanted](Communicator& ranks) { return goes(ranks, way, wanted); };
    EXPECT_EQ(in_ranks({.processes = true, .options = {.way = way}}, program), "") << message_way_name(way);
  }
}

// --- in words --------------------------------------------------------------------------------------------------------

TEST(Ways, AreExplained) {
  const auto program = [](Communicator& ranks) -> std::string {
    const Layout small = bytes(1000), large = bytes(1 << 20);
    const auto says = [&](const Layout& layout, std::initializer_list<std::string_view> words) -> std::string {
      const std::string text = *ranks.explain(layout, layout, 1 - ranks.rank());
      for (const std::string_view word : words)
        if (!text.contains(word)) return fmt::format("no \"{}\" in {}", word, text);
      return {};
    };
    std::string wrong =
        says(small, {"eager: packed into the channel", "wide ", "narrow ", "passed ", "rendezvous ", "too short", "By usual times"});
    if (wrong.empty()) wrong = says(large, {"wide: streamed", "longer than what may be eager"});
    ranks.force(MessageWay::narrow);
    if (wrong.empty()) wrong = says(small, {"narrow: streamed", "as is forced"});
    ranks.force(MessageWay::eager);
    if (wrong.empty()) wrong = says(large, {"wide: streamed", "eager is forced, but cannot be (longer than what may be eager"});
    ranks.force(std::nullopt);
    if (wrong.empty()) wrong = says(large, {"wide: streamed"});
    return wrong;
  };
  EXPECT_EQ(in_ranks({}, program), "");
}

}  // namespace LACUNA_TEST_FILE
}  // namespace lacuna::test
