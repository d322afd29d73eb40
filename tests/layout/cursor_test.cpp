// A cursor seeks to any byte of the packed stream and yields, from there, what the naive walk yields.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "lacuna/layout/layout.hpp"
#include "tests/support/random_layout.hpp"
#include "tests/support/walk.hpp"

namespace lacuna {
namespace LACUNA_TEST_FILE {

using layout::Cursor;
using layout::kMaxBytes;
using layout::Layout;
using layout::Strip;
using support::Random;
using support::Sample;
using support::value;
using List = std::vector<std::int64_t>;

using Runs = std::vector<layout::Run>;  // inside a TEST, Run is a member of GoogleTest's class

// The naive walk of [position, position + length), and how it must be cut: into the maximal runs.
Runs walk(const Runs& merged, std::int64_t position, std::int64_t length) {
  Runs out;
  for (const layout::Run& run : merged) {
    if (length == 0) break;
    if (position >= run.length) {
      position -= run.length;
      continue;
    }
    const std::int64_t taken = std::min(run.length - position, length);
    out.push_back({run.offset + position, taken});
    length -= taken;
    position = 0;
  }
  return out;
}

// Runs that were cut, put together again. The naive walk's runs are maximal, so this hides no wrong cut but those that
// the callers check for.
Runs merged(const Runs& runs) {
  naive::Typemap map;
  map.runs = runs;
  return map.merged();
}

std::int64_t some_bytes(Random& random, std::int64_t size) { return random.one_in(4) ? kMaxBytes : 1 + random.scaled(size); }

TEST(Cursor, RunsOfFragmentsInAnyOrder) {
  Random random(11);
  for (int i = 0; i < 4000; ++i) {
    const Sample sample = support::random_layout(random);
    const Runs expected = sample.typemap.merged();
    const std::int64_t size = sample.layout.size();
    Cursor cursor(sample.layout);
    ASSERT_EQ(cursor.size(), size);
    for (int fragment = 0; fragment < 6; ++fragment) {
      const std::int64_t position = random.between(0, size);
      const std::int64_t length = random.between(0, size - position);
      const std::int64_t max_bytes = some_bytes(random, size);
      cursor.seek(position);
      Runs got;
      std::int64_t left = length;
      while (left > 0) {
        ASSERT_EQ(cursor.position(), position + length - left) << sample.recipe;
        ASSERT_FALSE(cursor.done()) << sample.recipe;
        got.push_back(cursor.next_run(std::min(left, max_bytes)));
        ASSERT_GT(got.back().length, 0) << sample.recipe;
        ASSERT_LE(got.back().length, max_bytes) << sample.recipe;
        left -= got.back().length;
      }
      ASSERT_EQ(left, 0) << sample.recipe;
      if (max_bytes == kMaxBytes) {
        ASSERT_EQ(got, walk(expected, position, length)) << sample.recipe << " from " << position;
      }
      ASSERT_EQ(merged(got), walk(expected, position, length)) << sample.recipe << " from " << position;
    }
  }
}

TEST(Cursor, StripsOfFragmentsInAnyOrder) {
  Random random(12);
  for (int i = 0; i < 4000; ++i) {
    const Sample sample = support::random_layout(random);
    const Runs expected = sample.typemap.merged();
    const std::int64_t size = sample.layout.size();
    Cursor cursor(sample.layout);
    for (int fragment = 0; fragment < 6; ++fragment) {
      const std::int64_t position = random.between(0, size);
      const std::int64_t length = random.between(0, size - position);
      const std::int64_t max_bytes = some_bytes(random, size);
      cursor.seek(position);
      Runs got;
      std::int64_t left = length;
      while (left > 0) {
        const std::int64_t most = std::min(left, max_bytes);
        const Strip strip = cursor.next(most);
        ASSERT_GT(strip.count, 0) << sample.recipe;
        ASSERT_GT(strip.bytes(), 0) << sample.recipe;
        ASSERT_LE(strip.bytes(), most) << sample.recipe;
        std::int64_t bytes = 0;
        for (std::int64_t run = 0; run < strip.count; ++run) {
          got.push_back(strip.run(run));
          bytes += got.back().length;
        }
        ASSERT_EQ(bytes, strip.bytes()) << sample.recipe;
        left -= bytes;
        ASSERT_EQ(cursor.position(), position + length - left) << sample.recipe;
        // A cut inside a run happens only because most bytes were not enough for all of it.
        if (bytes < most && left > 0) {
          const Runs next = walk(expected, cursor.position(), 1);
          ASSERT_NE(got.back().offset + got.back().length, next.front().offset) << sample.recipe << " cut at " << cursor.position();
        }
      }
      ASSERT_EQ(merged(got), walk(expected, position, length)) << sample.recipe << " from " << position;
    }
  }
}

TEST(Cursor, RunsAndStripsMix) {
  Random random(13);
  for (int i = 0; i < 2000; ++i) {
    const Sample sample = support::random_layout(random);
    Cursor cursor(sample.layout);
    Runs got;
    while (!cursor.done()) {
      if (random.one_in(2)) {
        got.push_back(cursor.next_run(some_bytes(random, sample.layout.size())));
        continue;
      }
      const Strip strip = cursor.next(some_bytes(random, sample.layout.size()));
      for (std::int64_t run = 0; run < strip.count; ++run) got.push_back(strip.run(run));
    }
    ASSERT_EQ(merged(got), sample.typemap.merged()) << sample.recipe;
  }
}

TEST(Cursor, EndsOnceAndStaysThere) {
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    const Sample sample = support::random_layout(seed);
    Cursor cursor(sample.layout);
    cursor.seek(sample.layout.size());
    for (int again = 0; again < 2; ++again) {
      EXPECT_TRUE(cursor.done());
      EXPECT_EQ(cursor.next(1).count, 0);
      EXPECT_EQ(cursor.next_run(1).length, 0);
      EXPECT_EQ(cursor.position(), sample.layout.size());
    }
    cursor.seek(0);
    EXPECT_EQ(cursor.done(), sample.layout.size() == 0);
  }
}

TEST(Cursor, KeepsItsLayoutAlive) {
  const auto make = [] { return Cursor(value(Layout::indexed_block(1, List{5, 3, 9, 1, 7, 2, 8}, value(Layout::bytes(4))))); };
  Cursor cursor = make();
  Runs runs;
  while (!cursor.done()) runs.push_back(cursor.next_run(kMaxBytes));
  EXPECT_EQ(runs, (Runs{{20, 4}, {12, 4}, {36, 4}, {4, 4}, {28, 4}, {8, 4}, {32, 4}}));
}

TEST(Cursor, CopiesAreIndependent) {
  const Layout layout = value(Layout::vector(10, 1, 3, value(Layout::bytes(4))));
  Cursor first(layout);
  first.seek(10);
  Cursor second = first;
  EXPECT_EQ(first.next_run(kMaxBytes), (Runs{{26, 2}}[0]));
  EXPECT_EQ(second.position(), 10);
  EXPECT_EQ(second.next_run(1), (Runs{{26, 1}}[0]));
}

TEST(Cursor, OneStripForAWholeLoopOrList) {
  const auto strips = [](const Layout& layout) {
    int count = 0;
    for (Cursor cursor(layout); !cursor.done(); ++count) (void)cursor.next(kMaxBytes);
    return count;
  };
  EXPECT_EQ(strips(value(Layout::vector(1000, 1, 3, value(Layout::bytes(8))))), 1);
  EXPECT_EQ(strips(value(Layout::indexed_block(1, List{9, 4, 1, 7, 0, 2}, value(Layout::bytes(8))))), 1);
  EXPECT_EQ(strips(value(Layout::indexed(List{1, 2, 3, 1}, List{9, 40, 1, 70}, value(Layout::bytes(8))))), 1);
  EXPECT_EQ(strips(value(Layout::strided(8, List{50, 10}, List{800, 16}))), 50);
}

}  // namespace LACUNA_TEST_FILE
}  // namespace lacuna
