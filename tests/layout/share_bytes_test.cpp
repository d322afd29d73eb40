// share_bytes() tells exactly whether two strided arrays have a byte in common, however they interleave.
#include <gtest/gtest.h>

#include <limits>
#include <set>
#include <vector>

#include "lacuna/layout/layout.hpp"
#include "tests/support/random_layout.hpp"

namespace lacuna::test {
namespace LACUNA_TEST_FILE {

using layout::StridedArray;
using support::Random;
using support::value;
using List = std::vector<std::int64_t>;

struct Array {
  std::int64_t item = 1;
  List shape;
  List strides;

  [[nodiscard]] StridedArray view() const { return {item, shape, strides}; }
  /// The bytes of all elements, one by one.
  [[nodiscard]] std::set<std::int64_t> bytes() const {
    List places{0};
    for (std::size_t d = 0; d < shape.size(); ++d) {
      List next;
      for (const std::int64_t at : places) {
        for (std::int64_t i = 0; i < shape[d]; ++i) next.push_back(at + i * strides[d]);
      }
      places = next;
    }
    std::set<std::int64_t> all;
    for (const std::int64_t at : places) {
      for (std::int64_t byte = 0; byte < item; ++byte) all.insert(at + byte);
    }
    return all;
  }
};

bool shared(const Array& a, const Array& b, std::int64_t distance) { return value(layout::share_bytes(a.view(), b.view(), distance)); }

Array random_array(Random& random) {
  Array array{.item = random.between(1, 5), .shape = {}, .strides = {}};
  for (std::int64_t dims = random.between(0, 4); dims > 0; --dims) {
    array.shape.push_back(random.between(0, 40) == 0 ? 0 : random.between(1, 5));
    array.strides.push_back(random.between(-40, 40));
  }
  return array;
}

TEST(ShareBytes, EqualsBruteForce) {
  Random random(11);
  int both[2] = {0, 0};
  for (int i = 0; i < 20'000; ++i) {
    const Array a = random_array(random);
    const Array b = random_array(random);
    const std::int64_t distance = random.between(-150, 150);
    const std::set<std::int64_t> bytes_a = a.bytes();
    bool expected = false;
    for (const std::int64_t byte : b.bytes()) expected = expected || bytes_a.contains(byte + distance);
    ASSERT_EQ(shared(a, b, distance), expected) << "number " << i;
    ASSERT_EQ(shared(b, a, -distance), expected) << "number " << i << ", exchanged";
    ++both[expected ? 1 : 0];
  }
  EXPECT_GT(both[0], 4000);
  EXPECT_GT(both[1], 4000);
}

// Views of one array: dimensions in strides of each other, which is what programs have.
TEST(ShareBytes, ViewsOfOneArrayEqualBruteForce) {
  Random random(12);
  int both[2] = {0, 0};
  for (int i = 0; i < 5000; ++i) {
    const List sizes{random.between(2, 6), random.between(2, 6), random.between(2, 9)};
    const std::int64_t item = random.between(1, 2) * 4;
    const List strides{sizes[1] * sizes[2] * item, sizes[2] * item, item};
    const auto view = [&](std::int64_t& at) {
      Array array{.item = random.between(1, item), .shape = {}, .strides = {}};
      at = random.between(0, item - array.item);
      for (std::size_t d = 0; d < sizes.size(); ++d) {
        const std::int64_t step = random.between(1, 3);
        const std::int64_t start = random.between(0, sizes[d] - 1);
        at += start * strides[d];
        const std::int64_t most = (sizes[d] - 1 - start) / step + 1;
        array.shape.push_back(random.between(1, most));
        array.strides.push_back(step * strides[d]);
        if (random.between(0, 3) == 0) {
          at += (array.shape[d] - 1) * array.strides[d];
          array.strides[d] = -array.strides[d];
        }
      }
      return array;
    };
    std::int64_t at_a = 0;
    std::int64_t at_b = 0;
    const Array a = view(at_a);
    const Array b = view(at_b);
    const std::set<std::int64_t> bytes_a = a.bytes();
    bool expected = false;
    for (const std::int64_t byte : b.bytes()) expected = expected || bytes_a.contains(byte + at_b - at_a);
    ASSERT_EQ(shared(a, b, at_b - at_a), expected) << "number " << i;
    ++both[expected ? 1 : 0];
  }
  EXPECT_GT(both[0], 1000);
  EXPECT_GT(both[1], 300);
}

TEST(ShareBytes, LargeViewsAreDecidedByTheirStrides) {
  constexpr std::int64_t giga = std::int64_t{1} << 30;
  const Array column{.item = 8, .shape = {giga}, .strides = {giga}};
  EXPECT_FALSE(shared(column, column, 8));
  EXPECT_FALSE(shared(column, column, giga - 8));
  EXPECT_TRUE(shared(column, column, giga - 7));
  const Array backwards{.item = 8, .shape = {giga}, .strides = {-giga}};
  EXPECT_TRUE(shared(column, backwards, (giga - 1) * giga));
  EXPECT_FALSE(shared(column, backwards, (giga - 1) * giga + 8));
  // Quarters of a matrix that lie beside and below one another.
  const Array quarter{.item = 4, .shape = {1 << 20, 1 << 20}, .strides = {8 << 20, 4}};
  EXPECT_FALSE(shared(quarter, quarter, 4 << 20));
  EXPECT_FALSE(shared(quarter, quarter, std::int64_t{1} << 43));
  EXPECT_TRUE(shared(quarter, quarter, (4 << 20) - 1));
  // Two of the fields of its elements.
  const Array one{.item = 1, .shape = {1 << 20, 1 << 20}, .strides = {8 << 20, 4}};
  EXPECT_FALSE(shared(one, one, 2 + 4 * (100 + (200 << 20))));
  EXPECT_TRUE(shared(one, one, 4 * (100 + (200 << 20))));
  // A repeated element, and a window that slides.
  const Array repeated{.item = 8, .shape = {giga, 2}, .strides = {0, 32}};
  EXPECT_FALSE(shared(repeated, repeated, 8));
  EXPECT_TRUE(shared(repeated, repeated, 32));
  const Array sliding{.item = 8, .shape = {1000, 16}, .strides = {16, 16}};
  EXPECT_FALSE(shared(sliding, sliding, 8));
  EXPECT_TRUE(shared(sliding, sliding, 16));
}

TEST(ShareBytes, SaysWhatItCannotDo) {
  const Array mismatched{.item = 1, .shape = {2}, .strides = {}};
  EXPECT_EQ(layout::share_bytes(mismatched.view(), mismatched.view(), 0).error().code, base::Code::invalid_argument);
  const Array huge{.item = 1, .shape = {3, 2}, .strides = {std::int64_t{1} << 58, 1}};
  EXPECT_TRUE(shared(huge, huge, 0));
  EXPECT_FALSE(shared(huge, huge, std::numeric_limits<std::int64_t>::min()));
  EXPECT_FALSE(shared(huge, huge, std::numeric_limits<std::int64_t>::max()));
  EXPECT_TRUE(shared(huge, huge, std::int64_t{1} << 59));
  const Array wide{.item = 1, .shape = {4, 4}, .strides = {std::int64_t{1} << 58, std::int64_t{1} << 58}};
  EXPECT_EQ(layout::share_bytes(huge.view(), wide.view(), 0).error().code, base::Code::overflow);
  const Array beyond{.item = 1, .shape = {1 << 30}, .strides = {std::int64_t{1} << 40}};
  EXPECT_EQ(layout::share_bytes(huge.view(), beyond.view(), 0).error().code, base::Code::overflow);
  const Array large{.item = (std::int64_t{1} << 60) + 1, .shape = {}, .strides = {}};
  EXPECT_EQ(layout::share_bytes(large.view(), huge.view(), 0).error().code, base::Code::overflow);
  // A sum of some of many numbers that have nothing in common.
  Array contrived;
  Random random(5);
  for (int d = 0; d < 40; ++d) {
    contrived.shape.push_back(2);
    contrived.strides.push_back(random.between(1 << 29, 1 << 30) * 2 + 1);
  }
  const Array point;
  const auto answer = layout::share_bytes(contrived.view(), point.view(), std::int64_t{30} << 30);
  ASSERT_FALSE(answer.has_value());
  EXPECT_EQ(answer.error().code, base::Code::limit);
  EXPECT_NE(answer.error().text().find("40 strides"), std::string::npos) << answer.error().text();
}

}  // namespace LACUNA_TEST_FILE
}  // namespace lacuna::test
