// A plan is made once, stays with its layout, and is bounded: what it holds does not grow with the counts of its loops.
#include "lacuna/copy/plan.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "lacuna/copy/copy.hpp"

namespace lacuna::copy {
namespace LACUNA_TEST_FILE {

using layout::Layout;

// Six loops over numbers of 2 bytes, two of them of `count`. The packed stream has them in another order than memory.
Layout six_loops(std::int64_t count) {
  const std::vector<std::int64_t> counts{3, count, 4, count, 2, 5};
  std::vector<std::int64_t> strides(6);
  std::int64_t stride = 2;
  for (const std::size_t loop : {3UL, 0UL, 5UL, 1UL, 4UL, 2UL}) {
    strides[loop] = stride;
    stride *= counts[loop];
  }
  return Layout::strided(2, counts, strides).value();
}

TEST(CopyPlans, AreMadeOnce) {
  const Layout layout = six_loops(7);
  EXPECT_EQ(layout.companion(), nullptr);
  std::vector<std::byte> memory(static_cast<std::size_t>(layout.true_extent())), packed(static_cast<std::size_t>(layout.size()));
  pack(layout, memory.data(), 0, layout.size(), packed.data());
  const layout::Companion* const made = layout.companion();
  ASSERT_NE(made, nullptr);
  for (int i = 0; i < 3; ++i) {
    pack(layout, memory.data(), 0, layout.size(), packed.data());
    unpack(layout, memory.data(), 0, layout.size(), packed.data());
  }
  EXPECT_EQ(layout.companion(), made);
  EXPECT_EQ(&CopyPlan::of(layout), made);
}

TEST(CopyPlans, RememberTheWayBetweenTwoLayouts) {
  const Layout source = six_loops(7), target = six_loops(7), other = six_loops(6);
  const CopyPlan& plan = CopyPlan::of(target);
  const auto way = plan.from(source, target);
  ASSERT_NE(way, nullptr);
  EXPECT_EQ(plan.from(source, target), way);
  EXPECT_EQ(plan.from(other, target), nullptr);
}

// One step for all loops, whatever their counts: making it takes as long for a thousand times the bytes.
TEST(CopyPlans, OfLoopsHaveOneStep) {
  for (const std::int64_t count : {7, 70, 700}) {
    const CopyPlan plan(six_loops(count));
    EXPECT_EQ(plan.root().kind, Step::Kind::crossed) << plan.describe();
    EXPECT_TRUE(plan.root().children.empty() && plan.root().members.empty() && plan.root().spots.narrow.empty());
  }
}

// Where each row's last element touches the next row's first one the form has a part for the ends of rows. The plan has
// none: the rows are one step, whether each repeats one element or goes in steps.
TEST(CopyPlans, LoopsWhoseRowsTouchAreOneStep) {
  for (const std::int64_t element : {1, 2, 4, 8, 16, 24}) {
    for (const std::int64_t step : {std::int64_t{0}, 2 * element}) {
      constexpr std::int64_t kRows = 300, kColumns = 20;
      const std::int64_t row = (kColumns - 1) * step + element;
      const Layout layout = Layout::strided(element, std::vector{kRows, kColumns}, std::vector{row, step}).value();
      EXPECT_FALSE(describe_kernels(layout).contains("sequence")) << describe_kernels(layout);
      std::vector<std::byte> memory(static_cast<std::size_t>(layout.true_extent())), packed(static_cast<std::size_t>(layout.size())),
          expected;
      for (std::size_t i = 0; i < memory.size(); ++i) memory[i] = static_cast<std::byte>(i * 37 + i / 256);
      for (std::int64_t r = 0; r < kRows; ++r) {
        for (std::int64_t c = 0; c < kColumns; ++c) {
          const auto from = memory.begin() + r * row + c * step;
          expected.insert(expected.end(), from, from + element);
        }
      }
      pack(layout, memory.data(), 0, layout.size(), packed.data());
      EXPECT_EQ(packed, expected) << element << " B, a step of " << step;
      for (const std::int64_t at : {std::int64_t{1}, kColumns * element + 3, layout.size() - 7}) {
        std::vector<std::byte> part(static_cast<std::size_t>(layout.size() - at));
        pack(layout, memory.data(), at, layout.size() - at, part.data());
        EXPECT_TRUE(std::equal(part.begin(), part.end(), expected.begin() + at)) << element << " B from " << at;
      }
    }
  }
}

}  // namespace LACUNA_TEST_FILE
}  // namespace lacuna::copy
