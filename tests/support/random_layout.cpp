#include "tests/support/random_layout.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

namespace lacuna::support {
namespace {

using layout::Distribution;
using layout::Layout;
using layout::Order;
using naive::Typemap;
using List = std::vector<std::int64_t>;

std::string text(const List& list) {
  constexpr std::size_t shown = 24;
  std::string out = "[";
  for (std::size_t i = 0; i < std::min(shown, list.size()); ++i) out += fmt::format("{}{}", i == 0 ? "" : ",", list[i]);
  if (list.size() > shown) out += fmt::format(",... {} in all", list.size());
  out += "]";
  return out;
}

class Maker {
 public:
  Maker(Random& random, const Limits& limits) : random_(random), limits_(limits) {}

  Sample make(int depth, std::int64_t runs, std::int64_t bytes) {
    if (depth <= 0 || runs <= 1 || random_.one_in(20)) return leaf(bytes);
    static const std::vector<Sample (Maker::*)(int, std::int64_t, std::int64_t)> makers = {
        &Maker::repeated,    &Maker::repeated, &Maker::indexed,        &Maker::indexed, &Maker::structure,
        &Maker::structure,   &Maker::touching, &Maker::subarray,       &Maker::darray,  &Maker::resized,
        &Maker::plain_lists, &Maker::strided,  &Maker::nested_structs,
    };
    Sample sample = (this->*random_.pick(makers))(depth, runs, bytes);
    const Typemap& map = sample.typemap;
    const std::int64_t low = std::min({map.lb, map.ub, map.true_lb()});
    const std::int64_t high = std::max({map.lb, map.ub, map.true_lb() + map.true_extent()});
    if (low < -limits_.span || high > limits_.span) return leaf(bytes);
    return sample;
  }

 private:
  Sample leaf(std::int64_t bytes) {
    static const List usual = {1, 1, 2, 3, 4, 4, 4, 5, 7, 8, 8, 8, 12, 16, 16, 24, 32, 64, 100};
    const std::int64_t n = random_.one_in(60) ? 0 : std::min(bytes, random_.one_in(12) ? random_.scaled(bytes) : random_.pick(usual));
    return {value(Layout::bytes(n)), naive::bytes(n), fmt::format("bytes({})", n)};
  }

  // How many copies of a typemap the budget allows.
  static std::int64_t room(const Typemap& old, std::int64_t runs, std::int64_t bytes) {
    const auto old_runs = static_cast<std::int64_t>(old.runs.size());
    return std::min(runs / std::max<std::int64_t>(1, old_runs), bytes / std::max<std::int64_t>(1, old.size()));
  }

  // 0 now and then, small mostly, as many as fit sometimes.
  std::int64_t count(std::int64_t most) {
    if (most <= 0 || random_.one_in(80)) return 0;
    if (random_.one_in(4)) return 1 + random_.scaled(most - 1);
    return std::min(most, random_.between(1, 6));
  }

  // Budget for a child, so that some of it is left for the copies around it.
  std::int64_t share(std::int64_t budget) { return std::max<std::int64_t>(1, budget / random_.pick(List{2, 3, 8, 24})); }
  Sample child(int depth, std::int64_t runs, std::int64_t bytes) {
    return make(depth - 1 - (depth > 1 && random_.one_in(4)), share(runs), share(bytes));
  }

  // The stride, in bytes, at which copies touch: the next first run follows the last run.
  static std::int64_t touching_stride(const Typemap& old) {
    return old.runs.empty() ? 0 : old.runs.back().offset + old.runs.back().length - old.runs.front().offset;
  }

  std::int64_t byte_stride(const Typemap& old, std::int64_t blocklength) {
    const std::int64_t block = blocklength * old.extent();
    switch (random_.below(8)) {
      case 0: return block;
      case 1: return -block;
      case 2: return touching_stride(old) + (blocklength - 1) * old.extent();
      case 3: return old.true_extent();
      case 4: return 0;
      case 5: return random_.between(-300, 300);
      default: return block + random_.between(0, 64);
    }
  }

  Sample repeated(int depth, std::int64_t runs, std::int64_t bytes) {
    const Sample old = child(depth, runs, bytes);
    const Typemap& map = old.typemap;
    const std::int64_t n = count(room(map, runs, bytes));
    const std::int64_t block = n == 0 ? random_.below(3) : count(room(map, runs, bytes) / n);
    const std::int64_t stride = byte_stride(map, block);
    const std::int64_t elements = random_.one_in(3) ? block : random_.between(-block - 2, block + 3);
    switch (random_.below(3)) {
      case 0:
        return {value(Layout::contiguous(n, old.layout)), naive::contiguous(n, map), fmt::format("contiguous({}, {})", n, old.recipe)};
      case 1:
        return {value(Layout::vector(n, block, elements, old.layout)), naive::vector(n, block, elements, map),
                fmt::format("vector({}, {}, {}, {})", n, block, elements, old.recipe)};
      default:
        return {value(Layout::hvector(n, block, stride, old.layout)), naive::hvector(n, block, stride, map),
                fmt::format("hvector({}, {}, {}, {})", n, block, stride, old.recipe)};
    }
  }

