// A distributed matrix is transposed, whatever its blocks, elements and leading dimensions are, and the padding of rows
// stays.
#include <fmt/format.h>

#include <numeric>

#include "tests/collective/blocks.hpp"
#include "tests/support/tier.hpp"

namespace lacuna::test {
namespace LACUNA_TEST_FILE {

LACUNA_TIER(test, "Transpose.*");
LACUNA_TIER(test, "EvenBlocks.*");

using collective::Matrix;

struct Shape {
  std::int64_t rows, columns, element;
  std::vector<std::int64_t> row_blocks, column_blocks;  // empty: even
  std::int64_t pad_before = 0, pad_after = 0;
};

std::byte element_byte(std::int64_t row, std::int64_t column, std::int64_t i) {
  return static_cast<std::byte>(1 + (row * 131 + column * 17 + i * 3) % 250);
}

std::int64_t first_of(const std::vector<std::int64_t>& blocks, int rank) {
  return std::accumulate(blocks.begin(), blocks.begin() + rank, std::int64_t{0});
}

std::string transposes(Communicator& ranks, const Shape& shape, Schedule schedule) {
  const auto rows = shape.row_blocks.empty() ? collective::even_blocks(shape.rows, ranks.size()) : shape.row_blocks;
  const auto columns = shape.column_blocks.empty() ? collective::even_blocks(shape.columns, ranks.size()) : shape.column_blocks;
  const auto rank = static_cast<std::size_t>(ranks.rank());
  const std::int64_t step_before = (shape.columns + shape.pad_before) * shape.element;
  const std::int64_t step_after = (shape.rows + shape.pad_after) * shape.element;
  std::vector<std::byte> before(static_cast<std::size_t>(rows[rank] * step_before + 1), std::byte{255});
  std::vector<std::byte> after(static_cast<std::size_t>(columns[rank] * step_after + 1), std::byte{254});
  std::vector<std::byte> wanted = after;
  const auto fill = [&](std::vector<std::byte>& memory, std::int64_t first, std::int64_t own, std::int64_t others, std::int64_t step,
                        bool turned) {
    for (std::int64_t a = 0; a < own; ++a) {
      for (std::int64_t b = 0; b < others; ++b) {
        for (std::int64_t i = 0; i < shape.element; ++i)
          memory[static_cast<std::size_t>(a * step + b * shape.element + i)] =
              turned ? element_byte(b, first + a, i) : element_byte(first + a, b, i);
      }
    }
  };
  fill(before, first_of(rows, ranks.rank()), rows[rank], shape.columns, step_before, false);
  fill(wanted, first_of(columns, ranks.rank()), columns[rank], shape.rows, step_after, true);
  const Matrix matrix{.rows = shape.rows,
                      .columns = shape.columns,
                      .element_bytes = shape.element,
                      .row_blocks = shape.row_blocks,
                      .column_blocks = shape.column_blocks,
                      .leading_before = shape.pad_before == 0 ? 0 : shape.columns + shape.pad_before,
                      .leading_after = shape.pad_after == 0 ? 0 : shape.rows + shape.pad_after};
  LACUNA_END_TRY(collective::transpose(ranks, matrix, before.data(), after.data(), {.schedule = schedule}));
  if (after != wanted)
    return fmt::format("{} x {} elements of {} bytes, {}: wrong", shape.rows, shape.columns, shape.element, schedule_name(schedule));
  return {};
}

std::vector<Shape> shapes(int ranks) {
  std::vector<Shape> made{{1, 1, 1, {}, {}},         {0, 5, 8, {}, {}},    {7, 5, 1, {}, {}, 1, 2},
                          {40, 33, 8, {}, {}, 3, 0}, {64, 64, 16, {}, {}}, {100, 9, 3, {}, {}, 0, 5}};
  // Everything at the last rank before, and at the first one afterwards; uneven blocks, some of them empty.
  Shape all{20, 10, 4, std::vector<std::int64_t>(static_cast<std::size_t>(ranks)),
            std::vector<std::int64_t>(static_cast<std::size_t>(ranks))};
  all.row_blocks.back() = 20;
  all.column_blocks.front() = 10;
  made.push_back(all);
  Shape uneven{0, 0, 8, {}, {}, 2, 2};
  for (int rank = 0; rank < ranks; ++rank) {
    uneven.row_blocks.push_back(rank % 3 * 5);
    uneven.column_blocks.push_back((rank + 1) % 2 * 7 + rank);
    uneven.rows += uneven.row_blocks.back();
    uneven.columns += uneven.column_blocks.back();
  }
  made.push_back(uneven);
  return made;
}

std::string all_shapes(Communicator& ranks) {
  for (const Shape& shape : shapes(ranks.size())) {
    for (const Schedule schedule : {Schedule::automatic, Schedule::at_once, Schedule::pairwise, Schedule::forward}) {
      if (std::string wrong = transposes(ranks, shape, schedule); !wrong.empty()) return wrong;
    }
  }
  return {};
}

TEST(Transpose, IsTheTransposedMatrix) {
  for (const int ranks : {1, 2, 5}) EXPECT_EQ(in_ranks({.ranks = ranks}, all_shapes), "");
  EXPECT_EQ(in_ranks({.ranks = 4, .processes = true}, all_shapes), "");
  EXPECT_EQ(in_model(6, {}, all_shapes), "");
}

// Blocks that go by streams, and by a method.
TEST(Transpose, OfALargeMatrix) {
  const auto program = [](Communicator& ranks) { return transposes(ranks, {700, 500, 8, {}, {}, 1, 0}, Schedule::automatic); };
  EXPECT_EQ(in_ranks({.ranks = 3}, program), "");
  EXPECT_EQ(in_model(3, {}, program), "");
}

TEST(Transpose, RefusesWhatIsNoMatrix) {
  const auto program = [](Communicator& ranks) -> std::string {
    std::vector<std::byte> memory(4000);
    const auto code = [&](const Matrix& matrix, void* before) {
      const auto ended = collective::transpose(ranks, matrix, before, memory.data() + 2000);
      return ended ? base::Code::io : ended.error().code;
    };
    const std::int64_t three[] = {4, 4, 2}, more[] = {6, 6}, less[] = {3, 4}, negative[] = {12, -2};
    for (const Matrix& wrong :
         {Matrix{.rows = -1, .columns = 10}, Matrix{.rows = 10, .columns = 10, .element_bytes = 0},
          Matrix{.rows = 10, .columns = 10, .row_blocks = three}, Matrix{.rows = 10, .columns = 10, .row_blocks = more},
          Matrix{.rows = 10, .columns = 10, .column_blocks = less}, Matrix{.rows = 10, .columns = 10, .column_blocks = negative},
          Matrix{.rows = 10, .columns = 10, .leading_before = 9}, Matrix{.rows = 10, .columns = 10, .leading_after = 9}})
      LACUNA_END_EXPECT(code(wrong, memory.data()) == base::Code::invalid_argument);
    LACUNA_END_EXPECT(code({.rows = std::int64_t{1} << 40, .columns = std::int64_t{1} << 40}, memory.data()) == base::Code::overflow);
    LACUNA_END_EXPECT(code({.rows = 10, .columns = 10}, nullptr) == base::Code::invalid_argument);
    // Ranks that describe different ones.
    LACUNA_END_EXPECT(code({.rows = 10, .columns = ranks.rank() == 0 ? 10 : 11}, memory.data()) == base::Code::invalid_argument);
    LACUNA_END_EXPECT(code({.rows = 10, .columns = 10}, memory.data()) == base::Code::io);
    return {};
  };
  EXPECT_EQ(in_ranks({}, program), "");
}

TEST(EvenBlocks, AddUp) {
  EXPECT_EQ(collective::even_blocks(10, 4), (std::vector<std::int64_t>{3, 3, 2, 2}));
  EXPECT_EQ(collective::even_blocks(2, 3), (std::vector<std::int64_t>{1, 1, 0}));
}

}  // namespace LACUNA_TEST_FILE
}  // namespace lacuna::test
