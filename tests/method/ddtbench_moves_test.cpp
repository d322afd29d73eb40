// Every method moves the DDTBench layouts at all their sizes, and irregular ones, between equal layouts and between
// different ones: every byte where it belongs, every gap as it was. What is too large for the machine, or for the time
// there is, is left out by rule, and named.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <fstream>

#include "tests/method/moves_rig.hpp"
#include "tests/support/random_layout.hpp"
#include "tests/support/tier.hpp"
#include "tools/corpus/ddtbench.hpp"

namespace lacuna::test {
namespace LACUNA_TEST_FILE {

LACUNA_TIER(gate, "*DdtBenchMoves.*/FFT2_Different_slots");
LACUNA_TIER(gate, "*DdtBenchMoves.*/FFT2_Different_kernel");

using corpus::Case;
using layout::Layout;
using method::Endpoint;

// --- the rule --------------------------------------------------------------------------------------------------------

struct Bounds {
  std::int64_t span;      // bytes of either side's arrays
  std::int64_t requests;  // that a method posts for one transfer
  std::string span_reason;
};

std::int64_t free_memory() {
  std::ifstream info("/proc/meminfo");
  for (std::string word; info >> word;) {
    std::int64_t kib = 0;
    if (word == "MemAvailable:" && info >> kib) return kib * 1024;
  }
  return 0;
}

// Two processes may have the arrays in memory, the stream and packed copies of it beside them. A power of two, so that
// two machines of one kind come to the same.
std::int64_t eighth_of_free_memory() { return static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(free_memory() / 8))); }

// A request takes Soft-RoCE some 50 us on a machine that is emulated.
constexpr std::int64_t kMostRequests = 10'000;

Bounds bounds() {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  return {1 << 20, 2000, "what an instrumented build has time for"};
#else
  if (tested_nic() == "local") return {8 << 20, kMostRequests, "what an ordinary run has time for"};
  return {eighth_of_free_memory(), kMostRequests, "an eighth of the memory that is free"};
#endif
}

// By the method's own cost items.
double requests(const method::Method& method, const Case& c, const nic::Limits& limits, nic::Path path) {
  method::Prices prices{};
  prices[static_cast<std::size_t>(method::Price::build)] = 1;
  const layout::PairOutline outline = layout::outline(c.send, c.receive);
  method::CostItems cost_items(prices, *limits.path(path), outline);
  method.cost_items(cost_items, limits);
  return cost_items.cpu_ns(method.initiator);
}

// What is to be done: a case, and the methods that move it.
struct Task {
  Case what;
  std::vector<const method::Method*> methods;
};

// Cases and methods within the bounds; what is left out goes into `left_out`, a line each, with the reason.
std::vector<Task> within_bounds(std::vector<Case> cases, const nic::Limits& limits, nic::Path path, std::string& left_out) {
  const Bounds most = bounds();
  std::vector<Task> tasks;
  for (Case& c : cases) {
    if (const std::int64_t span = std::max(c.send_span, c.receive_span); span > most.span) {
      left_out += fmt::format("{}: arrays of {} bytes; at most {}, {}\n", c.name, span, most.span, most.span_reason);
      continue;
    }
    Task task{std::move(c), {}};
    for (const method::Method& method : method::methods()) {
      if (method.indirect_keys && limits.indirect.keys == 0) continue;
      if (const double posted = requests(method, task.what, limits, path); posted > static_cast<double>(most.requests)) {
        left_out += fmt::format("{} by {}: {:.0f} requests; at most {}, what there is time for\n", task.what.name, method.name, posted,
                                most.requests);
      } else {
        task.methods.push_back(&method);
      }
    }
    tasks.push_back(std::move(task));
  }
  return tasks;
}

// --- the cases -------------------------------------------------------------------------------------------------------

enum class Kind { equal, different };

// Whether the runs of both have the same lengths, place by place.
bool alike(const Layout& one, const Layout& other) {
  if (one.run_count() != other.run_count()) return false;
  layout::Cursor a(one);
  layout::Cursor b(other);
  while (!a.done()) {
    if (a.next_run(layout::kMaxBytes).length != b.next_run(layout::kMaxBytes).length) return false;
  }
  return true;
}

