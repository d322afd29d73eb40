// Each method's work, counted by hand: what a transfer posts at either end, and what its CPUs copy. The numbers are in
// the order of Counters: work requests, receives, sges, doorbells, completions, keys created, keys bound, key entries,
// bytes copied. They hold on every NIC: limits are set.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "lacuna/method/method.hpp"
#include "tests/nic/rig.hpp"

namespace lacuna::test {
namespace LACUNA_TEST_FILE {

using layout::Layout;
using method::Endpoint;
using method::Notify;
using method::Role;

using Numbers = std::array<std::int64_t, 9>;
Numbers numbers(const method::Counters& c) {
  return {c.work_requests, c.receives, c.sges, c.doorbells, c.completions, c.keys_created, c.keys_bound, c.key_entries, c.bytes_copied};
}

Layout bytes(std::int64_t n) { return Layout::bytes(n).value(); }

// 64 blocks of 100 bytes, on both sides: lists of 30 make three messages, 30 + 30 + 4.
method::Transfer equal() {
  const Layout loop = Layout::hvector(64, 1, 300, bytes(100)).value();
  return {loop, loop};
}
// Blocks of 10, 20, 30, 40 and 50 bytes to two of 75. Where either ends there is a cut: at 10, 30, 60, 75, 100 and 150,
// six pieces.
method::Transfer uneven() {
  const std::int64_t lengths[] = {10, 20, 30, 40, 50};
  const std::int64_t offsets[] = {0, 11, 60, 100, 200};
  return {Layout::blocks(offsets, lengths).value(), Layout::hvector(2, 1, 100, bytes(75)).value()};
}
// Four blocks of 16 bytes to one contiguous buffer: no copy and no key at the receiver.
method::Transfer to_contiguous() { return {Layout::hvector(4, 1, 50, bytes(16)).value(), bytes(64)}; }

struct Expected {
  const char* method;
  Notify notify;
  Numbers send, receive;              // of a transfer whose keys are bound already
  Numbers first_send, first_receive;  // of the first, where that differs
};
constexpr Numbers kSame{};

struct Table {
  const char* name;
  method::Transfer (*transfer)();
  nic::OpenOptions options;
  std::vector<Expected> expected;
};

const nic::OpenOptions kLists{.max_sge = 30, .max_sge_rd = 30};
const Table kTables[] = {
    {"Equal",
     equal,
     kLists,
     {
         {"pack", Notify::none, {1, 0, 1, 1, 1, 0, 0, 0, 6400}, {0, 1, 1, 0, 1, 0, 0, 0, 6400}, kSame, kSame},
         {"pack_pipelined", Notify::none, {1, 0, 1, 1, 1, 0, 0, 0, 6400}, {0, 1, 1, 0, 1, 0, 0, 0, 6400}, kSame, kSame},
         {"pack_write", Notify::flag, {2, 0, 2, 2, 1, 0, 0, 0, 6400}, {0, 0, 0, 0, 0, 0, 0, 0, 6400}, kSame, kSame},
         {"pack_write", Notify::imm, {1, 0, 1, 1, 1, 0, 0, 0, 6400}, {0, 1, 0, 0, 1, 0, 0, 0, 6400}, kSame, kSame},
         {"gather_write", Notify::flag, {4, 0, 65, 4, 1, 0, 0, 0, 0}, {0, 0, 0, 0, 0, 0, 0, 0, 6400}, kSame, kSame},
         {"gather_write", Notify::imm, {3, 0, 64, 3, 1, 0, 0, 0, 0}, {0, 1, 0, 0, 1, 0, 0, 0, 6400}, kSame, kSame},
         // The source says that it has packed, by a flag; the reader that it has read.
         {"scatter_read", Notify::flag, {1, 0, 1, 1, 1, 0, 0, 0, 6400}, {4, 0, 65, 4, 1, 0, 0, 0, 0}, kSame, kSame},
         {"scatter_read", Notify::imm, {1, 1, 1, 1, 2, 0, 0, 0, 6400}, {4, 0, 64, 4, 1, 0, 0, 0, 0}, kSame, kSame},
         {"scatter_read", Notify::none, {1, 0, 1, 1, 1, 0, 0, 0, 6400}, {3, 0, 64, 3, 1, 0, 0, 0, 0}, kSame, kSame},
         // One doorbell; every 32nd request of a queue of 128 is signaled to free its places, and the last.
         {"linked_write", Notify::none, {64, 0, 64, 1, 2, 0, 0, 0, 0}, {}, kSame, kSame},
         {"linked_write", Notify::flag, {65, 0, 65, 1, 3, 0, 0, 0, 0}, {}, kSame, kSame},
         {"linked_write", Notify::imm, {64, 0, 64, 1, 2, 0, 0, 0, 0}, {0, 1, 0, 0, 1, 0, 0, 0, 0}, kSame, kSame},
         {"multi_write", Notify::none, {64, 0, 64, 64, 2, 0, 0, 0, 0}, {}, kSame, kSame},
         {"sgrs", Notify::none, {3, 0, 64, 3, 1, 0, 0, 0, 0}, {0, 3, 64, 0, 3, 0, 0, 0, 0}, kSame, kSame},
         // A loop is one strided entry. The first transfer binds: one more request, doorbell and completion.
         {"umr_send",
          Notify::none,
          {1, 0, 1, 1, 1, 0, 0, 0, 0},
          {0, 1, 1, 0, 1, 0, 0, 0, 0},
          {2, 0, 1, 2, 2, 1, 1, 1, 0},
          {1, 1, 1, 1, 2, 1, 1, 1, 0}},
         // Its keys are those of umr_send: the same layouts at the same places. But a key that the peer writes through
         // has another right.
         {"umr_write", Notify::none, {1, 0, 1, 1, 1, 0, 0, 0, 0}, {}, kSame, {1, 0, 0, 1, 1, 1, 1, 1, 0}},
         {"umr_write", Notify::flag, {2, 0, 2, 2, 2, 0, 0, 0, 0}, {}, kSame, kSame},
         {"umr_write", Notify::imm, {1, 0, 1, 1, 1, 0, 0, 0, 0}, {0, 1, 0, 0, 1, 0, 0, 0, 0}, kSame, kSame},
         {"umr_read", Notify::none, {1, 0, 1, 1, 1, 0, 0, 0, 0}, {1, 0, 1, 1, 1, 0, 0, 0, 0}, {2, 0, 1, 2, 2, 1, 1, 1, 0}, kSame},
         {"umr_read", Notify::imm, {1, 1, 1, 1, 2, 0, 0, 0, 0}, {2, 0, 1, 2, 2, 0, 0, 0, 0}, kSame, kSame},
     }},
    {"EqualListsOnly",  // as in the seeds, whose keys were lists
     equal,
     {.max_sge = 30, .indirect = {.strided_entries = 0}},
     {
         // Keys of at most 52 entries, those that a bind request holds inline, in one list.
         {"umr_chunked",
          Notify::none,
          {1, 0, 2, 1, 1, 0, 0, 0, 0},
          {0, 1, 2, 0, 1, 0, 0, 0, 0},
          {3, 0, 2, 3, 3, 2, 2, 64, 0},
          {2, 1, 2, 2, 3, 2, 2, 64, 0}},
         {"umr_send",
          Notify::none,
          {1, 0, 1, 1, 1, 0, 0, 0, 0},
          {0, 1, 1, 0, 1, 0, 0, 0, 0},
          {2, 0, 1, 2, 2, 1, 1, 64, 0},
          {1, 1, 1, 1, 2, 1, 1, 64, 0}},
     }},
    {"Uneven",
     uneven,
     kLists,
     {
         {"pack", Notify::none, {1, 0, 1, 1, 1, 0, 0, 0, 150}, {0, 1, 1, 0, 1, 0, 0, 0, 150}, kSame, kSame},
         {"gather_write", Notify::imm, {1, 0, 5, 1, 1, 0, 0, 0, 0}, {0, 1, 0, 0, 1, 0, 0, 0, 150}, kSame, kSame},
         {"scatter_read", Notify::none, {1, 0, 1, 1, 1, 0, 0, 0, 150}, {1, 0, 2, 1, 1, 0, 0, 0, 0}, kSame, kSame},
         {"linked_write", Notify::imm, {6, 0, 6, 1, 1, 0, 0, 0, 0}, {0, 1, 0, 0, 1, 0, 0, 0, 0}, kSame, kSame},
         {"multi_write", Notify::imm, {6, 0, 6, 6, 1, 0, 0, 0, 0}, {0, 1, 0, 0, 1, 0, 0, 0, 0}, kSame, kSame},
         {"sgrs", Notify::none, {1, 0, 5, 1, 1, 0, 0, 0, 0}, {0, 1, 2, 0, 1, 0, 0, 0, 0}, kSame, kSame},
         {"umr_write", Notify::none, {1, 0, 1, 1, 1, 0, 0, 0, 0}, {}, {2, 0, 1, 2, 2, 1, 1, 5, 0}, {1, 0, 0, 1, 1, 1, 1, 1, 0}},
     }},
    {"UnevenTwoSges",
     uneven,
     {.max_sge = 2},
     {
         // Lists of two: 10 + 20 to 30; 30 + 40 to 45 + 25; 50 to 50.
         {"sgrs", Notify::none, {3, 0, 5, 3, 1, 0, 0, 0, 0}, {0, 3, 4, 0, 3, 0, 0, 0, 0}, kSame, kSame},
         {"gather_write", Notify::imm, {3, 0, 5, 3, 1, 0, 0, 0, 0}, {0, 1, 0, 0, 1, 0, 0, 0, 150}, kSame, kSame},
     }},
    {"UnevenThreeKeyEntries",
     uneven,
     {.max_sge = 30, .indirect = {.entries = 3}},
     {
         // Keys of three: 10 + 20 + 30 to a part of a block; 40 + 50 to the rest of it and a block. The first needs a
         // key at the sender only.
         {"umr_send",
          Notify::none,
          {2, 0, 2, 2, 2, 0, 0, 0, 0},
          {0, 2, 2, 0, 2, 0, 0, 0, 0},
          {4, 0, 2, 4, 4, 2, 2, 5, 0},
          {1, 2, 2, 1, 3, 1, 1, 2, 0}},
         {"umr_write", Notify::imm, {2, 0, 2, 2, 2, 0, 0, 0, 0}, {0, 1, 0, 0, 1, 0, 0, 0, 0}, kSame, {1, 1, 0, 1, 2, 1, 1, 2, 0}},
     }},
    {"ToContiguous",
     to_contiguous,
     kLists,
     {
         {"pack", Notify::none, {1, 0, 1, 1, 1, 0, 0, 0, 64}, {0, 1, 1, 0, 1, 0, 0, 0, 0}, kSame, kSame},
         {"pack_pipelined", Notify::none, {1, 0, 1, 1, 1, 0, 0, 0, 64}, {0, 1, 1, 0, 1, 0, 0, 0, 0}, kSame, kSame},
         // The papers' Copy Write: one copy
         {"pack_write", Notify::none, {1, 0, 1, 1, 1, 0, 0, 0, 64}, {}, kSame, kSame},
         {"gather_write", Notify::none, {1, 0, 4, 1, 1, 0, 0, 0, 0}, {}, kSame, kSame},
         {"linked_write", Notify::none, {4, 0, 4, 1, 1, 0, 0, 0, 0}, {}, kSame, kSame},
         {"multi_write", Notify::none, {4, 0, 4, 4, 1, 0, 0, 0, 0}, {}, kSame, kSame},
         {"umr_write", Notify::none, {1, 0, 1, 1, 1, 0, 0, 0, 0}, {}, {2, 0, 1, 2, 2, 1, 1, 1, 0}, kSame},
     }},
};

std::string count(const Table& table, nic::Path path, int rank, nic::Bootstrap& bootstrap) {
  const auto context = LACUNA_END_TRY(open_tested(table.options));
  const auto endpoint = LACUNA_END_TRY(Endpoint::connect(*context, bootstrap, path));
  const nic::Buffer buffer = LACUNA_END_TRY(context->allocate(100'000));
  const nic::Region region = LACUNA_END_TRY(context->register_memory(buffer.bytes(), {}));
  for (const Expected& expected : table.expected) {
    method::Transfer transfer = table.transfer();
    transfer.notify = expected.notify;
    const method::Method& m = *LACUNA_END_TRY(method::find(expected.method));
    if (m.indirect_keys && endpoint->limits().indirect.keys == 0) continue;
    const auto operation = LACUNA_END_TRY(method::make(m, rank == 0 ? Role::sender : Role::receiver, *endpoint, transfer, {&region}));
    for (int i = 0; i < 3; ++i) {
      nic::Hello mine;
      mine.bytes = LACUNA_END_TRY(endpoint->prepare(*operation, buffer.data(), kPatience)).encode();
      const auto theirs = LACUNA_END_TRY(method::Target::decode(LACUNA_END_TRY(bootstrap.exchange(mine, kPatience)).bytes));
      LACUNA_END_TRY(operation->start(buffer.data(), theirs));
      LACUNA_END_TRY(endpoint->run(*operation, kPatience));
      LACUNA_END_TRY(barrier(bootstrap));
      const Numbers& first = rank == 0 ? expected.first_send : expected.first_receive;
      const Numbers& later = rank == 0 ? expected.send : expected.receive;
      const Numbers& wanted = i == 0 && first != kSame ? first : later;
      if (const Numbers got = numbers(operation->counters()); got != wanted) {
        std::string text = fmt::format("{}, notify {}, transfer {}: got", m.name, notify_name(expected.notify), i);
        for (const std::int64_t n : got) text += fmt::format(" {}", n);
        for (const std::int64_t n : wanted) text += fmt::format("{}{}", &n == wanted.data() ? ", wanted " : " ", n);
        return text;
      }
    }
  }
  return {};
}

class Counted : public testing::TestWithParam<std::tuple<Table, nic::Path>> {
 protected:
  static std::string end(int rank, nic::Bootstrap& bootstrap) {
    return count(std::get<0>(GetParam()), std::get<1>(GetParam()), rank, bootstrap);
  }
  // The lists of 64 entries are bound whole.
  static int entries_needed() { return std::string_view(std::get<0>(GetParam()).name) == "EqualListsOnly" ? 64 : 0; }
  static bool only_by_keys() {
    return std::ranges::all_of(std::get<0>(GetParam()).expected,
                               [](const Expected& e) { return method::find(e.method).value()->indirect_keys; });
  }
};
// Skips, visibly, where a key takes fewer entries than the numbers are for.
#define LACUNA_NEEDS_ENTRIES()                                                                                       \
  if (const auto opened_ = open_tested();                                                                            \
      opened_ && (*opened_)->limits().indirect.keys > 0 && (*opened_)->limits().indirect.entries < entries_needed()) \
  GTEST_SKIP() << "an indirect key of this device takes " << (*opened_)->limits().indirect.entries << " entries"

TEST_P(Counted, ByHandTwoThreads) {
  LACUNA_NEEDS_LISTS(std::get<0>(GetParam()).options.max_sge);
  LACUNA_NEEDS_ENTRIES();
  EXPECT_EQ(in_two_threads(end), "");
}
TEST_P(Counted, ByHandTwoProcesses) {
  LACUNA_NEEDS_LISTS(std::get<0>(GetParam()).options.max_sge);
  if (only_by_keys()) LACUNA_NEEDS_KEYS();
  LACUNA_NEEDS_ENTRIES();
  EXPECT_EQ(in_two_processes(end), "");
}
INSTANTIATE_TEST_SUITE_P(Method, Counted, testing::Combine(testing::ValuesIn(kTables), testing::Values(tested_paths().front())),
                         [](const auto& info) {
                           return std::string(std::get<0>(info.param).name) + "_" + std::string(nic::path_name(std::get<1>(info.param)));
                         });

// The copies of a chunked transfer add up; the chunks fly one after the other.
std::string chunks(nic::Path path, int rank, nic::Bootstrap& bootstrap) {
  const auto context = LACUNA_END_TRY(open_tested());
  const auto endpoint = LACUNA_END_TRY(Endpoint::connect(*context, bootstrap, path));
  const nic::Buffer buffer = LACUNA_END_TRY(context->allocate(1 << 20));
  const nic::Region region = LACUNA_END_TRY(context->register_memory(buffer.bytes(), {}));
  // 100,000 bytes: three chunks of 32 KiB and a rest
  const Layout loop = Layout::hvector(100, 1, 3000, bytes(1000)).value();
  const auto operation = LACUNA_END_TRY(
      method::make(*method::find("pack_pipelined").value(), rank == 0 ? Role::sender : Role::receiver, *endpoint, {loop, loop}, {&region}));
  LACUNA_END_TRY(operation->start(buffer.data()));
  LACUNA_END_TRY(endpoint->run(*operation, kPatience));
  const Numbers wanted = rank == 0 ? Numbers{4, 0, 4, 4, 4, 0, 0, 0, 100'000} : Numbers{0, 4, 4, 0, 4, 0, 0, 0, 100'000};
  LACUNA_END_EXPECT(numbers(operation->counters()) == wanted);
  LACUNA_END_TRY(barrier(bootstrap));
  return {};
}
class CountedInChunks : public EveryPath {};
LACUNA_ON_EVERY_PATH(CountedInChunks, chunks)
INSTANTIATE_TEST_SUITE_P(Method, CountedInChunks, testing::ValuesIn(tested_paths()), path_test_name);

}  // namespace LACUNA_TEST_FILE
}  // namespace lacuna::test
