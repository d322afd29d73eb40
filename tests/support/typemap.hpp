// A naive typemap: the reference that every layout is tested against. It shares nothing with the library but Run and
// the two enumerations, holds each run explicitly, and writes each constructor as MPI-4.1 section 5.1 states it, with
// loops.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "lacuna/layout/layout.hpp"

namespace lacuna::naive {

using layout::Distribution;
using layout::Order;
using layout::Run;
using Numbers = std::span<const std::int64_t>;

struct Typemap {
  std::vector<Run> runs;  ///< typemap order; never of zero length; neighbours not merged
  std::int64_t lb = 0;
  std::int64_t ub = 0;
  /// The bounds come from markers (resized, subarray, darray), not from the runs. In MPI a marker, once set, is the
  /// only thing that bounds a typemap: unmarked members of a struct beside it have no say.
  bool marked = false;

  [[nodiscard]] std::int64_t extent() const { return ub - lb; }
  [[nodiscard]] std::int64_t size() const;
  [[nodiscard]] std::int64_t true_lb() const;
  [[nodiscard]] std::int64_t true_extent() const;
  /// The runs, neighbours in order and in memory merged: the fewest that keep the order.
  [[nodiscard]] std::vector<Run> merged() const;
  /// The offset of each byte of the packed stream.
  [[nodiscard]] std::vector<std::int64_t> addresses() const;
  /// Some byte occurs twice.
  [[nodiscard]] bool overlaps() const;
};

Typemap bytes(std::int64_t count);
Typemap contiguous(std::int64_t count, const Typemap& old);
Typemap vector(std::int64_t count, std::int64_t blocklength, std::int64_t stride, const Typemap& old);
Typemap hvector(std::int64_t count, std::int64_t blocklength, std::int64_t stride_bytes, const Typemap& old);
Typemap indexed(Numbers blocklengths, Numbers displacements, const Typemap& old);
Typemap hindexed(Numbers blocklengths, Numbers byte_displacements, const Typemap& old);
Typemap indexed_block(std::int64_t blocklength, Numbers displacements, const Typemap& old);
Typemap hindexed_block(std::int64_t blocklength, Numbers byte_displacements, const Typemap& old);
Typemap structure(Numbers blocklengths, Numbers byte_displacements, std::span<const Typemap> members);
Typemap subarray(Numbers sizes, Numbers subsizes, Numbers starts, Order order, const Typemap& old);
Typemap darray(std::int64_t processes, std::int64_t rank, Numbers sizes, std::span<const Distribution> distributions, Numbers block_sizes,
               Numbers grid, Order order, const Typemap& old);
Typemap resized(const Typemap& old, std::int64_t lower_bound, std::int64_t extent);
Typemap blocks(Numbers offsets, Numbers lengths);
Typemap paged(std::int64_t block_bytes, Numbers page_numbers);
Typemap strided(std::int64_t item_bytes, Numbers shape, Numbers strides_bytes);

}  // namespace lacuna::naive
