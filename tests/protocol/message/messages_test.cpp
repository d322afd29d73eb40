// Messages of all sizes and layouts by every protocol: what arrives is what was sent, where the receive says, and the
// gaps are as they were.
#include <cstring>

#include "tests/support/random_layout.hpp"
#include "tests/support/ranks.hpp"
#include "tests/support/tier.hpp"

namespace lacuna::test {
namespace LACUNA_TEST_FILE {

LACUNA_TIER(test, "*Messages.*");
LACUNA_TIER(test, "Truncation.*");
LACUNA_TIER(test, "Self.*");
LACUNA_TIER(test, "Arguments.*");
LACUNA_TIER(test, "Unexpected.*");
LACUNA_TIER(gate, "*Messages.*/ForcedOnModel_*");

using layout::Layout;
using protocol::Communicator;
using protocol::kAnySource;
using protocol::kAnyTag;
using protocol::Protocol;
using protocol::Status;
using support::Random;

/// Memory for a layout, filled with a pattern that its place and a seed give.
struct Field {
  std::vector<std::byte> bytes;
  std::int64_t origin = 0;
  Layout layout;

  Field(Layout what, std::uint64_t seed) : layout(std::move(what)) {
    const std::int64_t low = std::min<std::int64_t>(0, layout.true_lower_bound()) - 32;
    const std::int64_t high = std::max<std::int64_t>(0, layout.true_lower_bound() + layout.true_extent()) + 32;
    origin = -low;
    bytes.resize(static_cast<std::size_t>(high - low));
    for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = at(seed, i);
  }
  static std::byte at(std::uint64_t seed, std::size_t i) {
    return static_cast<std::byte>((i + seed * 0x9e3779b9) * 0x9e3779b97f4a7c15 >> 56);
  }
  [[nodiscard]] std::byte* base() { return bytes.data() + origin; }
};

// What `receive` should hold after the first bytes of `send` came.
std::vector<std::byte> expected(const Field& receive, const Field& send, std::int64_t bytes) {
  std::vector<std::byte> memory = receive.bytes;
  layout::Cursor from(send.layout);
  layout::Cursor to(receive.layout);
  for (std::int64_t i = 0; i < bytes; ++i) {
    const layout::Run source = from.next_run(1);
    const layout::Run target = to.next_run(1);
    memory[static_cast<std::size_t>(receive.origin + target.offset)] = send.bytes[static_cast<std::size_t>(send.origin + source.offset)];
  }
  return memory;
}

struct Shape {
  std::string name;
  Layout send, receive;
};

Layout bytes(std::int64_t n) { return support::value(Layout::bytes(n)); }
Layout vector(std::int64_t count, std::int64_t length, std::int64_t stride) {
  return support::value(Layout::vector(count, length, stride, bytes(1)));
}

std::vector<Shape> shapes() {
  std::vector<Shape> made;
  for (const std::int64_t n : {0, 1, 8, 36, 37, 1000, 8192, 8193, 16384, 40'000, 131'072, 700'001})
    made.push_back({"bytes " + std::to_string(n), bytes(n), bytes(n)});
  made.push_back({"vector", vector(500, 16, 48), vector(500, 16, 48)});
  made.push_back({"finer", vector(8000, 8, 24), vector(1000, 64, 100)});
  made.push_back({"to one piece", vector(3000, 40, 80), bytes(120'000)});
  made.push_back({"from one piece", bytes(120'000), vector(3000, 40, 80)});
  made.push_back({"a longer receive", vector(700, 30, 50), vector(2000, 20, 50)});
  made.push_back({"a much longer receive", bytes(100), bytes(500'000)});
  Random random(7);
  for (int i = 0; i < 12; ++i) {
    const support::Sample send = support::random_layout(random, {.bytes = 200 << 10});
    const support::Sample receive = support::random_receive_layout(random, send.layout.size());
    made.push_back({"random " + std::to_string(i), send.layout, receive.layout});
  }
  return made;
}

// Rank 0 sends every shape to rank 1, twice: into a receive that waits, and before there is one.
std::string moves(Communicator& ranks) {
  for (const Shape& shape : shapes()) {
    for (const bool early : {false, true}) {
      Field send(shape.send, 1);
      Field receive(shape.receive, 2);
      const Layout word = bytes(4);
      int token = 0;
      if (ranks.rank() == 0) {
        if (!early) LACUNA_END_TRY(ranks.recv(&token, word, 1, 9));  // the receive is posted
        protocol::Request* sent = LACUNA_END_TRY(ranks.isend(send.base(), send.layout, 1, 5));
        if (early) LACUNA_END_TRY(ranks.send(&token, word, 1, 9));
        const Status status = LACUNA_END_TRY(ranks.wait(sent));
        LACUNA_END_EXPECT(status.bytes == send.layout.size() && status.tag == 5);
      } else {
        const std::vector<std::byte> wanted = expected(receive, send, send.layout.size());
        protocol::Request* posted = nullptr;
        if (early) LACUNA_END_TRY(ranks.recv(&token, word, 0, 9));
        posted = LACUNA_END_TRY(ranks.irecv(receive.base(), receive.layout, 0, 5));
        if (!early) LACUNA_END_TRY(ranks.send(&token, word, 0, 9));
        const Status status = LACUNA_END_TRY(ranks.wait(posted));
        if (status.bytes != send.layout.size() || status.source != 0 || status.tag != 5) return shape.name + ": a wrong status";
        if (receive.bytes != wanted) return shape.name + (early ? ", early" : "") + ": wrong bytes";
      }
    }
  }
  return {};
}

struct Kind {
  std::string name;
  bool model = false;
  Setting setting;
};
std::ostream& operator<<(std::ostream& out, const Kind& kind) { return out << kind.name; }

std::vector<Kind> kinds() {
  std::vector<Kind> made;
  made.push_back({.name = "Threads"});
  made.push_back({.name = "Processes", .setting = {.processes = true}});
  made.push_back({.name = "Model", .model = true});
  made.push_back({.name = "NothingEager", .setting = {.options = {.eager_bytes = 0}}});
  made.push_back({.name = "ProgressThread", .setting = {.options = {.progress_thread = true}}});
  Kind queues{.name = "WithoutSharedMemory"};
  queues.setting.nic.forbidden_paths = {nic::Path::mapped};
  made.push_back(queues);
  Kind slots = queues;
  slots.name = "SlotsOnly";
  slots.setting.nic.forbidden_paths = {nic::Path::mapped, nic::Path::kernel};
  made.push_back(slots);
  for (const auto registering : {protocol::Registering::copy, protocol::Registering::leave_pinned, protocol::Registering::pipeline,
                                 protocol::Registering::leave_pinned_pipeline}) {
    Kind policy = queues;
    policy.setting.options.registering = registering;
    policy.setting.options.part_bytes = 10'000;
    policy.name = "Queues_" + std::string(registering_name(registering));
    made.push_back(policy);
    policy.model = true;
    policy.name = "Model_" + std::string(registering_name(registering));
    made.push_back(policy);
    policy.model = false;
    policy.setting.nic = {};
    policy.setting.pins = true;
    policy.name = "Pinning_" + std::string(registering_name(registering));
    made.push_back(policy);
  }
  for (std::size_t i = 0; i < guide::kMessageWays; ++i) {
    const auto way = static_cast<guide::MessageWay>(i);
    Kind forced{.name = "Way_" + std::string(message_way_name(way))};
    forced.setting.options.way = way;
    made.push_back(forced);
    forced.setting.processes = true;
    forced.name += "_Processes";
    made.push_back(forced);
  }
  for (const method::Method& method : method::methods()) {
    Kind forced{.name = "Forced_" + std::string(method.name)};
    forced.setting.options.force.method = &method;
    made.push_back(forced);
    forced.model = true;
    forced.name = "ForcedOnModel_" + std::string(method.name);
    made.push_back(forced);
  }
  return made;
}

std::string run(const Kind& kind, const Program& program) {
  return kind.model ? in_model(kind.setting.ranks, kind.setting.options, program) : in_ranks(kind.setting, program);
}

class Messages : public testing::TestWithParam<Kind> {};
TEST_P(Messages, ArriveWholeWithGapsIntact) {
  if (GetParam().setting.pins) {
    if (const auto pinned = can_pin(); !pinned) GTEST_SKIP() << pinned.error().text();
  }
  EXPECT_EQ(run(GetParam(), moves), "");
}
INSTANTIATE_TEST_SUITE_P(Every, Messages, testing::ValuesIn(kinds()), [](const auto& info) { return info.param.name; });

// --- truncation, oneself, statistics ---------------------------------------------------------------------------------

std::string truncates(Communicator& ranks) {
  for (const std::int64_t n : {8, 5000, 100'000}) {
    std::vector<std::byte> memory(static_cast<std::size_t>(n) + 64, std::byte{7});
    if (ranks.rank() == 0) {
      LACUNA_END_TRY(ranks.send(memory.data(), bytes(n), 1, 1));
    } else {
      std::ranges::fill(memory, std::byte{9});
      const auto got = ranks.recv(memory.data(), bytes(n - 3), 0, 1);
      LACUNA_END_EXPECT(!got && got.error().code == base::Code::truncated);
      LACUNA_END_EXPECT(got.error().message.contains(std::to_string(n)));
      for (std::size_t i = static_cast<std::size_t>(n) - 3; i < memory.size(); ++i) LACUNA_END_EXPECT(memory[i] == std::byte{9});
    }
  }
  int after = 42;  // what follows is as if nothing had been
  if (ranks.rank() == 0) LACUNA_END_TRY(ranks.send(&after, bytes(4), 1, 1));
  if (ranks.rank() == 1) LACUNA_END_TRY(ranks.recv(&after, bytes(4), 0, 1));
  LACUNA_END_EXPECT(after == 42);
  return {};
}
TEST(Truncation, IsAnErrorOfTheReceiveAlone) {
  EXPECT_EQ(in_ranks({}, truncates), "");
  EXPECT_EQ(in_model(2, {}, truncates), "");
  Setting queues;
  queues.nic.forbidden_paths = {nic::Path::mapped};
  EXPECT_EQ(in_ranks(queues, truncates), "");
  queues.options.part_bytes = 10'000;
  EXPECT_EQ(in_ranks(queues, truncates), "");
  queues.options.registering = protocol::Registering::pipeline;
  EXPECT_EQ(in_ranks(queues, truncates), "");
}

TEST(Self, MessagesArrive) {
  const auto talk = [](Communicator& ranks) -> std::string {
    for (const std::int64_t n : {0, 10, 100'000}) {
      Field send(vector(n, 3, 7), 1);
      Field before(bytes(3 * n), 2);
      Field after(vector(3 * n, 1, 2), 3);
      const auto want_before = expected(before, send, 3 * n);
      const auto want_after = expected(after, send, 3 * n);
      protocol::Request* waiting = LACUNA_END_TRY(ranks.irecv(before.base(), before.layout, kAnySource, 1));
      protocol::Request* sent[] = {LACUNA_END_TRY(ranks.isend(send.base(), send.layout, ranks.rank(), 1)),
                                   LACUNA_END_TRY(ranks.isend(send.base(), send.layout, ranks.rank(), 2))};
      protocol::Request* none = LACUNA_END_TRY(ranks.irecv(after.base(), after.layout, ranks.rank(), 9));
      LACUNA_END_EXPECT(ranks.is_done(waiting) && !ranks.is_done(none) && ranks.cancel(none));
      LACUNA_END_EXPECT(LACUNA_END_TRY(ranks.wait(waiting)).source == ranks.rank());
      LACUNA_END_TRY(ranks.recv(after.base(), after.layout, ranks.rank(), kAnyTag));
      LACUNA_END_TRY(ranks.wait_all(sent));
      LACUNA_END_EXPECT(before.bytes == want_before && after.bytes == want_after);
    }
    return {};
  };
  EXPECT_EQ(in_ranks({.ranks = 2}, talk), "");
}

TEST(Arguments, AreChecked) {
  const auto ask = [](Communicator& ranks) -> std::string {
    int word = 0;
    const auto code = [](const auto& result) { return result ? base::Code::io : result.error().code; };
    LACUNA_END_EXPECT(code(ranks.isend(&word, bytes(4), 2, 0)) == base::Code::invalid_argument);
    LACUNA_END_EXPECT(code(ranks.isend(&word, bytes(4), -1, 0)) == base::Code::invalid_argument);
    LACUNA_END_EXPECT(code(ranks.send(&word, bytes(4), 0, -1)) == base::Code::invalid_argument);
    LACUNA_END_EXPECT(code(ranks.irecv(&word, bytes(4), 2, 0)) == base::Code::invalid_argument);
    LACUNA_END_EXPECT(code(ranks.recv(&word, bytes(4), 0, -2)) == base::Code::invalid_argument);
    LACUNA_END_EXPECT(code(ranks.recv(&word, support::value(Layout::hvector(2, 1, 0, bytes(4))), 0, 0)) == base::Code::invalid_argument);
    LACUNA_END_EXPECT(code(ranks.wait_any({})) == base::Code::invalid_argument);
    return {};
  };
  EXPECT_EQ(in_ranks({}, ask), "");
}

// A thousand small messages, then a large one, that no receive expects: memory stays within what was allowed, and all
// arrive in order.
TEST(Unexpected, StaysBounded) {
  constexpr std::int64_t kRoom = 64 << 10;
  constexpr int kMessages = 3000;
  const auto talk = [](Communicator& ranks) -> std::string {
    std::vector<std::byte> block(2000);
    const Layout what = bytes(std::ssize(block));
    int token = 0;
    if (ranks.rank() == 0) {
      std::vector<protocol::Request*> sent;
      std::vector<std::vector<std::byte>> blocks(kMessages, block);
      for (int i = 0; i < kMessages; ++i) {
        std::memcpy(blocks[static_cast<std::size_t>(i)].data(), &i, sizeof i);
        sent.push_back(LACUNA_END_TRY(ranks.isend(blocks[static_cast<std::size_t>(i)].data(), what, 1, 1)));
      }
      LACUNA_END_TRY(ranks.send(&token, bytes(4), 1, 2));
      LACUNA_END_TRY(ranks.wait_all(sent));
      LACUNA_END_EXPECT(ranks.statistics().without_credit > kMessages / 2);
    } else {
      LACUNA_END_TRY(ranks.recv(&token, bytes(4), 0, 2));
      LACUNA_END_EXPECT(ranks.statistics().unexpected_most <= kRoom);
      for (int i = 0; i < kMessages; ++i) {
        LACUNA_END_TRY(ranks.recv(block.data(), what, 0, kAnyTag));
        std::memcpy(&token, block.data(), sizeof token);
        LACUNA_END_EXPECT(token == i);
      }
      LACUNA_END_EXPECT(ranks.statistics().unexpected_bytes == 0);
    }
    return {};
  };
  EXPECT_EQ(in_ranks({.options = {.unexpected_bytes = kRoom}}, talk), "");
  EXPECT_EQ(in_model(2, {.unexpected_bytes = kRoom}, talk), "");
}

}  // namespace LACUNA_TEST_FILE
}  // namespace lacuna::test
