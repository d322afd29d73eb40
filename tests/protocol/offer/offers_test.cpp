// Offers: what is announced by others, and left behind by its sender.
#include <fmt/format.h>

#include <cstring>

#include "tests/support/random_layout.hpp"
#include "tests/support/ranks.hpp"
#include "tests/support/tier.hpp"

namespace lacuna::test {
namespace LACUNA_TEST_FILE {

LACUNA_TIER(test, "Offers.*");
LACUNA_TIER(gate, "Offers.AreMany");

using layout::Layout;
using protocol::Communicator;
using protocol::Request;
using protocol::Ticket;

Layout bytes(std::int64_t n) { return support::value(Layout::bytes(n)); }
Layout vector(std::int64_t count, std::int64_t length, std::int64_t stride) {
  return support::value(Layout::hvector(count, 1, stride, bytes(length)));
}

const Layout& of_ticket() {
  static const Layout layout = bytes(sizeof(Ticket));
  return layout;
}

std::vector<std::byte> pattern(const Layout& layout, std::uint64_t seed) {
  std::vector<std::byte> memory(static_cast<std::size_t>(layout.true_extent()));
  for (std::size_t i = 0; i < memory.size(); ++i) memory[i] = static_cast<std::byte>((i + 1) * (seed + 1) * 0x9e3779b97f4a7c15 >> 56);
  return memory;
}

// What a receive must hold: the gaps as they were.
std::vector<std::byte> image(const Layout& from, const Layout& to, std::uint64_t seed) {
  const std::vector<std::byte> source = pattern(from, seed);
  std::vector<std::byte> memory(static_cast<std::size_t>(to.true_extent()), std::byte{9});
  std::vector<std::byte> packed(static_cast<std::size_t>(from.size()));
  copy::reference::pack(from, source.data(), 0, from.size(), packed.data());
  copy::reference::unpack(to, memory.data(), 0, std::min(from.size(), to.size()), packed.data());
  return memory;
}

struct Shapes {
  Layout from, to;
};
std::vector<Shapes> shapes() {
  return {{bytes(1), bytes(1)},
          {bytes(3000), vector(300, 10, 33)},
          {vector(900, 10, 33), bytes(9000)},
          {vector(5000, 40, 100), vector(2000, 100, 150)},
          {bytes(600'000), bytes(600'000)},
          {vector(30'000, 100, 150), bytes(3'000'000)},
          {bytes(5'000'000), vector(50'000, 100, 101)}};
}

// The receiver takes its time, so that the sender has to leave; or it takes at once.
std::string offers(Communicator& ranks, bool leaves, bool whole) {
  const int peer = 1 - ranks.rank();
  std::uint64_t seed = 0;
  for (const Shapes& shape : shapes()) {
    ++seed;
    if (ranks.rank() == 0) {
      std::vector<std::byte> source = pattern(shape.from, seed);
      // No rank waits long for one that looks at the message before
      LACUNA_END_TRY(ranks.recv(nullptr, bytes(0), peer, 2));
      Ticket ticket;
      Request* offer =
          LACUNA_END_TRY(ranks.offer(source.data(), shape.from, peer, whole ? protocol::Behind::bounded : protocol::Behind::no, ticket));
      if (leaves) {
        LACUNA_END_TRY(ranks.leave(offer));
        LACUNA_END_EXPECT(ranks.test(offer).has_value());
        std::ranges::fill(source, std::byte{});
        LACUNA_END_TRY(ranks.send(&ticket, of_ticket(), peer, 1));
      } else {
        LACUNA_END_TRY(ranks.send(&ticket, of_ticket(), peer, 1));
        LACUNA_END_TRY(ranks.wait(offer));
      }
      continue;
    }
    Ticket ticket;
    std::vector<std::byte> target(static_cast<std::size_t>(shape.to.true_extent()), std::byte{9});
    LACUNA_END_TRY(ranks.send(nullptr, bytes(0), peer, 2));
    LACUNA_END_TRY(ranks.recv(&ticket, of_ticket(), peer, 1));
    const protocol::Status status =
        LACUNA_END_TRY(ranks.wait(LACUNA_END_TRY(ranks.accept(target.data(), shape.to, peer, shape.from.size(), ticket))));
    LACUNA_END_EXPECT(status.bytes == shape.from.size() && status.source == peer);
    LACUNA_END_EXPECT(target == image(shape.from, shape.to, seed));
  }
  return {};
}

TEST(Offers, AreAccepted) {
  for (const bool processes : {false, true}) {
    for (const bool leaves : {false, true}) {
      for (const bool whole : {false, true}) {
        EXPECT_EQ(in_ranks({.processes = processes}, [&](Communicator& ranks) { return offers(ranks, leaves, whole); }), "")
            << processes << leaves << whole;
      }
    }
  }
}

// One copy; of what is left behind, two.
std::string direct(Communicator& ranks) {
  for (int round = 0; round < 3; ++round) {
    if (std::string wrong = offers(ranks, false, false); !wrong.empty()) return wrong;
  }
  const protocol::Statistics counted = ranks.statistics();
  const auto& directly = (ranks.rank() == 0 ? counted.sent : counted.received)[static_cast<std::size_t>(protocol::Protocol::direct)];
  const auto expected = static_cast<std::int64_t>(3 * shapes().size());
  if (directly.messages < expected) return fmt::format("{} of {} direct", directly.messages, expected);
  return offers(ranks, true, false);
}

const Setting kDirect{.processes = true, .options = {.force = {.path = nic::Path::kernel}}};

bool can_be_direct() {
  const auto context = support::value(nic::open("local"));
  return context->limits().path(nic::Path::kernel)->available;
}

TEST(Offers, AreCopiedDirectly) {
  if (!can_be_direct()) GTEST_SKIP() << "this system lets no process copy out of another one's memory";
  EXPECT_EQ(in_ranks(kDirect, direct), "");
}

TEST(Offers, AreNotCopiedDirectlyWhereThatIsForbidden) {
  Setting setting{.processes = true};
  setting.nic.forbidden_paths = {nic::Path::kernel};
  EXPECT_EQ(in_ranks(setting, [](Communicator& ranks) { return offers(ranks, false, false); }), "");
}

// The receiver's layout is longer than the message, or too short for it.
TEST(Offers, AreCopiedDirectlyIntoOtherSizes) {
  const auto talk = [](Communicator& ranks) -> std::string {
    const int peer = 1 - ranks.rank();
    const Layout from = vector(1000, 300, 500);
    for (const std::int64_t room : {2000, 900, 2000, 900}) {
      const Layout to = vector(room, 300, 301);
      Ticket ticket;
      if (ranks.rank() == 0) {
        const std::vector<std::byte> source = pattern(from, 5);
        Request* offer = LACUNA_END_TRY(ranks.offer(source.data(), from, peer, protocol::Behind::no, ticket));
        LACUNA_END_TRY(ranks.send(&ticket, of_ticket(), peer, 1));
        LACUNA_END_TRY(ranks.wait(offer));
        continue;
      }
      LACUNA_END_TRY(ranks.recv(&ticket, of_ticket(), peer, 1));
      std::vector<std::byte> target(static_cast<std::size_t>(to.true_extent()), std::byte{9});
      const auto status = ranks.wait(LACUNA_END_TRY(ranks.accept(target.data(), to, peer, from.size(), ticket)));
      LACUNA_END_EXPECT(status.has_value() == (room >= 1000));
      LACUNA_END_EXPECT(status ? status->bytes == from.size() : status.error().code == base::Code::truncated);
      LACUNA_END_EXPECT(target == image(from, to, 5));
    }
    return {};
  };
  EXPECT_EQ(in_ranks(kDirect, talk), "");
}

TEST(Offers, AreWithdrawnFromWhoeverComesLate) {
  const auto talk = [](Communicator& ranks, const Layout& layout, bool leaves) -> std::string {
    const int peer = 1 - ranks.rank();
    for (int round = 0; round < 20; ++round) {
      Ticket ticket;
      if (ranks.rank() == 0) {
        std::vector<std::byte> source = pattern(layout, 3);
        Request* offer = LACUNA_END_TRY(ranks.offer(source.data(), layout, peer, protocol::Behind::no, ticket));
        LACUNA_END_TRY(ranks.send(&ticket, of_ticket(), peer, 1));
        if (leaves) LACUNA_END_TRY(ranks.leave(offer));
        LACUNA_END_TRY(ranks.wait(offer));  // though nobody takes it
        std::ranges::fill(source, std::byte{});
        LACUNA_END_TRY(ranks.send(nullptr, bytes(0), peer, 2));
        continue;
      }
      LACUNA_END_TRY(ranks.recv(&ticket, of_ticket(), peer, 1));
      LACUNA_END_TRY(ranks.recv(nullptr, bytes(0), peer, 2));
      std::vector<std::byte> target(static_cast<std::size_t>(layout.true_extent()), std::byte{9});
      LACUNA_END_TRY(ranks.wait(LACUNA_END_TRY(ranks.accept(target.data(), layout, peer, layout.size(), ticket))));
      LACUNA_END_EXPECT(target == image(layout, layout, 3));
    }
    return {};
  };
  // No longer than the part of a ring that any offer gets; and one that has to be left to be packed whole.
  EXPECT_EQ(in_ranks({.processes = true}, [&](Communicator& ranks) { return talk(ranks, vector(16, 4096, 8000), false); }), "");
  EXPECT_EQ(in_ranks({.processes = true}, [&](Communicator& ranks) { return talk(ranks, vector(5000, 100, 120), true); }), "");
}

// Many at once, taken in the opposite order, and again, so that places are used more than once.
std::string many(Communicator& ranks) {
  constexpr int kMany = 100;
  const Layout layout = vector(3000, 100, 120);
  const int peer = 1 - ranks.rank();
  std::vector<Ticket> tickets(kMany);
  const Layout all = bytes(static_cast<std::int64_t>(tickets.size() * sizeof(Ticket)));
  for (int round = 0; round < 3; ++round) {
    if (ranks.rank() == 0) {
      for (int i = 0; i < kMany; ++i) {
        const std::vector<std::byte> source = pattern(layout, static_cast<std::uint64_t>(i));
        Request* offer =
            LACUNA_END_TRY(ranks.offer(source.data(), layout, peer, i % 2 == 0 ? protocol::Behind::bounded : protocol::Behind::no,
                                       tickets[static_cast<std::size_t>(i)]));
        LACUNA_END_TRY(ranks.leave(offer));
        LACUNA_END_TRY(ranks.wait(offer));
      }
      LACUNA_END_TRY(ranks.send(tickets.data(), all, peer, round));
      LACUNA_END_TRY(ranks.recv(nullptr, bytes(0), peer, round));
      continue;
    }
    LACUNA_END_TRY(ranks.recv(tickets.data(), all, peer, round));
    for (int i = kMany - 1; i >= 0; --i) {
      std::vector<std::byte> target(static_cast<std::size_t>(layout.true_extent()), std::byte{9});
      LACUNA_END_TRY(
          ranks.wait(LACUNA_END_TRY(ranks.accept(target.data(), layout, peer, layout.size(), tickets[static_cast<std::size_t>(i)]))));
      LACUNA_END_EXPECT(target == image(layout, layout, static_cast<std::uint64_t>(i)));
    }
    LACUNA_END_TRY(ranks.send(nullptr, bytes(0), peer, round));
  }
  return {};
}
TEST(Offers, AreMany) { EXPECT_EQ(in_ranks({.processes = true}, many), ""); }

TEST(Offers, AreTruncatedAndBounded) {
  const auto talk = [](Communicator& ranks) -> std::string {
    const auto code = [](const auto& result) { return result ? base::Code::io : result.error().code; };
    const int peer = 1 - ranks.rank();
    std::vector<std::byte> memory(4'000'000, std::byte{7});
    std::vector<Ticket> tickets(2);
    const Layout all = bytes(2 * sizeof(Ticket));
    if (ranks.rank() == 0) {
      Ticket none;
      LACUNA_END_EXPECT(code(ranks.offer(memory.data(), bytes(8), 0, protocol::Behind::no, none)) == base::Code::invalid_argument);
      LACUNA_END_EXPECT(code(ranks.offer(memory.data(), bytes(8), 2, protocol::Behind::no, none)) == base::Code::invalid_argument);
      LACUNA_END_EXPECT(code(ranks.offer(memory.data(), bytes(0), 1, protocol::Behind::no, none)) == base::Code::invalid_argument);
      for (Ticket& ticket : tickets) {
        Request* offer = LACUNA_END_TRY(ranks.offer(memory.data(), bytes(4'000'000), peer, protocol::Behind::bounded, ticket));
        LACUNA_END_TRY(ranks.leave(offer));
        LACUNA_END_TRY(ranks.wait(offer));
      }
      LACUNA_END_EXPECT(code(ranks.offer(memory.data(), bytes(4'000'000), peer, protocol::Behind::bounded, none)) == base::Code::limit);
      LACUNA_END_EXPECT(ranks.statistics().shared.refused == 1);
      LACUNA_END_TRY(ranks.send(tickets.data(), all, peer, 1));
      return {};
    }
    LACUNA_END_TRY(ranks.recv(tickets.data(), all, peer, 1));
    std::vector<std::byte> target(1001, std::byte{9});
    LACUNA_END_EXPECT(code(ranks.wait(LACUNA_END_TRY(ranks.accept(target.data(), bytes(1000), peer, 4'000'000, tickets[0])))) ==
                      base::Code::truncated);
    LACUNA_END_EXPECT(target[999] == std::byte{7} && target[1000] == std::byte{9});
    Ticket wrong = tickets[1];
    for (std::byte& byte : wrong.bytes) byte ^= std::byte{0x55};
    LACUNA_END_EXPECT(code(ranks.accept(target.data(), bytes(1000), peer, 1000, wrong)) == base::Code::malformed);
    LACUNA_END_TRY(ranks.wait(LACUNA_END_TRY(ranks.accept(memory.data(), bytes(4'000'000), peer, 4'000'000, tickets[1]))));
    return {};
  };
  EXPECT_EQ(in_ranks({.processes = true, .options = {.shared_bytes = 10'000'000}}, talk), "");
}

// What was taken back leaves room for others.
TEST(Offers, AreTakenBack) {
  const auto talk = [](Communicator& ranks) -> std::string {
    if (ranks.rank() == 1) return {};
    std::vector<std::byte> memory(3'000'000);
    for (int i = 0; i < 100; ++i) {
      Ticket ticket;
      Request* offer = LACUNA_END_TRY(
          ranks.offer(memory.data(), bytes(3'000'000), 1, i % 3 == 0 ? protocol::Behind::bounded : protocol::Behind::no, ticket));
      if (i % 2 == 0) LACUNA_END_EXPECT(!ranks.test(offer));
      LACUNA_END_EXPECT(ranks.cancel(offer));
    }
    return {};
  };
  EXPECT_EQ(in_ranks({.options = {.shared_bytes = 6'000'000}}, talk), "");
}

TEST(Offers, NeedMemoryThatBothReach) {
  Setting queues;
  queues.nic.forbidden_paths = {nic::Path::mapped};
  const auto talk = [](Communicator& ranks) -> std::string {
    Ticket ticket;
    const auto offer = ranks.offer(&ticket, bytes(8), 1 - ranks.rank(), protocol::Behind::no, ticket);
    LACUNA_END_EXPECT(!offer && offer.error().code == base::Code::unsupported);
    return {};
  };
  EXPECT_EQ(in_ranks(queues, talk), "");
}

}  // namespace LACUNA_TEST_FILE
}  // namespace lacuna::test
