// What a method refuses, with the reason; and what becomes of it when its peer dies.
#include <gtest/gtest.h>
#include <signal.h>

#include "lacuna/method/method.hpp"
#include "tests/nic/rig.hpp"
#include "tests/support/tier.hpp"

namespace lacuna::test {
namespace LACUNA_TEST_FILE {

LACUNA_TIER(gate, "*MethodPeerDeath.*");

using layout::Layout;
using method::Endpoint;
using method::Role;

Layout bytes(std::int64_t n) { return Layout::bytes(n).value(); }
Layout blocks(std::int64_t count) { return Layout::hvector(count, 1, 300, bytes(100)).value(); }

bool refused(const base::Result<std::unique_ptr<method::Operation>>& made, base::Code code, std::string_view text) {
  return !made && made.error().code == code && made.error().message.find(text) != std::string::npos;
}

std::string bad_transfers(int /*rank*/, nic::Bootstrap& bootstrap) {
  const auto context = LACUNA_END_TRY(open_tested());
  const auto mapped = LACUNA_END_TRY(Endpoint::connect(*context, bootstrap, nic::Path::mapped));
  const nic::Buffer buffer = LACUNA_END_TRY(context->allocate(10'000));
  const nic::Region region = LACUNA_END_TRY(context->register_memory(buffer.bytes(), {}));
  std::vector<std::byte> heap(10'000);
  const nic::Region ordinary = LACUNA_END_TRY(context->register_memory(heap, {}));
  const Layout overlapping = Layout::hvector(10, 1, 50, bytes(100)).value();
  for (const method::Method& m : method::methods()) {
    const method::Notify usual = m.notifies.front();
    for (const Role role : {Role::sender, Role::receiver}) {
      LACUNA_END_EXPECT(refused(method::make(m, role, *mapped, {blocks(10), blocks(9), usual}, {&region}), base::Code::invalid_argument,
                                "1000 bytes, the destination layout 900"));
      LACUNA_END_EXPECT(refused(method::make(m, role, *mapped, {blocks(10), overlapping, usual}, {&region}), base::Code::invalid_argument,
                                "names some bytes twice"));
    }
    LACUNA_END_EXPECT(
        // Reading twice is sound
        method::make(m, Role::sender, *mapped, {overlapping, blocks(10), usual}, {&region}).has_value());
    for (const Role role : {Role::sender, Role::receiver}) {
      const auto unshared = method::make(m, role, *mapped, {blocks(10), blocks(10), usual}, {&ordinary});
      if (m.exposes == method::Exposes::source && role == Role::sender) {
        LACUNA_END_EXPECT(refused(unshared, base::Code::unsupported, "does not reach the source; it reaches memory of Context::allocate"));
      } else if (m.exposes == method::Exposes::destination && role == Role::receiver) {
        LACUNA_END_EXPECT(
            refused(unshared, base::Code::unsupported, "does not reach the destination; it reaches memory of Context::allocate"));
      } else {
        LACUNA_END_EXPECT(unshared.has_value());
      }
    }
    const auto sender = LACUNA_END_TRY(method::make(m, Role::sender, *mapped, {blocks(10), blocks(10), usual}, {&region}));
    const base::Result<void> outside = sender->start(buffer.data() + 10'000 - 2799);  // the last byte is one too far
    LACUNA_END_EXPECT(!outside && outside.error().message.find("of a region of 10000") != std::string::npos);
  }
  LACUNA_END_EXPECT(
      refused(method::make(*method::find("pack").value(), Role::sender, *mapped, {blocks(1), blocks(1), method::Notify::flag}, {&region}),
              base::Code::invalid_argument, "pack has no notification \"flag\""));
  LACUNA_END_EXPECT(method::find("telepathy").error().message.find("there are: pack, pack_pipelined") != std::string::npos);
  LACUNA_END_TRY(barrier(bootstrap));
  return {};
}
TEST(BadTransfer, IsRefusedWithItsReasonTwoThreads) { EXPECT_EQ(in_two_threads(bad_transfers), ""); }

// A NIC without indirect keys, and targets that a peer made up.
std::string without_keys(int rank, nic::Bootstrap& bootstrap) {
  const auto context = LACUNA_END_TRY(open_tested(rank == 1 ? nic::OpenOptions{.indirect = {.keys = 0}} : nic::OpenOptions()));
  const auto endpoint = LACUNA_END_TRY(Endpoint::connect(*context, bootstrap, nic::Path::mapped));
  const nic::Buffer buffer = LACUNA_END_TRY(context->allocate(10'000));
  const nic::Region region = LACUNA_END_TRY(context->register_memory(buffer.bytes(), {}));
  for (const method::Method& m : method::methods()) {
    const auto made = method::make(m, Role::sender, *endpoint, {blocks(10), blocks(10), m.notifies.front()}, {&region});
    if (m.indirect_keys) {
      // One end without is enough
      LACUNA_END_EXPECT(refused(made, base::Code::unsupported, "this device has no indirect keys"));
    } else {
      LACUNA_END_EXPECT(made.has_value());
    }
    const auto initiator = method::make(m, m.initiator, *endpoint, {blocks(10), blocks(10), m.notifies.front()}, {&region});
    if (!initiator || !m.one_sided()) continue;
    const base::Result<void> started = (*initiator)->start(buffer.data(), method::Target{});
    LACUNA_END_EXPECT(!started && started.error().code == base::Code::malformed &&
                      started.error().message.find("names no flag") != std::string::npos);
    const base::Result<void> without_parts = (*initiator)->start(buffer.data(), method::Target{.parts = {}, .flag = {1, 1}});
    LACUNA_END_EXPECT(!without_parts && without_parts.error().code == base::Code::malformed &&
                      without_parts.error().message.find("target has 0 parts, this transfer needs 1") != std::string::npos);
  }
  LACUNA_END_TRY(barrier(bootstrap));
  return {};
}
TEST(IndirectKeys, AreNeededByThoseThatSaySoTwoThreads) { EXPECT_EQ(in_two_threads(without_keys), ""); }

TEST(Target, SurvivesItsWireForm) {
  method::Target target{.parts = {{1, 2}, {~std::uint64_t{0}, ~0U}}, .flag = {3, 4}};
  const auto back = method::Target::decode(target.encode());
  ASSERT_TRUE(back);
  ASSERT_EQ(back->parts.size(), 2U);
  EXPECT_EQ(back->parts[1].addr, ~std::uint64_t{0});
  EXPECT_EQ(back->parts[1].rkey, ~0U);
  EXPECT_EQ(back->flag.addr, 3U);
  EXPECT_EQ(back->flag.rkey, 4U);
  for (const std::size_t bytes : {0UL, 1UL, 15UL, 17UL}) {
    EXPECT_EQ(method::Target::decode(std::vector<std::byte>(bytes)).error().code, base::Code::malformed);
  }
}

// A peer that never comes: the deadline ends it.
std::string alone(int rank, nic::Bootstrap& bootstrap) {
  const auto context = LACUNA_END_TRY(open_tested());
  const auto endpoint = LACUNA_END_TRY(Endpoint::connect(*context, bootstrap, nic::Path::slots));
  const nic::Buffer buffer = LACUNA_END_TRY(context->allocate(3000));
  const nic::Region region = LACUNA_END_TRY(context->register_memory(buffer.bytes(), {}));
  if (rank == 0) {
    for (const method::Method& m : method::methods()) {
      const auto receiver =
          LACUNA_END_TRY(method::make(m, Role::receiver, *endpoint, {blocks(10), blocks(10), m.notifies.front()}, {&region}));
      LACUNA_END_TRY(endpoint->prepare(*receiver, buffer.data(), kPatience));
      LACUNA_END_TRY(receiver->start(buffer.data(), {.parts = {{}}, .flag = {1, 1}}));
      const base::Result<void> ran = endpoint->run(*receiver, 20'000'000);
      LACUNA_END_EXPECT(!ran && ran.error().code == base::Code::timeout && ran.error().message.find("20 ms") != std::string::npos);
    }
  }
  LACUNA_END_TRY(barrier(bootstrap));
  return {};
}
TEST(Deadline, EndsEveryMethodTwoThreads) { EXPECT_EQ(in_two_threads(alone), ""); }

// SIGKILL in the middle of a method's transfers, on either side of it.
std::string killed(const method::Method& m, nic::Path path, int victim_role, int rank, nic::Bootstrap& bootstrap) {
  const auto context = LACUNA_END_TRY(open_tested());
  const auto endpoint = LACUNA_END_TRY(Endpoint::connect(*context, bootstrap, path));
  const nic::Buffer buffer = LACUNA_END_TRY(context->allocate(3'000'000));
  const nic::Region region = LACUNA_END_TRY(context->register_memory(buffer.bytes(), {}));
  const Role role = rank == victim_role ? Role::receiver : Role::sender;
  const auto operation = LACUNA_END_TRY(method::make(m, role, *endpoint, {blocks(10'000), blocks(10'000), m.notifies.front()}, {&region}));
  nic::Hello offer;
  offer.bytes = LACUNA_END_TRY(endpoint->prepare(*operation, buffer.data(), kPatience)).encode();
  const method::Target target = LACUNA_END_TRY(method::Target::decode(LACUNA_END_TRY(bootstrap.exchange(offer, kPatience)).bytes));
  const std::int64_t deadline = context->now() + kPatience;
  for (int i = 0; context->now() < deadline; ++i) {
    LACUNA_END_TRY(operation->start(buffer.data(), target));
    if (rank == 1 && i == 3) {
      static_cast<void>(operation->progress());
      endpoint->poll();
      raise(SIGKILL);
    }
    const base::Result<void> ran = endpoint->run(*operation, kPatience);
    if (ran) continue;
    // A device that still answers for a process that has gone says that there is no such memory, and no receive.
    const bool told = ran.error().code == base::Code::peer_lost || (path == nic::Path::wire && ran.error().code == base::Code::transfer);
    return told ? "" : ran.error().text();
  }
  return in_vain("an error of a transfer with a peer that has died");
}

class MethodPeerDeath : public testing::TestWithParam<std::tuple<std::string, nic::Path, int>> {};
TEST_P(MethodPeerDeath, IsAnErrorTwoProcesses) {
  const auto& [name, path, victim_role] = GetParam();
  LACUNA_NEEDS_PATH(path);
  const method::Method* m = method::find(name).value();
  if (m->indirect_keys) LACUNA_NEEDS_KEYS();
  EXPECT_EQ(
      in_two_processes([&, role = victim_role, p = path](int rank, nic::Bootstrap& b) { return killed(*m, p, role, rank, b); }, SIGKILL),
      "");
}
std::vector<std::string> method_names() {
  std::vector<std::string> names;
  for (const method::Method& m : method::methods()) names.emplace_back(m.name);
  return names;
}
INSTANTIATE_TEST_SUITE_P(Method, MethodPeerDeath,
                         testing::Combine(testing::ValuesIn(method_names()), testing::ValuesIn(tested_paths()), testing::Values(0, 1)),
                         [](const auto& info) {
                           return std::get<0>(info.param) + "_" + std::string(nic::path_name(std::get<1>(info.param))) +
                                  (std::get<2>(info.param) == 1 ? "_Receiver" : "_Sender");
                         });

}  // namespace LACUNA_TEST_FILE
}  // namespace lacuna::test
