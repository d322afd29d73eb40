// What the constructors share: items collected in order, with MPI's rule for bounds: the union of the placed members',
// or of those alone whose bounds were set by markers (resized, subarray, darray), if there is one.
#pragma once

#include <vector>

#include "lacuna/layout/canonical.hpp"

namespace lacuna::layout {

class Builder {
 public:
  void reserve(std::size_t members) { items_.reserve(members); }
  /// `count` > 0 copies of `old`, `stride` bytes apart, the first at `displacement`.
  Result<void> add(const Layout& old, std::int64_t count, std::int64_t stride, std::int64_t displacement);
  Result<Layout> finish() &&;

 private:
  std::vector<Item> items_;
  std::int64_t lower_ = 0;
  std::int64_t upper_ = 0;
  bool bounded_ = false;
  bool marked_ = false;
  bool kept_ = false;
};

/// `count` >= 0 copies of `old`, `stride_bytes` apart.
Result<Layout> repeated(const Layout& old, std::int64_t count, std::int64_t stride_bytes);

/// Errors: invalid_argument naming the argument if it is negative.
Result<void> check_count(std::int64_t value, const char* name);
/// a * b within kMaxBytes. Errors: overflow.
Result<std::int64_t> product(std::int64_t a, std::int64_t b, const char* what);

}  // namespace lacuna::layout