  // Displacements of n blocks of about `block` units: regular, in pieces, permuted, or anywhere.
  List displacements(std::int64_t n, std::int64_t block) {
    List list;
    std::int64_t at = random_.between(-20, 20);
    std::int64_t step = random_.between(-2 * block - 1, 3 * block + 1);
    const std::int64_t kind = random_.below(5);
    for (std::int64_t i = 0; i < n; ++i) {
      list.push_back(at);
      if (kind == 1 && random_.one_in(6)) step = random_.between(0, 3 * block + 1);
      if (kind == 2) step = random_.one_in(3) ? block : random_.between(-3 * block, 4 * block);
      at += kind == 3 ? block : step;
    }
    if (kind >= 3) random_.shuffle(list);
    return list;
  }

  Sample indexed(int depth, std::int64_t runs, std::int64_t bytes) {
    const Sample old = child(depth, runs, bytes);
    const Typemap& map = old.typemap;
    const std::int64_t most = room(map, runs, bytes);
    const std::int64_t n = count(most);
    const std::int64_t block = n == 0 ? 1 : count(most / n);
    List lengths;
    for (std::int64_t i = 0; i < n; ++i) lengths.push_back(random_.one_in(2) ? block : random_.below(block + 1));
    const List extents = displacements(n, std::max<std::int64_t>(block, 1));
    const List offsets = displacements(n, std::max<std::int64_t>(1, block * std::max(map.extent(), map.true_extent())));
    switch (random_.below(4)) {
      case 0:
        return {value(Layout::indexed(lengths, extents, old.layout)), naive::indexed(lengths, extents, map),
                fmt::format("indexed({}, {}, {})", text(lengths), text(extents), old.recipe)};
      case 1:
        return {value(Layout::hindexed(lengths, offsets, old.layout)), naive::hindexed(lengths, offsets, map),
                fmt::format("hindexed({}, {}, {})", text(lengths), text(offsets), old.recipe)};
      case 2:
        return {value(Layout::indexed_block(block, extents, old.layout)), naive::indexed_block(block, extents, map),
                fmt::format("indexed_block({}, {}, {})", block, text(extents), old.recipe)};
      default:
        return {value(Layout::hindexed_block(block, offsets, old.layout)), naive::hindexed_block(block, offsets, map),
                fmt::format("hindexed_block({}, {}, {})", block, text(offsets), old.recipe)};
    }
  }

  Sample structure(int depth, std::int64_t runs, std::int64_t bytes) {
    const std::int64_t n = random_.one_in(40) ? 0 : random_.between(1, 5);
    List lengths;
    List offsets;
    std::vector<Layout> layouts;
    std::vector<Typemap> maps;
    std::string recipes;
    std::int64_t end = random_.between(-40, 40);  // where the last member's last run ended
    for (std::int64_t i = 0; i < n; ++i) {
      const Sample member = child(depth, runs / n, bytes / n);
      const Typemap& map = member.typemap;
      lengths.push_back(count(room(map, runs / n, bytes / n)));
      const std::int64_t first = map.runs.empty() ? 0 : map.runs.front().offset;
      offsets.push_back(random_.one_in(2)   ? end - first
                        : random_.one_in(4) ? random_.between(-2000, 2000)
                                            : end + random_.between(0, 64) - map.lb);
      if (!map.runs.empty() && lengths.back() > 0) {
        end = offsets.back() + (lengths.back() - 1) * map.extent() + map.runs.back().offset + map.runs.back().length;
      }
      layouts.push_back(member.layout);
      maps.push_back(map);
      recipes += (i == 0 ? "" : "; ") + member.recipe;
    }
    return {value(Layout::structure(lengths, offsets, layouts)), naive::structure(lengths, offsets, maps),
            fmt::format("structure({}, {}, {{{}}})", text(lengths), text(offsets), recipes)};
  }

  // An extent at which each element's first run follows the last run of the one before.
  Sample touching(int depth, std::int64_t runs, std::int64_t bytes) {
    const Sample old = child(depth, runs, bytes);
    const std::int64_t extent = touching_stride(old.typemap);
    const std::int64_t n = count(room(old.typemap, runs, bytes));
    const Layout element = value(Layout::resized(old.layout, old.typemap.lb, extent));
    const Typemap map = naive::resized(old.typemap, old.typemap.lb, extent);
    return {value(Layout::contiguous(n, element)), naive::contiguous(n, map),
            fmt::format("contiguous({}, resized({}, {}, {}))", n, old.recipe, old.typemap.lb, extent)};
  }

