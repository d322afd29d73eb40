// A message's two lists need not be alike: a SEND is one stream of bytes, which the receive's list cuts as it likes.
// Shown within one work request, and where both sides are cut into chains of them.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "lacuna/method/method.hpp"
#include "tests/method/moves_rig.hpp"

namespace lacuna::test {
namespace LACUNA_TEST_FILE {

using layout::Layout;
using method::Endpoint;
using method::Role;

// Blocks of these lengths, with a gap of 7 bytes behind each.
Layout blocks(const std::vector<std::int64_t>& lengths) {
  std::vector<std::int64_t> offsets;
  std::int64_t at = 3;
  for (const std::int64_t length : lengths) {
    offsets.push_back(at);
    at += length + 7;
  }
  return Layout::blocks(offsets, lengths).value();
}

struct Posted {
  std::int64_t requests, entries;  // of send or receive requests
};

// Moves one case by sgrs, verified, and looks at what it posted.
std::string posts(const corpus::Case& c, Posted sent, Posted received, nic::Path path, int rank, nic::Bootstrap& bootstrap) {
  const auto context = LACUNA_END_TRY(open_tested());
  const auto endpoint = LACUNA_END_TRY(Endpoint::connect(*context, bootstrap, path));
  const Arrays arrays = LACUNA_END_TRY(Arrays::make(*context, c, rank));
  const auto operation = LACUNA_END_TRY(method::make(*method::find("sgrs").value(), rank == 0 ? Role::sender : Role::receiver, *endpoint,
                                                     {c.send, c.receive}, {&arrays.region}));
  const std::vector<std::byte> stream = measure::stream_of(1, c.send.size());
  if (rank == 0) measure::write_stream(c.send, arrays.base, stream);
  LACUNA_END_TRY(operation->start(arrays.base));
  LACUNA_END_TRY(endpoint->run(*operation, kMoveTimeout));
  const method::Counters& counted = operation->counters();
  const Posted wanted = rank == 0 ? sent : received;
  const std::int64_t requests = rank == 0 ? counted.work_requests : counted.receives;
  if (requests != wanted.requests || counted.sges != wanted.entries || counted.bytes_copied != 0) {
    return fmt::format("{} requests with {} entries; wanted {} with {}; {} bytes copied", requests, counted.sges, wanted.requests,
                       wanted.entries, counted.bytes_copied);
  }
  std::string wrong = rank == 1 ? measure::examine(c.receive, arrays.base, arrays.windows, stream) : "";
  LACUNA_END_TRY(barrier(bootstrap));
  return wrong;
}

// Five blocks to two: one send with five entries, one receive with two.
std::string one_request(nic::Path path, int rank, nic::Bootstrap& bootstrap) {
  const corpus::Case c = pair("five to two", blocks({1000, 2000, 1, 5000, 1999}), blocks({7500, 2500}));
  return posts(c, {1, 5}, {1, 2}, path, rank, bootstrap);
}

// Three times as many blocks as a list takes, to half as many of twice the size: the sender's list is full each time,
// the receiver's half full.
std::string chains(nic::Path path, int rank, nic::Bootstrap& bootstrap) {
  const auto context = LACUNA_END_TRY(open_tested());
  const std::int64_t most = context->limits().max_sge / 2 * 2;
  LACUNA_END_EXPECT(most == context->limits().max_sge);  // else blocks of twice the size are cut within
  const std::vector<std::int64_t> fine(static_cast<std::size_t>(3 * most), 500);
  const std::vector<std::int64_t> coarse(fine.size() / 2, 1000);
  return posts(pair("fine to coarse", blocks(fine), blocks(coarse)), {3, 3 * most}, {3, 3 * most / 2}, path, rank, bootstrap);
}

// Neither list knows the other's blocks: a message ends where either is full, often within a block of the other. An
// entry more for each such cut.
std::string uneven_chains(nic::Path path, int rank, nic::Bootstrap& bootstrap) {
  const auto context = LACUNA_END_TRY(open_tested());
  const int most = context->limits().max_sge;
  const corpus::Case c = pair("uneven", irregular(11, 60'000, 900), irregular(12, 60'000, 900));
  layout::Cursor ours(c.send);
  layout::Cursor theirs(c.receive);
  Posted sent{};
  Posted received{};
  const auto take = [](layout::Cursor& cursor, std::int64_t bytes) {  // entries
    std::int64_t entries = 0;
    for (; bytes > 0; ++entries) bytes -= cursor.next_run(bytes).length;
    return entries;
  };
  const auto reach = [&](layout::Cursor cursor) {  // bytes of a full list
    const std::int64_t from = cursor.position();
    for (int i = 0; i < most && !cursor.done(); ++i) cursor.next_run(layout::kMaxBytes);
    return cursor.position() - from;
  };
  while (!ours.done()) {
    const std::int64_t bytes = std::min(reach(ours), reach(theirs));
    sent.entries += take(ours, bytes);
    received.entries += take(theirs, bytes);
    ++sent.requests;
    ++received.requests;
  }
  LACUNA_END_EXPECT(sent.requests > 10 && sent.entries != received.entries);
  return posts(c, sent, received, path, rank, bootstrap);
}

class SgrsWithDifferentLists : public EveryPath {};
#define LACUNA_LISTS_TEST(name, scenario, entries)                                                               \
  TEST_P(SgrsWithDifferentLists, name##TwoProcesses) {                                                           \
    LACUNA_NEEDS_PATH(GetParam());                                                                               \
    LACUNA_NEEDS_LISTS(entries);                                                                                 \
    EXPECT_EQ(in_two_processes([&](int rank, nic::Bootstrap& b) { return scenario(GetParam(), rank, b); }), ""); \
  }
LACUNA_LISTS_TEST(WithinOneWorkRequest, one_request, 5)
LACUNA_LISTS_TEST(CutIntoChains, chains, 2)
LACUNA_LISTS_TEST(CutIntoChainsWithinBlocks, uneven_chains, 2)
INSTANTIATE_TEST_SUITE_P(Method, SgrsWithDifferentLists, testing::ValuesIn(tested_paths()), path_test_name);

}  // namespace LACUNA_TEST_FILE
}  // namespace lacuna::test
