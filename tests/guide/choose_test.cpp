// Choices, by arithmetic: NICs and prices made so that each method wins somewhere, and crossovers that can be worked
// out by hand.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>
#include <vector>

#include "tests/guide/mock.hpp"
#include "tests/support/random.hpp"
#include "tests/support/tier.hpp"
#include "tools/worker/limits_json.hpp"

namespace lacuna::test {
namespace LACUNA_TEST_FILE {

LACUNA_LEFT_OUT(thread, "Choose.*");

using guide::Choice;
using guide::Explanation;
using guide::Force;
using guide::Guide;
using guide::Objective;
using guide::PeerClass;
using guide::Placement;
using guide::Way;
using method::Method;
using method::Notify;

const Method* method_of(const char* name) { return method::find(name).value(); }

// A guide with one peer over a wire.
struct OneWire {
  explicit OneWire(const Prices& prices, int keys = 0, Force force = {})
      : guide(force), peer(guide.add(mock_nic({kWire}, keys), mock_profile({{nic::Path::wire, prices}}))) {}
  std::string_view best(const Layout& src, const Layout& dst, const Placement& placement = {}) {
    const auto choice = guide.choose(src, dst, peer, placement);
    return choice ? choice->way.method->name : choice.error().message;
  }
  Guide guide;
  const PeerClass& peer;
};

// --- each has its place ----------------------------------------------------------------------------------------------

struct Winner {
  const char* method;
  Prices prices;
  Layout src = vector(64, 100, 300);
  Layout dst = vector(64, 100, 300);
  const char* why;
};

// All but multi_write.
std::vector<Winner> winners() {
  using enum Price;
  constexpr double kDear = 1e6;
  const Layout large = vector(1024, 1024, 2048);
  return {
      {.method = "pack",
       .prices = prices({{entry, 100}, {scatter, 100}, {key_entry, 100}, {read, kDear}, {write_imm, kDear}, {write_flag, kDear}}),
       .why = "entries cost"},
      {.method = "pack_pipelined",
       .prices = prices({{pack_byte, 1},
                         {pack_far_byte, 1},
                         {unpack_byte, 1},
                         {unpack_far_byte, 1},
                         {entry, 3000},
                         {scatter, 3000},
                         {key_entry, 3000},
                         {request, 3000}}),
       .src = large,
       .dst = large,
       .why = "both copies take long"},
      {.method = "pack_write",
       .prices = prices({{message, 1e4}, {read, 1e4}, {entry, 100}, {scatter, 100}, {key_entry, 100}}),
       .why = "messages cost"},
      {.method = "gather_write",
       .prices = prices({{pack_run, 100}, {scatter, 1000}, {request, 1000}, {key_entry, 1000}}),
       .why = "packing costs"},
      {.method = "scatter_read",
       .prices = prices({{unpack_run, 100}, {entry, 1000}, {request, 1000}, {key_entry, 1000}}),
       .why = "unpacking costs"},
      {.method = "linked_write",
       .prices = prices({{pack_run, 100}, {unpack_run, 100}, {post, 1000}, {message, 1e5}, {key_entry, 1000}}),
       .why = "copies and doorbells cost"},
      {.method = "sgrs",
       .prices = prices({{pack_run, 100}, {unpack_run, 100}, {request, 100}, {key_entry, 1000}}),
       .why = "copies and requests cost"},
      {.method = "umr_send",
       .prices = prices(
           {{pack_run, 1000}, {unpack_run, 1000}, {entry, 100}, {scatter, 100}, {write_imm, kDear}, {write_flag, kDear}, {read, kDear}}),
       .why = "entries cost, keys do not"},
      {.method = "umr_write",
       .prices = prices({{pack_run, 1000}, {unpack_run, 1000}, {entry, 100}, {scatter, 100}, {message, 1e5}, {read, 1e5}}),
       .why = "so do messages"},
      {.method = "umr_read",
       .prices = prices(
           {{pack_run, 1000}, {unpack_run, 1000}, {entry, 100}, {scatter, 100}, {message, 1e5}, {write_imm, 1e5}, {write_flag, 1e5}}),
       .why = "so do notifications of writes"},
      {.method = "umr_chunked",
       .prices = prices({{pack_run, 1e5},
                         {unpack_run, 1e5},
                         {entry, 1e4},
                         {scatter, 1e4},
                         {key_scan, 1000},
                         {write_imm, 1e7},
                         {write_flag, 1e7},
                         {read, 1e7}}),
       .why = "lists are searched"},
  };
}

TEST(Choose, EachMethodWinsSomewhere) {
  std::set<std::string_view> won;
  for (const Winner& w : winners()) {
    EXPECT_EQ(OneWire(w.prices, 1000).best(w.src, w.dst), w.method) << w.why;
    won.insert(w.method);
  }
  won.insert("multi_write");  // see below
  EXPECT_EQ(won.size(), method::methods().size());
}

// multi_write does what linked_write does with more doorbells. What cost items do not know may favour it all the same.
TEST(Choose, ABiasOfWhatIsMeasuredMakesMultiWriteWin) {
  const auto all = winners();
  const Winner& linked = *std::ranges::find(all, std::string_view("linked_write"), &Winner::method);
  auto profile = mock_profile({{nic::Path::wire, linked.prices}});
  auto& biases = profile.classes[0].paths[0].biases;
  biases.resize(method::methods().size());
  biases[static_cast<std::size_t>(method_of("multi_write") - method::methods().data())].fill({-0.4});
  profile.classes[0].paths[0].prices[static_cast<std::size_t>(Price::post)] = 0.1;
  profile.classes[0].paths[0].prices[static_cast<std::size_t>(Price::build)] = 1;
  Guide guide;
  const PeerClass& peer = guide.add(mock_nic({kWire}, 1000), profile);
  const Choice chosen = guide.choose(linked.src, linked.dst, peer).value();
  EXPECT_EQ(chosen.way.method->name, "multi_write");
}

// --- where one takes over from another -------------------------------------------------------------------------------

// Notifications and reads cost so much that only packs and lists are left.
Prices packs_or_lists(PriceList others) {
  using enum Price;
  constexpr double kNever = 1e11;
  Prices all = prices({{read, kNever}, {write_none, kNever}, {write_imm, kNever}, {write_flag, kNever}});
  for (const auto& [price, value] : others) all[static_cast<std::size_t>(price)] = value;
  return all;
}

// pack: 10 ns a run, 1 ns a byte, and 50 ns for the entry of its one message; sgrs: 50 ns an entry. 64 blocks of b
// bytes: 640 + 64 b + 50 against 3200, so that b is 39 at most.
const Prices kByBlock = packs_or_lists({{Price::pack_run, 10}, {Price::pack_byte, 1}, {Price::pack_far_byte, 1}, {Price::entry, 50}});

TEST(Crossover, LiesAtTheBlockThatArithmeticSays) {
  OneWire wire(kByBlock);
  for (std::int64_t block = 1; block <= 100; ++block)
    EXPECT_EQ(wire.best(vector(64, block, 1000), bytes(64 * block)), block <= 39 ? "pack" : "sgrs") << block;
}

// pack: 1000 ns for the call, and 10 ns for its entry; sgrs: 10 ns an entry. With 101 blocks both take as long, and the
// first of the table wins.
const Prices kByCount = packs_or_lists({{Price::copy_call, 1000}, {Price::entry, 10}});

TEST(Crossover, LiesAtTheCountThatArithmeticSays) {
  OneWire wire(kByCount);
  for (std::int64_t count = 2; count <= 300; ++count)
    EXPECT_EQ(wire.best(vector(count, 8, 1000), bytes(8 * count)), count <= 100 ? "sgrs" : "pack") << count;
}

// A list takes 30 entries. With requests of 300 ns a copy of 700 ns and its one request are better than four, from 91
// blocks on.
TEST(Crossover, LiesWhereAListIsFull) {
  OneWire wire(packs_or_lists({{Price::copy_call, 700}, {Price::request, 300}}));
  for (std::int64_t count = 2; count <= 200; ++count)
    EXPECT_EQ(wire.best(vector(count, 8, 1000), bytes(8 * count)), count <= 90 ? "sgrs" : "pack") << count;
}

// Steps are eighths of an octave: the first beyond 39.2 bytes from 32 on is 41.5, the first below from 64 down 38.05.
std::string crossover(OneWire& wire, const Layout& src, const char* of) {
  const Explanation why = wire.guide.explain(src, bytes(src.size()), wire.peer).value();
  for (const auto& candidate : why.candidates) {
    if (candidate.way.method->name == of) return candidate.crossover;
  }
  return "none";
}
TEST(Crossover, IsWhatTheTextSays) {
  OneWire block(kByBlock);
  EXPECT_EQ(crossover(block, vector(64, 32, 1000), "sgrs"), "would win from 41 B blocks");
  EXPECT_EQ(crossover(block, vector(64, 32, 1000), "pack"), "");
  EXPECT_EQ(crossover(block, vector(64, 64, 1000), "pack"), "would win up to 38 B blocks");
  OneWire count(kByCount);
  EXPECT_EQ(crossover(count, vector(64, 8, 1000), "pack"), "would win from 108 blocks");
  EXPECT_EQ(crossover(count, vector(64, 8, 1000), "sgrs"), "");
  EXPECT_EQ(crossover(count, vector(128, 8, 1000), "sgrs"), "would win up to 99 blocks");
  const std::string text = guide::describe(count.guide.explain(vector(64, 8, 1000), bytes(512), count.peer).value());
  EXPECT_TRUE(text.starts_with("Chosen: sgrs on path wire: 0.64 us expected\n")) << text;
  EXPECT_TRUE(text.contains("copy takes 1.00 us more; would win from 108 blocks")) << text;
}

// Whoever costs as much is no winner.
TEST(Crossover, IsNoneWhereNothingCostsAnything) {
  OneWire wire(prices({}), 1000);
  const Explanation why = wire.guide.explain(vector(64, 8, 1000), vector(64, 8, 1000), wire.peer).value();
  for (const auto& candidate : why.candidates) EXPECT_EQ(candidate.crossover, "") << candidate.way.method->name;
}

// Blocks of 50 bytes. Packing takes the CPU 50 ns a block, lists the engine 60 and the CPU 1, the wire takes 50 for its
// bytes; a key's entry takes 1000, of the engine alone. One transfer is over soonest if engine and wire work at once;
// of many the CPU handles one while the wire has another.
TEST(Choose, WhatIsToBeSmall) {
  using enum Price;
  OneWire wire(prices({{pack_byte, 1},
                       {pack_far_byte, 1},
                       {unpack_run, 1000},
                       {entry, 60},
                       {build_entry, 1},
                       {write_byte, 1},
                       {key_entry, 1000},
                       {write_imm, 1},
                       {write_flag, 1},
                       {read, 1},
                       {request, 61}}),
               1000);
  const auto best = [&](Objective objective) { return wire.best(vector(64, 50, 1000), bytes(3200), {.objective = objective}); };
  EXPECT_EQ(best(Objective::latency), "sgrs");
  EXPECT_EQ(best(Objective::bandwidth), "pack");
  EXPECT_EQ(best(Objective::cpu), "umr_write");
}

// --- what cannot be --------------------------------------------------------------------------------------------------

// Where memory is not shared, what is reached over a path that needs that is staged, whatever the prices say.
TEST(Choose, LeavesWhatAPathDoesNotReach) {
  support::Random random(3);
  for (int i = 0; i < 3000; ++i) {
    Guide guide;
    Prices some[2];
    for (Prices& all : some) {
      for (double& price : all) price = std::exp2(static_cast<double>(random.between(-10, 20)));
    }
    const PeerClass& peer =
        guide.add(mock_nic({kMapped, kKernel}, 1000), mock_profile({{nic::Path::mapped, some[0]}, {nic::Path::kernel, some[1]}}));
    const Placement placement{.src_shared = random.one_in(2),
                              .dst_shared = random.one_in(2),
                              .told = random.one_in(2),
                              .objective = static_cast<Objective>(random.below(3))};
    const Layout dst = random.one_in(2) ? vector(64, 8, 100) : bytes(512);
    const Way way = guide.choose(vector(64, 8, 100), dst, peer, placement)->way;
    if (way.path == nic::Path::mapped && !placement.src_shared) {
      EXPECT_NE(way.method->exposes, method::Exposes::source);
    }
    if (way.path == nic::Path::mapped && !placement.dst_shared) {
      EXPECT_NE(way.method->exposes, method::Exposes::destination);
    }
    if (placement.told && way.method->one_sided()) {
      EXPECT_NE(way.notify, Notify::none);
    }
    const bool stages = way.method->name == "pack_write" || way.method->name == "gather_write";
    if (stages && way.notify == Notify::none) {
      EXPECT_TRUE(dst.contiguous_bytes() && (placement.dst_shared || way.path == nic::Path::kernel));
    }
  }
}

TEST(Choose, ToldOrNot) {
  using enum Price;
  OneWire wire(prices({{message, 1e6}, {write_imm, 1e3}, {write_flag, 1e3}, {read, 1e6}}));
  EXPECT_NE(wire.guide.choose(bytes(64), bytes(64), wire.peer, {.told = true})->way.notify, Notify::none);
  EXPECT_EQ(wire.guide.choose(bytes(64), bytes(64), wire.peer, {.told = false})->way.notify, Notify::none);
}

TEST(Choose, SizesMustBeEqual) {
  OneWire wire(prices({}));
  EXPECT_EQ(wire.guide.choose(bytes(64), bytes(63), wire.peer).error().code, base::Code::invalid_argument);
  EXPECT_EQ(wire.guide.explain(bytes(64), bytes(63), wire.peer).error().code, base::Code::invalid_argument);
}

TEST(Choose, NothingAndHugeThings) {
  for (const Objective objective : {Objective::latency, Objective::bandwidth, Objective::cpu}) {
    OneWire wire(guide::usual_prices(nic::Path::wire), 1000);
    const Layout huge = vector(std::int64_t{1} << 40, 1 << 15, 1 << 16);
    for (const Layout& each : {Layout(), huge}) {
      const auto why = wire.guide.explain(each, each, wire.peer, {.objective = objective});
      ASSERT_TRUE(why) << why.error().text();
      EXPECT_TRUE(std::isfinite(why->candidates.front().plan.latency_ns));
      EXPECT_FALSE(guide::describe(*why).empty());
    }
  }
}

TEST(Choose, WithoutAPathThereIsNone) {
  Guide guide;
  nic::PathInfo gone = kMapped;
  gone.available = false;
  gone.note = "it rains";
  const auto none = guide.choose(bytes(8), bytes(8), guide.add(mock_nic({}), {}));
  EXPECT_EQ(none.error().code, base::Code::unsupported);
  const auto away = guide.choose(bytes(8), bytes(8), guide.add(mock_nic({gone}), {}));
  EXPECT_EQ(away.error().code, base::Code::unsupported);
  EXPECT_TRUE(away.error().message.contains("it rains")) << away.error().message;
}

// A worker's hello: no message can be of no bytes, and how many of them carry a transfer is a division.
TEST(Choose, RefusesLimitsThatAreNone) {
  const auto hello = [](const char* message_bytes) {
    return measure::limits_from_json(std::string(R"({"max_sge": 4, "max_sge_rd": 4, "max_inline": 0, "max_send_wr": 8, "max_recv_wr": 8,
      "indirect": {"keys": 0, "entries": 0, "inline_entries": 0, "strided_entries": 0, "stride": 0}, "paths": [], "max_message_bytes": )") +
                                     message_bytes + "}");
  };
  EXPECT_TRUE(hello("1"));
  EXPECT_FALSE(hello("0"));
  EXPECT_FALSE(hello("-1"));
}

// --- forces ----------------------------------------------------------------------------------------------------------

TEST(Force, ComesFromTheEnvironment) {
  const Variable method("LACUNA_METHOD", "sgrs");
  const Variable path("LACUNA_PATH", "kernel");
  const Force force = Force::from_environment().value();
  EXPECT_EQ(force.method, method_of("sgrs"));
  EXPECT_EQ(force.path, nic::Path::kernel);
  const Variable no_method("LACUNA_METHOD");
  const Variable empty("LACUNA_PATH", "");
  EXPECT_EQ(Force::from_environment()->method, nullptr);
  EXPECT_FALSE(Force::from_environment()->path);
}

TEST(Force, NamesWhatThereIs) {
  {
    const Variable method("LACUNA_METHOD", "teleport");
    const base::Error error = Force::from_environment().error();
    EXPECT_EQ(error.code, base::Code::invalid_argument);
    EXPECT_TRUE(error.message.starts_with("LACUNA_METHOD: no method \"teleport\"")) << error.message;
    for (const Method& each : method::methods()) EXPECT_TRUE(error.message.contains(each.name)) << error.message;
  }
  const Variable no_method("LACUNA_METHOD");
  const Variable path("LACUNA_PATH", "pigeon");
  const base::Error error = Force::from_environment().error();
  EXPECT_EQ(error.code, base::Code::invalid_argument);
  for (const char* each : {"LACUNA_PATH", "pigeon", "mapped", "slots", "kernel", "wire"})
    EXPECT_TRUE(error.message.contains(each)) << error.message;
}

TEST(Force, IsDoneOrAnError) {
  for (const Method& method : method::methods()) {
    OneWire with_keys(guide::usual_prices(nic::Path::wire), 1000, {.method = &method});
    EXPECT_EQ(with_keys.best(vector(64, 8, 100), vector(64, 8, 100)), method.name);
    OneWire without(guide::usual_prices(nic::Path::wire), 0, {.method = &method});
    const auto choice = without.guide.choose(vector(64, 8, 100), vector(64, 8, 100), without.peer);
    EXPECT_EQ(choice.has_value(), !method.indirect_keys);
    if (choice) continue;
    EXPECT_EQ(choice.error().code, base::Code::unsupported);
    EXPECT_TRUE(choice.error().message.contains("LACUNA_METHOD=" + std::string(method.name))) << choice.error().message;
    EXPECT_TRUE(choice.error().message.contains("this device has no indirect keys")) << choice.error().message;
  }
  OneWire elsewhere(prices({}), 0, {.path = nic::Path::kernel});
  const base::Error error = elsewhere.guide.choose(bytes(8), bytes(8), elsewhere.peer).error();
  EXPECT_EQ(error.code, base::Code::unsupported);
  EXPECT_TRUE(error.message.contains("LACUNA_PATH=kernel")) << error.message;
}

TEST(Force, RulesTheOthersOut) {
  OneWire wire(kByBlock, 0, {.method = method_of("gather_write")});
  const Explanation why = wire.guide.explain(vector(64, 8, 100), bytes(512), wire.peer).value();
  for (const auto& candidate : why.candidates) {
    const bool forced = candidate.way.method->name == "gather_write";
    EXPECT_EQ(candidate.refusal == "LACUNA_METHOD=gather_write rules it out", !forced && candidate.refusal.contains("rules it out"));
    if (!forced) {
      EXPECT_FALSE(candidate.refusal.empty());
    }
  }
}

}  // namespace LACUNA_TEST_FILE
}  // namespace lacuna::test
