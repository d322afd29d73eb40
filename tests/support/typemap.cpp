#include "tests/support/typemap.hpp"

#include <algorithm>

namespace lacuna::naive {
namespace {

// Collects copies of typemaps at displacements. The bounds are MPI-4.1's: the least lb and the greatest ub of the
// entries, or of the markers alone as soon as there is one. A typemap with neither runs nor markers has no bounds to
// contribute.
class Builder {
 public:
  void place(const Typemap& old, std::int64_t displacement) {
    for (const Run& run : old.runs) map_.runs.push_back({displacement + run.offset, run.length});
    if (old.runs.empty() && !old.marked) return;
    if (map_.marked && !old.marked) return;
    const bool first = !bounded_ || (old.marked && !map_.marked);
    map_.lb = first ? displacement + old.lb : std::min(map_.lb, displacement + old.lb);
    map_.ub = first ? displacement + old.ub : std::max(map_.ub, displacement + old.ub);
    map_.marked = old.marked;
    bounded_ = true;
  }

  void place_block(std::int64_t blocklength, const Typemap& old, std::int64_t displacement) {
    for (std::int64_t j = 0; j < blocklength; ++j) place(old, displacement + j * old.extent());
  }

  Typemap take() { return std::move(map_); }
  Typemap take(std::int64_t lb, std::int64_t ub) {
    map_.lb = lb;
    map_.ub = ub;
    map_.marked = true;
    return std::move(map_);
  }

