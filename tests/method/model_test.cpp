// Every method moves every pair of layouts in virtual time, with every notification: the payload as the reference has
// it, gaps untouched, with a platform's limits and with tiny ones. What cannot be done is refused, as on the local NIC.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/support/tier.hpp"
#include "tools/measure/simulate.hpp"

namespace lacuna::test {
namespace LACUNA_TEST_FILE {

LACUNA_TIER(gate, "ModelAlltoall.*");
LACUNA_LEFT_OUT(thread, "ModelAlltoall.*");
LACUNA_LEFT_OUT(thread, "*ModelMethods.*");
LACUNA_TIER(gate, "*ModelMethods.*_Tiny");
LACUNA_TIER(gate, "*ModelMethods.*_OneOfEach");
LACUNA_TIER(gate, "*ModelMethods.*_SlowScatter");

using corpus::Case;
using layout::Layout;
using method::Method;
using method::Notify;

const std::string kProfile = LACUNA_SOURCE_DIR "/lacuna/nic/model/profiles/connectx5-rocev2.json";

Layout bytes(std::int64_t n) { return Layout::bytes(n).value(); }
Layout vector(std::int64_t count, std::int64_t block, std::int64_t stride) {
  return Layout::hvector(count, 1, stride, bytes(block)).value();
}

Case pair(std::string name, const Layout& send, const Layout& receive) {
  const auto span = [](const Layout& l) { return std::max<std::int64_t>(1, l.true_lower_bound() + l.true_extent()); };
  Case result{std::move(name), send, receive};
  result.send_span = span(send);
  result.receive_span = span(receive);
  return result;
}

// Blocks of 1 to 50 bytes, some of up to 5000, in no order of their addresses.
Layout irregular(std::uint64_t seed, std::int64_t total) {
  std::vector<std::int64_t> offsets;
  std::vector<std::int64_t> lengths;
  std::int64_t at = 5;
  for (std::int64_t left = total; left > 0; left -= lengths.back()) {
    seed = seed * 6364136223846793005U + 1442695040888963407U;
    lengths.push_back(std::min<std::int64_t>(left, 1 + static_cast<std::int64_t>(seed >> 33) % (seed >> 60 == 0 ? 5000 : 50)));
    offsets.push_back(at);
    at += lengths.back() + static_cast<std::int64_t>(seed >> 50) % 9;
  }
  std::ranges::reverse(offsets);
  std::ranges::reverse(lengths);
  return Layout::blocks(offsets, lengths).value();
}

std::vector<Case> cases() {
  const Layout column = Layout::resized(vector(32, 16, 32 * 16), 0, 16).value();
  return {pair("Equal", vector(100, 200, 600), vector(100, 200, 600)),
          pair("SenderFiner", vector(400, 50, 150), vector(100, 200, 600)),
          pair("SenderCoarser", vector(50, 400, 1200), vector(100, 200, 600)),
          pair("ToContiguous", vector(64, 48, 100), bytes(64 * 48)),
          pair("FromContiguous", bytes(64 * 48), vector(64, 48, 100)),
          pair("BothContiguous", bytes(100'000), bytes(100'000)),
          pair("OneByte", bytes(1), bytes(1)),
          pair("Empty", bytes(0), bytes(0)),
          pair("Irregular", irregular(1, 50'000), irregular(2, 50'000)),
          pair("CoarserIrregular", vector(50, 300, 900), irregular(5, 15'000)),
          pair("Transposed", bytes(32 * 32 * 16), Layout::contiguous(32, column).value())};
}

struct Setting {
  const char* name;
  nic::OpenOptions limits;
  const char* overrides = "";
};
void PrintTo(const Setting& setting, std::ostream* out) { *out << setting.name; }
const Setting kSettings[] = {
    {"Default", {}},
    {"Tiny", {.max_sge = 2, .max_inline = 1, .max_message_bytes = 5000, .indirect = {.entries = 3, .inline_entries = 2}}},
    {"OneOfEach", {.max_sge = 1, .max_sge_rd = 1, .max_inline = 1, .indirect = {.entries = 5, .inline_entries = 1}}},
    {"Strides",
     {.max_sge = 7, .max_sge_rd = 3, .indirect = {.entries = 64, .stride = 650}},
     R"({"limits.indirect_strided_entries": 2, "indirect.cache_variant": 1})"},
    // Other stages are the slow ones, so that other orders of events come about.
    {"SlowScatter", {}, R"({"nic.scatter_ns": 5000, "nic.receive_completion_ns": 0, "nic.dma_write_ns": 20000})"},
};

std::vector<std::string> method_names() {
  std::vector<std::string> names;
  for (const Method& method : method::methods()) names.emplace_back(method.name);
  return names;
}

// What lands in staging has nobody who unpacks it if nobody is told.
bool refused(const Method& method, Notify notify, const Case& what) {
  const bool stages = method.name == "gather_write" || method.name == "pack_write";
  return stages && notify == Notify::none && !what.receive.contiguous_bytes();
}

class ModelMethods : public testing::TestWithParam<std::tuple<std::string, Setting>> {};
INSTANTIATE_TEST_SUITE_P(Method, ModelMethods, testing::Combine(testing::ValuesIn(method_names()), testing::ValuesIn(kSettings)),
                         [](const auto& info) { return std::get<0>(info.param) + "_" + std::get<1>(info.param).name; });

TEST_P(ModelMethods, MoveEveryPair) {
  const auto& [name, setting] = GetParam();
  const Method& method = *method::find(name).value();
  for (const Case& what : cases()) {
    for (const Notify notify : method.notifies) {
      SCOPED_TRACE(what.name + ", notify " + std::string(notify_name(notify)));
      nic::WorldOptions options{.profile = kProfile, .overrides = setting.overrides, .limits = setting.limits};
      const auto moved = measure::simulate_transfer(options, {what, &method, notify});
      EXPECT_EQ(moved.has_value(), !refused(method, notify, what)) << (moved ? "it was not refused" : moved.error().text());
      if (!moved) continue;
      EXPECT_TRUE(moved->latency_us > 0 || what.send.size() == 0);
      // The CPU copies no longer than it is busy.
      EXPECT_LE(moved->copy_send_us, moved->cpu_send_us);
      EXPECT_LE(moved->copy_recv_us, moved->cpu_recv_us);
      // Of the time alone: the same, to the nanosecond.
      options.moves_bytes = false;
      const auto quiet = measure::simulate_transfer(options, {what, &method, notify});
      ASSERT_TRUE(quiet) << quiet.error().text();
      EXPECT_EQ(quiet->latency_us, moved->latency_us);
      EXPECT_EQ(quiet->cpu_send_us, moved->cpu_send_us);
      EXPECT_EQ(quiet->cpu_recv_us, moved->cpu_recv_us);
      EXPECT_EQ(quiet->prepare_us, moved->prepare_us);
    }
  }
}

TEST(ModelMethods, NeedTheKeysThatTheySayTheyNeed) {
  const Case what = pair("Equal", vector(100, 200, 600), vector(100, 200, 600));
  for (const Method& method : method::methods()) {
    const auto moved =
        measure::simulate_transfer({.profile = kProfile, .limits = {.indirect = {.keys = 0}}}, {what, &method, method.notifies.front()});
    EXPECT_EQ(moved.has_value(), !method.indirect_keys) << method.name;
    EXPECT_TRUE(moved || moved.error().code == base::Code::unsupported);
  }
}

// --- the checks themselves -------------------------------------------------------------------------------------------

// pack, but for an end that takes another layout for its own.
template <method::Role kWho, auto kTaken>
base::Result<std::unique_ptr<method::Operation>> mistaken(method::Role role, method::Endpoint& endpoint, const method::Transfer& transfer,
                                                          const method::Memory& memory) {
  method::Transfer other = transfer;
  if (role == kWho) (role == method::Role::sender ? other.src : other.dst) = kTaken();
  return method::find("pack").value()->make(role, endpoint, other, memory);
}

TEST(ModelProof, SeesWrongBytes) {
  constexpr auto late = [] { return Layout::resized(vector(10, 100, 300), 0, 2900).value(); };
  constexpr auto shifted = [] {  // its last block is a byte too far
    const std::int64_t lengths[] = {1, 1};
    const std::int64_t places[] = {0, 2701};
    const Layout members[] = {vector(9, 100, 300), bytes(100)};
    return Layout::structure(lengths, places, members).value();
  };
  const Case what = pair("Equal", vector(10, 100, 300), vector(10, 100, 300));
  Method wrong = *method::find("pack").value();
  const auto move = [&](bool moves_bytes) {
    return measure::simulate_transfer({.profile = kProfile, .moves_bytes = moves_bytes}, {what, &wrong, wrong.notifies.front()});
  };
  wrong.make = &mistaken<method::Role::receiver, late>;
  EXPECT_TRUE(move(true)) << "another way to write the same";
  wrong.make = &mistaken<method::Role::sender, shifted>;
  const auto payload = move(true);
  ASSERT_FALSE(payload);
  EXPECT_EQ(payload.error().code, base::Code::transfer);
  EXPECT_NE(payload.error().message.find("block 9, byte 900 of the stream"), std::string::npos) << payload.error().message;
  wrong.make = &mistaken<method::Role::receiver, shifted>;
  EXPECT_FALSE(move(true));
  EXPECT_TRUE(move(false));  // nothing moves, nothing is looked at
}

// --- many ranks ------------------------------------------------------------------------------------------------------

TEST(ModelAlltoall, MovesEverythingEverywhere) {
  const Case what = pair("SenderFiner", vector(160, 25, 75), vector(40, 100, 300));
  for (const int ranks : {2, 8, 16}) {
    for (const Method& method : method::methods()) {
      for (const Notify notify : method.notifies) {
        if (refused(method, notify, what) || (ranks == 16 && notify != method.notifies.front())) continue;
        SCOPED_TRACE(std::string(method.name) + ", notify " + std::string(notify_name(notify)) + ", " + std::to_string(ranks) + " ranks");
        nic::WorldOptions options{.profile = kProfile, .ranks = ranks};
        const auto moved = measure::simulate_alltoall(options, {what, &method, notify});
        ASSERT_TRUE(moved) << moved.error().text();
        EXPECT_GT(moved->latency_us, 0);
        EXPECT_LE(moved->cpu_us, moved->latency_us);
        options.moves_bytes = false;
        const auto again = measure::simulate_alltoall(options, {what, &method, notify});
        ASSERT_TRUE(again) << again.error().text();
        EXPECT_EQ(again->latency_us, moved->latency_us);
        EXPECT_EQ(again->cpu_us, moved->cpu_us);
      }
    }
  }
}

TEST(ModelAlltoall, TakesAPowerOfTwo) {
  const measure::Trial trial{pair("Equal", bytes(8), bytes(8)), method::find("pack").value(), Notify::none};
  for (const int ranks : {0, 1, 3, 12}) {
    EXPECT_EQ(measure::simulate_alltoall({.profile = kProfile, .ranks = ranks}, trial).error().code, base::Code::invalid_argument);
  }
}

TEST(ModelSetUp, CostsWhatTheProfileSays) {
  const nic::WorldOptions options{.profile = kProfile,
                                  .overrides = R"({"register.call_ns": 5000, "register.page_ns": 100, "register.undo_ns": 3000,
    "register.undo_page_ns": 10, "register.key_ns": 7000, "register.key_entry_ns": 20, "register.key_free_entries": 50,
    "cpu.post_ns": 100, "cpu.doorbell_ns": 50, "cpu.bind_entry_ns": 2})"};
  const auto costs = measure::simulate_set_up(options, 100, 8192);
  ASSERT_TRUE(costs) << costs.error().text();
  EXPECT_DOUBLE_EQ(costs->register_us, 5.2);
  EXPECT_DOUBLE_EQ(costs->deregister_us, 3.02);
  EXPECT_DOUBLE_EQ(costs->create_key_us, 8.0);
  EXPECT_DOUBLE_EQ(costs->post_bind_us, 0.35);
  EXPECT_GT(costs->bind_us, costs->post_bind_us);
}

}  // namespace LACUNA_TEST_FILE
}  // namespace lacuna::test
