// What cost items count, by hand, and how they add up.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <set>
#include <vector>

#include "tests/guide/mock.hpp"
#include "tests/support/random.hpp"

namespace lacuna::test {
namespace LACUNA_TEST_FILE {

using layout::PairOutline;
using method::CostItems;
using method::Method;
using method::Notify;
using method::Role;
using method::Stage;

const nic::PathInfo kSlots{nic::Path::slots, true, false, false, nic::Mover::both, 4096, ""};

nic::Limits limits() {
  nic::Limits made{.max_sge = 30, .max_sge_rd = 30, .max_inline = 64, .max_send_wr = 128, .max_recv_wr = 128};
  made.max_message_bytes = 1 << 30;
  made.indirect = {.keys = 1000, .entries = 1000, .inline_entries = 50, .strided_entries = 10, .stride = 65535};
  made.paths = {kWire};
  return made;
}

// One price of 1: the busiest is who has it, with so many.
double number_of(const char* name, const Layout& src, const Layout& dst, Price price, const nic::PathInfo& path = kWire) {
  const Prices one = prices({{price, 1}});
  const PairOutline pair = layout::outline(src, dst);
  CostItems cost_items(one, path, pair);
  method::find(name).value()->cost_items(cost_items, limits());
  return cost_items.busiest_ns();
}

// A unit of the wire for each block, so that each block is looked for once, and half of its key is passed on average:
// of 57 there are 50 behind one key and 7 behind another.
TEST(BillCounts, EntriesOfAKeyThatArePassed) {
  std::vector<std::int64_t> places(57);
  for (std::size_t i = 0; i < places.size(); ++i) places[i] = static_cast<std::int64_t>(i * 2048 + 64 * (i % 3));
  const Layout dst = Layout::hindexed_block(1, places, bytes(1024)).value();
  EXPECT_DOUBLE_EQ(number_of("umr_chunked", bytes(dst.size()), dst, Price::key_scan), (50 * 50 + 7 * 7) / 2.0);
  EXPECT_DOUBLE_EQ(number_of("umr_send", bytes(dst.size()), dst, Price::key_scan), 57 * 57 / 2.0);
}

// 100 runs to 25: lists of 30 make four messages.
TEST(BillCounts, ByHand) {
  const Layout src = vector(100, 16, 48);
  const Layout dst = vector(25, 64, 100);
  const auto expect = [&](const char* method, Price price, double count) {
    EXPECT_EQ(number_of(method, src, dst, price), count) << method << ", " << price_name(price);
  };
  expect("pack", Price::request, 1);
  expect("pack", Price::pack_run, 100);
  expect("pack", Price::unpack_run, 25);
  expect("pack", Price::pack_far_byte, 1600);  // with no near_bytes all are far
  expect("pack", Price::write_byte, 1600);
  expect("pack", Price::message, 1);
  expect("pack_write", Price::message, 0);
  expect("gather_write", Price::request, 4);
  expect("gather_write", Price::entry, 100);
  expect("gather_write", Price::pack_run, 0);
  expect("gather_write", Price::unpack_run, 25);
  expect("scatter_read", Price::request, 1);
  expect("scatter_read", Price::scatter, 25);
  expect("scatter_read", Price::read, 1);
  expect("scatter_read", Price::pack_run, 100);
  expect("scatter_read", Price::unpack_run, 0);
  expect("linked_write", Price::request, 100);
  expect("linked_write", Price::post, 1);
  expect("multi_write", Price::post, 100);
  expect("sgrs", Price::entry, 100);
  expect("sgrs", Price::scatter, 25);
  expect("sgrs", Price::request, 4);
  expect("umr_send", Price::request, 1);
  expect("umr_send", Price::entry, 1);
  expect("umr_chunked", Price::request, 1);
  EXPECT_EQ(number_of("multi_write", src, dst, Price::piece, kMapped), 100);
  EXPECT_EQ(number_of("sgrs", src, dst, Price::piece, kSlots), 100);       // the sender's
  EXPECT_EQ(number_of("sgrs", src, dst, Price::entry, kMapped), 100);      // a CPU does the engine's work,
  EXPECT_EQ(number_of("umr_read", src, dst, Price::request, kMapped), 1);  // the receiver's, if it reads
}

// What a price of 1 for each line makes of the cost items, where a cache holds so many bytes.
double lines(std::string_view method, const Layout& src, const Layout& dst, Price price, double held_bytes,
             const nic::PathInfo& path = kMapped, bool cold = false) {
  const Prices one = prices({{price, 1}, {Price::held_bytes, held_bytes}});
  const PairOutline pair = layout::outline(src, dst);
  CostItems cost_items(one, path, pair, cold);
  method::find(method).value()->cost_items(cost_items, limits());
  return cost_items.cpu_ns(Role::sender) + cost_items.cpu_ns(Role::receiver);
}

// Lines that are in the other CPU's cache: what it has read before it is overwritten, and what it has written before it
// is read. Through staging they are as many as the bytes fill, and one more since they begin anywhere; in place as many
// as the layout touches.
TEST(BillCounts, LinesInTheOtherCache) {
  const Layout loose = vector(64, 16, 192);  // 64 lines, of which at most every fourth block touches two
  const Layout dense = bytes(1024);
  constexpr double kAny = 1 << 20;
  for (const char* name : {"multi_write", "linked_write", "sgrs", "umr_send", "umr_write", "umr_chunked"}) {
    EXPECT_NEAR(lines(name, loose, loose, Price::held_line, kAny), 72, 9) << name;
    EXPECT_EQ(lines(name, loose, loose, Price::fresh_line, kAny), 0) << name;
    EXPECT_EQ(lines(name, loose, loose, Price::held_line, kAny, kMapped, true), 0) << name << ", cold";
  }
  for (const char* name : {"pack", "pack_pipelined", "pack_write", "gather_write"}) {
    EXPECT_EQ(lines(name, loose, loose, Price::held_line, kAny), 17) << name;
    EXPECT_EQ(lines(name, loose, dense, Price::held_line, kAny), 17) << name;
    EXPECT_EQ(lines(name, loose, loose, Price::fresh_line, kAny), 0) << name;
    EXPECT_EQ(lines(name, loose, loose, Price::held_line, kAny, kMapped, true), 17) << name << ": staging is warm";
    EXPECT_EQ(lines(name, loose, dense, Price::held_line, kAny, kMapped, true), 0) << name << ": in place, cold";
  }
  EXPECT_NEAR(lines("umr_read", loose, loose, Price::fresh_line, kAny), 72, 9);
  EXPECT_EQ(lines("umr_read", loose, loose, Price::held_line, kAny), 0);
  EXPECT_EQ(lines("umr_read", loose, loose, Price::fresh_line, kAny, kMapped, true), 0);
  EXPECT_EQ(lines("scatter_read", loose, loose, Price::fresh_line, kAny), 17);
  EXPECT_EQ(lines("scatter_read", loose, loose, Price::held_line, kAny), 17) << "its source packs to where the reader has read";
  EXPECT_EQ(lines("scatter_read", dense, loose, Price::fresh_line, kAny), 17);
  EXPECT_EQ(lines("scatter_read", dense, loose, Price::held_line, kAny), 0);
  for (const Method& method : method::methods()) {
    for (const Price price : {Price::held_line, Price::fresh_line}) {
      EXPECT_EQ(lines(method.name, loose, loose, price, kAny, kWire), 0) << method.name;
      EXPECT_EQ(lines(method.name, loose, loose, price, kAny, kSlots), 0) << method.name;
      EXPECT_EQ(lines(method.name, loose, loose, price, 0), 0) << method.name << ", no cache";
      EXPECT_EQ(lines(method.name, bytes(0), bytes(0), price, kAny), 0) << method.name << ", nothing";
    }
  }
}

// When more has been touched since than a cache holds, they have left it: in place what the program touched, of staging
// also what was unpacked.
TEST(BillCounts, LinesThatHaveLeftTheOtherCache) {
  constexpr std::int64_t kBytes = 1 << 20;
  constexpr double kAll = kBytes / 64 + 1;
  const Layout dense = bytes(kBytes);
  const Layout pages = vector(1 << 8, 4096, 8192);
  const Layout sparse = vector(1 << 17, 8, 256);  // touches 8 MiB or somewhat more
  const auto held = [&](const char* name, const Layout& src, const Layout& dst, double held_bytes) {
    return lines(name, src, dst, Price::held_line, held_bytes);
  };
  for (const char* name : {"pack_write", "gather_write", "pack"}) {
    EXPECT_EQ(held(name, dense, pages, 3.1 * kBytes), kAll) << name;
    EXPECT_NEAR(held(name, dense, pages, 2 * kBytes), kAll / 2, 0.1 * kAll) << name;
    EXPECT_EQ(held(name, dense, pages, 1.5 * kBytes), 0) << name;
    EXPECT_EQ(held(name, dense, dense, 1.1 * kBytes), kAll) << name << ", in place";
    EXPECT_EQ(held(name, dense, dense, 0.5 * kBytes), 0) << name << ", in place";
    EXPECT_EQ(held(name, dense, sparse, 4.0 * kBytes), 0) << name << ", unpacked to many lines";
    EXPECT_EQ(held(name, dense, sparse, 16.0 * kBytes), kAll) << name;
  }
  EXPECT_EQ(held("pack_pipelined", dense, pages, 1.5 * kBytes), kAll) << "its staging is a few chunks, used again and again";
  EXPECT_EQ(held("pack_pipelined", bytes(8192), vector(64, 128, 256), 24'000), held("pack", bytes(8192), vector(64, 128, 256), 24'000))
      << "one chunk";
  EXPECT_EQ(held("umr_write", dense, sparse, 4.0 * kBytes), 0);
  EXPECT_GE(held("umr_write", dense, sparse, 16.0 * kBytes), 1 << 17);
  EXPECT_EQ(held("scatter_read", pages, dense, 3.1 * kBytes), kAll);
  EXPECT_EQ(held("scatter_read", pages, dense, 1.5 * kBytes), 0);
  EXPECT_EQ(lines("scatter_read", pages, dense, Price::fresh_line, kBytes), kAll);
  EXPECT_EQ(lines("scatter_read", pages, dense, Price::fresh_line, 0.5 * kBytes), 0);
  EXPECT_EQ(lines("umr_read", sparse, dense, Price::fresh_line, 4.0 * kBytes), 0);
  EXPECT_GE(lines("umr_read", sparse, dense, Price::fresh_line, 16.0 * kBytes), 1 << 17);
}

TEST(BillCounts, KeysThatACpuLooksInto) {
  const Layout loose = vector(100, 16, 48);
  nic::PathInfo whole = kWire;  // a device of which no unit is known
  whole.unit_bytes = 0;
  EXPECT_EQ(number_of("umr_write", loose, loose, Price::key_lookup, kMapped), 2);
  EXPECT_EQ(number_of("umr_write", bytes(1600), loose, Price::key_lookup, kMapped), 1);
  EXPECT_EQ(number_of("umr_write", loose, loose, Price::key_lookup, kSlots), 1) << "either CPU one";
  EXPECT_EQ(number_of("umr_write", loose, loose, Price::key_lookup, kWire), 0) << "a device's engine";
  EXPECT_EQ(number_of("umr_write", loose, loose, Price::key_lookup, whole), 0);
  EXPECT_EQ(number_of("gather_write", loose, loose, Price::key_lookup, kMapped), 0);
}

TEST(BillCounts, ContiguousSidesCopyNothing) {
  const Prices all =
      prices({{Price::copy_call, 1}, {Price::pack_run, 1}, {Price::unpack_run, 1}, {Price::pack_byte, 1}, {Price::unpack_byte, 1}});
  for (const Method& method : method::methods()) {
    const PairOutline pair = layout::outline(bytes(100'000), bytes(100'000));
    CostItems cost_items(all, kWire, pair);
    method.cost_items(cost_items, limits());
    EXPECT_EQ(cost_items.latency_ns(), 0) << method.name;
    EXPECT_EQ(cost_items.cpu_ns(Role::sender) + cost_items.cpu_ns(Role::receiver), 0) << method.name;
  }
}

// A binding that lasts costs nothing; one for three transfers a third.
TEST(BillCounts, BindingsBySharesOfTheirUses) {
  const Prices binds = prices({{Price::bind, 300}, {Price::bind_entry, 3}});
  const std::int64_t places[] = {0, 10, 25, 70};
  const PairOutline pair = layout::outline(Layout::hindexed_block(1, places, bytes(4)).value(), bytes(16));
  const auto latency = [&](double uses) {
    CostItems cost_items(binds, kWire, pair, false, uses);
    method::find("umr_write").value()->cost_items(cost_items, limits());
    return cost_items.latency_ns();
  };
  EXPECT_EQ(latency(0), 0);
  EXPECT_EQ(latency(1), 312);
  EXPECT_EQ(latency(3), 104);
}

// --- how it adds up --------------------------------------------------------------------------------------------------

TEST(BillSums, StagesAreTheLatency) {
  support::Random random(1);
  const std::array paths{kWire, kMapped, kSlots};
  for (int i = 0; i < 20'000; ++i) {
    Prices some{};
    for (double& price : some) price = random.one_in(5) ? 0 : std::exp2(static_cast<double>(random.between(-20, 40)));
    const Layout layouts[] = {vector(random.between(1, 3000), 60, 200), bytes(1), vector(600, 100, 111)};
    const Layout src = layouts[0];
    const Layout dst = random.one_in(2) ? bytes(src.size()) : vector(src.size() / 20, 20, 30);
    const PairOutline pair = layout::outline(src, dst);
    const Method& method = method::methods()[static_cast<std::size_t>(random.below(std::ssize(method::methods())))];
    const nic::PathInfo& path = paths[static_cast<std::size_t>(i % 3)];
    CostItems cost_items(some, path, pair, random.one_in(2), random.one_in(2) ? 0 : 7);
    method.cost_items(cost_items, limits());
    if (method.one_sided()) cost_items.notify(method.initiator, method.notifies.front());
    const auto stages = cost_items.stages_ns();
    const double sum = std::accumulate(stages.begin(), stages.end(), 0.0);
    ASSERT_NEAR(sum, cost_items.latency_ns(), 1e-9 * sum) << method.name;
    for (const double ns : stages) ASSERT_GE(ns, 0);
    ASSERT_GE(cost_items.busiest_ns(), std::max(cost_items.cpu_ns(Role::sender), cost_items.cpu_ns(Role::receiver)));
  }
}

// A device's engines and its wire work at once; where a CPU does it all, one thing comes after the other.
TEST(BillSums, SideBySideOnADevice) {
  const Prices some = prices({{Price::entry, 10}, {Price::write_byte, 1}, {Price::start, 5}});
  const PairOutline pair = layout::outline(vector(100, 1024, 3000), bytes(102'400));
  const Method& sgrs = *method::find("sgrs").value();
  CostItems device(some, kWire, pair);
  sgrs.cost_items(device, limits());
  // Entries: 1000 ns; the wire: 102,400 ns. The first of 100 units waits for its entries.
  EXPECT_DOUBLE_EQ(device.latency_ns(), 5 + 102'400 + 1000 / 100.0);
  EXPECT_DOUBLE_EQ(device.stages_ns()[static_cast<std::size_t>(Stage::fetch)], 10);
  EXPECT_DOUBLE_EQ(device.busiest_ns(), 5 + 102'400);
  EXPECT_EQ(device.cpu_ns(Role::sender), 0);
  const Prices same = prices({{Price::entry, 10}, {Price::write_byte, 1}, {Price::write_far_byte, 1}, {Price::start, 5}});
  CostItems cpu(same, kMapped, pair);
  sgrs.cost_items(cpu, limits());
  EXPECT_DOUBLE_EQ(cpu.latency_ns(), 5 + 102'400 + 1000);
  EXPECT_DOUBLE_EQ(cpu.cpu_ns(Role::sender), 102'400 + 1000);
}

// Nobody waits for a receive to be posted, but it is CPU time, and whoever is busiest has to do it.
TEST(BillSums, WhatIsDoneAsideTakesTimeButNoLatency) {
  const Prices some = prices({{Price::receive, 70}});
  const PairOutline pair = layout::outline(bytes(8), bytes(8));
  CostItems cost_items(some, kWire, pair);
  method::find("pack").value()->cost_items(cost_items, limits());
  EXPECT_EQ(cost_items.latency_ns(), 0);
  EXPECT_EQ(cost_items.cpu_ns(Role::receiver), 70);
  EXPECT_EQ(cost_items.cpu_ns(Role::sender), 0);
  EXPECT_EQ(cost_items.busiest_ns(), 70);
}

TEST(BillSums, TheLastNotificationCounts) {
  const Prices some = prices({{Price::write_none, 1},
                              {Price::write_imm, 20},
                              {Price::write_flag, 300},
                              {Price::read_none, 4000},
                              {Price::read_imm, 50'000},
                              {Price::read_flag, 600'000},
                              {Price::post, 7}});
  const PairOutline pair = layout::outline(bytes(8), bytes(8));
  const auto latency = [&](const char* name, std::initializer_list<Notify> said) {
    const Method& method = *method::find(name).value();
    CostItems cost_items(some, kWire, pair);
    method.cost_items(cost_items, limits());
    for (const Notify notify : said) cost_items.notify(method.initiator, notify);
    const auto stages = cost_items.stages_ns();
    EXPECT_DOUBLE_EQ(std::accumulate(stages.begin(), stages.end(), 0.0), cost_items.latency_ns());
    return cost_items.latency_ns();
  };
  EXPECT_EQ(latency("pack_write", {}), 7);
  EXPECT_EQ(latency("pack_write", {Notify::none}), 8);
  EXPECT_EQ(latency("pack_write", {Notify::imm}), 27);
  EXPECT_EQ(latency("pack_write", {Notify::imm, Notify::none}), 8);
  EXPECT_EQ(latency("pack_write", {Notify::imm, Notify::none, Notify::flag}), 307);
  EXPECT_EQ(latency("umr_read", {Notify::flag}), 600'007);
  EXPECT_EQ(latency("umr_read", {Notify::flag, Notify::imm}), 50'007);
}

// Each copy takes the CPU that does it; a pipeline of them takes no longer than its slowest, and a chunk's share of the
// others.
TEST(BillSums, APipelineTakesItsSlowest) {
  const Prices some = prices({{Price::pack_byte, 1}, {Price::pack_far_byte, 1}, {Price::unpack_byte, 2}, {Price::unpack_far_byte, 2}});
  const PairOutline pair = layout::outline(vector(1024, 1024, 2048), vector(1024, 1024, 3000));  // 32 chunks of 32 KiB
  constexpr double kBytes = 1 << 20;
  for (const auto& [name, latency] : {std::pair{"pack", 3 * kBytes}, {"pack_pipelined", 2 * kBytes + kBytes / 32}}) {
    CostItems cost_items(some, kWire, pair);
    method::find(name).value()->cost_items(cost_items, limits());
    EXPECT_DOUBLE_EQ(cost_items.latency_ns(), latency) << name;
    EXPECT_DOUBLE_EQ(cost_items.cpu_ns(Role::sender), kBytes);
    EXPECT_DOUBLE_EQ(cost_items.cpu_ns(Role::receiver), 2 * kBytes);
    EXPECT_DOUBLE_EQ(cost_items.busiest_ns(), 2 * kBytes);
  }
}

TEST(BillNames, AreAllDifferent) {
  std::set<std::string_view> names;
  for (std::size_t i = 0; i < method::kPrices; ++i) names.insert(price_name(static_cast<Price>(i)));
  EXPECT_EQ(names.size(), method::kPrices);
  names.clear();
  for (std::size_t i = 0; i < method::kStages; ++i) names.insert(stage_name(static_cast<Stage>(i)));
  EXPECT_EQ(names.size(), method::kStages);
}

}  // namespace LACUNA_TEST_FILE
}  // namespace lacuna::test
