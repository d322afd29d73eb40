#include "lacuna/device/tables.hpp"

#include <algorithm>
#include <bit>

namespace lacuna::device {

using kernel::Places;

std::tuple<Places, std::uint32_t, std::int64_t> Tables::put_side(const LoopSide& side, std::int64_t count, std::int64_t word) {
  if (side.list == nullptr) return {Places::stride, 0, side.stride};
  auto [known, is_new] = known_.try_emplace({side.list, count, word});
  if (is_new) {
    const std::span list(side.list, static_cast<std::size_t>(count));
    const bool narrow = std::ranges::all_of(list, [&](std::int64_t at) { return at / word == static_cast<std::int32_t>(at / word); });
    known->second.first = narrow ? Places::list32 : Places::list64;
    known->second.second = narrow ? put<std::int32_t>(list, word) : put<std::int64_t>(list, 1);
  }
  return {known->second.first, known->second.second, word};
}

std::uint32_t Tables::put_marks(const std::vector<std::int64_t>& starts) {
  std::vector<std::int64_t> marks(static_cast<std::size_t>((starts.back() + 31) / 32));
  for (std::size_t i = 0; i + 1 < starts.size(); ++i)
    marks[static_cast<std::size_t>(starts[i] / 32)] |= static_cast<std::int64_t>(std::uint64_t{1} << (32 + starts[i] % 32));
  std::uint32_t begun = 0;
  for (std::int64_t& mark : marks) {
    const auto bits = static_cast<std::uint64_t>(mark);
    mark = static_cast<std::int64_t>(bits | static_cast<std::uint32_t>(begun - 1));
    begun += static_cast<std::uint32_t>(std::popcount(bits));
  }
  return put<std::int64_t>(std::span(marks), 1);
}

std::pair<Places, std::uint32_t> Tables::put_places(const std::vector<std::int64_t>& places, const std::vector<std::int64_t>& starts,
                                                    std::int64_t word) {
  std::vector<std::int64_t> zeros(places.size());
  for (std::size_t i = 0; i < places.size(); ++i) zeros[i] = places[i] - starts[i] * word;
  if (std::ranges::all_of(zeros, [](std::int64_t at) { return at == 0; })) return {Places::stride, 0};
  const bool is_narrow = std::ranges::all_of(zeros, [&](std::int64_t at) { return at / word == static_cast<std::int32_t>(at / word); });
  if (is_narrow) return {Places::list32, put<std::int32_t>(std::span(zeros), word)};
  return {Places::list64, put<std::int64_t>(std::span(zeros), 1)};
}

}  // namespace lacuna::device
