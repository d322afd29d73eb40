// Loops over one run: every length of a block, rows, short rows, transposes, cubes.
#include "tests/copy/checks.hpp"
#include "tests/copy/target.hpp"

namespace lacuna::copy {
namespace LACUNA_TEST_FILE {

using copy_test::bytes;
using copy_test::check_moves;
using copy_test::Dice;
using copy_test::hvector;
using copy_test::List;
using copy_test::moves;
using copy_test::Recipe;

LACUNA_ON_EVERY_SET(CopyNests);

List lengths() {
  List all;
  for (std::int64_t length = 1; length <= 130; ++length) all.push_back(length);
  for (const std::int64_t length : {200, 255, 256, 257, 511, 512, 513, 1000, 1023, 1024, 1025, 4099}) all.push_back(length);
  return all;
}

TEST_P(CopyNests, VectorsOfEveryBlockLength) {
  for (const std::int64_t length : lengths()) {
    check_moves(static_cast<std::uint64_t>(10'000 + 10 * length), 4, [&](Dice& dice) { return vector_of(dice, length); });
    if (HasFatalFailure()) return;
  }
}

TEST_P(CopyNests, RowsOfEveryBlockLength) {
  for (const std::int64_t length : lengths()) {
    check_moves(static_cast<std::uint64_t>(60'000 + 10 * length), 3, [&](Dice& dice) { return nest_of(dice, length); });
    if (HasFatalFailure()) return;
  }
}

TEST_P(CopyNests, EveryCountOfBlocksInAWindow) {
  for (const std::int64_t length : {1, 2, 3, 5, 8, 13, 21}) {
    for (std::int64_t count = 2; count <= 70; ++count) {
      for (const std::int64_t stride : {length + 1, 2 * length, -length - 3}) {
        const auto seed = static_cast<std::uint64_t>(count * 100 + length);
        ASSERT_TRUE(moves(hvector(count, stride, bytes(length)), seed));
      }
    }
  }
}

TEST_P(CopyNests, ShortRows) { check_moves(30'000, 300, copy_test::short_rows); }

TEST_P(CopyNests, Transposes) {
  for (const std::int64_t length : {1, 2, 3, 4, 8, 12, 16, 24, 32, 40}) {
    check_moves(static_cast<std::uint64_t>(40'000 + 100 * length), 10, [&](Dice& dice) { return transpose_of(dice, length); });
    if (HasFatalFailure()) return;
  }
}

TEST_P(CopyNests, ThreeLoopsAndFour) { check_moves(50'000, 200, copy_test::cube); }

// More columns than the first-level cache keeps lines until the next row: these are moved tile by tile.
TEST_P(CopyNests, TransposesOfManyColumns) {
  for (const std::int64_t length : {1, 4, 8, 12, 16, 24, 32, 48}) {
    for (const auto& [columns, stride] : {std::pair{400, 64 * 5}, {30, 1024}, {9, 4096}, {130, -4096}, {65, 8192}}) {
      const std::int64_t rows = std::abs(stride) / length > 70 ? 70 : std::abs(stride) / length;
      const Recipe matrix = hvector(rows, length, hvector(columns, stride, bytes(length)));
      ASSERT_TRUE(moves(matrix, static_cast<std::uint64_t>(length)));
    }
  }
}

}  // namespace LACUNA_TEST_FILE
}  // namespace lacuna::copy
