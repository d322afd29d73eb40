// 1 MiB in 256 blocks of 4 KiB on both sides: what each method posts and copies, exactly, from the limits of the NIC
// under test. A queue takes 128 requests; a list takes max_sge entries, a read's max_sge_rd. (Methods with indirect
// keys: counters_test.)
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/nic/rig.hpp"
#include "tools/measure/mailbox.hpp"

namespace lacuna::test {
namespace LACUNA_TEST_FILE {

using layout::Layout;
using method::Endpoint;
using method::Notify;
using method::Role;

constexpr std::int64_t kBlocks = 256;
constexpr std::int64_t kBlock = 4096;
constexpr std::int64_t kAll = kBlocks * kBlock;
constexpr std::int64_t kQueue = Endpoint::Options().max_send_wr;
constexpr std::int64_t kChunk = 32 << 10;  // of pack_pipelined,
constexpr std::int64_t kAhead = 16;        // and how many a device may send before the first is answered

constexpr std::int64_t ceil_of(std::int64_t n, std::int64_t by) { return (n + by - 1) / by; }

// Work requests, receives, sges, doorbells, completions, bytes copied.
using Numbers = std::array<std::int64_t, 6>;
struct Expected {
  Numbers sender, receiver;
};

// A request is silent but for the last, and every 32nd: a quarter of the queue comes back at a time.
std::int64_t signaled(std::int64_t requests) { return ceil_of(requests, kQueue / 4); }
// The active end of a one-sided method: `posts` with `entries`, then the notification as a post of its own, of one
// entry if it is a flag.
Numbers active(std::int64_t posts, std::int64_t entries, Notify notify, bool reads = false) {
  const std::int64_t own = notify == Notify::flag || (notify == Notify::imm && reads) ? 1 : 0;
  return {posts + own, 0, entries + (notify == Notify::flag ? 1 : 0), posts + own, signaled(posts + own), 0};
}
Numbers passive(Notify notify) { return notify == Notify::imm ? Numbers{0, 1, 0, 0, 1, 0} : Numbers{}; }
Numbers copying(Numbers numbers) {
  numbers[5] = kAll;
  return numbers;
}

Expected expected(std::string_view method, Notify notify, const nic::Limits& limits, nic::Path path) {
  const std::int64_t lists = ceil_of(kBlocks, limits.max_sge);
  const std::int64_t read_lists = ceil_of(kBlocks, limits.max_sge_rd);
  const std::int64_t flag = notify == Notify::flag ? 1 : 0;
  if (method == "pack") return {{1, 0, 1, 1, 1, kAll}, {0, 1, 1, 0, 1, kAll}};
  if (method == "pack_pipelined") {
    const std::int64_t chunks = kAll / kChunk;
    const std::int64_t credits = limits.path(path)->mover == nic::Mover::device ? chunks - kAhead : 0;
    return {{chunks, credits, chunks, chunks, chunks + credits, kAll},
            {credits, chunks, chunks, credits, chunks + signaled(credits), kAll}};
  }
  if (method == "pack_write") return {copying(active(1, 1, notify)), copying(passive(notify))};
  if (method == "gather_write") return {active(lists, kBlocks, notify), copying(passive(notify))};
  if (method == "scatter_read") {  // a flag tells the reader that the source is packed
    Numbers source = copying(passive(notify));
    for (const std::size_t i : {0, 2, 3, 4}) ++source[i];
    return {source, active(read_lists, kBlocks, notify, true)};
  }
  if (method == "linked_write")
    return {{kBlocks + flag, 0, kBlocks + flag, ceil_of(kBlocks + flag, kQueue), signaled(kBlocks + flag), 0}, passive(notify)};
  if (method == "multi_write") return {active(kBlocks, kBlocks, notify), passive(notify)};
  if (method == "sgrs") return {{lists, 0, kBlocks, lists, signaled(lists), 0}, {0, lists, kBlocks, 0, lists, 0}};
  ADD_FAILURE() << "how much work is " << method << "?";
  return {};
}

std::string count(const method::Method& method, nic::Path path, int rank, nic::Bootstrap& bootstrap) {
  const auto context = LACUNA_END_TRY(open_tested());
  const auto endpoint = LACUNA_END_TRY(Endpoint::connect(*context, bootstrap, path));
  const auto mailbox = LACUNA_END_TRY(measure::Mailbox::create(*context, bootstrap, path));
  const Layout blocks = Layout::hvector(kBlocks, 1, 2 * kBlock, Layout::bytes(kBlock).value()).value();
  const nic::Buffer buffer = LACUNA_END_TRY(context->allocate(2 * kAll));
  const nic::Region region = LACUNA_END_TRY(context->register_memory(buffer.bytes(), {}));
  for (const Notify notify : method.notifies) {
    const bool staged = method.name == "pack_write" || method.name == "gather_write";
    if (staged && notify == Notify::none) continue;  // nobody would unpack
    const Role role = rank == 0 ? Role::sender : Role::receiver;
    const auto operation = LACUNA_END_TRY(method::make(method, role, *endpoint, {blocks, blocks, notify}, {&region}));
    for (int i = 0; i < 3; ++i) {
      nic::Hello mine;
      mine.bytes = LACUNA_END_TRY(endpoint->prepare(*operation, buffer.data(), kPatience)).encode();
      const auto theirs = LACUNA_END_TRY(method::Target::decode(LACUNA_END_TRY(bootstrap.exchange(mine, kPatience)).bytes));
      LACUNA_END_TRY(operation->start(buffer.data(), theirs));
      LACUNA_END_TRY(endpoint->run(*operation, kPatience));
      // Who is told nothing polls, for paths that need this CPU.
      if (method.uninformed(role, notify)) LACUNA_END_TRY(mailbox->receive<int>(endpoint.get()));
      if (method.uninformed(rank == 0 ? Role::receiver : Role::sender, notify)) LACUNA_END_TRY(mailbox->send(i));
      LACUNA_END_TRY(barrier(bootstrap));
      const method::Counters& c = operation->counters();
      const Numbers got = {c.work_requests, c.receives, c.sges, c.doorbells, c.completions, c.bytes_copied};
      const Expected both = expected(method.name, notify, endpoint->limits(), path);
      if (const Numbers& wanted = rank == 0 ? both.sender : both.receiver; got != wanted) {
        std::string text = fmt::format("notify {}, transfer {}: got", notify_name(notify), i);
        for (const std::int64_t n : got) text += fmt::format(" {}", n);
        for (const std::int64_t n : wanted) text += fmt::format("{}{}", &n == wanted.data() ? ", wanted " : " ", n);
        return text;
      }
      if (method.name == "linked_write" && rank == 0) LACUNA_END_EXPECT(c.doorbells <= ceil_of(c.work_requests, kQueue));
    }
  }
  return {};
}

class OneMebibyteIn4KiBBlocks : public testing::TestWithParam<std::tuple<std::string, nic::Path>> {};
TEST_P(OneMebibyteIn4KiBBlocks, CountsAsDesignedTwoProcesses) {
  const auto& [name, path] = GetParam();
  LACUNA_NEEDS_PATH(path);
  const method::Method& method = *method::find(name).value();
  EXPECT_EQ(in_two_processes([&, path = path](int rank, nic::Bootstrap& b) { return count(method, path, rank, b); }), "");
}
std::vector<std::string> without_keys() {
  std::vector<std::string> names;
  for (const method::Method& method : method::methods()) {
    if (!method.indirect_keys) names.emplace_back(method.name);
  }
  return names;
}
INSTANTIATE_TEST_SUITE_P(Method, OneMebibyteIn4KiBBlocks,
                         testing::Combine(testing::ValuesIn(without_keys()), testing::ValuesIn(tested_paths())), [](const auto& info) {
                           return std::get<0>(info.param) + "_" + std::string(nic::path_name(std::get<1>(info.param)));
                         });

}  // namespace LACUNA_TEST_FILE
}  // namespace lacuna::test
