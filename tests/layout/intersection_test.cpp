// The intersection of two layouts is the minimal list of pieces that are contiguous on both sides, from any position
// on.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "lacuna/layout/layout.hpp"
#include "tests/support/random_layout.hpp"
#include "tests/support/walk.hpp"

namespace lacuna {
namespace LACUNA_TEST_FILE {

using layout::Intersection;
using layout::kMaxBytes;
using layout::Layout;
using layout::Piece;
using support::Random;
using support::Sample;
using support::value;
using List = std::vector<std::int64_t>;
using Pieces = std::vector<Piece>;

// Byte after byte: a piece goes on while both sides do.
Pieces brute_force(const List& src, const List& dst, std::int64_t position) {
  Pieces pieces;
  for (auto i = static_cast<std::size_t>(position); i < src.size(); ++i) {
    if (!pieces.empty() && pieces.back().src + pieces.back().length == src[i] && pieces.back().dst + pieces.back().length == dst[i]) {
      ++pieces.back().length;
    } else {
      pieces.push_back({src[i], dst[i], 1});
    }
  }
  return pieces;
}

Pieces take_all(Intersection& pieces, std::int64_t max_bytes) {
  Pieces taken;
  while (!pieces.done()) {
    taken.push_back(pieces.next(max_bytes));
    if (taken.back().length <= 0) break;
  }
  return taken;
}

struct Pair {
  Sample src;
  Sample dst;
};

// Two layouts of one size: unrelated nests, or two cuttings of one stream.
Pair random_pair(Random& random) {
  const support::Limits limits = {.runs = 500, .bytes = 8 << 10};
  Sample src = support::random_layout(random, limits);
  Sample dst = support::random_layout_of_size(random, src.layout.size(), limits);
  if (random.one_in(2)) std::swap(src, dst);
  return {std::move(src), std::move(dst)};
}

TEST(Intersection, EqualsBruteForce) {
  Random random(21);
  for (int i = 0; i < 3000; ++i) {
    const auto [src, dst] = random_pair(random);
    const List from = src.typemap.addresses();
    const List to = dst.typemap.addresses();
    Intersection pieces = value(Intersection::of(src.layout, dst.layout));
    ASSERT_EQ(take_all(pieces, kMaxBytes), brute_force(from, to, 0)) << src.recipe << "\n  to " << dst.recipe;
    ASSERT_EQ(pieces.position(), src.layout.size());
    ASSERT_EQ(pieces.next().length, 0);
    for (int again = 0; again < 3; ++again) {
      const std::int64_t position = random.between(0, src.layout.size());
      pieces.seek(position);
      ASSERT_EQ(pieces.position(), position);
      ASSERT_EQ(take_all(pieces, kMaxBytes), brute_force(from, to, position))
          << src.recipe << "\n  to " << dst.recipe << "\n  from " << position;
    }
  }
}

TEST(Intersection, CutsAtMaxBytesOnly) {
  Random random(22);
  for (int i = 0; i < 2000; ++i) {
    const auto [src, dst] = random_pair(random);
    const Pieces expected = brute_force(src.typemap.addresses(), dst.typemap.addresses(), 0);
    Intersection pieces = value(Intersection::of(src.layout, dst.layout));
    Pieces got;
    std::int64_t position = 0;
    for (std::size_t at = 0; !pieces.done();) {
      const std::int64_t max_bytes = random.one_in(3) ? kMaxBytes : 1 + random.scaled(200);
      const Piece piece = pieces.next(max_bytes);
      ASSERT_GT(piece.length, 0) << src.recipe << "\n  to " << dst.recipe;
      ASSERT_LE(piece.length, max_bytes);
      position += piece.length;
      ASSERT_EQ(pieces.position(), position);
      if (at == got.size()) {
        got.push_back(piece);
      } else {
        ASSERT_EQ(piece.src, got.back().src + got.back().length);
        ASSERT_EQ(piece.dst, got.back().dst + got.back().length);
        got.back().length += piece.length;
      }
      ASSERT_LT(at, expected.size());
      if (got.back().length == expected[at].length) ++at;
      ASSERT_TRUE(piece.length == max_bytes || at == got.size())
          << "cut short of " << max_bytes << " at " << position << ": " << src.recipe << "\n  to " << dst.recipe;
    }
    ASSERT_EQ(got, expected) << src.recipe << "\n  to " << dst.recipe;
  }
}

TEST(Intersection, WithItselfIsItsRuns) {
  for (std::uint64_t seed = 0; seed < 1000; ++seed) {
    const Sample sample = support::random_layout(seed);
    Intersection pieces = value(Intersection::of(sample.layout, sample.layout));
    ASSERT_EQ(std::ssize(take_all(pieces, kMaxBytes)), sample.layout.run_count()) << sample.recipe;
  }
}

TEST(Intersection, SizesMustBeEqual) {
  const auto result = Intersection::of(value(Layout::bytes(12)), value(Layout::bytes(16)));
  ASSERT_FALSE(result.has_value());
  EXPECT_EQ(result.error().code, base::Code::invalid_argument);
  EXPECT_NE(result.error().message.find("12"), std::string::npos) << result.error().message;
  EXPECT_NE(result.error().message.find("16"), std::string::npos) << result.error().message;
}

TEST(Intersection, OfNothingIsNothing) {
  Intersection pieces = value(Intersection::of(Layout(), value(Layout::contiguous(0, value(Layout::bytes(4))))));
  EXPECT_TRUE(pieces.done());
  EXPECT_EQ(pieces.next().length, 0);
}

}  // namespace LACUNA_TEST_FILE
}  // namespace lacuna