// Of DDTBench's pairs most are alike on both sides; the others are what differs. What has no counterpart there gets
// one: itself, or something irregular of the same size.
Case of_ddtbench(const std::string& family, int size, Kind kind) {
  Case c = corpus::ddtbench_case(family, size).value();
  if (alike(c.send, c.receive) == (kind == Kind::equal)) return c;
  if (kind == Kind::equal) return pair(c.name, c.send, c.send);
  return pair(c.name, c.send, irregular(static_cast<std::uint64_t>(size), c.send.size(), 10'000));
}

std::vector<Case> irregular_cases(Kind kind) {
  std::vector<Case> all;
  for (const auto& [total, most] :
       {std::pair<std::int64_t, std::int64_t>{3000, 50}, {60'000, 400}, {700'000, 100'000}, {2 << 20, 1 << 20}}) {
    const auto seed = static_cast<std::uint64_t>(total);
    all.push_back(
        pair(fmt::format("{} bytes", total), irregular(seed, total, most), irregular(kind == Kind::equal ? seed : seed + 1, total, most)));
  }
  return all;
}

// Any constructor within any other.
std::vector<Case> random_cases(Kind kind) {
  std::vector<Case> all;
  for (std::uint64_t seed = 1; all.size() < 12; ++seed) {
    support::Random random(seed);
    const support::Limits limits{.runs = 500, .bytes = 32 << 10};
    Layout receive = support::random_receive_layout(random, -1, limits).layout;
    if (receive.size() == 0) continue;
    Layout send = kind == Kind::equal ? receive : support::random_receive_layout(random, receive.size(), limits).layout;
    const auto raised = [](const Layout& l) {  // the base of a case is its lowest byte
      const std::int64_t one[] = {1};
      const std::int64_t up[] = {std::max<std::int64_t>(0, -l.true_lower_bound())};
      return Layout::hindexed(one, up, l).value();
    };
    all.push_back(pair(fmt::format("seed {}", seed), raised(send), raised(receive)));
  }
  return all;
}

std::vector<Case> cases_of(const std::string& family, Kind kind) {
  if (family == "Irregular") return irregular_cases(kind);
  if (family == "Random") return random_cases(kind);
  std::vector<Case> all;
  for (int size = 0; size < corpus::ddtbench_sizes(family); ++size) all.push_back(of_ddtbench(family, size, kind));
  return all;
}

// --- the test --------------------------------------------------------------------------------------------------------

std::string move_all(const std::vector<Task>& tasks, nic::Path path, int rank, nic::Bootstrap& bootstrap) {
  const auto context = LACUNA_END_TRY(open_tested());
  const auto endpoint = LACUNA_END_TRY(Endpoint::connect(*context, bootstrap, path));
  const auto mailbox = LACUNA_END_TRY(measure::Mailbox::create(*context, bootstrap, path));
  for (const auto& [c, methods] : tasks) {
    const Arrays arrays = LACUNA_END_TRY(Arrays::make(*context, c, rank));
    std::uint64_t seed = 0;
    for (const method::Method* method : methods) {
      const std::string wrong = move_verified(*method, method->notifies.front(), *endpoint, c, arrays, seed, 1, rank, bootstrap, *mailbox);
      if (!wrong.empty()) return fmt::format("{} by {}: {}", c.name, method->name, wrong);
      ++seed;
    }
    LACUNA_END_TRY(endpoint->forget(arrays.region, kMoveTimeout));
    LACUNA_END_TRY(barrier(bootstrap));
  }
  return {};
}

class DdtBenchMoves : public testing::TestWithParam<std::tuple<std::string, Kind, nic::Path>> {};
TEST_P(DdtBenchMoves, ByEveryMethodTwoProcesses) {
  const auto& [family, kind, path] = GetParam();
  LACUNA_NEEDS_PATH(path);
  std::string left_out;
  std::vector<Task> tasks;
  {
    const auto context = open_tested();
    tasks = within_bounds(cases_of(family, kind), (*context)->limits(), path, left_out);
  }
  if (!left_out.empty()) RecordProperty("left_out", left_out);
  if (tasks.empty()) GTEST_SKIP() << left_out;
  EXPECT_EQ(in_two_processes([&, path = path](int rank, nic::Bootstrap& b) { return move_all(tasks, path, rank, b); }), "");
}

std::vector<std::string> families() {
  std::vector<std::string> names = corpus::ddtbench_families();
  names.insert(names.end(), {"Irregular", "Random"});
  return names;
}
INSTANTIATE_TEST_SUITE_P(Method, DdtBenchMoves,
                         testing::Combine(testing::ValuesIn(families()), testing::Values(Kind::equal, Kind::different),
                                          testing::ValuesIn(tested_paths())),
                         [](const auto& info) {
                           return std::get<0>(info.param) + (std::get<1>(info.param) == Kind::equal ? "_Equal_" : "_Different_") +
                                  std::string(nic::path_name(std::get<2>(info.param)));
                         });

}  // namespace LACUNA_TEST_FILE
}  // namespace lacuna::test
