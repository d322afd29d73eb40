// Every method moves every pair of layouts over every path: the payload as the reference has it, gaps and guards
// untouched. Twice each, so that an operation can be started again, with limits from generous to tiny.
#include <gtest/gtest.h>

#include "lacuna/guide/ddtbench.hpp"
#include "lacuna/guide/mailbox.hpp"
#include "lacuna/guide/proof.hpp"
#include "tests/nic/rig.hpp"

namespace lacuna::test {
namespace {

using guide::Case;
using layout::Layout;
using method::Endpoint;
using method::Role;

constexpr std::int64_t kTimeout = 20 * kSecond;

Layout bytes(std::int64_t n) { return Layout::bytes(n).value(); }

Case pair(std::string name, Layout send, Layout receive) {
  const auto span = [](const Layout& l) { return std::max<std::int64_t>(1, l.true_lower_bound() + l.true_extent()); };
  Case result{std::move(name), send, receive};
  result.send_span = span(send);
  result.receive_span = span(receive);
  return result;
}

// Blocks of sizes from 1 byte to `most` in an order of their own.
Layout irregular(std::uint64_t seed, std::int64_t total, std::int64_t most) {
  std::vector<std::int64_t> offsets;
  std::vector<std::int64_t> lengths;
  std::int64_t at = 5;
  for (std::int64_t left = total; left > 0;) {
    seed = seed * 6364136223846793005U + 1442695040888963407U;
    const std::int64_t length = std::min<std::int64_t>(left, 1 + static_cast<std::int64_t>(seed >> 33) % (seed >> 60 == 0 ? most : 50));
    offsets.push_back(at);
    lengths.push_back(length);
    at += length + static_cast<std::int64_t>(seed >> 50) % 9;
    left -= length;
  }
  for (std::size_t i = offsets.size() / 2; i-- > 0;) {  // typemap order is not address order
    std::swap(offsets[i], offsets[offsets.size() - 1 - i]);
    std::swap(lengths[i], lengths[lengths.size() - 1 - i]);
  }
  return Layout::blocks(offsets, lengths).value();
}

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
  for (const std::string& family : extent == Extent::all ? guide::ddtbench_families() : std::vector<std::string>()) {
    Case first = guide::ddtbench_case(family, 0).value();  // sizes rise or fall
    Case last = guide::ddtbench_case(family, guide::ddtbench_sizes(family) - 1).value();
    all.push_back(first.send.size() < last.send.size() ? std::move(first) : std::move(last));
  }
  const Layout column = Layout::resized(vector(64, 16, 64 * 16), 0, 16).value();
  all.push_back(pair("Transpose", bytes(64 * 64 * 16), Layout::contiguous(64, column).value()));
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

base::Result<method::Target> exchange(nic::Bootstrap& bootstrap, const method::Target& mine) {
  nic::Hello hello;
  hello.bytes = mine.encode();
  const nic::Hello theirs = LACUNA_TRY(bootstrap.exchange(hello, kTimeout));
  return method::Target::decode(theirs.bytes);
}

// One transfer of one case by one method; checked at the receiver.
std::string transfer(const method::Method& method, method::Notify notify, Endpoint& endpoint, const Case& c, int rank,
                     nic::Bootstrap& bootstrap, guide::Mailbox& mailbox) {
  nic::Context& context = endpoint.context();
  const std::int64_t span = rank == 0 ? c.send_span : c.receive_span;
  const nic::Buffer buffer = LACUNA_END_TRY(context.allocate(static_cast<std::size_t>(span + 2 * guide::kGuard)));
  // The guards are registered too: a method that wrote there would not be stopped by its keys.
  const nic::Region region = LACUNA_END_TRY(context.register_memory(buffer.bytes(), {}));
  std::byte* base = buffer.data() + guide::kGuard;
  const auto made = method::make(method, rank == 0 ? Role::sender : Role::receiver, endpoint, {c.send, c.receive, notify}, {&region});
  // What lands in staging has nobody who unpacks it if nobody is told; both ends must agree that it cannot be done.
  const bool both = LACUNA_END_TRY(swap(bootstrap, static_cast<bool>(made)));
  if (!made || !both) {
    const bool stages = method.name == "gather_write" || method.name == "pack_write";
    if (stages && notify == method::Notify::none && !c.receive.contiguous_bytes()) return {};
    return made ? "the other end refused" : made.error().text();
  }
  method::Operation& operation = **made;
  for (std::uint64_t seed = 0; seed < 2; ++seed) {
    guide::lay_pattern(buffer.bytes());
    const std::vector<std::byte> stream = guide::stream_of(seed, c.send.size());
    if (rank == 0) guide::write_stream(c.send, base, stream);
    const method::Target mine = LACUNA_END_TRY(endpoint.prepare(operation, base, kTimeout));
    const method::Target theirs = LACUNA_END_TRY(exchange(bootstrap, mine));
    LACUNA_END_TRY(operation.start(base, theirs));
    LACUNA_END_TRY(endpoint.run(operation, kTimeout));
    // Who is told nothing polls, for paths that need this CPU, until the other end says that it is done.
    if (method.uninformed(rank == 0 ? Role::sender : Role::receiver, notify)) LACUNA_END_TRY(mailbox.receive<std::uint64_t>(&endpoint));
    if (method.uninformed(rank == 0 ? Role::receiver : Role::sender, notify)) LACUNA_END_TRY(mailbox.send(seed));
    if (rank == 1) {
      const std::string wrong = guide::examine(c.receive, base, guide::Windows(c.receive, c.receive_span), stream);
      if (!wrong.empty()) return wrong;
    }
    LACUNA_END_TRY(barrier(bootstrap));
  }
  return {};
}

std::string all_cases(const method::Method& method, nic::Path path, const Setting& setting, Extent extent, int rank,
                      nic::Bootstrap& bootstrap) {
  const auto context = LACUNA_END_TRY(open_tested(setting.options));
  const auto endpoint = LACUNA_END_TRY(Endpoint::connect(*context, bootstrap, path, setting.depths));
  const auto mailbox = LACUNA_END_TRY(guide::Mailbox::create(*context, bootstrap, path));
  for (const Case& c : cases(extent)) {
    for (const method::Notify notify : method.notifies) {
      const std::string wrong = transfer(method, notify, *endpoint, c, rank, bootstrap, *mailbox);
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
  if (method::find(std::get<0>(GetParam())).value()->indirect_keys) LACUNA_NEEDS_KEYS();
  EXPECT_EQ(in_two_processes([](int rank, nic::Bootstrap& b) { return end(std::get<2>(GetParam()).extent, rank, b); }), "");
}
// For ThreadSanitizer, which does not see across processes, and for the fake, which is not across them.
TEST_P(EveryMethod, MovesEveryPairTwoThreads) {
  LACUNA_NEEDS_PATH(std::get<1>(GetParam()));
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

}  // namespace
}  // namespace lacuna::test
