#include "lacuna/copy/long_blocks.hpp"

namespace lacuna::copy {
namespace {

std::int64_t place_of(Access access, const BlockSide& side, std::int64_t i) {
  if (access == Access::stride) return i * side.stride;
  return access == Access::list32 ? static_cast<const std::int32_t*>(side.offsets)[i] : static_cast<const std::int64_t*>(side.offsets)[i];
}

}  // namespace

bool LongBlocks::add(const Move& move, Access from_access, Access to_access, const std::byte* from, std::byte* to) {
  if (move.count * move.rows > kFew) return false;
  for (std::int64_t row = 0; row < move.rows; ++row, from += move.from.outer, to += move.to.outer) {
    for (std::int64_t i = 0; i < move.count; ++i)
      add(to + place_of(to_access, move.to, i), from + place_of(from_access, move.from, i), move.length);
  }
  return true;
}

void LongBlocks::begin(std::byte* to, const std::byte* from, std::int64_t length) {
  finish();
  length_ = length;
  to_ = to;
  from_ = from;
  kernel_ = kernel_for({.from = Access::list64, .to = Access::list64, .length = length, .stream = true});
}

// The first ones. Those behind them have been asked for then.
void LongBlocks::move(std::int64_t count) {
  if (count == 0) return;
  const std::int64_t left = count_ - count;
  kernel_.run(
      {.length = length_, .count = count, .from = {.offsets = from_offsets_.data()}, .to = {.offsets = to_offsets_.data()}, .known = left},
      from_, to_);
  for (std::array<std::int64_t, kMost>* offsets : {&from_offsets_, &to_offsets_})
    std::copy_n(offsets->begin() + count, left, offsets->begin());
  count_ = left;
}

}  // namespace lacuna::copy
