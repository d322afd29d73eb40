// Layouts of layouts.
#include <algorithm>
#include <numeric>

#include "tests/copy/shapes.hpp"

namespace lacuna::copy_test {

Recipe any_shape(Dice& dice) {
  switch (dice.what.below(15)) {
    case 0: return bytes(any_length(dice.what));
    case 1: return vector_of(dice, any_length(dice.what));
    case 2: return nest_of(dice, any_length(dice.what));
    case 3: return short_rows(dice);
    case 4: return transpose_of(dice, std::min<std::int64_t>(any_length(dice.what), 40));
    case 5: return cube(dice);
    case 6: return list_of(dice, any_length(dice.what));
    case 7: return list_of(dice, dice.what.between(1, 16));
    case 8: return sieve(dice);
    case 9: return ragged(dice);
    case 10: return granular(dice);
    case 11: return periodic(dice);
    case 12: return struct_array(dice);
    case 13: return struct_list(dice);
    default: return vector_list(dice);
  }
}

Recipe sequence_of(Dice& dice, const std::vector<Recipe>& parts) {
  std::vector<std::size_t> places(parts.size());
  std::iota(places.begin(), places.end(), 0);
  if (dice.where.one_in(2)) dice.where.shuffle(places);
  List offsets(parts.size());
  std::int64_t at = dice.where.between(-200, 200);
  for (const std::size_t place : places) {
    offsets[place] = at - parts[place].low();
    at += parts[place].span() + (dice.where.one_in(4) ? 0 : dice.where.between(1, 90));
  }
  return structure(offsets, parts);
}

Recipe repeat_of(Dice& dice, std::int64_t count, const Recipe& part) {
  const bool listed = dice.what.one_in(3);
  if (!listed) return hvector(count, apart(dice, part.span(), count), part);
  List offsets;
  std::int64_t at = 0;
  for (std::int64_t i = 0; i < count; ++i, at += part.span() + dice.where.below(100)) offsets.push_back(at);
  dice.where.shuffle(offsets);
  return hindexed_block(offsets, part);
}

Recipe composition(Dice& dice, int depth) {
  if (depth == 0) return any_shape(dice);
  const std::int64_t budget = dice.budget;
  const std::int64_t reach = dice.reach;
  const std::int64_t kind = dice.what.below(3);
  const std::int64_t n = kind == 0 ? dice.what.between(2, 5) : dice.what.between(2, 20);
  dice.budget = std::max<std::int64_t>(64, budget / n);
  dice.reach /= n;
  std::vector<Recipe> parts;
  for (std::int64_t i = 0; i < (kind == 0 ? n : 1); ++i) parts.push_back(composition(dice, depth - 1));
  dice.budget = budget;
  dice.reach = reach;
  if (kind == 0) return sequence_of(dice, parts);
  // As often as the budget allows.
  return repeat_of(dice, std::max<std::int64_t>(2, std::min(n, budget / std::max<std::int64_t>(1, parts[0].size()))), parts[0]);
}

Recipe of_size(Dice& dice, std::int64_t size) {
  const auto fits = [&](const Recipe& part) { return part.size() <= size && size / part.size() * part.span() <= 4 * dice.reach; };
  dice.budget = std::max<std::int64_t>(1, size / dice.what.pick(List{1, 1, 2, 5, 30}));
  Recipe part = composition(dice, static_cast<int>(dice.what.below(3)));
  for (int attempt = 0; attempt < 8 && !fits(part); ++attempt) part = any_shape(dice);
  if (!fits(part)) return bytes(size);
  const std::int64_t count = size / part.size();
  const std::int64_t rest = size % part.size();
  const Recipe all = count == 1 ? part : hvector(count, part.span() + dice.where.below(30), part);
  if (rest == 0) return all;
  Dice few = dice;
  few.budget = rest;
  const Recipe tail = rest < 40 ? bytes(rest) : of_size(few, rest);
  return sequence_of(dice, dice.what.one_in(2) ? std::vector{all, tail} : std::vector{tail, all});
}

}  // namespace lacuna::copy_test
