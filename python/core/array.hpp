// Memory of Python objects, as layouts see it.
#pragma once

#include <nanobind/ndarray.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core.hpp"
#include "lacuna/layout/layout.hpp"

namespace lacuna::python {

/// The memory of an object of the host for as long as this lives: of what has the buffer protocol, or DLPack alone, in
/// memory that the CPU reads and writes (pinned and managed memory of a GPU as well). Objects whose elements are
/// references of Python are refused.
class Array {
 public:
  /// `role` names it in errors: "source". Raises TypeError (no array, one of Python objects, memory of a device alone),
  /// BufferError or ValueError (read-only).
  Array(const nb::handle& object, bool writable, const char* role = "array");
  ~Array();
  Array(const Array&) = delete;
  Array& operator=(const Array&) = delete;

  /// Of the first element.
  [[nodiscard]] std::byte* data() const { return data_; }
  [[nodiscard]] layout::StridedArray elements() const { return {item_bytes_, shape_, strides_}; }
  /// Of its elements, or what base() was given.
  [[nodiscard]] const layout::Layout& layout();
  /// Where the elements' layout has its base, or `layout`, which then is layout(). Raises ValueError if a byte of it
  /// lies outside of the array.
  std::byte* base(const std::optional<layout::Layout>& layout, std::int64_t offset);
  /// The same without remembering the layout.
  [[nodiscard]] std::byte* base_of(const layout::Layout& layout, std::int64_t offset) const;

  /// The bytes that the elements span, relative to the first one: negative strides reach below it.
  struct Bounds {
    std::int64_t low;
    std::int64_t high;
  };
  [[nodiscard]] Bounds bounds() const;

  /// NumPy's dtype of the elements, the name of a type that NumPy has not, or None for bytes of no type
  /// (lacuna.elements).
  [[nodiscard]] nb::object element_type() const;
  /// Of numbers: 'i' signed, 'u' unsigned; else another letter.
  struct Number {
    char kind = 'V';
    bool swapped = false;  ///< its bytes are in the other order
  };
  [[nodiscard]] Number number() const;

  /// Raises TypeError, naming both, if their elements have different types.
  static void check_same_elements(const Array& target, const Array& source);

 private:
  void take_buffer(bool writable);
  void without_buffer(bool writable);
  void take_dlpack(bool writable);
  void import_dlpack(bool writable);

  nb::object object_;
  const char* role_;
  nb::object dtype_;    // NumPy's, if the object has one
  Py_buffer buffer_{};  // buffer_.obj is null where DLPack is used
  nb::ndarray<nb::ro> dlpack_;
  std::byte* data_ = nullptr;
  std::int64_t item_bytes_ = 0;
  std::span<const std::int64_t> shape_;
  std::span<const std::int64_t> strides_;  // in bytes
  std::vector<std::int64_t> own_strides_;
  std::optional<layout::Layout> layout_;  // of the elements once it is asked for
};

/// Of an object, for errors.
std::string class_name(const nb::handle& object);
/// Whether an object has the buffer protocol, and is of no type that may be on a GPU (JAX has one type for both).
bool has_host_buffer(const nb::handle& object);
/// Whether an object has elements that are references of Python: NumPy's objects, and strings of any length, also
/// within structs.
bool holds_objects(const nb::handle& object);

}  // namespace lacuna::python