 private:
  Typemap map_;
  bool bounded_ = false;
};

std::int64_t product(Numbers numbers) {
  std::int64_t all = 1;
  for (const std::int64_t n : numbers) all *= n;
  return all;
}

// Steps `index` through a box, in the order in which an array of `order` lies in memory. False after the last.
bool step(std::vector<std::int64_t>& index, Numbers box, Order order) {
  const std::size_t n = box.size();
  for (std::size_t k = 0; k < n; ++k) {
    const std::size_t dim = order == Order::c ? n - 1 - k : k;
    if (++index[dim] < box[dim]) return true;
    index[dim] = 0;
  }
  return false;
}

std::int64_t linear(const std::vector<std::int64_t>& index, Numbers sizes, Order order) {
  const std::size_t n = sizes.size();
  std::int64_t at = 0;
  for (std::size_t k = 0; k < n; ++k) {
    const std::size_t dim = order == Order::c ? k : n - 1 - k;
    at = at * sizes[dim] + index[dim];
  }
  return at;
}

bool owns(std::int64_t coordinate, std::int64_t global, std::int64_t size, Distribution distribution, std::int64_t block,
          std::int64_t processes) {
  switch (distribution) {
    case Distribution::none: return true;
    case Distribution::block: return global / (block == layout::kDefaultBlock ? (size + processes - 1) / processes : block) == coordinate;
    case Distribution::cyclic: return global / (block == layout::kDefaultBlock ? 1 : block) % processes == coordinate;
  }
  return false;
}

}  // namespace

std::int64_t Typemap::size() const {
  std::int64_t total = 0;
  for (const Run& run : runs) total += run.length;
  return total;
}

std::int64_t Typemap::true_lb() const {
  if (runs.empty()) return 0;
  return std::ranges::min_element(runs, {}, &Run::offset)->offset;
}

std::int64_t Typemap::true_extent() const {
  if (runs.empty()) return 0;
  const auto end = [](const Run& run) { return run.offset + run.length; };
  return end(*std::ranges::max_element(runs, {}, end)) - true_lb();
}

std::vector<Run> Typemap::merged() const {
  std::vector<Run> out;
  for (const Run& run : runs) {
    if (!out.empty() && out.back().offset + out.back().length == run.offset) {
      out.back().length += run.length;
    } else {
      out.push_back(run);
    }
  }
  return out;
}

std::vector<std::int64_t> Typemap::addresses() const {
  std::vector<std::int64_t> out;
  out.reserve(static_cast<std::size_t>(size()));
  for (const Run& run : runs) {
    for (std::int64_t i = 0; i < run.length; ++i) out.push_back(run.offset + i);
  }
  return out;
}

bool Typemap::overlaps() const {
  std::vector<Run> sorted = runs;
  std::ranges::sort(sorted);
  for (std::size_t i = 1; i < sorted.size(); ++i) {
    if (sorted[i - 1].offset + sorted[i - 1].length > sorted[i].offset) return true;
  }
  return false;
}

Typemap bytes(std::int64_t count) {
  Typemap map;
  if (count > 0) map.runs.push_back({0, count});
  map.ub = count;
  return map;
}

Typemap contiguous(std::int64_t count, const Typemap& old) {
  Builder builder;
  builder.place_block(count, old, 0);
  return builder.take();
}

Typemap vector(std::int64_t count, std::int64_t blocklength, std::int64_t stride, const Typemap& old) {
  return hvector(count, blocklength, stride * old.extent(), old);
}

Typemap hvector(std::int64_t count, std::int64_t blocklength, std::int64_t stride_bytes, const Typemap& old) {
  Builder builder;
  for (std::int64_t i = 0; i < count; ++i) builder.place_block(blocklength, old, i * stride_bytes);
  return builder.take();
}

Typemap indexed(Numbers blocklengths, Numbers displacements, const Typemap& old) {
  Builder builder;
  for (std::size_t i = 0; i < displacements.size(); ++i) builder.place_block(blocklengths[i], old, displacements[i] * old.extent());
  return builder.take();
}

Typemap hindexed(Numbers blocklengths, Numbers byte_displacements, const Typemap& old) {
  Builder builder;
  for (std::size_t i = 0; i < byte_displacements.size(); ++i) builder.place_block(blocklengths[i], old, byte_displacements[i]);
  return builder.take();
}

Typemap indexed_block(std::int64_t blocklength, Numbers displacements, const Typemap& old) {
  return indexed(std::vector<std::int64_t>(displacements.size(), blocklength), displacements, old);
}

Typemap hindexed_block(std::int64_t blocklength, Numbers byte_displacements, const Typemap& old) {
  return hindexed(std::vector<std::int64_t>(byte_displacements.size(), blocklength), byte_displacements, old);
}

Typemap structure(Numbers blocklengths, Numbers byte_displacements, std::span<const Typemap> members) {
  Builder builder;
  for (std::size_t i = 0; i < members.size(); ++i) builder.place_block(blocklengths[i], members[i], byte_displacements[i]);
  return builder.take();
}

Typemap subarray(Numbers sizes, Numbers subsizes, Numbers starts, Order order, const Typemap& old) {
  Builder builder;
  std::vector<std::int64_t> index(sizes.size(), 0);
  if (product(subsizes) > 0) {
    do {
      std::vector<std::int64_t> global = index;
      for (std::size_t dim = 0; dim < global.size(); ++dim) global[dim] += starts[dim];
      builder.place(old, linear(global, sizes, order) * old.extent());
    } while (step(index, subsizes, order));
  }
  return builder.take(0, product(sizes) * old.extent());
}

Typemap darray(std::int64_t processes, std::int64_t rank, Numbers sizes, std::span<const Distribution> distributions, Numbers block_sizes,
               Numbers grid, Order order, const Typemap& old) {
  // The grid of processes is row-major whatever the order of the array.
  std::vector<std::int64_t> coordinates(grid.size());
  std::int64_t rest = rank;
  std::int64_t ranks = processes;
  for (std::size_t dim = 0; dim < grid.size(); ++dim) {
    ranks /= grid[dim];
    coordinates[dim] = rest / ranks;
    rest %= ranks;
  }
  Builder builder;
  std::vector<std::int64_t> index(sizes.size(), 0);
  if (product(sizes) > 0) {
    do {
      bool mine = true;
      for (std::size_t dim = 0; dim < sizes.size(); ++dim) {
        mine = mine && owns(coordinates[dim], index[dim], sizes[dim], distributions[dim], block_sizes[dim], grid[dim]);
      }
      if (mine) builder.place(old, linear(index, sizes, order) * old.extent());
    } while (step(index, sizes, order));
  }
  return builder.take(0, product(sizes) * old.extent());
}

Typemap resized(const Typemap& old, std::int64_t lower_bound, std::int64_t extent) {
  Typemap map = old;
  map.lb = lower_bound;
  map.ub = lower_bound + extent;
  map.marked = true;
  return map;
}

Typemap blocks(Numbers offsets, Numbers lengths) {
  Builder builder;
  for (std::size_t i = 0; i < offsets.size(); ++i) builder.place(bytes(lengths[i]), offsets[i]);
  return builder.take();
}

Typemap paged(std::int64_t block_bytes, Numbers page_numbers) { return indexed_block(1, page_numbers, bytes(block_bytes)); }

Typemap strided(std::int64_t item_bytes, Numbers shape, Numbers strides_bytes) {
  Builder builder;
  const Typemap item = bytes(item_bytes);
  std::vector<std::int64_t> index(shape.size(), 0);
  if (product(shape) > 0) {
    do {
      std::int64_t at = 0;
      for (std::size_t dim = 0; dim < shape.size(); ++dim) at += index[dim] * strides_bytes[dim];
      builder.place(item, at);
    } while (step(index, shape, Order::c));
  }
  return builder.take();
}

}  // namespace lacuna::naive
