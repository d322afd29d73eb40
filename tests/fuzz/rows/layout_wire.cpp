// Wire forms of layouts, as any peer sends them: an error or a valid layout, soon.
#include <gtest/gtest.h>

#include <limits>
#include <vector>

#include "lacuna/layout/layout.hpp"
#include "tests/fuzz/mutate.hpp"
#include "tests/fuzz/rows/rows.hpp"
#include "tests/support/cpu_time.hpp"
#include "tests/support/random_layout.hpp"
#include "tests/support/wire_form.hpp"

namespace lacuna::fuzz {
namespace {

using layout::Cursor;
using layout::kMaxBytes;
using layout::Layout;
using support::value;
using support::Wire;
using Numbers = std::vector<std::uint64_t>;

constexpr std::int64_t kWalked = 10'000;  // runs of an accepted layout that are looked at

// Every field of the form is a LEB128 number or a byte below 0x80, so the whole is a list of numbers.
Numbers numbers_of(const Wire& wire) {
  Numbers numbers;
  std::uint64_t number = 0;
  int shift = 0;
  for (const std::byte byte : wire) {
    number |= (std::to_integer<std::uint64_t>(byte) & 0x7f) << shift;
    shift += 7;
    if ((byte & std::byte{0x80}) != std::byte{0}) continue;
    numbers.push_back(number);
    number = 0;
    shift = 0;
  }
  return numbers;
}

Wire wire_of(const Numbers& numbers) {
  Wire wire;
  for (const std::uint64_t number : numbers) support::append_number(wire, number);
  return wire;
}

std::uint64_t some_number(Random& random) {
  switch (random.below(5)) {
    case 0: return support::zigzag(random.between(-3, 20));
    case 1: return support::zigzag((std::int64_t{1} << random.below(63)) + random.between(-2, 2));
    case 2: return support::zigzag(-(std::int64_t{1} << random.below(63)) + random.between(0, 2));
    case 3: return support::zigzag(random.one_in(2) ? std::numeric_limits<std::int64_t>::max() : std::numeric_limits<std::int64_t>::min());
    default: return random.next() >> random.below(64);
  }
}

// Changes counts, strides, lengths and kinds, and keeps the form readable far behind the change.
Wire mutate_numbers(const Wire& wire, Random& random) {
  Numbers numbers = numbers_of(wire);
  const auto any = [&] { return static_cast<std::size_t>(random.between(2, std::ssize(numbers) - 1)); };
  for (std::int64_t changes = random.between(1, 4); changes > 0 && numbers.size() > 4; --changes) {
    const std::size_t at = any();
    switch (random.below(7)) {
      case 0: numbers[at] = some_number(random); break;
      case 1: numbers[at] += static_cast<std::uint64_t>(random.between(-4, 4)); break;
      case 2: numbers[at] = static_cast<std::uint64_t>(random.below(6)); break;
      case 3: numbers.insert(numbers.begin() + static_cast<std::ptrdiff_t>(at), some_number(random)); break;
      case 4: numbers.erase(numbers.begin() + static_cast<std::ptrdiff_t>(at)); break;
      case 5: std::swap(numbers[at], numbers[any()]); break;
      default: {  // a nest inside itself: the tail once more
        const Numbers tail(numbers.begin() + static_cast<std::ptrdiff_t>(at), numbers.end());
        numbers.insert(numbers.end(), tail.begin(), tail.end());
      }
    }
  }
  return wire_of(numbers);
}

// What every Layout promises, as far as it can be seen in kWalked runs. A planted fault: that no byte is where the
// layout has one.
void expect_valid(const Layout& layout, bool planted, Random& random) {
  ASSERT_GE(layout.size(), 0);
  ASSERT_LE(layout.size(), kMaxBytes);
  ASSERT_LE(layout.run_count(), layout.size());
  ASSERT_LE(layout.depth(), 126);
  const std::int64_t low = layout.true_lower_bound() + (planted ? 1 : 0);
  const std::int64_t high = low + layout.true_extent();
  ASSERT_GE(low, -kMaxBytes);
  ASSERT_LE(high, kMaxBytes);
  std::int64_t bytes = 0;
  std::int64_t runs = 0;
  Cursor cursor(layout);
  while (!cursor.done() && runs < kWalked) {
    const layout::Run run = cursor.next_run(kMaxBytes);
    ASSERT_GT(run.length, 0);
    ASSERT_GE(run.offset, low);
    ASSERT_LE(run.offset + run.length, high);
    bytes += run.length;
    ++runs;
    ASSERT_EQ(cursor.position(), bytes);
  }
  if (cursor.done()) {
    ASSERT_EQ(bytes, layout.size());
    ASSERT_EQ(runs, layout.run_count());
  } else {
    ASSERT_GT(layout.run_count(), runs);
  }
  if (layout.size() > 0) {
    cursor.seek(random.below(layout.size()));
    const layout::Run run = cursor.next_run(kMaxBytes);
    ASSERT_GE(run.offset, low);
    ASSERT_LE(run.offset + run.length, high);
  }
  // The form is canonical: sent on, it stays what it is.
  const Layout again = value(layout::decode(layout::encode(layout)), layout.describe());
  ASSERT_EQ(again.digest(), layout.digest()) << again.describe() << " was " << layout.describe();
}

// Nests too large to be spelled out: structs of loops of loops of random layouts.
Layout huge_layout(Random& random) {
  std::vector<std::int64_t> offsets;
  std::vector<Layout> members;
  for (std::int64_t i = random.between(1, 4); i > 0; --i) {
    Layout member = support::random_layout(random, {.depth = 2, .runs = 20, .bytes = 1000, .span = 10'000}).layout;
    for (std::int64_t level = random.between(1, 3); level > 0; --level) {
      member = value(Layout::hvector(random.between(1, 3000), 1, random.between(-2, 3) * (1 + member.true_extent() / 2), member));
    }
    offsets.push_back(random.between(-1000, 1000));
    members.push_back(std::move(member));
  }
  return value(Layout::structure(std::vector<std::int64_t>(members.size(), 1), offsets, members));
}

std::vector<Wire> make_seeds() {
  std::vector<Wire> seeds;
  Random random(42);
  for (int i = 0; i < 100; ++i) seeds.push_back(layout::encode(huge_layout(random)));
  for (std::uint64_t seed = 0; seed < 300; ++seed) seeds.push_back(layout::encode(support::random_layout(seed, {.runs = 60}).layout));
  const Layout element = value(Layout::bytes(8));
  const std::vector<std::int64_t> shape = {1'000'000, 1'000'000, 1'000'000};
  for (const std::vector<std::int64_t>& strides : {std::vector<std::int64_t>{16'000'000, 40, 10'000'000'000}, {9, 9, 9}, {-8, 0, 16}}) {
    seeds.push_back(layout::encode(value(Layout::strided(1, shape, strides))));
  }
  return seeds;
}

Bytes draw(Random& random) {
  static const std::vector<Wire> seeds = make_seeds();
  static const std::vector<Bytes> texts = [] {
    std::vector<Bytes> made;
    for (const Wire& seed : seeds) made.push_back(text_of(seed));
    return made;
  }();
  if (random.one_in(3)) return mutated(random, texts);
  return text_of(mutate_numbers(random.pick(seeds), random));
}

Verdict judge(const Bytes& input, bool planted) {
  const std::int64_t began = test::cpu_ns();
  const auto result = layout::decode(as_bytes(input));
  Verdict verdict{.taken = result.has_value(), .wrong = {}};
  // Of this thread's CPU, which takes milliseconds at most
  if (test::cpu_ns() - began > 5'000'000'000) verdict.wrong = "it takes seconds";
  Random random(std::hash<Bytes>()(input));
  if (result) expect_valid(*result, planted, random);
  if (result) return verdict;
  const base::Code code = result.error().code;
  if (code != base::Code::malformed && code != base::Code::overflow && code != base::Code::limit) verdict.wrong = result.error().text();
  return verdict;
}

}  // namespace

Fuzzer layout_wire() {
  return {.name = "layout_wire",
          .what = "wire forms of layouts, of peers and of files",
          .smoke = 200'000,
          .least_taken = 0.05,
          .draw = draw,
          .judge = judge};
}

}  // namespace lacuna::fuzz
