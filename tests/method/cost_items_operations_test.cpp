// Cost items against work: with one price of 1 and all others 0 they count one thing, and that is what an operation
// really does.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "tests/guide/mock.hpp"
#include "tests/nic/rig.hpp"

namespace lacuna::test {
namespace LACUNA_TEST_FILE {

using layout::PairOutline;
using method::CostItems;
using method::Endpoint;
using method::Method;
using method::Notify;
using method::Role;

struct Pair {
  const char* name;
  Layout src, dst;
};
// Pairs whose outline is exact, and whose lists end at the same places on both sides: blocks of a side that is coarser
// by 4 meet lists of 32.
std::vector<Pair> pairs() {
  std::vector<Pair> all;
  for (const std::int64_t n : {1, 4, 32, 64, 96, 200}) {
    for (const std::int64_t block : {1, 16, 100}) {
      const Layout loop = vector(n, block, 3 * block);
      all.push_back({"equal", loop, loop});
      all.push_back({"to one", loop, bytes(n * block)});
      all.push_back({"from one", bytes(n * block), loop});
      if (n < 4) continue;
      const Layout coarse = vector(n / 4, 4 * block, 9 * block);
      all.push_back({"coarser", loop, coarse});
      all.push_back({"finer", coarse, loop});
    }
  }
  return all;
}

struct Counted {
  double requests, doorbells, entries;  // of the end that begins
  double receives, receive_entries;     // of the other
};

// What one price, alone, makes of the cost items; `who`: whose time it is.
double priced(const Method& method, const PairOutline& pair, const nic::Limits& limits, Price price, Role who) {
  const Prices one = prices({{price, 1}});
  CostItems cost_items(one, kWire, pair);
  method.cost_items(cost_items, limits);
  return cost_items.cpu_ns(who);
}

// `passive` posts entries only where it posts receives.
Counted counted(const Method& method, const PairOutline& pair, const nic::Limits& limits) {
  const Role active = method.initiator;
  const Role passive = active == Role::sender ? Role::receiver : Role::sender;
  return {priced(method, pair, limits, Price::build, active), priced(method, pair, limits, Price::post, active),
          priced(method, pair, limits, Price::build_entry, active), priced(method, pair, limits, Price::receive, passive),
          priced(method, pair, limits, Price::build_entry, passive)};
}

// A notification that adds no request: with the last write, or none.
Notify quiet(const Method& method) {
  const bool writes = method.one_sided() && method.initiator == Role::sender;
  return writes ? Notify::imm : Notify::none;
}

base::Result<void> move(Endpoint& endpoint, method::Operation& operation, std::byte* base, nic::Bootstrap& bootstrap) {
  nic::Hello mine;
  mine.bytes = LACUNA_TRY(endpoint.prepare(operation, base, kPatience)).encode();
  const auto theirs = LACUNA_TRY(method::Target::decode(LACUNA_TRY(bootstrap.exchange(mine, kPatience)).bytes));
  LACUNA_TRY(operation.start(base, theirs));
  LACUNA_TRY(endpoint.run(operation, kPatience));
  LACUNA_TRY(barrier(bootstrap));
  return {};
}

std::string count(const nic::OpenOptions& options, int rank, nic::Bootstrap& bootstrap) {
  const auto context = LACUNA_END_TRY(open_tested(options));
  const auto endpoint = LACUNA_END_TRY(Endpoint::connect(*context, bootstrap, nic::Path::mapped));
  const nic::Buffer buffer = LACUNA_END_TRY(context->allocate(100'000));
  const nic::Region region = LACUNA_END_TRY(context->register_memory(buffer.bytes(), {}));
  const Role role = rank == 0 ? Role::sender : Role::receiver;
  std::string wrong;
  for (const Method& m : method::methods()) {
    for (const Pair& pair : pairs()) {
      if (pair.src.contiguous_bytes() && pair.dst.contiguous_bytes() && m.indirect_keys) continue;
      const auto operation = LACUNA_END_TRY(method::make(m, role, *endpoint, {pair.src, pair.dst, quiet(m)}, {&region}));
      // The second finds its keys bound
      for (int i = 0; i < 2; ++i) LACUNA_END_TRY(move(*endpoint, *operation, buffer.data(), bootstrap));
      const method::Counters& own = operation->counters();
      const std::array mine{own.work_requests, own.doorbells, own.sges, own.receives};
      const auto both = LACUNA_END_TRY(swap(bootstrap, mine));
      if (rank != 0) continue;
      const auto& active = m.initiator == Role::sender ? mine : both;
      const auto& passive = m.initiator == Role::sender ? both : mine;
      const PairOutline outline = layout::outline(pair.src, pair.dst);
      const Counted cost_items = counted(m, outline, context->limits());
      const auto expect = [&](const char* what, double is, std::int64_t should) {
        if (is == static_cast<double>(should)) return;
        wrong += fmt::format("{}, {} runs {} {}: the cost items have {} {}, the operation {}\n", m.name, pair.src.run_count(), pair.name,
                             pair.dst.run_count(), is, what, should);
      };
      expect("requests", cost_items.requests, active[0]);
      expect("doorbells", cost_items.doorbells, active[1]);
      expect("entries", cost_items.entries, active[2]);
      if (!m.one_sided()) expect("receives", cost_items.receives, passive[3]);
      if (!m.one_sided()) expect("entries of receives", cost_items.receive_entries, passive[2]);
    }
  }
  return wrong;
}

TEST(BillCounts, WhatOperationsDoTwoThreads) {
  EXPECT_EQ(in_two_threads([](int rank, nic::Bootstrap& b) { return count({.max_sge = 32}, rank, b); }), "");
}
TEST(BillCounts, WhatOperationsDoWithListsOnlyTwoThreads) {
  const nic::OpenOptions lists{.max_sge = 32, .indirect = {.inline_entries = 32, .strided_entries = 0}};
  EXPECT_EQ(in_two_threads([&](int rank, nic::Bootstrap& b) { return count(lists, rank, b); }), "");
}

// Both ends bind at the same time: the cost items have the entries of the one that has more. Each pair has endpoints
// without keys.
std::string bindings(const nic::OpenOptions& options, int rank, nic::Bootstrap& bootstrap) {
  const Method& m = *method::find("umr_send").value();
  for (const Pair& pair : pairs()) {
    const auto context = LACUNA_END_TRY(open_tested(options));
    const auto endpoint = LACUNA_END_TRY(Endpoint::connect(*context, bootstrap, nic::Path::mapped));
    const nic::Buffer buffer = LACUNA_END_TRY(context->allocate(100'000));
    const nic::Region region = LACUNA_END_TRY(context->register_memory(buffer.bytes(), {}));
    const auto operation =
        LACUNA_END_TRY(method::make(m, rank == 0 ? Role::sender : Role::receiver, *endpoint, {pair.src, pair.dst}, {&region}));
    LACUNA_END_TRY(move(*endpoint, *operation, buffer.data(), bootstrap));
    const std::int64_t mine = operation->counters().key_entries;
    const std::int64_t theirs = LACUNA_END_TRY(swap(bootstrap, mine));
    const PairOutline outline = layout::outline(pair.src, pair.dst);
    const Prices one = prices({{Price::bind_entry, 1}});
    CostItems cost_items(one, kWire, outline, false, 1);
    m.cost_items(cost_items, context->limits());
    const auto most = static_cast<double>(std::max(mine, theirs));
    if (cost_items.latency_ns() != most)
      return fmt::format("{} runs {} {}: the cost items bind {}, the ends {} and {}", pair.src.run_count(), pair.name, pair.dst.run_count(),
                         cost_items.latency_ns(), mine, theirs);
  }
  return {};
}
TEST(BillCounts, BindingsTwoThreads) {
  for (const int strided : {0, 10}) {
    const nic::OpenOptions options{.indirect = {.strided_entries = strided}};
    EXPECT_EQ(in_two_threads([&](int rank, nic::Bootstrap& b) { return bindings(options, rank, b); }), "");
  }
}

}  // namespace LACUNA_TEST_FILE
}  // namespace lacuna::test
