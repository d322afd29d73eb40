// Nests whose sides are dense along different loops, in every way that there is for them: tiles of each kernel,
// permutations of bytes, rows. Loops in any order on either side, with gaps, backwards, repeated from one place.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <string_view>

#include "lacuna/copy/copy.hpp"
#include "lacuna/copy/crossing.hpp"
#include "lacuna/copy/kernels.hpp"
#include "lacuna/copy/nest_move.hpp"
#include "tests/copy/checks.hpp"
#include "tests/copy/target.hpp"

namespace lacuna::copy {
namespace LACUNA_TEST_FILE {

using copy_test::Announced;
using copy_test::Bytes;
using copy_test::Memory;
using support::Random;

LACUNA_ON_EVERY_SET(CopyCrossings);

// Strides of one side: the loops one after another in some order, the first of them dense but for gaps.
void place(Nest& nest, std::int64_t Loop::* side, bool gaps, Random& random) {
  std::vector<std::size_t> order(nest.depth);
  std::iota(order.begin(), order.end(), std::size_t{0});
  random.shuffle(order);
  std::int64_t stride = nest.block;
  for (const std::size_t i : order) {
    Loop& loop = nest.loops[i];
    if (gaps && random.one_in(3)) stride += random.between(1, 70);
    // Lines that share a set of the first-level cache.
    if (gaps && stride < 4096 && loop.count < 40 && random.one_in(4)) stride = (stride + 2047) / 2048 * 2048;
    loop.*side = random.one_in(8) ? -stride : stride;
    stride *= loop.count;
  }
}

Nest draw(std::int64_t block, Random& random) {
  Nest nest{.block = block, .depth = static_cast<std::size_t>(random.between(2, 5))};
  std::int64_t left = (48 << 10) / block;
  for (std::size_t i = 0; i < nest.depth; ++i) {
    const std::int64_t most = random.one_in(3) ? std::min<std::int64_t>(left, 700) : std::min<std::int64_t>(left, 20);
    nest.loops[i].count = std::max<std::int64_t>(1, random.between(1, std::max<std::int64_t>(most, 1)));
    left /= nest.loops[i].count;
  }
  const bool gaps = random.one_in(2);
  place(nest, &Loop::to, gaps && random.one_in(2), random);
  place(nest, &Loop::from, gaps, random);
  if (random.one_in(10)) nest.loops[nest.depth - 1].from = 0;
  return nest;
}

struct Bounds {
  std::int64_t low = 0;
  std::int64_t high = 0;
};
Bounds bounds_of(const Nest& nest, std::int64_t Loop::* side) {
  Bounds bounds{0, nest.block};
  for (std::size_t i = 0; i < nest.depth; ++i) {
    const std::int64_t last = (nest.loops[i].count - 1) * nest.loops[i].*side;
    (last < 0 ? bounds.low : bounds.high) += last;
  }
  return bounds;
}

void move_naively(const Nest& nest, std::size_t left, const std::byte* from, std::byte* to) {
  if (left == 0) {
    std::memcpy(to, from, static_cast<std::size_t>(nest.block));
    return;
  }
  const Loop& loop = nest.loops[left - 1];
  for (std::int64_t i = 0; i < loop.count; ++i) move_naively(nest, left - 1, from + i * loop.from, to + i * loop.to);
}

std::string text_of(const Nest& nest, std::uint64_t seed) {
  std::string text = fmt::format("seed {}: blocks of {} B", seed, nest.block);
  for (std::size_t i = 0; i < nest.depth; ++i)
    text += fmt::format(", {} x {:+} to {:+}", nest.loops[i].count, nest.loops[i].from, nest.loops[i].to);
  return text;
}

template <class Way>
void check(const Nest& nest, std::uint64_t seed, Random& random, const char* name, const Way& way) {
  const std::string text = fmt::format("{}: {}", name, text_of(nest, seed));
  const Announced announced(text);
  const Bounds from = bounds_of(nest, &Loop::from);
  const Bounds to = bounds_of(nest, &Loop::to);
  const Memory source(from.low, from.high - from.low, random);
  const Memory target(to.low, to.high - to.low, random);
  Bytes expected = target.copy();
  move_naively(nest, nest.depth, source.base(), target.base(expected));
  way(source.base(), target.base());
  end_of_streaming();
  ASSERT_TRUE(std::ranges::equal(target.all(), expected))
      << copy_test::difference(target.all(), expected) << "\n  from: " << source.text() << "; to: " << target.text() << "\n  " << text;
}

constexpr std::uint64_t kEach = 16;

TEST_P(CopyCrossings, MoveExactlyTheirBytes) {
  for (std::int64_t block = 1; block < 64; block += block < 20 ? 1 : 4) {
    for (std::uint64_t n = 0; n < kEach; ++n) {
      const std::uint64_t seed = static_cast<std::uint64_t>(block) * 1000 + n;
      Random random(seed);
      const Nest nest = draw(block, random);
      const bool stream = random.one_in(2);
      check(nest, seed, random, "chosen", [&](const std::byte* from, std::byte* to) { NestMove(nest).move(from, to, stream); });
      check(nest, seed, random, "loops", [&](const std::byte* from, std::byte* to) { move_nest(nest, from, to, stream); });
      if (is_crossed(nest))
        check(nest, seed, random, "tiles", [&](const std::byte* from, std::byte* to) { Crossing(nest, stream).move(from, to); });
      if (const auto shuffles = Shuffles::of(nest, 1e9))
        check(nest, seed, random, "permutations", [&](const std::byte* from, std::byte* to) { shuffles->move(from, to, stream); });
      if (HasFatalFailure()) return;
    }
  }
}

// What the test above draws is to reach every kernel.
TEST_P(CopyCrossings, ReachEveryKernel) {
  std::vector<std::string> names;
  for (const std::int64_t block : {1, 2, 4, 8, 16}) {
    for (std::uint64_t n = 0; n < kEach; ++n) {
      Random random(static_cast<std::uint64_t>(block) * 1000 + n);
      const Nest nest = draw(block, random);
      if (is_crossed(nest)) names.emplace_back(Crossing(nest, false).kernel().name);
    }
  }
  for (const char* name : {"squares of registers", "one by one"}) EXPECT_NE(std::ranges::find(names, name), names.end()) << name;
  // Vectors of one lane: there is nothing tall or wide.
  if (!std::string_view(instruction_set()).starts_with("AVX")) return;
  for (const char* name :
       {"tall registers", "wide registers", "tall registers, a part of each lane", "wide registers, a part of each lane"})
    EXPECT_NE(std::ranges::find(names, name), names.end()) << name;
}

// Pixels of three bytes to planes, and numbers in reverse order: by permutations wherever there are some.
TEST_P(CopyCrossings, ShortElementsArePermuted) {
  const Nest pixels{.block = 1, .depth = 2, .loops = {{{3, 1, 5000}, {5000, 3, 1}}}};
  const Nest reverse{.block = 2, .depth = 1, .loops = {{{5000, -2, 2}}}};
  const bool vectors = std::string_view(instruction_set()).starts_with("AVX") || Shuffles::of(pixels, 1e9).has_value();
  if (!vectors) GTEST_SKIP() << "no permutations of bytes";
  for (const Nest& nest : {pixels, turned(pixels), reverse}) {
    EXPECT_TRUE(NestMove(nest).is_permuted()) << NestMove(nest).describe();
  }
}

// 16 bytes in rows of six, of 80 that are close, or of 29 that are spread over the cache's sets, on whichever side. Not
// in rows of 32 whose lines push one another out, nor of 100 pages.
TEST_P(CopyCrossings, RowsWhoseLinesStayAreTold) {
  const Nest few{.block = 16, .depth = 3, .loops = {{{6, 1280, 16}, {80, 16, 96}, {137, 7680, 7680}}}};
  const Nest spread{.block = 12, .depth = 2, .loops = {{{29, 18084, 12}, {1507, 12, 348}}}};
  const Nest collide{.block = 16, .depth = 3, .loops = {{{32, 2048, 16}, {128, 16, 512}, {16, 65536, 65536}}}};
  const Nest pages{.block = 16, .depth = 2, .loops = {{{100, 4160, 16}, {260, 16, 1600}}}};
  const auto goes_in_rows = [](const Nest& nest) { return NestMove(nest).describe().contains("in rows"); };
  for (const Nest& nest : {few, spread}) {
    EXPECT_TRUE(goes_in_rows(nest)) << NestMove(nest).describe();
    EXPECT_TRUE(goes_in_rows(turned(nest))) << NestMove(turned(nest)).describe();
  }
  for (const Nest& nest : {collide, pages}) EXPECT_FALSE(goes_in_rows(nest)) << NestMove(nest).describe();
}

}  // namespace LACUNA_TEST_FILE
}  // namespace lacuna::copy
