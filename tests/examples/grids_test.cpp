// The checks of examples/stencil2d and examples/faces3d find what is wrong.
#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <utility>
#include <vector>

#include "examples/faces3d/check.hpp"
#include "examples/stencil2d/jacobi.hpp"

namespace LACUNA_TEST_FILE {

namespace stencil = examples::stencil2d;
namespace faces = examples::faces3d;

// Two ranks' blocks of a field of n x n cells, side by side.
stencil::Block half(int n, int place) { return {stencil::share(n, 1, 0), stencil::share(n, 2, place), {-1, -1, place - 1, 1 - 2 * place}}; }

TEST(Stencil, TwoBlocksWithRightBordersGiveTheFieldOfOneProcess) {
  constexpr int kN = 9;
  constexpr int kSteps = 7;
  const stencil::Block whole{{0, kN}, {0, kN}, {-1, -1, -1, -1}};
  const std::vector<double> wanted = stencil::serial(5, whole, kSteps);
  const stencil::Block blocks[] = {half(kN, 0), half(kN, 1)};
  std::vector<double> now[] = {stencil::initial_field(5, blocks[0]), stencil::initial_field(5, blocks[1])};
  for (int step = 0; step < kSteps; ++step) {
    for (int r = 0; r < kN; ++r) {
      now[0][blocks[0].at(r, blocks[0].columns.count)] = now[1][blocks[1].at(r, 0)];
      now[1][blocks[1].at(r, -1)] = now[0][blocks[0].at(r, blocks[0].columns.count - 1)];
    }
    for (int b = 0; b < 2; ++b) {
      std::vector<double> next = now[b];
      stencil::relax(blocks[b], now[b].data(), next.data());
      now[b].swap(next);
    }
  }
  EXPECT_EQ(stencil::differences(blocks[0], now[0], whole, wanted), 0U);
  EXPECT_EQ(stencil::differences(blocks[1], now[1], whole, wanted), 0U);
  now[1][blocks[1].at(3, 2)] = std::nextafter(now[1][blocks[1].at(3, 2)], 2.0);
  EXPECT_EQ(stencil::differences(blocks[1], now[1], whole, wanted), 1U);
}

TEST(Stencil, SharesCoverAnAxis) {
  for (const int places : {1, 2, 3, 7}) {
    int next = 0;
    for (int place = 0; place < places; ++place) {
      EXPECT_EQ(stencil::share(17, places, place).first, next);
      next += stencil::share(17, places, place).count;
    }
    EXPECT_EQ(next, 17);
  }
}

TEST(Faces, ABoxThatIsItsOwnNeighbourIsRightOnceEveryPartIsCopied) {
  const faces::Box box{{2, 3, 4}, {1, 1, 1}, {0, 0, 0}};
  std::vector<double> field(box.all());
  faces::fill(box, 2, field);
  const std::size_t border = box.all() - std::size_t{2} * 3 * 4;
  EXPECT_EQ(faces::wrong_cells(box, 2, field), border);
  std::set<std::size_t> filled;
  for (int d = 0; d < faces::kDirections; ++d) {
    if (d == faces::kItself) continue;
    const faces::Part from = box.inner(faces::opposite(d));
    const faces::Part to = box.border(d);
    ASSERT_EQ(from.count, to.count);
    for (int z = 0; z < to.count[0]; ++z)
      for (int y = 0; y < to.count[1]; ++y)
        for (int x = 0; x < to.count[2]; ++x) {
          const std::size_t at = box.at(to.first[0] + z, to.first[1] + y, to.first[2] + x);
          EXPECT_TRUE(filled.insert(at).second);
          field[at] = field[box.at(from.first[0] + z, from.first[1] + y, from.first[2] + x)];
        }
  }
  EXPECT_EQ(filled.size(), border);
  EXPECT_EQ(faces::wrong_cells(box, 2, field), 0U);
  EXPECT_EQ(faces::wrong_cells(box, 1, field), box.all());
  std::swap(field[0], field[1]);
  EXPECT_EQ(faces::wrong_cells(box, 2, field), 2U);
}

TEST(Faces, NeighboursAreAcrossTheGridAndItsEnds) {
  const faces::Box box{{2, 2, 2}, {1, 2, 3}, {0, 1, 2}};
  EXPECT_EQ(box.neighbour(faces::kItself), 5);
  EXPECT_EQ(box.neighbour(faces::kItself + 1), 3);  // x + 1: beyond the end
  EXPECT_EQ(box.neighbour(faces::kItself - 1), 4);
  EXPECT_EQ(box.neighbour(faces::kItself + 3), 2);  // y + 1
}

}  // namespace LACUNA_TEST_FILE
