// Offsets that need 64 bits: a few neighbourhoods of pages, gigabytes apart, everything between them faulting.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "lacuna/copy/copy.hpp"
#include "tests/copy/checks.hpp"
#include "tests/copy/target.hpp"

namespace lacuna::copy {
namespace LACUNA_TEST_FILE {

using copy_test::Announced;
using copy_test::Bytes;
using copy_test::bytes;
using copy_test::List;
using copy_test::Memory;
using copy_test::Recipe;
using support::Random;

LACUNA_ON_EVERY_SET(CopyFar);

constexpr std::int64_t kSize = 16 << 10;  // of a neighbourhood
// One on either side of where 32 bits end.
constexpr std::array<std::int64_t, 3> kAt = {0, (std::int64_t{1} << 31) - kSize / 2, (std::int64_t{5} << 30) + 4096 * 7};
constexpr std::int64_t kReach = (std::int64_t{5} << 30) + (std::int64_t{1} << 20);

// Memory of some GiB of which only the neighbourhoods exist.
class Wide {
 public:
  Wide() {
    mapped_ = mmap(nullptr, kReach, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (mapped_ == MAP_FAILED) return;
    for (const std::int64_t at : kAt) usable_ = usable_ && mprotect(base() + at, kSize, PROT_READ | PROT_WRITE) == 0;
  }
  ~Wide() {
    if (mapped_ != MAP_FAILED) munmap(mapped_, kReach);
  }
  Wide(const Wide&) = delete;
  Wide& operator=(const Wide&) = delete;

  [[nodiscard]] bool usable() const { return mapped_ != MAP_FAILED && usable_; }
  [[nodiscard]] std::byte* base() const { return static_cast<std::byte*>(mapped_); }
  void fill_with(std::uint64_t seed) const {
    Random random(seed);
    for (const std::int64_t at : kAt) copy_test::fill({base() + at, kSize}, random);
  }
  [[nodiscard]] bool equals(const Wide& other) const {
    return std::ranges::all_of(kAt, [&](std::int64_t at) { return std::memcmp(base() + at, other.base() + at, kSize) == 0; });
  }

 private:
  void* mapped_;
  bool usable_ = true;
};

// `count` places of `span` bytes in all neighbourhoods, in two, or in two as far as 32 bits reach; the first and the
// last bytes of each among them.
List places(std::int64_t count, std::int64_t span, bool shuffled, Random& random) {
  const std::int64_t manner = random.below(3);
  const std::int64_t neighbourhoods = manner == 0 ? 3 : 2;
  const std::int64_t each = (count + neighbourhoods - 1) / neighbourhoods;
  List offsets;
  for (std::size_t n = 0; n < static_cast<std::size_t>(neighbourhoods); ++n) {
    const std::int64_t last = (manner == 2 ? kSize / 2 : kSize) - span;
    const std::int64_t pitch = each > 1 ? last / (each - 1) : 0;
    for (std::int64_t i = 0; i < each && std::ssize(offsets) < count; ++i)
      offsets.push_back(kAt[n] + (i + 1 == each && i > 0 ? last : i * pitch));
  }
  if (shuffled) random.shuffle(offsets);
  return offsets;
}

Recipe far_list(std::int64_t count, std::int64_t length, Random& random) {
  return hindexed_block(places(count, length, random.one_in(2), random), bytes(length));
}

Recipe far_blocks(std::int64_t count, std::int64_t most, Random& random) {
  const List offsets = places(count, most, random.one_in(2), random);
  List lengths;
  for (std::int64_t i = 0; i < count; ++i) lengths.push_back(random.between(1, most));
  return copy_test::blocks(offsets, lengths);
}

Recipe far_structs(std::int64_t count, std::int64_t length, Random& random) {
  const Recipe one = copy_test::structure({0, 2 * length, 5 * length}, {bytes(length), bytes(length + 1), bytes(length)});
  return hindexed_block(places(count, one.span(), true, random), one);
}

// Rows that are far apart, of blocks that are near each other.
Recipe far_rows(std::int64_t count, std::int64_t length) {
  return copy_test::hvector(2, kAt[1], copy_test::hvector(count, length + 3, bytes(length)));
}

void check(const Recipe& recipe, const Wide& a, const Wide& b, std::uint64_t seed) {
  const std::string text = fmt::format("seed {}: {}\n  steps: {}", seed, recipe.text, copy::describe_kernels(recipe.layout));
  const Announced announced(text);
  Random random(seed);
  a.fill_with(seed);
  b.fill_with(seed);
  const Memory stream(0, recipe.size(), random);
  Bytes expected = stream.copy();
  reference::pack(recipe.layout, a.base(), 0, recipe.size(), stream.base(expected));
  const std::int64_t half = random.between(0, recipe.size());
  for (const auto& [from, to] : {std::pair{std::int64_t{0}, recipe.size()}, {std::int64_t{0}, half}, {half, recipe.size()}}) {
    pack(recipe.layout, a.base(), from, to - from, stream.data() + from);
  }
  ASSERT_TRUE(std::ranges::equal(stream.all(), expected)) << text;
  const Memory other(0, recipe.size(), random);
  unpack(recipe.layout, a.base(), half, recipe.size() - half, other.data() + half);
  unpack(recipe.layout, a.base(), 0, half, other.data());
  reference::unpack(recipe.layout, b.base(), 0, recipe.size(), other.data());
  ASSERT_TRUE(a.equals(b)) << text;
}

TEST_P(CopyFar, ListsBlocksStructsAndRows) {
  const Wide a;
  const Wide b;
  if (!a.usable() || !b.usable()) GTEST_SKIP() << "cannot map 5 GiB";
  std::uint64_t seed = 700'000;
  for (const std::int64_t length : {1, 2, 3, 4, 5, 7, 8, 9, 12, 15, 16, 17, 31, 32, 33, 48, 64, 65, 96, 100, 128, 200, 256, 500, 600}) {
    for (const std::int64_t count : {3, 8, 24}) {
      Random random(++seed);
      check(far_list(count, length, random), a, b, seed);
      check(far_blocks(count, length + 1, random), a, b, seed);
      if (length < 64) check(far_structs(count, length, random), a, b, seed);
      if (length < 64) check(far_rows(count, length), a, b, seed);
      if (HasFatalFailure()) return;
    }
  }
}

TEST_P(CopyFar, LayoutToLayout) {
  const Wide a;
  const Wide b;
  const Wide source;
  if (!a.usable() || !b.usable() || !source.usable()) GTEST_SKIP() << "cannot map 5 GiB";
  std::uint64_t seed = 710'000;
  source.fill_with(seed);
  for (const std::int64_t length : {1, 2, 4, 6, 8, 12, 16, 24, 32, 48, 64, 100, 256, 500}) {
    for (const std::int64_t count : {4, 12, 24}) {
      Random random(++seed);
      const std::vector<Recipe> same = {
          far_list(count, length, random), far_list(count, length, random), copy_test::hvector(count, length + 1, bytes(length)),
          copy_test::hvector(2, kAt[1], copy_test::hvector(count / 2, length + 5, bytes(length))),
          copy_test::structure({0, 7 * length + 300}, {bytes(length), copy_test::hvector(count - 1, length + 2, bytes(length))})};
      for (const Recipe& from : same) {
        for (const Recipe& to : same) {
          const std::string text = fmt::format("seed {}: {}\n  to {}", seed, from.text, to.text);
          const Announced announced(text);
          a.fill_with(seed + 1);
          b.fill_with(seed + 1);
          ASSERT_TRUE(copy::transpack(from.layout, source.base(), to.layout, a.base()));
          ASSERT_TRUE(reference::transpack(from.layout, source.base(), to.layout, b.base()));
          ASSERT_TRUE(a.equals(b)) << text;
        }
      }
    }
  }
}

}  // namespace LACUNA_TEST_FILE
}  // namespace lacuna::copy
