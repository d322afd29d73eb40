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

}  // namespace LACUNA_TEST_FILE
}  // namespace lacuna::copy
