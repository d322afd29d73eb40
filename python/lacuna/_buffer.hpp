// Memory of Python objects, as layouts see it.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "_core.hpp"
#include "lacuna/layout/layout.hpp"

namespace lacuna::python {

// A Python buffer for as long as this lives.
class Bytes {
 public:
  Bytes(const nb::handle& object, bool writable) {
    // Any strides: the layout says which bytes are meant, relative to the first element's address.
    if (PyObject_GetBuffer(object.ptr(), &view_, writable ? PyBUF_STRIDED : PyBUF_STRIDED_RO) != 0) throw nb::python_error();
  }
  ~Bytes() { PyBuffer_Release(&view_); }
  Bytes(const Bytes&) = delete;
  Bytes& operator=(const Bytes&) = delete;

  // The bytes that the view's elements span, relative to its first element: negative strides reach below it.
  struct Bounds {
    std::int64_t low;
    std::int64_t high;
  };
  [[nodiscard]] Bounds bounds() const {
    Bounds bounds{0, view_.itemsize};
    for (int d = 0; d < view_.ndim; ++d) {
      if (view_.shape[d] == 0) return {0, 0};
      const std::int64_t last = (view_.shape[d] - 1) * view_.strides[d];
      (last < 0 ? bounds.low : bounds.high) += last;
    }
    return bounds;
  }
  [[nodiscard]] std::byte* data() const { return static_cast<std::byte*>(view_.buf); }

  // Where a layout's base is when it lies in this buffer at `offset`. Raises ValueError if a byte of it lies outside.
  [[nodiscard]] std::byte* base_of(const layout::Layout& layout, std::int64_t offset) const {
    const Bounds has = bounds();
    constexpr std::int64_t far = layout::kMaxBytes;  // no buffer reaches so far, and sums of two fit
    const std::int64_t low = std::clamp(offset, -2 * far, 2 * far) + layout.true_lower_bound();
    if (layout.size() > 0 && (low < has.low || low + layout.true_extent() > has.high)) {
      const std::string text = "the layout covers bytes " + std::to_string(low) + " to " + std::to_string(low + layout.true_extent()) +
                               " of a buffer of bytes " + std::to_string(has.low) + " to " + std::to_string(has.high);
      throw nb::value_error(text.c_str());
    }
    return data() + offset;
  }
  [[nodiscard]] layout::Layout layout() const {
    return value_or_raise(layout::Layout::strided(view_.itemsize, std::vector<std::int64_t>(view_.shape, view_.shape + view_.ndim),
                                                  std::vector<std::int64_t>(view_.strides, view_.strides + view_.ndim)));
  }

 private:
  Py_buffer view_{};
};

}  // namespace lacuna::python
