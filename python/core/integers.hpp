// Lists of integers as arguments: arrays are read where they lie, sequences number by number.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "array.hpp"

namespace lacuna::python {

/// What a call was given for a list of integers.
struct GivenIntegers {
  nb::object given;
};

/// The integers of an argument: the memory of an array of int64 (or of uint64) without gaps, which nothing may change
/// meanwhile, or a converted copy.
class Integers {
 public:
  /// `name` is the argument's. Raises TypeError (no integers), OverflowError (beyond 64 bits), ValueError (not one
  /// dimension).
  Integers(const GivenIntegers& given, const char* name);
  operator std::span<const std::int64_t>() const { return numbers_; }

 private:
  void read_array(const nb::handle& object, const char* name);
  void read_sequence(const nb::handle& object, const char* name);

  std::optional<Array> array_;
  std::vector<std::int64_t> own_;
  std::span<const std::int64_t> numbers_;
};

}  // namespace lacuna::python

namespace nanobind::detail {

template <>
struct type_caster<lacuna::python::GivenIntegers> {
  NB_TYPE_CASTER(lacuna::python::GivenIntegers, const_name("collections.abc.Sequence[int] | numpy.typing.ArrayLike"))
  bool from_python(handle source, uint8_t /*flags*/, cleanup_list* /*cleanup*/) noexcept {
    value.given = borrow(source);
    return true;  // what it is, Integers finds out, which can say what is wrong with it
  }
};

}  // namespace nanobind::detail