  // An array of structs, possibly padded, in an array of structs.
  Sample nested_structs(int depth, std::int64_t runs, std::int64_t bytes) {
    const Sample old = structure(depth, share(runs), share(bytes));
    const std::int64_t extent = old.typemap.true_extent() + random_.pick(List{0, 0, 1, 4, 8, 24});
    const std::int64_t n = count(room(old.typemap, runs, bytes));
    const Layout element = value(Layout::resized(old.layout, 0, extent));
    const Typemap map = naive::resized(old.typemap, 0, extent);
    return {value(Layout::contiguous(n, element)), naive::contiguous(n, map),
            fmt::format("contiguous({}, resized({}, 0, {}))", n, old.recipe, extent)};
  }

  Sample resized(int depth, std::int64_t runs, std::int64_t bytes) {
    const Sample old = child(depth, runs, bytes);
    const std::int64_t lower = random_.between(-64, 64);
    const std::int64_t extent = random_.one_in(4) ? random_.between(-100, 0) : random_.between(0, 2 * old.typemap.true_extent() + 17);
    return {value(Layout::resized(old.layout, lower, extent)), naive::resized(old.typemap, lower, extent),
            fmt::format("resized({}, {}, {})", old.recipe, lower, extent)};
  }

  Order order() { return random_.one_in(2) ? Order::c : Order::fortran; }

  // Dimensions of an array of at most `most` elements.
  List dimensions(std::int64_t most) {
    List sizes;
    const std::int64_t dims = random_.between(1, 4);
    for (std::int64_t d = 0; d < dims; ++d) {
      sizes.push_back(random_.between(1, std::clamp<std::int64_t>(most, 1, dims == 1 ? 100 : 9)));
      most /= sizes.back();
    }
    return sizes;
  }

  Sample subarray(int depth, std::int64_t runs, std::int64_t bytes) {
    const Sample old = child(depth, runs, bytes);
    const List sizes = dimensions(2 * room(old.typemap, runs, bytes));
    List subsizes;
    List starts;
    for (const std::int64_t size : sizes) {
      subsizes.push_back(random_.one_in(3) ? size : random_.between(1, size));
      starts.push_back(random_.between(0, size - subsizes.back()));
    }
    const Order o = order();
    return {value(Layout::subarray(sizes, subsizes, starts, o, old.layout)), naive::subarray(sizes, subsizes, starts, o, old.typemap),
            fmt::format("subarray({}, {}, {}, {}, {})", text(sizes), text(subsizes), text(starts), o == Order::c ? "C" : "Fortran",
                        old.recipe)};
  }

  Sample darray(int depth, std::int64_t runs, std::int64_t bytes) {
    const Sample old = child(depth, runs, bytes);
    const List sizes = dimensions(4 * room(old.typemap, runs, bytes));
    std::vector<Distribution> distributions;
    List blocks;
    List grid;
    std::string kinds;
    std::int64_t processes = 1;
    for (const std::int64_t size : sizes) {
      const auto kind = static_cast<Distribution>(random_.below(3));
      const std::int64_t p = kind == Distribution::none ? 1 : random_.between(1, 4);
      const std::int64_t least = kind == Distribution::block ? (size + p - 1) / p : 1;
      distributions.push_back(kind);
      grid.push_back(p);
      blocks.push_back(random_.one_in(3) ? layout::kDefaultBlock : random_.between(least, least + 3));
      kinds += "nbc"[static_cast<int>(kind)];
      processes *= p;
    }
    const std::int64_t rank = random_.below(processes);
    const Order o = order();
    return {value(Layout::darray(processes, rank, sizes, distributions, blocks, grid, o, old.layout)),
            naive::darray(processes, rank, sizes, distributions, blocks, grid, o, old.typemap),
            fmt::format("darray({}, {}, {}, {}, {}, {}, {}, {})", processes, rank, text(sizes), kinds, text(blocks), text(grid),
                        o == Order::c ? "C" : "Fortran", old.recipe)};
  }

  Sample plain_lists(int, std::int64_t runs, std::int64_t bytes) {
    const std::int64_t n = count(runs);
    const std::int64_t block = n == 0 ? 1 : 1 + random_.scaled(std::min<std::int64_t>(bytes / n, 512));
    if (bytes < n * block) return leaf(bytes);
    if (random_.one_in(2)) {
      const List pages = displacements(n, 1);
      return {value(Layout::paged(block, pages)), naive::paged(block, pages), fmt::format("paged({}, {})", block, text(pages))};
    }
    const List offsets = displacements(n, block);
    List lengths;
    for (std::int64_t i = 0; i < n; ++i) lengths.push_back(random_.one_in(3) ? random_.below(block + 1) : block);
    return {value(Layout::blocks(offsets, lengths)), naive::blocks(offsets, lengths),
            fmt::format("blocks({}, {})", text(offsets), text(lengths))};
  }

