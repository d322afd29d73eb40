#include "tests/interposer/drawn_types.hpp"

#include <array>
#include <numeric>
#include <vector>

namespace lacuna::test::fake {
namespace {

using support::Random;

struct Lists {
  std::vector<Count> lengths, places;
  Count end = 0;
};

// Blocks of so many elements together, with gaps.
Lists lists(Random& random, Count elements) {
  Lists made;
  const Count longest = std::max<Count>(1, elements / random.between(1, 60));
  while (elements > 0) {
    const Count length = std::min<Count>(elements, random.between(1, longest));
    made.end += random.below(4);
    made.lengths.push_back(length);
    made.places.push_back(made.end);
    made.end += length;
    elements -= length;
  }
  return made;
}

Lists out_of_order(Random& random, Lists made) {
  std::vector<std::size_t> order(made.lengths.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  random.shuffle(order);
  Lists shuffled{.lengths = {}, .places = {}, .end = made.end};
  for (const std::size_t i : order) {
    shuffled.lengths.push_back(made.lengths[i]);
    shuffled.places.push_back(made.places[i]);
  }
  return shuffled;
}

Count divisor(Random& random, Count of) {
  for (int tries = 0; tries < 8; ++tries) {
    const Count by = random.between(1, std::min<Count>(of, 64));
    if (of % by == 0) return by;
  }
  return 1;
}

DrawnType structure_of(const Host& mpi, Random& random, Datatype unit, Count size, Count elements, bool large) {
  const Count first = random.between(1, elements);
  const Lists rest = lists(random, std::max<Count>(elements - first, 1));
  Datatype inner = fake::indexed(rest.lengths, rest.places, unit, large);
  const Count apart = size * random.between(0, 5);
  const std::array<Count, 2> lengths{first, elements > first ? 1 : 0}, places{0, size * first + apart};
  const std::array<Datatype, 2> olds{unit, inner};
  const Datatype type = fake::structure(lengths, places, olds, large);
  mpi.Type_free(&inner);
  return {.type = type, .span = size * first + apart + size * rest.end};
}

}  // namespace

DrawnType draw_type(const Host& mpi, Random& random, std::int64_t bytes) {
  const bool ints = bytes % 4 == 0 && !random.one_in(4);
  const Datatype unit = ints ? int_type() : byte_type();
  const Count size = ints ? 4 : 1, elements = bytes / size;
  const bool large = random.one_in(4);
  DrawnType made;
  switch (elements == 0 ? 0 : random.below(8)) {
    case 0: return {.type = unit, .count = elements, .span = bytes, .own = false};
    case 1: made = {.type = fake::contiguous(elements, unit, large), .span = bytes}; break;
    case 2: {
      const Count length = divisor(random, elements), stride = length + random.between(0, 5);
      made = {.type = fake::vector(elements / length, length, stride, unit, large), .span = size * stride * (elements / length)};
      break;
    }
    case 3: {
      const Lists blocks = lists(random, elements);
      made = {.type = fake::indexed(blocks.lengths, blocks.places, unit, large), .span = size * blocks.end};
      break;
    }
    case 4: {
      Lists blocks = out_of_order(random, lists(random, elements));
      for (Count& place : blocks.places) place *= size;
      made = {.type = fake::hindexed(blocks.lengths, blocks.places, unit, large), .span = size * blocks.end};
      break;
    }
    case 5: made = structure_of(mpi, random, unit, size, elements, large); break;
    case 6: {  // several elements, which lie apart
      const Count count = divisor(random, elements);
      const Lists blocks = lists(random, elements / count);
      Datatype one = fake::indexed(blocks.lengths, blocks.places, unit, large);
      const Count extent = size * (blocks.end + random.between(0, 3));
      made = {.type = fake::resized(one, 0, extent, large), .count = count, .span = extent * count};
      mpi.Type_free(&one);
      break;
    }
    default: {
      const Count rows = divisor(random, elements), columns = elements / rows, wide = columns + random.between(0, 4);
      const std::array<Count, 2> sizes{rows, wide}, part{rows, columns}, starts{0, wide - columns};
      made = {.type = fake::subarray(sizes, part, starts, unit, large), .span = size * rows * wide};
    }
  }
  mpi.Type_commit(&made.type);
  return made;
}

}  // namespace lacuna::test::fake
