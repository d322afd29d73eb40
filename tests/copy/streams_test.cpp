// Stores that pass the caches by: as steps run with them whatever the size, and as pack, unpack and transpack choose
// them where the destination's lines were flushed.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

#include "lacuna/copy/cold.hpp"
#include "lacuna/copy/copy.hpp"
#include "lacuna/copy/kernels.hpp"
#include "lacuna/copy/nest.hpp"
#include "lacuna/copy/strips.hpp"
#include "tests/copy/checks.hpp"
#include "tests/copy/target.hpp"
#if defined(__x86_64__)
#include <x86intrin.h>
#endif

namespace lacuna::copy {
namespace LACUNA_TEST_FILE {

using copy_test::Announced;
using copy_test::Bytes;
using copy_test::bytes;
using copy_test::Dice;
using copy_test::hvector;
using copy_test::List;
using copy_test::Memory;
using copy_test::Recipe;
using copy_test::streams;
using support::Random;

LACUNA_ON_EVERY_SET(CopyStreams);

TEST_P(CopyStreams, BlocksOfEveryLength) {
  List lengths = {192, 255, 256, 257, 300, 320, 512, 513, 1000, 1023, 1024, 1025, 1088, 2048, 4099};
  for (std::int64_t length = 1; length <= 130; ++length) lengths.push_back(length);
  for (const std::int64_t length : lengths) {
    for (std::uint64_t i = 0; i < 3; ++i) {
      const std::uint64_t seed = static_cast<std::uint64_t>(length) * 10 + i;
      Dice dice(seed);
      dice.receive = true;
      dice.budget = 4 << 10;
      ASSERT_TRUE(streams(i == 0 ? vector_of(dice, length) : i == 1 ? nest_of(dice, length) : list_of(dice, length), seed));
    }
  }
}

TEST_P(CopyStreams, Transposes) {
  for (std::uint64_t seed = 405'000; seed < 405'200; ++seed) {
    Random random(seed);
    const std::int64_t length = random.pick(List{4, 8, 16, 24});
    const std::int64_t rows = random.between(2, 70);
    const std::int64_t columns = random.between(2, 100);
    const std::int64_t pitch = length + (random.one_in(4) ? 1 : 0);
    const std::int64_t stride = (rows * pitch + 63) / 64 * 64 + (random.one_in(3) ? 8 : 0);
    ASSERT_TRUE(streams(hvector(rows, pitch, hvector(columns, stride, bytes(length))), seed));
  }
}

TEST_P(CopyStreams, Compositions) {
  for (std::uint64_t seed = 400'000; seed < 400'400; ++seed) {
    Dice dice(seed);
    dice.receive = seed % 3 != 0;
    dice.budget = 8 << 10;
    ASSERT_TRUE(streams(composition(dice, static_cast<int>(seed % 3)), seed));
  }
}

TEST_P(CopyStreams, Nests) {
  for (std::uint64_t seed = 410'000; seed < 410'200; ++seed) {
    Dice dice(seed);
    dice.receive = true;
    const std::int64_t length = copy_test::any_length(dice.what);
    Dice other(seed, seed + 7);  // the same nest elsewhere
    other.receive = true;
    (void)copy_test::any_length(other.what);
    const Recipe from = nest_of(dice, length);
    const Recipe to = nest_of(other, length);
    const std::optional<Nest> nest = zip(*from.layout.form(), *to.layout.form());
    ASSERT_TRUE(nest.has_value()) << from.text << " to " << to.text;
    const Announced announced(from.text + " to " + to.text);
    const Memory source(from.low(), from.span(), dice.where);
    const Memory target(to.low(), to.span(), dice.where);
    Bytes expected = target.copy();
    ASSERT_TRUE(reference::transpack(from.layout, source.base(), to.layout, target.base(expected)));
    move_nest(*nest, source.base() + from.layout.form_offset(), target.base() + to.layout.form_offset(), true);
    end_of_streaming();
    ASSERT_TRUE(std::ranges::equal(target.all(), expected)) << "seed " << seed << ": " << from.text << "\n  to " << to.text;
  }
}

// Slices of heads: some rows of each page, to pages elsewhere. More blocks than are collected at once, and fewer.
Recipe pages_of_rows(std::int64_t pages, std::int64_t rows, std::int64_t length, Random& random) {
  const Recipe page = hvector(rows, length + 64 * random.below(8), bytes(length));
  List places;
  std::int64_t at = 0;
  for (std::int64_t i = 0; i < pages; ++i) {
    places.push_back(at);
    at += page.span() + random.pick(List{0, 1, 64}) + (i % 3 == 2 ? 3 * length : 0);
  }
  random.shuffle(places);
  return copy_test::hindexed_block(places, page);
}

// What `move` moves is what the naive walk does.
template <class Moves>
void expect_moved(const Recipe& from, const Recipe& to, std::uint64_t seed, Random& random, const Moves& move) {
  ASSERT_TRUE(to.receives()) << to.text;
  const Announced announced(from.text + " to " + to.text);
  const Memory source(from.low(), from.span(), random);
  const Memory target(to.low(), to.span(), random);
  Bytes expected = target.copy();
  ASSERT_TRUE(reference::transpack(from.layout, source.base(), to.layout, target.base(expected)));
  move(source, target);
  EXPECT_TRUE(std::ranges::equal(target.all(), expected)) << "seed " << seed << ": " << from.text << "\n  to " << to.text;
}

TEST_P(CopyStreams, PagesOfRows) {
  for (std::uint64_t seed = 420'000; seed < 420'040; ++seed) {
    Random random(seed);
    const std::int64_t length = random.pick(List{255, 256, 300, 512, 513, 1024, 2000});
    const std::int64_t rows = random.pick(List{2, 8, 16, 64, 80}), pages = 6 * random.between(1, 160 / rows + 1);
    const Recipe from = pages_of_rows(pages, rows, length, random);
    ASSERT_TRUE(streams(from, seed));
    const std::int64_t other_rows = random.pick(List{rows, 2 * rows, 3 * rows});
    const Recipe to = random.one_in(2) ? pages_of_rows(pages * rows / other_rows, 1, other_rows * length, random)
                                       : pages_of_rows(pages * rows / other_rows, other_rows, length, random);
    expect_moved(from, to, seed, random, [&](const Memory& source, const Memory& target) {
      move_strips(from.layout, source.base(), to.layout, target.base(), 0, from.size(), true);
      end_of_streaming();
    });
  }
}

// --- chosen by asking the memory -------------------------------------------------------------------------------------

#if defined(__x86_64__)

void flush(std::span<std::byte> bytes) {
  for (std::size_t at = 0; at < bytes.size(); at += 64) _mm_clflush(bytes.data() + at);
  if (!bytes.empty()) _mm_clflush(bytes.data() + bytes.size() - 1);
  _mm_mfence();
}

// Whether flushed lines tell themselves from cached ones here; under an emulator they may not.
bool flushing_shows() {
  Bytes memory(1 << 20);
  int cold = 0;
  for (std::size_t i = 0; i < 16; ++i) {
    flush(memory);
    cold += misses(memory.data() + (2 * i + 1) * 30'000) && misses(memory.data() + (2 * i + 2) * 30'000) ? 1 : 0;
  }
  return cold >= 8;
}

std::vector<Recipe> large() {
  std::vector<Recipe> all;
  for (const std::int64_t length : {4, 8, 12, 24, 32, 60, 64, 100, 128, 200, 256, 320, 1000, 1024, 1500, 5000}) {
    const std::int64_t count = (70 << 10) / length + 1;
    all.push_back(hvector(count, length + 8, bytes(length)));
    all.push_back(hvector(count, copy_test::bytes(length).span() + 64 - length % 64, bytes(length)));
    all.push_back(hvector(count / 10 + 1, 12 * (length + 5), hvector(10, length + 5, bytes(length))));
    List offsets;
    for (std::int64_t i = 0; i < count; ++i) offsets.push_back((i * 7919 % count) * (length + 4));
    all.push_back(copy_test::hindexed_block(offsets, bytes(length)));
  }
  all.push_back(bytes(70 << 10));
  all.push_back(hvector(3, 40 << 10, bytes(30 << 10)));
  all.push_back(hvector(900, 200, copy_test::structure({0, 100}, {bytes(64), bytes(30)})));
  return all;
}

TEST_P(CopyStreams, ChosenWhereTheDestinationIsCold) {
  if (!flushing_shows()) GTEST_SKIP() << "flushed lines are not told from cached ones on this machine";
  for (std::uint64_t seed = 0; const Recipe& recipe : large()) {
    const Announced announced(recipe.text);
    Random random(++seed);
    const Memory memory(recipe.low(), recipe.span(), random);
    const Memory dense(0, recipe.size(), random);
    Bytes expected = dense.copy();
    reference::pack(recipe.layout, memory.base(), 0, recipe.size(), dense.base(expected));
    flush(dense.all());
    copy::pack(recipe.layout, memory.base(), 0, recipe.size(), dense.data());
    ASSERT_TRUE(std::ranges::equal(dense.all(), expected)) << "pack: " << recipe.text;

    const Memory target(recipe.low(), recipe.span(), random);
    expected = target.copy();
    reference::unpack(recipe.layout, target.base(expected), 0, recipe.size(), dense.data());
    flush(target.all());
    copy::unpack(recipe.layout, target.base(), 0, recipe.size(), dense.data());
    ASSERT_TRUE(std::ranges::equal(target.all(), expected)) << "unpack: " << recipe.text;
  }
}

// Pages on both sides that are cut alike.
TEST_P(CopyStreams, PagesAlikeWhereTheDestinationIsCold) {
  if (!flushing_shows()) GTEST_SKIP() << "flushed lines are not told from cached ones on this machine";
  for (std::uint64_t seed = 430'000; seed < 430'040; ++seed) {
    Random random(seed);
    const std::int64_t length = random.pick(List{255, 256, 300, 512, 513, 1024, 2000}), rows = random.pick(List{2, 8, 16, 64, 80});
    const std::int64_t pages = (200 << 10) / (rows * length) + 2;
    const Recipe from = pages_of_rows(pages, rows, length, random), to = pages_of_rows(pages, rows, length, random);
    expect_moved(from, to, seed, random, [&](const Memory& source, const Memory& target) {
      flush(target.all());
      EXPECT_TRUE(copy::transpack(from.layout, source.base(), to.layout, target.base()));
    });
  }
}

// Blocks so long that the source is asked, too.
TEST_P(CopyStreams, LongBlocksWhereOneSideIsCold) {
  if (!flushing_shows()) GTEST_SKIP() << "flushed lines are not told from cached ones on this machine";
  for (std::uint64_t seed = 440'000; seed < 440'012; ++seed) {
    Random random(seed);
    const std::int64_t length = random.pick(List{16'383, 16'384, 16'500, 40'000}), rows = random.pick(List{2, 4});
    const Recipe from = pages_of_rows(3, rows, length, random), to = pages_of_rows(3, rows, length, random);
    expect_moved(from, to, seed, random, [&](const Memory& source, const Memory& target) {
      if (seed % 4 != 0) flush(target.all());
      if (seed % 2 == 0) flush(source.all());
      EXPECT_TRUE(copy::transpack(from.layout, source.base(), to.layout, target.base()));
    });
  }
}

TEST_P(CopyStreams, FragmentsWhereTheDestinationIsCold) {
  if (!flushing_shows()) GTEST_SKIP() << "flushed lines are not told from cached ones on this machine";
  for (std::uint64_t seed = 0; const Recipe& recipe : large()) {
    Random random(++seed);
    const std::int64_t first = random.between(1, 500);
    const std::int64_t length = recipe.size() - first - random.between(1, 500);
    const Memory target(recipe.low(), recipe.span(), random);
    const Memory dense(0, length, random);
    Bytes expected = target.copy();
    reference::unpack(recipe.layout, target.base(expected), first, length, dense.data());
    flush(target.all());
    copy::unpack(recipe.layout, target.base(), first, length, dense.data());
    ASSERT_TRUE(std::ranges::equal(target.all(), expected)) << "unpack from " << first << ": " << recipe.text;
    const Memory packed(0, length, random);
    flush(packed.all());
    copy::pack(recipe.layout, target.base(), first, length, packed.data());
    ASSERT_EQ(packed.copy().size(), packed.all().size());
    ASSERT_TRUE(std::equal(packed.data(), packed.data() + length, dense.data())) << "pack from " << first << ": " << recipe.text;
  }
}

TEST_P(CopyStreams, LayoutToLayoutWhereTheDestinationIsCold) {
  if (!flushing_shows()) GTEST_SKIP() << "flushed lines are not told from cached ones on this machine";
  std::uint64_t seed = 0;
  for (const std::int64_t length : {8, 12, 32, 64, 100, 256, 320, 1024, 1500}) {
    const std::int64_t count = ((70 << 10) / length + 1) / 10 * 10;
    List shuffled;
    for (std::int64_t i = 0; i < count; ++i) shuffled.push_back((i * 7919 % count) * (length + 4));
    const std::vector<Recipe> same = {
        hvector(count, length + 8, bytes(length)),
        hvector(count, 2 * length + 64, bytes(length)),
        hvector(count / 10, 11 * (length + 5), hvector(10, length + 5, bytes(length))),
        hvector(count / 10, length + 5, hvector(10, count / 10 * (length + 5), bytes(length))),
        copy_test::hindexed_block(shuffled, bytes(length)),
        copy_test::structure({0, 300 << 10},
                             {hvector(count / 2, length + 4, bytes(length)), hvector(count / 2, length + 9, bytes(length))}),
    };
    for (const Recipe& from : same) {
      for (const Recipe& to : same) {
        Random random(++seed);
        const Memory source(from.low(), from.span(), random);
        const Memory target(to.low(), to.span(), random);
        const Announced announced(from.text + " to " + to.text);
        Bytes expected = target.copy();
        ASSERT_TRUE(reference::transpack(from.layout, source.base(), to.layout, target.base(expected)));
        flush(target.all());
        ASSERT_TRUE(copy::transpack(from.layout, source.base(), to.layout, target.base()));
        ASSERT_TRUE(std::ranges::equal(target.all(), expected)) << from.text << "\n  to " << to.text;
      }
    }
  }
}

#else
TEST_P(CopyStreams, ChosenWhereTheDestinationIsCold) { GTEST_SKIP() << "no instruction here flushes a cache line"; }
#endif

}  // namespace LACUNA_TEST_FILE
}  // namespace lacuna::copy
