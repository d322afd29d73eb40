// Lists of integers as arguments.
#include "integers.hpp"

#include <fmt/format.h>
#include <nanobind/stl/string.h>

#include <bit>
#include <cstring>
#include <string>

namespace lacuna::python {
namespace {

[[noreturn]] void raise(PyObject* type, const std::string& text) {
  PyErr_SetString(type, text.c_str());
  throw nb::python_error();
}

[[noreturn]] void raise_too_large(const char* name, std::size_t index, const std::string& value) {
  raise(PyExc_OverflowError, fmt::format("{}[{}] is {}; a number of 64 bits with a sign is needed (at most 2^63 - 1)", name, index, value));
}

// Python refuses to write numbers of thousands of digits.
std::string text_of(PyObject* integer) {
  const nb::object text = nb::steal(PyObject_Str(integer));
  if (text.is_valid()) return nb::cast<std::string>(text);
  PyErr_Clear();
  return "a number of very many digits";
}

std::int64_t number_of(PyObject* integer, const char* name, std::size_t index) {
  int beyond = 0;
  const long long number = PyLong_AsLongLongAndOverflow(integer, &beyond);
  if (beyond != 0) raise_too_large(name, index, text_of(integer));
  return number;
}

// The integer that an entry is by its __index__().
nb::object index_of(nb::handle entry, const char* name, std::size_t index) {
  const nb::object kept = nb::borrow(entry);  // its own code may take it out of the list
  nb::object integer = nb::steal(PyNumber_Index(entry.ptr()));
  if (integer.is_valid()) return integer;
  if (PyErr_ExceptionMatches(PyExc_TypeError) == 0) throw nb::python_error();
  PyErr_Clear();
  raise(PyExc_TypeError, fmt::format("{}[{}] is of type {}; an integer is needed", name, index, class_name(entry)));
}

// Numbers of one type, a stride apart, in either order of bytes.
template <class T>
std::vector<std::int64_t> converted(const std::byte* at, std::int64_t stride, std::size_t count, bool swapped, const char* name) {
  std::vector<std::int64_t> numbers(count);
  if (sizeof(T) < 8 && !swapped && stride == static_cast<std::int64_t>(sizeof(T))) {  // as block tables are
    for (std::int64_t& number : numbers) {
      T value;
      std::memcpy(&value, at, sizeof value);
      number = static_cast<std::int64_t>(value);
      at += sizeof value;
    }
    return numbers;
  }
  for (std::size_t i = 0; i < count; ++i, at += stride) {
    T value;
    std::memcpy(&value, at, sizeof value);
    if constexpr (sizeof(T) > 1) {
      if (swapped) value = std::byteswap(value);
    }
    if constexpr (std::is_same_v<T, std::uint64_t>) {
      if (static_cast<std::int64_t>(value) < 0) raise_too_large(name, i, std::to_string(value));
    }
    numbers[i] = static_cast<std::int64_t>(value);
  }
  return numbers;
}

}  // namespace

Integers::Integers(const GivenIntegers& given, const char* name) {
  const nb::handle object = given.given;
  if (PyList_Check(object.ptr()) || PyTuple_Check(object.ptr())) {
    read_sequence(object, name);
  } else if (PyBytes_Check(object.ptr()) || PyUnicode_Check(object.ptr())) {
    raise(PyExc_TypeError, fmt::format("{} is of type {}; a sequence or an array of integers is needed", name, class_name(object)));
  } else if ((PyObject_CheckBuffer(object.ptr()) != 0 || nb::hasattr(object, "__dlpack__")) && !holds_objects(object)) {
    read_array(object, name);
  } else {
    read_sequence(object, name);
  }
}

void Integers::read_array(const nb::handle& object, const char* name) {
  array_.emplace(object, false, name);
  const layout::StridedArray elements = array_->elements();
  if (elements.shape.size() != 1) {
    raise(PyExc_ValueError, fmt::format("{} has {} dimensions; a list of integers has one", name, elements.shape.size()));
  }
  const auto count = static_cast<std::size_t>(elements.shape[0]);
  if (count == 0) return;  // of any type: NumPy's empty array is one of floats
  const auto [kind, swapped] = array_->number();
  const std::byte* data = array_->data();
  const std::int64_t stride = elements.strides[0];
  const bool in_place =
      elements.item_bytes == 8 && stride == 8 && !swapped && std::bit_cast<std::uintptr_t>(data) % alignof(std::int64_t) == 0;
  if (in_place && (kind == 'i' || kind == 'u')) {
    numbers_ = {reinterpret_cast<const std::int64_t*>(data), count};
    if (kind == 'i') return;
    std::int64_t all = 0;
    for (const std::int64_t number : numbers_) all |= number;
    if (all >= 0) return;  // no top bit is set: they are the same numbers with a sign
  }
  const auto convert = [&]<class T>(T) { own_ = converted<T>(data, stride, count, swapped, name); };
  const int code = static_cast<int>(elements.item_bytes) + (kind == 'u' ? 100 : kind == 'i' ? 0 : 1000);
  switch (code) {
    case 1: convert(std::int8_t{}); break;
    case 2: convert(std::int16_t{}); break;
    case 4: convert(std::int32_t{}); break;
    case 8: convert(std::int64_t{}); break;
    case 101: convert(std::uint8_t{}); break;
    case 102: convert(std::uint16_t{}); break;
    case 104: convert(std::uint32_t{}); break;
    case 108: convert(std::uint64_t{}); break;
    default: {
      const auto type = nb::cast<std::string>(nb::str(array_->element_type()));
      raise(PyExc_TypeError, fmt::format("{} has elements of type {}; integers are needed ({})", name, type,
                                         type == "bool" ? "numpy.flatnonzero() has the places of a mask" : "array.astype(int) makes them"));
    }
  }
  numbers_ = own_;
  array_.reset();
}

void Integers::read_sequence(const nb::handle& object, const char* name) {
  if (PySequence_Check(object.ptr()) == 0) {
    raise(PyExc_TypeError, fmt::format("{} is of type {}; a sequence or an array of integers is needed", name, class_name(object)));
  }
  const nb::object fast = nb::steal(PySequence_Fast(object.ptr(), "a sequence or an array of integers is needed"));
  if (!fast.is_valid()) throw nb::python_error();
  // A list or a tuple, in the functions of the stable ABI.
  const bool is_list = PyList_Check(fast.ptr());
  const auto size = [&] { return is_list ? PyList_Size(fast.ptr()) : PyTuple_Size(fast.ptr()); };
  const auto count = static_cast<std::size_t>(size());
  own_.resize(count);
  for (std::size_t i = 0; i < count; ++i) {
    // The list may change while an entry's own code runs.
    if (std::cmp_greater_equal(i, size())) raise(PyExc_RuntimeError, fmt::format("{} changed while it was read", name));
    const auto at = static_cast<Py_ssize_t>(i);
    PyObject* entry = is_list ? PyList_GetItem(fast.ptr(), at) : PyTuple_GetItem(fast.ptr(), at);
    own_[i] = PyLong_Check(entry) ? number_of(entry, name, i) : number_of(index_of(entry, name, i).ptr(), name, i);
  }
  numbers_ = own_;
}

}  // namespace lacuna::python
