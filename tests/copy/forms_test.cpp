// Forms that no constructor writes, or only for very many runs: those of more than 65536 runs are taken from a peer as
// they come, and their parts are not spelled out.
#include <fmt/format.h>

#include <string>
#include <tuple>

#include "lacuna/copy/copy.hpp"
#include "tests/copy/checks.hpp"
#include "tests/copy/target.hpp"
#include "tests/support/random_layout.hpp"
#include "tests/support/wire_form.hpp"

namespace lacuna::copy {
namespace LACUNA_TEST_FILE {

using copy_test::bytes;
using copy_test::hvector;
using copy_test::List;
using copy_test::moves;
using copy_test::Recipe;
using copy_test::transpacks;
using support::Random;
using support::WireForm;

LACUNA_ON_EVERY_SET(CopyForms);

Recipe taken(const WireForm& form, const std::string& text) { return {support::value(layout::decode(form.bytes), text), text}; }

// `count` entries, span + gap apart in a shuffled order; the form's next node is what each of them is.
WireForm list_of(std::int64_t count, std::int64_t pitch, Random& random) {
  List places;
  for (std::int64_t i = 0; i < count; ++i) places.push_back(i * pitch);
  random.shuffle(places);
  WireForm form;
  form.list(count);
  for (std::size_t i = 1; i < places.size(); ++i) form.integer(places[i] - places[i - 1]);
  return form;
}

TEST_P(CopyForms, ListsOfShortVectors) {
  for (const auto& [runs, length, gap] : {std::tuple{10, 1, 1}, {20, 2, 1}, {32, 4, 5}, {3, 3, 4}, {2, 30, 40}}) {
    Random random(static_cast<std::uint64_t>(runs));
    const std::int64_t count = 66'000 / runs;
    const std::string text =
        fmt::format("seed {}: a list of {} times hvector({}, 1, {}, bytes({}))", runs, count, runs, length + gap, length);
    const Recipe list = taken(list_of(count, runs * (length + gap) + 3, random).loop(runs, length + gap).run(length), text);
    EXPECT_TRUE(describe_kernels(list.layout).starts_with("woven")) << describe_kernels(list.layout);
    ASSERT_TRUE(moves(list, static_cast<std::uint64_t>(runs)));
    const Recipe other = taken(list_of(count, runs * (length + 7) + 1, random).loop(runs, length + 7).run(length), "another " + text);
    ASSERT_TRUE(transpacks(list, other, static_cast<std::uint64_t>(runs)));
    const Recipe vector = hvector(count, runs * (length + 2) + 11, hvector(runs, length + 2, bytes(length)));
    ASSERT_TRUE(transpacks(list, vector, static_cast<std::uint64_t>(runs)));
    ASSERT_TRUE(transpacks(vector, list, static_cast<std::uint64_t>(runs)));
  }
}

TEST_P(CopyForms, ListsOfWhatNoKernelTakesAtOnce) {
  for (const std::int64_t runs : {40, 300}) {
    Random random(static_cast<std::uint64_t>(runs));
    const std::int64_t count = 66'000 / runs;
    const std::string text = fmt::format("seed {}: a list of {} times hvector({}, 1, 3, bytes(2))", runs, count, runs);
    const Recipe list = taken(list_of(count, runs * 3 + 5, random).loop(runs, 3).run(2), text);
    EXPECT_TRUE(describe_kernels(list.layout).starts_with("repeat")) << describe_kernels(list.layout);
    ASSERT_TRUE(moves(list, static_cast<std::uint64_t>(runs)));
    const Recipe other = taken(list_of(count, runs * 4 + 5, random).loop(runs, 4).run(2), "another " + text);
    ASSERT_TRUE(transpacks(list, other, static_cast<std::uint64_t>(runs)));
  }
}

TEST_P(CopyForms, ListsOfStructsTooLongToSpellOut) {
  for (const std::int64_t length : {2, 5, 20}) {
    Random random(static_cast<std::uint64_t>(length));
    List offsets;
    for (std::int64_t i = 0; i < 33'000; ++i) offsets.push_back(i * (2 * length + 9));
    random.shuffle(offsets);
    const Recipe list = hindexed_block(offsets, copy_test::structure({0, length + 3}, {bytes(length), bytes(length + 1)}));
    EXPECT_TRUE(describe_kernels(list.layout).starts_with("woven")) << describe_kernels(list.layout);
    ASSERT_TRUE(moves(list, static_cast<std::uint64_t>(length)));
  }
}

// Loops that go on where the one inside them ends.
TEST_P(CopyForms, LoopsThatAreOne) {
  const Recipe split = taken(WireForm().loop(300, 600).loop(300, 2).run(1), "300 x +600 { 300 x +2 { 1 B } }");
  const Recipe whole = hvector(90'000, 3, bytes(1));
  ASSERT_TRUE(moves(split, 1));
  ASSERT_TRUE(transpacks(split, whole, 2));
  ASSERT_TRUE(transpacks(whole, split, 3));
}

// More loops than a nest holds, of each kind of leaf.
TEST_P(CopyForms, DeepLoops) {
  for (const int depth : {5, 8, 9, 17}) {
    WireForm form;
    WireForm pitched;
    std::int64_t step = 2;
    for (int level = depth; level > 0; --level) step *= 2;
    for (std::int64_t outer = step / 2; outer >= 2; outer /= 2) {
      form.loop(2, outer + (outer >= 8 ? outer / 8 : 0));
      pitched.loop(2, outer * 2);
    }
    form.run(1);
    pitched.run(1);
    const std::string text = fmt::format("{} loops of 2", depth);
    const Recipe first = taken(form, text);
    const Recipe second = taken(pitched, text + ", twice as far");
    ASSERT_TRUE(moves(first, static_cast<std::uint64_t>(depth)));
    ASSERT_TRUE(moves(second, static_cast<std::uint64_t>(depth)));
    if (second.receives()) {
      ASSERT_TRUE(transpacks(first, second, static_cast<std::uint64_t>(depth)));
    }
  }
}

}  // namespace LACUNA_TEST_FILE
}  // namespace lacuna::copy
