// Layout to layout: each kind of structure to each other kind, of equal blocks, of blocks that divide one another, and
// of blocks that do not.
#include <fmt/format.h>

#include <numeric>

#include "tests/copy/checks.hpp"
#include "tests/copy/target.hpp"

namespace lacuna::copy {
namespace LACUNA_TEST_FILE {

using copy_test::blocks;
using copy_test::bytes;
using copy_test::Dice;
using copy_test::hindexed_block;
using copy_test::hvector;
using copy_test::List;
using copy_test::Recipe;
using copy_test::structure;
using copy_test::transpacks;
using support::Random;

LACUNA_ON_EVERY_SET(CopyTranspack);

// Layouts of `n` times `length` bytes; n is even. `where` decides about gaps alone.
using Kind = Recipe (*)(std::int64_t n, std::int64_t length, Random& where);

Recipe vector(std::int64_t n, std::int64_t length, Random& where) {
  const std::int64_t stride = length + where.between(1, 40);
  return hvector(n, where.one_in(4) ? -stride : stride, bytes(length));
}

std::int64_t rows_of(std::int64_t n) {
  std::int64_t rows = 2;
  for (std::int64_t r = 2; r * r <= n; ++r) rows = n % r == 0 ? r : rows;
  return rows;
}

Recipe rows(std::int64_t n, std::int64_t length, Random& where) {
  const Recipe row = vector(n / rows_of(n), length, where);
  return hvector(rows_of(n), row.span() + where.between(1, 70), row);
}

Recipe columns(std::int64_t n, std::int64_t length, Random& where) {
  const std::int64_t outer = length + where.between(0, 9);
  return hvector(rows_of(n), outer, hvector(n / rows_of(n), outer * rows_of(n) + where.between(0, 64), bytes(length)));
}

List places(std::int64_t n, std::int64_t span, Random& where) {
  List offsets;
  for (std::int64_t i = 0, at = 0; i < n; ++i, at += span + where.between(1, 20)) offsets.push_back(at);
  return offsets;
}

Recipe sorted_list(std::int64_t n, std::int64_t length, Random& where) { return hindexed_block(places(n, length, where), bytes(length)); }

Recipe shuffled_list(std::int64_t n, std::int64_t length, Random& where) {
  List offsets = places(n, length, where);
  where.shuffle(offsets);
  return hindexed_block(offsets, bytes(length));
}

// Blocks of lengths that are the same whatever `where` is.
Recipe cut(std::int64_t total, std::int64_t most, Random& where) {
  Random what(static_cast<std::uint64_t>(total));
  List offsets;
  List lengths;
  for (std::int64_t left = total, at = 0; left > 0; left -= lengths.back()) {
    lengths.push_back(std::min(left, what.between(1, most)));
    offsets.push_back(at);
    at += lengths.back() + where.between(1, 30);
  }
  return blocks(offsets, lengths);
}
Recipe ragged(std::int64_t n, std::int64_t length, Random& where) { return cut(n * length, 2 * length, where); }
Recipe long_ragged(std::int64_t n, std::int64_t length, Random& where) { return cut(n * length, 20 * length, where); }

// `length` bytes in up to four members.
Recipe entry(std::int64_t length, Random& where) {
  List offsets;
  std::vector<Recipe> members;
  for (std::int64_t left = length, at = 0; left > 0;) {
    const std::int64_t bytes_here = offsets.size() == 3 ? left : (left + 1) / 2;
    offsets.push_back(at);
    members.push_back(bytes(bytes_here));
    at += bytes_here + where.between(1, 5);
    left -= bytes_here;
  }
  return structure(offsets, members);
}

Recipe structs(std::int64_t n, std::int64_t length, Random& where) {
  const Recipe one = entry(length, where);
  return hvector(n, one.span() + where.between(1, 9), one);
}

Recipe list_of_structs(std::int64_t n, std::int64_t length, Random& where) {
  const Recipe one = entry(length, where);
  List offsets = places(n, one.span(), where);
  where.shuffle(offsets);
  return hindexed_block(offsets, one);
}

Recipe halves(std::int64_t n, std::int64_t length, Random& where) {
  return length % 2 == 0 ? vector(2 * n, length / 2, where) : vector(n * length, 1, where);
}
Recipe doubles(std::int64_t n, std::int64_t length, Random& where) { return vector(n / 2, 2 * length, where); }
Recipe double_list(std::int64_t n, std::int64_t length, Random& where) { return shuffled_list(n / 2, 2 * length, where); }

Recipe two_lists(std::int64_t n, std::int64_t length, Random& where) {
  const Recipe first = shuffled_list(n / 2 + 1, length, where);
  const Recipe second = vector(n - n / 2 - 1, length, where);
  return structure({0, first.high() + 100 - second.low()}, {first, second});
}

Recipe two_pieces(std::int64_t n, std::int64_t length, Random& where) {
  return blocks({0, n * length + where.between(1, 99)}, {(n / 2 + 1) * length, (n - n / 2 - 1) * length});
}

// A loop that no kernel takes at once: around a list and a vector.
Recipe repeated(std::int64_t n, std::int64_t length, Random& where) {
  if (n % 4 != 0) return two_lists(n, length, where);
  const Recipe one = two_lists(n / 4, length, where);
  return hvector(4, one.span() + where.between(1, 300), one);
}

Recipe dense(std::int64_t n, std::int64_t length, Random& where) { return blocks({where.between(-20, 20)}, {n * length}); }

constexpr Kind kKinds[] = {vector, rows,    columns,     sorted_list,     shuffled_list, ragged,     long_ragged, structs,
                           halves, doubles, double_list, list_of_structs, two_lists,     two_pieces, repeated,    dense};

TEST_P(CopyTranspack, EachKindToEachKind) {
  std::uint64_t seed = 500'000;
  for (const auto& [n, length] : {std::pair{12, 3}, {24, 8}, {40, 12}, {120, 5}, {64, 16}, {36, 100}, {16, 300}, {720, 4}, {660, 20}}) {
    for (const Kind from : kKinds) {
      for (const Kind to : kKinds) {
        Random where(++seed);
        const Recipe source = from(n, length, where);
        const Recipe target = to(n, length, where);
        ASSERT_TRUE(transpacks(source, target, seed));
      }
    }
  }
}

// One entry to a window on both sides, whether they come at a stride or from a list.
TEST_P(CopyTranspack, StructsThatFillAWindowEach) {
  std::uint64_t seed = 505'000;
  for (std::int64_t span = 4; span <= 64; ++span) {
    Random where(++seed);
    const auto element = [&] {
      const std::int64_t hole = where.between(1, span - 3);  // not the same on both sides
      return structure({0, hole + 1}, {bytes(1), bytes(span - 1 - hole)});
    };
    const std::int64_t count = where.between(8, 30);
    const Recipe one = element();
    const Recipe array = hvector(count, (where.one_in(2) ? 1 : -1) * where.between(65, 99), one);
    const Recipe other_array = hvector(count, where.between(65, 99), structure({span, 0}, {bytes(1), bytes(one.size() - 1)}));
    List offsets = places(count, span + 1, where);
    where.shuffle(offsets);
    const Recipe list = hindexed_block(offsets, one);
    where.shuffle(offsets);
    const Recipe other_list = hindexed_block(offsets, structure({span, 0}, {bytes(1), bytes(one.size() - 1)}));
    for (const Recipe& from : {array, list}) {
      for (const Recipe& to : {other_array, other_list}) {
        ASSERT_TRUE(transpacks(from, to, seed));
        ASSERT_TRUE(transpacks(to, from, seed));
      }
    }
  }
}

// 12 B to 16 B, 7 B to 5 B, 3 B to 64 B, ...: as many bytes, and nothing else in common.
TEST_P(CopyTranspack, BlocksThatDoNotDivide) {
  std::uint64_t seed = 510'000;
  for (const auto& [a, b] : {std::pair{12, 16}, {7, 5}, {3, 64}, {33, 31}, {100, 24}, {257, 12}, {9, 1000}, {24, 36}, {1, 13}}) {
    for (const std::int64_t scale : {2, 14}) {
      for (const Kind from : kKinds) {
        for (const Kind to : {vector, columns, shuffled_list, structs, ragged, two_lists}) {
          Random where(++seed);
          const Recipe source = from(b * scale, a, where);
          const Recipe target = to(a * scale, b, where);
          ASSERT_TRUE(transpacks(source, target, seed));
        }
      }
    }
  }
}

TEST_P(CopyTranspack, TheSameStructureElsewhere) {
  for (std::uint64_t seed = 520'000; seed < 520'600; ++seed) {
    Dice from(seed, seed);
    Dice to(seed, seed + 1000);
    to.receive = true;
    const int depth = static_cast<int>(seed % 3);
    const Recipe source = composition(from, depth);
    const Recipe target = composition(to, depth);
    ASSERT_EQ(source.size(), target.size());
    ASSERT_TRUE(transpacks(source, target, seed));
  }
}

TEST_P(CopyTranspack, AnyStructureOfTheSameSize) {
  for (std::uint64_t seed = 530'000; seed < 530'500; ++seed) {
    Dice dice(seed);
    dice.receive = seed % 2 == 0;
    const Recipe source = composition(dice, static_cast<int>(seed % 3));
    Dice other(seed + 5000);
    other.receive = true;
    const Recipe target = of_size(other, source.size());
    ASSERT_EQ(source.size(), target.size());
    ASSERT_TRUE(transpacks(source, target, seed));
    if (source.receives()) {
      ASSERT_TRUE(transpacks(target, source, seed));
    }
  }
}

// Matrices: blocks of any of the lengths that tiles have, any two orders of the loops.
TEST_P(CopyTranspack, AxesInAnyOrder) {
  for (std::uint64_t seed = 540'000; seed < 540'300; ++seed) {
    Random random(seed);
    const std::int64_t item = random.pick(List{1, 2, 3, 4, 8, 8, 12, 16, 24, 32, 40, 64});
    List shape(static_cast<std::size_t>(random.between(2, 4)));
    for (std::int64_t& n : shape) n = random.between(2, shape.size() == 2 ? 70 : shape.size() == 3 ? 17 : 8);
    const auto placed = [&] {
      List axes(shape.size());
      std::iota(axes.begin(), axes.end(), 0);
      random.shuffle(axes);
      List strides(shape.size());
      std::int64_t step = item;
      for (const std::int64_t axis : axes) {
        const auto at = static_cast<std::size_t>(axis);
        strides[at] = random.one_in(5) ? -step : step;
        step = step * shape[at] + (random.one_in(3) ? random.between(1, 64) : 0);
      }
      return copy_test::strided(item, shape, strides);
    };
    const Recipe source = placed();
    const Recipe target = placed();
    ASSERT_TRUE(transpacks(source, target, seed));
  }
}

}  // namespace LACUNA_TEST_FILE
}  // namespace lacuna::copy
