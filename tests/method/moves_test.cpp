// Every method moves every pair of layouts over every path: the payload as the reference has it, gaps and guards
// untouched. Twice each, so that an operation can be started again, with limits from generous to tiny.
#include <gtest/gtest.h>

#include "tests/method/moves_rig.hpp"
#include "tests/support/tier.hpp"
#include "tools/corpus/ddtbench.hpp"

namespace lacuna::test {
namespace LACUNA_TEST_FILE {

LACUNA_TIER(gate, "Method/EveryMethod.*_Tiny");
LACUNA_TIER(gate, "Method/EveryMethod.*/linked_write_slots_*");  // each piece is handed over by itself
LACUNA_TIER(gate, "Method/EveryMethod.*/multi_write_slots_*");
LACUNA_TIER(all, "Method/EveryMethod.*_OneOfEach");
LACUNA_TIER(all, "Method/EveryMethod.*_OddReads");
// What two processes have shown is shown again by two threads only where that tells something: to ThreadSanitizer, and
// on a device that lives in one process.
LACUNA_LEFT_OUT(release, "*EveryMethod*TwoThreads*");
LACUNA_LEFT_OUT(address, "*EveryMethod*TwoThreads*");
// Of the settings two tell ThreadSanitizer all that it can see.
LACUNA_LEFT_OUT(thread, "Method/EveryMethod.*_OneOfEach");
LACUNA_LEFT_OUT(thread, "Method/EveryMethod.*_OddReads");

using corpus::Case;
using layout::Layout;
using method::Endpoint;

Layout bytes(std::int64_t n) { return Layout::bytes(n).value(); }

// How many of the cases: without DDTBench and the largest where another setting has moved them already.
enum class Extent { all, small };

std::vector<Case> cases(Extent extent) {
  const auto vector = [](std::int64_t count, std::int64_t block, std::int64_t stride) {
    return Layout::hvector(count, 1, stride, bytes(block)).value();
  };
  std::vector<Case> all;
  all.push_back(pair("Equal", vector(100, 200, 600), vector(100, 200, 600)));
  all.push_back(pair("SenderFiner", vector(400, 50, 150), vector(100, 200, 600)));
  all.push_back(pair("SenderCoarser", vector(50, 400, 1200), vector(100, 200, 600)));
  all.push_back(pair("ToContiguous", vector(64, 48, 100), bytes(64 * 48)));
  all.push_back(pair("FromContiguous", bytes(64 * 48), vector(64, 48, 100)));
  all.push_back(pair("BothContiguous", bytes(300'000), bytes(300'000)));
  all.push_back(pair("OneByte", bytes(1), bytes(1)));
  all.push_back(pair("Empty", bytes(0), bytes(0)));
  all.push_back(pair("Irregular", irregular(1, 700'000, 100'000), irregular(2, 700'000, 100'000)));
  all.push_back(pair("CoarserIrregular", vector(200, 300, 900), irregular(5, 60'000, 400)));
  if (extent == Extent::all) all.push_back(pair("IrregularToAMebibyte", irregular(3, 2 << 20, 1 << 20), irregular(4, 2 << 20, 1 << 20)));
  for (const std::string& family : extent == Extent::all ? corpus::ddtbench_families() : std::vector<std::string>()) {
    Case first = corpus::ddtbench_case(family, 0).value();  // sizes rise or fall
    Case last = corpus::ddtbench_case(family, corpus::ddtbench_sizes(family) - 1).value();
    all.push_back(first.send.size() < last.send.size() ? std::move(first) : std::move(last));
  }
  if (tested_nic() != "local")  // in software a device takes long for these; ddtbench_moves_test has them
    std::erase_if(all, [](const Case& c) { return layout::outline(c.send, c.receive).pieces > 4000; });
  // With a queue of one each piece may wait 4 ms for its receive
  const std::int64_t side = tested_nic() == "local" ? 64 : 24;
  const Layout column = Layout::resized(vector(side, 16, side * 16), 0, 16).value();
  all.push_back(pair("Transpose", bytes(side * side * 16), Layout::contiguous(side, column).value()));
  all.push_back(pair("Backwards", Layout::resized(vector(30, 8, 24), 0, 720).value(),
                     Layout::strided(8, std::vector<std::int64_t>{30}, std::vector<std::int64_t>{-16}).value()));
  // Negative offsets become non-negative ones: the base of a case is its lowest byte.
  for (Case& c : all) {
    const auto raise = [](Layout& l, std::int64_t& span) {
      if (l.true_lower_bound() >= 0) return;
      const std::int64_t one[] = {1};
      const std::int64_t up[] = {-l.true_lower_bound()};
      l = Layout::hindexed(one, up, l).value();
      span = l.true_lower_bound() + l.true_extent();
    };
    raise(c.send, c.send_span);
    raise(c.receive, c.receive_span);
  }
  return all;
}

struct Setting {
  const char* name;
  nic::OpenOptions options;
  Endpoint::Options depths;
  Extent extent;
};
// Every layout that needs a key has to fit: the irregular one is cut into some hundred parts of three entries.
const Setting kSettings[] = {
    {"Default", {}, {}, Extent::all},
    {"Tiny",
     {.max_sge = 2, .max_inline = 1, .max_message_bytes = 5000, .indirect = {.entries = 3, .inline_entries = 2, .strided_entries = 1}},
     {.max_send_wr = 3, .max_recv_wr = 2},
     Extent::all},
    {"OneOfEach",
     {.max_sge = 1, .max_sge_rd = 1, .max_inline = 1, .indirect = {.entries = 5, .inline_entries = 1, .strided_entries = 1, .stride = 100}},
     {.max_send_wr = 1, .max_recv_wr = 1},
     Extent::small},
    {"OddReads",
     {.max_sge = 7, .max_sge_rd = 3, .indirect = {.entries = 48, .stride = 299}},
     {.max_send_wr = 16, .max_recv_wr = 5},
     Extent::small},
};

// A device in software takes half a minute for what tiny limits make of the large ones, and "narrow", which does one
// request at a time, for any.
Extent extent_of(const Setting& setting) {
  const bool tiny = setting.depths.max_send_wr < Endpoint::Options().max_send_wr;
  return (tiny && tested_nic() != "local") || tested_nic() == "narrow" ? Extent::small : setting.extent;
}

std::string all_cases(const method::Method& method, nic::Path path, const Setting& setting, Extent extent, int rank,
                      nic::Bootstrap& bootstrap) {
  const auto context = LACUNA_END_TRY(open_tested(setting.options));
  const auto endpoint = LACUNA_END_TRY(Endpoint::connect(*context, bootstrap, path, setting.depths));
  const auto mailbox = LACUNA_END_TRY(measure::Mailbox::create(*context, bootstrap, path));
  for (const Case& c : cases(extent)) {
    const Arrays arrays = LACUNA_END_TRY(Arrays::make(*context, c, rank));
    std::uint64_t seed = 0;
    for (const method::Notify notify : method.notifies) {
      const std::string wrong = move_verified(method, notify, *endpoint, c, arrays, seed, 2, rank, bootstrap, *mailbox);
      seed += 2;
      if (!wrong.empty()) return c.name + ", notify " + std::string(notify_name(notify)) + ": " + wrong;
    }
  }
  return {};
}

std::vector<std::string> method_names() {
  std::vector<std::string> names;
  for (const method::Method& method : method::methods()) names.emplace_back(method.name);
  return names;
}

class EveryMethod : public testing::TestWithParam<std::tuple<std::string, nic::Path, Setting>> {
 protected:
  [[nodiscard]] static std::string end(Extent extent, int rank, nic::Bootstrap& bootstrap) {
    const auto& [name, path, setting] = GetParam();
    return all_cases(*method::find(name).value(), path, setting, extent, rank, bootstrap);
  }
};

TEST_P(EveryMethod, MovesEveryPairTwoProcesses) {
  LACUNA_NEEDS_PATH(std::get<1>(GetParam()));
  LACUNA_NEEDS_LISTS(std::get<2>(GetParam()).options.max_sge);
  if (method::find(std::get<0>(GetParam())).value()->indirect_keys) LACUNA_NEEDS_KEYS();
  EXPECT_EQ(in_two_processes([](int rank, nic::Bootstrap& b) { return end(extent_of(std::get<2>(GetParam())), rank, b); }), "");
}
// For ThreadSanitizer, which does not see across processes, and for the fake, which is not across them.
TEST_P(EveryMethod, MovesEveryPairTwoThreads) {
  LACUNA_NEEDS_PATH(std::get<1>(GetParam()));
  LACUNA_NEEDS_LISTS(std::get<2>(GetParam()).options.max_sge);
  const Extent extent = tested_nic() == "fake" ? std::get<2>(GetParam()).extent : Extent::small;
  EXPECT_EQ(in_two_threads([&](int rank, nic::Bootstrap& b) { return end(extent, rank, b); }), "");
}
INSTANTIATE_TEST_SUITE_P(Method, EveryMethod,
                         testing::Combine(testing::ValuesIn(method_names()), testing::ValuesIn(tested_paths()),
                                          testing::ValuesIn(kSettings)),
                         [](const auto& info) {
                           return std::get<0>(info.param) + "_" + std::string(nic::path_name(std::get<1>(info.param))) + "_" +
                                  std::get<2>(info.param).name;
                         });

}  // namespace LACUNA_TEST_FILE
}  // namespace lacuna::test