  // A NumPy view: any strides, among them those of transposed, reversed and broadcast arrays.
  Sample strided(int, std::int64_t runs, std::int64_t bytes) {
    const std::int64_t item = random_.pick(List{1, 2, 4, 8, 16});
    const List shape = dimensions(std::min(runs, bytes / item));
    std::int64_t elements = 1;
    for (const std::int64_t n : shape) elements *= n;
    if (elements * item > bytes) return leaf(bytes);
    List strides(shape.size());
    List dims(shape.size());
    for (std::size_t d = 0; d < dims.size(); ++d) dims[d] = static_cast<std::int64_t>(d);
    random_.shuffle(dims);
    std::int64_t step = item;
    for (const std::int64_t d : dims) {
      const auto at = static_cast<std::size_t>(d);
      strides[at] = random_.one_in(6) ? 0 : random_.one_in(4) ? -step : step;
      step *= shape[at] + (random_.one_in(3) ? 1 : 0);
    }
    return {value(Layout::strided(item, shape, strides)), naive::strided(item, shape, strides),
            fmt::format("strided({}, {}, {})", item, text(shape), text(strides))};
  }

  Random& random_;
  const Limits& limits_;
};

}  // namespace

Sample random_layout(Random& random, const Limits& limits) {
  const int depth = random.one_in(3) ? static_cast<int>(random.between(1, limits.depth)) : limits.depth;
  const std::int64_t runs = random.one_in(3) ? limits.runs : std::min(limits.runs, 16 + random.scaled(limits.runs));
  const std::int64_t bytes = random.one_in(3) ? limits.bytes : std::min(limits.bytes, 16 + random.scaled(limits.bytes));
  return Maker(random, limits).make(depth, runs, bytes);
}

Sample random_layout_of_size(Random& random, std::int64_t size, const Limits& limits) {
  std::vector<Layout> layouts;
  std::vector<Typemap> maps;
  List offsets;
  std::string recipes;
  std::int64_t left = size;
  while (left > 0) {
    Limits rest = limits;
    rest.bytes = left;
    Sample part = random_layout(random, rest);
    // An array may take a few times its budget, and there has to be an end.
    if (part.typemap.size() > left || layouts.size() >= 6)
      part = {value(Layout::bytes(left)), naive::bytes(left), fmt::format("bytes({})", left)};
    left -= part.typemap.size();
    offsets.push_back(random.between(-5000, 5000));
    layouts.push_back(std::move(part.layout));
    maps.push_back(std::move(part.typemap));
    if (!recipes.empty()) recipes += "; ";
    recipes += part.recipe;
  }
  const List ones(layouts.size(), 1);
  return {value(Layout::structure(ones, offsets, layouts)), naive::structure(ones, offsets, maps),
          fmt::format("structure(1, {}, {{{}}})", text(offsets), recipes)};
}

Sample random_receive_layout(Random& random, std::int64_t size, const Limits& limits) {
  for (int attempt = 0; attempt < 20; ++attempt) {
    Sample sample = size < 0 ? random_layout(random, limits) : random_layout_of_size(random, size, limits);
    if (!sample.typemap.overlaps()) return sample;
  }
  // Cut [0, size + gaps) into blocks and permute them.
  if (size < 0) size = random.scaled(limits.bytes);
  List offsets;
  List lengths;
  std::int64_t at = random.between(-100, 100);
  for (std::int64_t left = size; left > 0; left -= lengths.back()) {
    lengths.push_back(std::min(left, 1 + random.scaled(1 + size / 20)));
    offsets.push_back(at);
    at += lengths.back() + (random.one_in(3) ? 0 : random.scaled(100));
  }
  List order(offsets.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<std::int64_t>(i);
  random.shuffle(order);
  List shuffled_offsets;
  List shuffled_lengths;
  for (const std::int64_t i : order) {
    shuffled_offsets.push_back(offsets[static_cast<std::size_t>(i)]);
    shuffled_lengths.push_back(lengths[static_cast<std::size_t>(i)]);
  }
  return {value(Layout::blocks(shuffled_offsets, shuffled_lengths)), naive::blocks(shuffled_offsets, shuffled_lengths),
          fmt::format("blocks({}, {})", text(shuffled_offsets), text(shuffled_lengths))};
}

}  // namespace lacuna::support
