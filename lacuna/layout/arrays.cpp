// subarray, darray and strided: boxes and distributions of arrays, one dimension after the other from the fastest
// outwards.
#include <fmt/format.h>

#include <algorithm>

#include "lacuna/layout/builder.hpp"

namespace lacuna::layout {
namespace {

using Lengths = std::span<const std::int64_t>;

std::unexpected<base::Error> bad(std::string message) { return base::fail(base::Code::invalid_argument, std::move(message)); }

// Dimension indices, fastest first.
std::vector<std::size_t> fastest_first(std::size_t dims, Order order) {
  std::vector<std::size_t> result(dims);
  for (std::size_t i = 0; i < dims; ++i) result[i] = order == Order::c ? dims - 1 - i : i;
  return result;
}

// A stretch of `length` indices of one dimension, repeated `count` times `period` apart.
struct Owned {
  std::int64_t start;
  std::int64_t length;
  std::int64_t count;
  std::int64_t period;
};

// The elements that `owned` selects in one dimension, each `step` bytes from the next, of an already built inner
// layout.
Result<Layout> select(const Layout& inner, std::span<const Owned> owned, std::int64_t step) {
  Builder builder;
  for (const Owned& part : owned) {
    if (part.length == 0 || part.count == 0) continue;
    const Layout stretch = LACUNA_TRY(repeated(inner, part.length, step));
    const std::int64_t stride = LACUNA_TRY(product(part.period, step, "a stride"));
    const std::int64_t start = LACUNA_TRY(product(part.start, step, "an offset"));
    LACUNA_TRY(builder.add(stretch, part.count, stride, start));
  }
  return std::move(builder).finish();
}

// MPI-4.1 section 5.1.4: what the process at `coordinate` of `processes` owns of `size` indices.
Result<std::vector<Owned>> owned_by(Distribution distribution, std::int64_t size, std::int64_t block, std::int64_t processes,
                                    std::int64_t coordinate) {
  if (distribution == Distribution::none) {
    if (processes != 1) return bad(fmt::format("a dimension that is not distributed has {} processes; it must have 1", processes));
    return std::vector<Owned>{{0, size, 1, 0}};
  }
  if (block != kDefaultBlock && block <= 0) return bad(fmt::format("block size {}; it must be positive or kDefaultBlock", block));
  if (distribution == Distribution::block) {
    const std::int64_t each = block == kDefaultBlock ? (size - 1) / processes + 1 : block;
    if (each < size && (size - 1) / each >= processes)
      return bad(fmt::format("blocks of {} for {} processes do not cover {} indices", each, processes, size));
    const std::int64_t start = coordinate > size / each ? size : std::min(size, each * coordinate);
    return std::vector<Owned>{{start, std::min(each, size - start), 1, 0}};
  }
  // Cyclic: whole blocks first, then the one that the array's end cuts short.
  const std::int64_t each = std::min(block == kDefaultBlock ? 1 : block, size);
  const std::int64_t blocks = (size - 1) / each + 1;
  if (coordinate >= blocks) return std::vector<Owned>{};
  const std::int64_t mine = (blocks - 1 - coordinate) / processes + 1;
  const std::int64_t last = coordinate + (mine - 1) * processes;
  const std::int64_t last_length = std::min(each, size - last * each);
  const std::int64_t whole = last_length == each ? mine : mine - 1;
  const std::int64_t period = LACUNA_TRY(product(each, processes, "the cycle"));
  std::vector<Owned> result{{coordinate * each, each, whole, period}};
  if (whole < mine) result.push_back({last * each, last_length, 1, 0});
  return result;
}

// The array's whole extent, from 0.
Result<std::int64_t> whole_extent(Lengths sizes, const Layout& old) {
  std::int64_t extent = old.extent();
  for (const std::int64_t size : sizes) extent = LACUNA_TRY(product(extent, size, "the array"));
  return extent;
}

}  // namespace

Result<Layout> Layout::subarray(Lengths sizes, Lengths subsizes, Lengths starts, Order order, const Layout& old) {
  if (sizes.empty() || sizes.size() != subsizes.size() || sizes.size() != starts.size()) {
    return bad(fmt::format("subarray of {} sizes, {} subsizes and {} starts; they must be as many, and at least 1", sizes.size(),
                           subsizes.size(), starts.size()));
  }
  for (std::size_t d = 0; d < sizes.size(); ++d) {
    if (sizes[d] < 1 || subsizes[d] < 1 || subsizes[d] > sizes[d] || starts[d] < 0 || starts[d] > sizes[d] - subsizes[d]) {
      return bad(
          fmt::format("subarray dimension {}: {} elements from {} do not lie in an array of {}", d, subsizes[d], starts[d], sizes[d]));
    }
  }
  const std::int64_t extent = LACUNA_TRY(whole_extent(sizes, old));
  Layout box = old;
  std::int64_t step = old.extent();
  for (const std::size_t d : fastest_first(sizes.size(), order)) {
    const Owned owned{starts[d], subsizes[d], 1, 0};
    box = LACUNA_TRY(select(box, {&owned, 1}, step));
    step = LACUNA_TRY(product(step, sizes[d], "a stride"));
  }
  return resized(box, 0, extent);
}

Result<Layout> Layout::darray(std::int64_t processes, std::int64_t rank, Lengths sizes, std::span<const Distribution> distributions,
                              Lengths block_sizes, Lengths grid, Order order, const Layout& old) {
  const std::size_t dims = sizes.size();
  if (dims == 0 || distributions.size() != dims || block_sizes.size() != dims || grid.size() != dims) {
    return bad(
        fmt::format("darray of {} sizes, {} distributions, {} block sizes and {} grid dimensions; they must be as many, and at least 1",
                    dims, distributions.size(), block_sizes.size(), grid.size()));
  }
  if (processes < 1 || rank < 0 || rank >= processes) return bad(fmt::format("rank {} of {} processes", rank, processes));
  std::int64_t cells = 1;
  for (std::size_t d = 0; d < dims; ++d) {
    if (sizes[d] < 1 || grid[d] < 1)
      return bad(fmt::format("darray dimension {}: size {}, {} processes; both must be positive", d, sizes[d], grid[d]));
    cells = LACUNA_TRY(product(cells, grid[d], "the grid"));
  }
  if (cells != processes) return bad(fmt::format("the grid has {} processes, the array {}", cells, processes));

  std::vector<std::int64_t> coordinates(dims);  // row-major, whatever the order of the array
  for (std::size_t d = dims; d-- > 0; rank /= grid[d]) coordinates[d] = rank % grid[d];

  const std::int64_t extent = LACUNA_TRY(whole_extent(sizes, old));
  Layout part = old;
  std::int64_t step = old.extent();
  for (const std::size_t d : fastest_first(dims, order)) {
    const std::vector<Owned> owned = LACUNA_TRY(owned_by(distributions[d], sizes[d], block_sizes[d], grid[d], coordinates[d]));
    part = LACUNA_TRY(select(part, owned, step));
    step = LACUNA_TRY(product(step, sizes[d], "a stride"));
  }
  return resized(part, 0, extent);
}

Result<Layout> Layout::strided(std::int64_t item_bytes, Lengths shape, Lengths strides_bytes) {
  if (shape.size() != strides_bytes.size()) return bad(fmt::format("{} dimensions but {} strides", shape.size(), strides_bytes.size()));
  Layout array = LACUNA_TRY(bytes(item_bytes));
  for (std::size_t d = shape.size(); d-- > 0;) {
    LACUNA_TRY(check_count(shape[d], "a dimension"));
    array = LACUNA_TRY(repeated(array, shape[d], strides_bytes[d]));
  }
  return array;
}

}  // namespace lacuna::layout
