// Planning and posting hold what the two layouts' compact forms hold, a few times over, and a queue's worth of
// requests; never a list of all the pieces. Counted, not believed: this program's operators new and delete know
// (allocations.hpp). What the device itself has to hold, its queues and the entries behind its keys, is counted too,
// since the NIC of these tests is a part of the program.
#include <gtest/gtest.h>

#include <functional>

#include "tests/handover/allocations.hpp"
#include "tests/support/random_layout.hpp"
#include "tools/handover/cache.hpp"
#include "tools/handover/posting.hpp"

namespace lacuna {
namespace LACUNA_TEST_FILE {

using layout::Layout;
using layout::Node;
using support::value;
using List = std::vector<std::int64_t>;

// Of a canonical form.
std::int64_t bytes_of(const Node& node) {
  auto bytes = static_cast<std::int64_t>(sizeof node + (node.offsets.size() + node.starts.size()) * sizeof(std::int64_t));
  for (const auto& child : node.children) bytes += bytes_of(*child);
  return bytes;
}

// The send queue of 128 requests with lists of 30 entries, at both ends of the NIC, the chain that is being built, and
// small things.
constexpr std::int64_t kQueues = 400 << 10;
// Entries of an indirect key, at most, in each of the three forms in which they exist while it is bound: runs, a
// request's list, the device's.
constexpr std::int64_t kKeyEntries = 65536 * 16;

struct Pair {
  std::function<Layout()> src, dst;
  std::int64_t src_span, dst_span;
  std::int64_t pieces;
};

struct Held {
  std::int64_t most = 0;   // at any time from the first constructor to the last completion
  std::int64_t forms = 0;  // of both layouts
};

Held hold(const method::Method& how, const Pair& pair, std::span<std::byte> src) {
  const std::span<std::byte> there(reinterpret_cast<std::byte*>(std::uintptr_t{1} << 45), static_cast<std::size_t>(pair.dst_span));
  test::watch();
  Held held;
  {
    const method::Transfer transfer{pair.src(), pair.dst(), method::Notify::flag};
    auto bench = value(handover::PostingBench::create(how, transfer, src, there));
    value(bench.post());
    held.most = test::allocations().most;
    held.forms = bytes_of(*transfer.src.form()) + bytes_of(*transfer.dst.form());
  }
  EXPECT_GE(held.most, held.forms) << "what the library holds is not counted";
  EXPECT_LT(test::allocations().bytes, 1024) << how.name << ": something stays behind";
  return held;
}

// Rows at one stride to rows at another, as descriptor lists of 1.4 million entries have them: two loops. Nothing is
// ever as long as their number.
TEST(Memory, OfLoopsDoesNotGrowWithThem) {
  const auto rows = [](std::int64_t count, std::int64_t stride) {
    return value(Layout::hvector(count, 1, stride, value(Layout::bytes(256))));
  };
  for (const method::Method& how : method::methods()) {
    if (!how.one_sided() || !handover::sender_posts(how) || how.exposes == method::Exposes::nothing) continue;
    SCOPED_TRACE(how.name);
    for (const std::int64_t count : {1000, 100'000, 1'400'000}) {
      const Pair pair{[&] { return rows(count, 512); }, [&] { return rows(count, 768); }, count * 512, count * 768, count};
      const std::span<std::byte> src(reinterpret_cast<std::byte*>(std::uintptr_t{1} << 44), static_cast<std::size_t>(pair.src_span));
      const Held held = hold(how, pair, src);
      EXPECT_LT(held.forms, 1024);
      EXPECT_LT(held.most, held.forms + kQueues) << count << " pieces; a list of them has " << count * 24 << " bytes";
    }
  }
}

// The same pages, of more and more rows each: the table is what is held.
TEST(Memory, OfPageTablesDoesNotGrowWithTheRowsOfAPage) {
  constexpr std::int64_t pages = 2625;
  const List table = handover::page_table(pages, 2, 3);
  for (const method::Method& how : method::methods()) {
    if (!how.one_sided() || !handover::sender_posts(how) || how.exposes == method::Exposes::nothing) continue;
    SCOPED_TRACE(how.name);
    for (const std::int64_t rows : {4, 64, 256}) {
      const std::int64_t count = pages * rows;
      const Pair pair{[&] { return value(Layout::hvector(count, 1, std::int64_t{8} * 576, value(Layout::bytes(576)))); },
                      [&] { return value(Layout::paged(rows * 576, table)); }, count * 8 * 576, 2 * count * 576, count};
      const std::span<std::byte> src(reinterpret_cast<std::byte*>(std::uintptr_t{1} << 44), static_cast<std::size_t>(pair.src_span));
      const Held held = hold(how, pair, src);
      EXPECT_LT(held.most, 8 * held.forms + kQueues) << count << " pieces; a list of them has " << count * 24 << " bytes";
    }
  }
}

// Two page tables of 100 000 blocks, where the forms are lists of offsets themselves: nothing of three numbers for each
// piece beside them.
TEST(Memory, OfTwoPageTablesIsAFewTimesTheTables) {
  constexpr std::int64_t blocks = 100'000;
  const List here = handover::page_table(blocks, 2, 1);
  const List there = handover::page_table(blocks, 2, 2);
  const Pair pair{[&] { return value(Layout::paged(256, here)); }, [&] { return value(Layout::paged(256, there)); }, 2 * blocks * 256,
                  2 * blocks * 256, blocks};
  const std::span<std::byte> src(reinterpret_cast<std::byte*>(std::uintptr_t{1} << 44), static_cast<std::size_t>(pair.src_span));
  for (const method::Method& how : method::methods()) {
    if (!how.one_sided() || !handover::sender_posts(how) || how.exposes == method::Exposes::nothing) continue;
    SCOPED_TRACE(how.name);
    const Held held = hold(how, pair, src);
    // Forms; while the second is made, at most three lists as long as its own, where some blocks touch. A list of all
    // pieces, three numbers each, would be one and a half times the forms beside them. A key of either end holds a
    // form's entries three times while it is bound.
    const std::int64_t keys = how.indirect_keys ? 2 * 2 * blocks * 16 + 3 * kKeyEntries : 0;
    EXPECT_LT(held.most, 2 * held.forms + kQueues + keys);
  }
}

}  // namespace LACUNA_TEST_FILE
}  // namespace lacuna
