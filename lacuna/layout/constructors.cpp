// MPI's constructors, written as repetitions and concatenations of items. Arrays have a file of their own.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <optional>

#include "lacuna/layout/builder.hpp"

namespace lacuna::layout {

Result<void> check_count(std::int64_t value, const char* name) {
  if (value >= 0) return {};
  return base::fail(base::Code::invalid_argument, fmt::format("{} is {}; it must not be negative", name, value));
}

Result<std::int64_t> product(std::int64_t a, std::int64_t b, const char* what) {
  std::int64_t result = 0;
  if (base::mul(a, b, result) && result >= -kMaxBytes && result <= kMaxBytes) return result;
  return base::fail(base::Code::overflow, fmt::format("{} is {} x {}, beyond 2^60 bytes", what, a, b));
}

namespace {

Result<void> check_lengths(std::size_t lengths, std::size_t displacements) {
  if (lengths == displacements) return {};
  return base::fail(base::Code::invalid_argument, fmt::format("{} block lengths but {} displacements", lengths, displacements));
}

// Displacements in bytes from displacements in extents. One look at the largest saves a look at each.
Result<std::vector<std::int64_t>> in_bytes(std::span<const std::int64_t> displacements, const Layout& old) {
  const std::int64_t extent = old.extent();
  std::uint64_t most = 0;
  for (const std::int64_t displacement : displacements) most |= static_cast<std::uint64_t>(displacement < 0 ? ~displacement : displacement);
  std::vector<std::int64_t> bytes(displacements.size());
  if (most < (std::uint64_t{1} << 30) && std::abs(extent) < (std::int64_t{1} << 30)) {
    for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = displacements[i] * extent;
  } else {
    for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = LACUNA_TRY(product(displacements[i], extent, "a displacement"));
  }
  return bytes;
}

// The general case, of which all indexed forms and the struct are instances.
Result<Layout> concatenate(std::span<const std::int64_t> blocklengths, std::span<const std::int64_t> displacements, const auto& member) {
  LACUNA_TRY(check_lengths(blocklengths.size(), displacements.size()));
  Builder builder;
  builder.reserve(blocklengths.size());
  for (std::size_t i = 0; i < blocklengths.size(); ++i) {
    LACUNA_TRY(check_count(blocklengths[i], "a block length"));
    if (blocklengths[i] == 0) continue;
    const Layout& old = member(i);
    LACUNA_TRY(builder.add(old, blocklengths[i], old.extent(), displacements[i]));
  }
  return std::move(builder).finish();
}

// Blocks of a type that is one run and follows itself without a gap, at displacements[i] * unit bytes: the usual list,
// without an item for each entry. Nothing where that is not so, or where a number is so large that the general way must
// look at it.
Result<std::optional<Layout>> list_of_runs(std::span<const std::int64_t> blocklengths, std::span<const std::int64_t> displacements,
                                           std::int64_t unit, const Layout& old) {
  constexpr std::int64_t small = kMaxBytes / 4;
  const Item item = Access::item(old);
  const std::int64_t size = old.size();
  const std::int64_t lower = old.lower_bound();
  const auto most = static_cast<std::uint64_t>(size == 0 ? 0 : small / size);
  const std::size_t n = displacements.size();
  if (n == 0 || blocklengths.size() != n || size == 0 || item.node || old.extent() != size || size > small || std::abs(lower) > small ||
      std::abs(item.at) > small || unit < 1 || unit > small)
    return std::nullopt;
  const auto farthest = static_cast<std::uint64_t>(small / unit);
  std::vector<std::int64_t> offsets(n);
  std::vector<std::int64_t> lengths;
  lengths.reserve(n + 1);  // join_runs() makes positions of them, of which there is one more
  lengths.resize(n);
  std::int64_t alike = 0;
  std::int64_t most_alike = 0;
  std::int64_t touching = 0;
  std::int64_t end = kMaxBytes;  // of the run before; of none, where no run begins
  std::int64_t length = 0;       // its
  std::size_t runs = 0;
  for (std::size_t i = 0; i < n; ++i) {
    const std::int64_t blocks = blocklengths[i];
    const auto unsigned_blocks = static_cast<std::uint64_t>(blocks);  // a negative one is beyond all limits
    const std::uint64_t from_least = static_cast<std::uint64_t>(displacements[i]) + farthest;
    if (unsigned_blocks > most || from_least > 2 * farthest) return std::nullopt;
    if (blocks == 0) continue;
    const std::int64_t at = displacements[i] * unit;
    const std::int64_t bytes = blocks * size;
    touching += at == end ? 1 : 0;
    alike = bytes == length ? alike + 1 : 1;
    most_alike = alike > most_alike ? alike : most_alike;
    length = bytes;
    end = at + bytes;
    offsets[runs] = at + item.at;
    lengths[runs] = bytes;
    ++runs;
  }
  if (runs == 0) return std::nullopt;
  offsets.resize(runs);
  lengths.resize(runs);
  const Item joined = LACUNA_TRY(join_runs(std::move(offsets), std::move(lengths), {.touching = touching > 0, .most_alike = most_alike}));
  const std::int64_t from = lower - item.at;  // bounds lie as far from the bytes as those of `old` do
  return LACUNA_TRY(Access::make(&joined, joined.low() + from, joined.high() + from, Access::state(old).marked));
}

// One block at each of displacements[i] * unit bytes: a page table as it is given. No item is made for an entry.
// Nothing where blocks of several runs are few enough to be spelled out, or touch, and where a number is so large that
// the general way must look at it.
Result<std::optional<Layout>> list_of_blocks(const Layout& block, std::span<const std::int64_t> displacements, std::int64_t unit) {
  constexpr std::int64_t small = std::int64_t{1} << 58;
  const Item item = Access::item(block);
  const std::int64_t lower = block.lower_bound();
  const std::int64_t upper = lower + block.extent();
  const auto is_small = [](std::int64_t value) { return value <= small && value >= -small; };
  if (displacements.empty() || block.size() == 0 || !is_small(block.size()) || !is_small(lower) || !is_small(upper) ||
      !is_small(item.low()) || !is_small(item.high()) || !is_small(unit))
    return std::nullopt;
  if (item.node && (std::ssize(displacements) < kShortestTable || item.runs() <= kNestedListLimit / std::ssize(displacements)))
    return std::nullopt;
  const std::int64_t most = unit == 0 ? small : small / std::abs(unit);
  const auto [lowest, highest] = extremes(displacements);
  if (lowest < -most || highest > most) return std::nullopt;
  std::vector<std::int64_t> offsets(displacements.size());
  const std::int64_t length = item.tail() - item.at;  // from the first byte to the end of the last run
  std::int64_t touching = 0;
  std::int64_t end = kMaxBytes;  // of the run before; of none, where no run begins
  for (std::size_t i = 0; i < offsets.size(); ++i) {
    offsets[i] = displacements[i] * unit;
    touching += offsets[i] == end ? 1 : 0;
    end = offsets[i] + length;
  }
  if (item.node && touching > 0) return std::nullopt;
  if (!item.node) {
    for (std::int64_t& offset : offsets) offset += item.at;
  }
  const Item joined = LACUNA_TRY(item.node ? join_copies(std::move(offsets), item) : join_blocks(std::move(offsets), length, touching > 0));
  const std::int64_t first = std::min(lowest * unit, highest * unit);
  const std::int64_t last = std::max(lowest * unit, highest * unit);
  return LACUNA_TRY(Access::make(&joined, first + lower, last + upper, Access::state(block).marked, item.node != nullptr));
}

// `blocklength` of `old` at each displacement, which counts `unit` bytes.
Result<Layout> listed(std::int64_t blocklength, std::span<const std::int64_t> displacements, std::int64_t unit, const Layout& old) {
  LACUNA_TRY(check_count(blocklength, "blocklength"));
  if (blocklength == 0) return Layout();
  const Layout block = LACUNA_TRY(Layout::contiguous(blocklength, old));
  if (std::optional<Layout> list = LACUNA_TRY(list_of_blocks(block, displacements, unit))) return std::move(*list);
  Builder builder;
  builder.reserve(displacements.size());
  for (const std::int64_t displacement : displacements) {
    LACUNA_TRY(builder.add(block, 1, block.extent(), LACUNA_TRY(product(displacement, unit, "a displacement"))));
  }
  return std::move(builder).finish();
}

}  // namespace

Result<void> Builder::add(const Layout& old, std::int64_t count, std::int64_t stride, std::int64_t displacement) {
  const auto within = [](std::int64_t value) { return value >= -kMaxBytes && value <= kMaxBytes; };
  std::int64_t last = 0;
  const bool placed = base::mul(stride, count - 1, last) && within(last) && within(displacement);
  const std::int64_t low = placed ? displacement + old.lower_bound() + std::min<std::int64_t>(0, last) : 0;
  const std::int64_t high = placed ? displacement + old.lower_bound() + old.extent() + std::max<std::int64_t>(0, last) : 0;
  if (!placed || !within(low) || !within(high)) {
    return base::fail(base::Code::overflow,
                      fmt::format("{} blocks, {} bytes apart, at {}: an offset is beyond 2^60 bytes", count, stride, displacement));
  }
  const bool marked = Access::state(old).marked;
  if (old.size() == 0 && !marked) return {};  // no entry, no marker: no bounds
  if (marked || !marked_) {
    const bool first = !bounded_ || marked != marked_;
    lower_ = first ? low : std::min(lower_, low);
    upper_ = first ? high : std::max(upper_, high);
    bounded_ = true;
    marked_ = marked;
  }
  if (old.size() == 0) return {};
  kept_ = kept_ || Access::state(old).kept;
  Item item = LACUNA_TRY(repeat(Access::item(old), count, stride));
  item.at += displacement;
  items_.push_back(std::move(item));
  return {};
}

Result<Layout> Builder::finish() && {
  if (items_.empty()) return Access::make(nullptr, lower_, upper_, marked_);
  const Item item = LACUNA_TRY(join(std::move(items_), kept_ ? 0 : kFlattenLimit));
  return Access::make(&item, lower_, upper_, marked_, kept_);
}

Result<Layout> Layout::bytes(std::int64_t count) {
  LACUNA_TRY(check_count(count, "count"));
  const Item item{0, count, nullptr};
  return Access::make(count == 0 ? nullptr : &item, 0, count, false);
}

Result<Layout> Layout::contiguous(std::int64_t count, const Layout& old) {
  LACUNA_TRY(check_count(count, "count"));
  Builder builder;
  if (count > 0) LACUNA_TRY(builder.add(old, count, old.extent(), 0));
  return std::move(builder).finish();
}

Result<Layout> Layout::vector(std::int64_t count, std::int64_t blocklength, std::int64_t stride, const Layout& old) {
  return hvector(count, blocklength, LACUNA_TRY(product(stride, old.extent(), "the stride")), old);
}

Result<Layout> Layout::hvector(std::int64_t count, std::int64_t blocklength, std::int64_t stride_bytes, const Layout& old) {
  LACUNA_TRY(check_count(count, "count"));
  LACUNA_TRY(check_count(blocklength, "blocklength"));
  if (count == 0 || blocklength == 0) return Layout();
  return repeated(LACUNA_TRY(contiguous(blocklength, old)), count, stride_bytes);
}

Result<Layout> repeated(const Layout& old, std::int64_t count, std::int64_t stride_bytes) {
  Builder builder;
  if (count > 0) LACUNA_TRY(builder.add(old, count, stride_bytes, 0));
  return std::move(builder).finish();
}

Result<Layout> Layout::indexed(std::span<const std::int64_t> blocklengths, std::span<const std::int64_t> displacements, const Layout& old) {
  if (std::optional<Layout> list = LACUNA_TRY(list_of_runs(blocklengths, displacements, old.extent(), old))) return std::move(*list);
  return hindexed(blocklengths, LACUNA_TRY(in_bytes(displacements, old)), old);
}

Result<Layout> Layout::hindexed(std::span<const std::int64_t> blocklengths, std::span<const std::int64_t> byte_displacements,
                                const Layout& old) {
  if (std::optional<Layout> list = LACUNA_TRY(list_of_runs(blocklengths, byte_displacements, 1, old))) return std::move(*list);
  return concatenate(blocklengths, byte_displacements, [&](std::size_t) -> const Layout& { return old; });
}

Result<Layout> Layout::indexed_block(std::int64_t blocklength, std::span<const std::int64_t> displacements, const Layout& old) {
  return listed(blocklength, displacements, old.extent(), old);
}

Result<Layout> Layout::hindexed_block(std::int64_t blocklength, std::span<const std::int64_t> byte_displacements, const Layout& old) {
  return listed(blocklength, byte_displacements, 1, old);
}

Result<Layout> Layout::structure(std::span<const std::int64_t> blocklengths, std::span<const std::int64_t> byte_displacements,
                                 std::span<const Layout> members) {
  if (members.size() != blocklengths.size()) {
    return base::fail(base::Code::invalid_argument, fmt::format("{} block lengths but {} members", blocklengths.size(), members.size()));
  }
  return concatenate(blocklengths, byte_displacements, [&](std::size_t i) -> const Layout& { return members[i]; });
}

Result<Layout> Layout::structure(std::span<const std::int64_t> blocklengths, std::span<const std::int64_t> byte_displacements,
                                 std::span<const Layout> layouts, std::span<const std::uint32_t> which) {
  if (which.size() != blocklengths.size()) {
    return base::fail(base::Code::invalid_argument, fmt::format("{} block lengths but {} members", blocklengths.size(), which.size()));
  }
  for (const std::uint32_t member : which) {
    if (member >= layouts.size())
      return base::fail(base::Code::invalid_argument, fmt::format("member {} of {} layouts", member, layouts.size()));
  }
  return concatenate(blocklengths, byte_displacements, [&](std::size_t i) -> const Layout& { return layouts[which[i]]; });
}

Result<Layout> Layout::resized(const Layout& old, std::int64_t lower_bound, std::int64_t extent) {
  std::int64_t upper = 0;
  if (!base::add(lower_bound, extent, upper)) {
    return base::fail(base::Code::overflow, fmt::format("lower bound {} + extent {} does not fit 64 bits", lower_bound, extent));
  }
  if (old.size() == 0) return Access::make(nullptr, lower_bound, upper, true);
  const Item item = Access::item(old);
  return Access::make(&item, lower_bound, upper, true, Access::state(old).kept);
}

Result<Layout> Layout::blocks(std::span<const std::int64_t> offsets, std::span<const std::int64_t> lengths) {
  return hindexed(lengths, offsets, LACUNA_TRY(bytes(1)));
}

Result<Layout> Layout::paged(std::int64_t block_bytes, std::span<const std::int64_t> page_numbers) {
  return indexed_block(1, page_numbers, LACUNA_TRY(bytes(block_bytes)));
}

}  // namespace lacuna::layout
