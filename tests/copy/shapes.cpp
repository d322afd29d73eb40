#include "tests/copy/shapes.hpp"

#include <algorithm>
#include <cstdlib>
#include <numeric>

namespace lacuna::copy_test {
namespace {

constexpr std::int64_t kLine = 64;
constexpr std::int64_t kPage = 4096;

std::int64_t up_to(std::int64_t value, std::int64_t multiple) { return (value + multiple - 1) / multiple * multiple; }

// A permutation of `count` places: in order, reversed, or shuffled.
List order(Random& random, std::int64_t count) {
  List places(static_cast<std::size_t>(count));
  std::iota(places.begin(), places.end(), 0);
  switch (random.below(4)) {
    case 0: break;
    case 1: std::ranges::reverse(places); break;
    default: random.shuffle(places); break;
  }
  return places;
}

// The offsets of blocks of `lengths` that follow each other in memory in some order, `gap()` bytes apart.
template <class Gap>
List scattered(const List& lengths, const List& places, Gap gap) {
  List offsets(lengths.size());
  std::int64_t at = 0;
  for (const std::int64_t place : places) {
    offsets[static_cast<std::size_t>(place)] = at;
    at += lengths[static_cast<std::size_t>(place)] + gap();
  }
  return offsets;
}

// Gaps of one manner: hardly any, a few bytes, lines, pages.
auto gaps(Dice& dice, std::int64_t count) {
  const std::int64_t manner = dice.where.below(2 * count * kPage > dice.reach ? 3 : 4);
  return [&random = dice.where, manner]() -> std::int64_t {
    switch (manner) {
      case 0: return random.between(1, 3);
      case 1: return random.between(1, 60);
      case 2: return random.between(1, 9) * 24;
      default: return random.between(1, 2) * kPage;
    }
  };
}

// Blocks of `lengths` in any order in memory, gaps of any manner between them.
List spread(Dice& dice, const List& lengths) {
  const List places = order(dice.where, std::ssize(lengths));
  return scattered(lengths, places, gaps(dice, std::ssize(lengths)));
}

// How many blocks of `length` bytes: a few, up to a small page, or as many as the budget allows.
std::int64_t any_count(Dice& dice, std::int64_t length) {
  const std::int64_t most = std::max<std::int64_t>(2, dice.budget / length);
  switch (dice.what.below(6)) {
    case 0: return std::min(most, dice.what.between(2, 9));
    case 1: return std::min<std::int64_t>(most, dice.what.between(64, 1500));
    default: return std::min(most, dice.what.between(2, 70));
  }
}

// Lengths of any kind between 1 and a limit.
List lengths_of(Dice& dice, std::int64_t multiple, std::int64_t most) {
  const std::int64_t n = any_count(dice, (1 + most) * multiple / 2);
  List lengths;
  for (std::int64_t i = 0; i < n; ++i) lengths.push_back(dice.what.between(1, most) * multiple);
  return lengths;
}

}  // namespace

std::int64_t apart(Dice& dice, std::int64_t span, std::int64_t count) {
  Random& random = dice.where;
  std::int64_t distance = span + random.between(1, 9);
  switch (random.below(9)) {
    case 0: distance = up_to(span + 1, kLine) * random.between(1, 3); break;
    case 1: distance = up_to(span + 1, kPage); break;
    case 2: distance = span + random.between(1, 300); break;
    case 3: distance = up_to(span + 1, 8); break;
    case 4: distance = dice.receive ? span + 1 : random.one_in(3) ? 0 : random.between(1, span); break;
    case 5: distance = 2 * span; break;
    default: break;
  }
  if (distance * count > dice.reach) distance = span + 1;
  return random.one_in(4) ? -distance : distance;
}

std::int64_t any_length(Random& random) {
  static const List kernels = {1, 2, 4, 4, 8, 8, 8, 12, 12, 16, 16, 24, 32, 48, 64, 96, 128, 192};
  static const List large = {200, 255, 256, 257, 320, 511, 512, 513, 1000, 1023, 1024, 1025, 2048, 4099};
  switch (random.below(8)) {
    case 0: return random.pick(large);
    case 1:
    case 2: return random.between(1, 130);
    case 3: return random.between(1, 32);
    default: return random.pick(kernels);
  }
}

Recipe vector_of(Dice& dice, std::int64_t length) {
  const std::int64_t count = any_count(dice, length);
  return hvector(count, apart(dice, length, count), bytes(length));
}

Recipe nest_of(Dice& dice, std::int64_t length) {
  const std::int64_t count = std::min<std::int64_t>(any_count(dice, length), 100);
  const std::int64_t rows = std::clamp<std::int64_t>(dice.budget / (count * length), 2, dice.what.between(2, 40));
  const Recipe row = hvector(count, apart(dice, length, count * rows), bytes(length));
  return hvector(rows, apart(dice, row.span(), rows), row);
}

Recipe short_rows(Dice& dice) {
  const std::int64_t count = dice.what.between(2, 7);
  const std::int64_t length = dice.what.between(1, 64 / count - 1);
  const std::int64_t rows = dice.what.between(2, 150);
  const Recipe row = hvector(count, dice.where.between(length + 1, (64 - length) / (count - 1)), bytes(length));
  return hvector(rows, apart(dice, row.span(), rows), row);
}

Recipe transpose_of(Dice& dice, std::int64_t length) {
  const bool wide = dice.what.one_in(3);
  const std::int64_t rows = dice.what.between(2, wide ? 12 : 70);
  const std::int64_t most = std::max<std::int64_t>(2, 4 * dice.budget / (rows * length));
  const std::int64_t count = std::min(most, wide ? dice.what.between(380, 460) : dice.what.between(2, 90));
  const std::int64_t outer = length < 63 ? dice.where.between(length, 63) : length;
  const std::int64_t line = dice.where.pick(List{1, 64, 64, 1024, 4096});
  std::int64_t stride = up_to(rows * outer, line) + (line == 1 ? 1 : 0);
  if (stride * count > dice.reach) stride = rows * outer + 1;
  const bool back = dice.where.one_in(5);
  const Recipe row = hvector(count, dice.where.one_in(5) ? -stride : stride, bytes(length));
  return hvector(rows, back ? -outer : outer, row);
}

Recipe cube(Dice& dice) {
  const std::int64_t item = dice.what.pick(List{1, 2, 4, 8, 8, 12, 16, 24});
  List shape(static_cast<std::size_t>(dice.what.between(3, 4)));
  std::int64_t left = std::max<std::int64_t>(16, dice.budget / item);
  for (std::int64_t& n : shape) {
    n = dice.what.between(1, std::clamp<std::int64_t>(left, 1, 20));
    left /= n;
  }
  List strides(shape.size());
  std::int64_t step = item;
  for (const std::int64_t d : order(dice.where, std::ssize(shape))) {
    const auto at = static_cast<std::size_t>(d);
    strides[at] = !dice.receive && dice.where.one_in(10) ? 0 : dice.where.one_in(4) ? -step : step;
    step *= shape[at];
    if (dice.where.one_in(2)) step += dice.where.between(1, 40);
  }
  return strided(item, shape, strides);
}

Recipe list_of(Dice& dice, std::int64_t length) {
  const List lengths(static_cast<std::size_t>(any_count(dice, length)), length);
  const std::int64_t n = std::ssize(lengths);
  List offsets = spread(dice, lengths);
  if (!dice.receive && dice.where.one_in(3)) {
    for (std::int64_t i = 1 + n / 5; i > 0; --i) offsets[static_cast<std::size_t>(dice.where.below(n))] = dice.where.pick(offsets);
  }
  return hindexed_block(offsets, bytes(length));
}

Recipe sieve(Dice& dice) {
  const std::int64_t length = dice.what.pick(List{1, 2, 3, 4, 4, 5, 8, 8, 12});
  const List lengths(static_cast<std::size_t>(any_count(dice, length)), length);
  const std::int64_t one_in = dice.where.between(2, 12);
  const auto gap = [&] { return dice.where.one_in(one_in) ? 0 : dice.where.between(1, one_in) * length; };
  List places(lengths.size());
  std::iota(places.begin(), places.end(), 0);
  return hindexed_block(scattered(lengths, places, gap), bytes(length));
}

Recipe ragged(Dice& dice) {
  const List lengths = lengths_of(dice, 1, dice.what.pick(List{2, 3, 8, 20, 40, 64, 100, 300, 1000}));
  return blocks(spread(dice, lengths), lengths);
}

Recipe granular(Dice& dice) {
  const std::int64_t granule = dice.what.pick(List{2, 3, 4, 8, 12, 16, 24});
  const List lengths = lengths_of(dice, granule, dice.what.between(2, 5));
  return blocks(spread(dice, lengths), lengths);
}

Recipe periodic(Dice& dice) {
  const std::int64_t period = dice.what.between(2, 9);
  const std::int64_t entries = dice.what.between(2, 60);
  const std::int64_t most = dice.what.pick(List{3, 8, 16, 60});
  List one;
  List steps;
  for (std::int64_t i = 0, at = 0; i < period; ++i, at += dice.where.between(1, 12)) {
    one.push_back(dice.what.between(1, most));
    steps.push_back(at);
    at += one.back();
  }
  const List spans(static_cast<std::size_t>(entries), steps.back() + one.back());
  List offsets;
  List lengths;
  for (const std::int64_t at : spread(dice, spans)) {
    for (std::size_t i = 0; i < one.size(); ++i) {
      offsets.push_back(at + steps[i]);
      lengths.push_back(one[i]);
    }
  }
  return blocks(offsets, lengths);
}

Recipe structure_of(Dice& dice, std::int64_t members) {
  const std::int64_t most = dice.what.pick(List{2, 4, 8, 8, 20, 70});
  List lengths;
  for (std::int64_t i = 0; i < members; ++i) lengths.push_back(dice.what.one_in(3) ? most : dice.what.between(1, most));
  const List places = order(dice.where, members);
  List offsets = scattered(lengths, places, [&] { return dice.where.below(dice.where.one_in(8) ? 90 : 7); });
  if (!dice.receive && dice.where.one_in(4)) {
    for (std::int64_t& offset : offsets) offset = std::max<std::int64_t>(0, offset - dice.where.below(6));
  }
  std::vector<Recipe> parts;
  for (const std::int64_t length : lengths) parts.push_back(bytes(length));
  return structure(offsets, parts);
}

Recipe struct_array(Dice& dice) {
  const std::int64_t members = dice.what.one_in(4) ? dice.what.between(9, 33) : dice.what.between(2, 8);
  const Recipe element = structure_of(dice, members);
  const std::int64_t count = any_count(dice, element.size());
  return hvector(count, apart(dice, element.span(), count), element);
}

Recipe struct_list(Dice& dice) {
  const std::int64_t members = dice.what.one_in(6) ? dice.what.between(9, 33) : dice.what.between(2, 8);
  const Recipe element = structure_of(dice, members);
  const std::int64_t count = any_count(dice, element.size());
  const List spans(static_cast<std::size_t>(count), element.span());
  return hindexed_block(spread(dice, spans), element);
}

Recipe vector_list(Dice& dice) {
  const std::int64_t length = dice.what.pick(List{1, 1, 2, 4, 8, 12});
  const std::int64_t runs = dice.what.between(16, 40);
  const Recipe row = hvector(runs, dice.where.between(length + 1, 2 * length + 6), bytes(length));
  const std::int64_t count = std::max<std::int64_t>(2, std::min(dice.what.between(3, 60), dice.budget / (runs * length)));
  const List spans(static_cast<std::size_t>(count), row.span());
  return hindexed_block(spread(dice, spans), row);
}

}  // namespace lacuna::copy_test
