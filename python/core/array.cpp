// Arrays of the host: the buffer protocol, and DLPack.
#include "array.hpp"

#include <fmt/format.h>
#include <nanobind/stl/string.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

namespace lacuna::python {
namespace {

// DLPack's numbers of memory that the CPU reaches, of which nanobind names only the first.
constexpr int kCpu = 1, kCudaHost = 3, kRocmHost = 11, kCudaManaged = 13;

[[noreturn]] void raise_type(const std::string& text) { throw nb::type_error(text.c_str()); }

// NumPy's dtype of an object, or nothing (others call something else so), and whether it has references in it.
struct Dtype {
  nb::object dtype;
  bool has_objects = false;
};
Dtype dtype_of(const nb::handle& object) {
  static PyObject* const dtype_name = PyUnicode_InternFromString("dtype");
  static PyObject* const flag_name = PyUnicode_InternFromString("hasobject");
  nb::object dtype = nb::getattr(object, nb::handle(dtype_name), nb::handle());
  if (!dtype.is_valid()) return {};
  const nb::object flag = nb::getattr(dtype, nb::handle(flag_name), nb::handle());
  if (!flag.is_valid()) return {};
  return {std::move(dtype), flag.is(nb::handle(Py_True))};
}

// Whether a format of the buffer protocol has an object. Names of fields stand between colons.
bool has_object(const char* format) {
  bool named = false;
  for (; *format != '\0'; ++format) {
    if (*format == ':') named = !named;
    if (*format == 'O' && !named) return true;
  }
  return false;
}

[[noreturn]] void refuse_objects(const char* role, const std::string& type) {
  raise_type(fmt::format(
      "the {} holds Python objects ({}): its bytes are references, which mean nothing without the counts that Python keeps of them; "
      "convert the values to a type of NumPy ({}.astype(float), say), or pickle them",
      role, type, role));
}

// What the format of a buffer does not say: ctypes calls any union bytes.
bool holds_references(const nb::handle& object) {
  if (PyBytes_Check(object.ptr()) || PyByteArray_Check(object.ptr())) return false;
  return nb::cast<bool>(nb::module_::import_("lacuna.elements").attr("holds_references")(object));
}

[[noreturn]] void refuse_device(const char* role, int device) {
  raise_type(
      fmt::format("the {} lies on a device (DLPack calls its kind {}), where the CPU does not reach it; copy it to the host first, or use "
                  "lacuna.device",
                  role, device));
}

void refuse_unreachable(const char* role, int device) {
  if (device != kCpu && device != kCudaHost && device != kRocmHost && device != kCudaManaged) refuse_device(role, device);
}

bool has_dlpack(const nb::handle& object) { return nb::hasattr(object, "__dlpack__") && nb::hasattr(object, "__dlpack_device__"); }

// DLPack's type and number of the device that an object is on.
std::pair<int, int> device_of(const nb::handle& object) {
  const auto device = nb::cast<nb::tuple>(object.attr("__dlpack_device__")());
  return {nb::cast<int>(device[0]), nb::cast<int>(device[1])};
}

// Raises the error, if it is not about the array being read-only; else says which array that is.
[[noreturn]] void refuse_read_only(const nb::handle& object, const char* role, const nb::python_error& error) {
  Py_buffer readable{};
  if (PyObject_GetBuffer(object.ptr(), &readable, PyBUF_STRIDED_RO) != 0) {
    PyErr_Clear();
    throw nb::python_error(error);
  }
  PyBuffer_Release(&readable);
  const std::string text =
      fmt::format("the {} is read-only ({}); what is written to needs memory that may be written", role, class_name(object));
  PyErr_SetString(error.type().ptr(), text.c_str());
  throw nb::python_error();
}

// A DLPack capsule of an object, in the newest version that it speaks.
nb::object capsule_of(const nb::handle& object) {
  const nb::object method = object.attr("__dlpack__");
  try {
    return method(nb::arg("max_version") = nb::make_tuple(1, 0));
  } catch (nb::python_error& error) {
    if (!error.matches(PyExc_TypeError)) throw;
  }
  return method();  // of before versions
}

}  // namespace

std::string class_name(const nb::handle& object) { return nb::cast<std::string>(object.type().attr("__name__")); }

bool has_host_buffer(const nb::handle& object) {
  // The last type that had no such attribute, kept so that its address stays its own: nearly always NumPy's array.
  static PyObject* plain = nullptr;
  if (PyObject_CheckBuffer(object.ptr()) == 0) return false;
  const nb::handle type = object.type();
  if (type.ptr() == plain) return true;
  if (nb::hasattr(type, "__cuda_array_interface__")) return false;
  Py_XDECREF(std::exchange(plain, Py_NewRef(type.ptr())));
  return true;
}

bool holds_objects(const nb::handle& object) { return dtype_of(object).has_objects; }

Array::Array(const nb::handle& object, bool writable, const char* role) : object_(nb::borrow(object)), role_(role) {
  if (PyObject_CheckBuffer(object.ptr()) != 0) {
    take_buffer(writable);
  } else if (has_dlpack(object)) {
    take_dlpack(writable);
  } else if (nb::hasattr(object, "__cuda_array_interface__")) {
    refuse_device(role, 2);
  } else {
    raise_type(
        fmt::format("the {} is of type {}; an array is needed: an object with the buffer protocol, or with DLPack in memory of the host. "
                    "numpy.asarray() makes one",
                    role, class_name(object)));
  }
}

Array::~Array() { PyBuffer_Release(&buffer_); }

void Array::take_buffer(bool writable) {
  auto [dtype, has_objects] = dtype_of(object_);
  dtype_ = std::move(dtype);
  if (has_objects) refuse_objects(role_, nb::cast<std::string>(nb::str(dtype_)));
  // Any strides. A dtype says more than a format, and some that NumPy has (dates) have no format.
  const int flags = (writable ? PyBUF_STRIDED : PyBUF_STRIDED_RO) | (dtype_.is_valid() ? 0 : PyBUF_FORMAT);
  if (PyObject_GetBuffer(object_.ptr(), &buffer_, flags) != 0) {
    buffer_.obj = nullptr;
    without_buffer(writable);
    return;
  }
  if (!dtype_.is_valid()) {
    const std::string format = buffer_.format == nullptr ? "B" : buffer_.format;
    if (has_object(format.c_str()) || holds_references(object_)) {
      PyBuffer_Release(&buffer_);
      refuse_objects(role_, "format " + format);
    }
  }
  data_ = static_cast<std::byte*>(buffer_.buf);
  item_bytes_ = buffer_.itemsize;
  static_assert(sizeof(Py_ssize_t) == sizeof(std::int64_t));
  const auto dimensions = static_cast<std::size_t>(buffer_.ndim);
  shape_ = {buffer_.shape, dimensions};
  if (buffer_.strides != nullptr) {
    strides_ = {buffer_.strides, dimensions};
    return;
  }
  // ctypes leaves them out though they were asked for: there are no gaps.
  own_strides_.assign(dimensions, item_bytes_);
  for (std::size_t d = dimensions; d > 1; --d) own_strides_[d - 2] = own_strides_[d - 1] * shape_[d - 1];
  strides_ = own_strides_;
}

// Of an object that has the protocol and raised an error: JAX's arrays, on a device or of bfloat16. What may only be
// read (they all) DLPack does not always say, so it is not for writing.
void Array::without_buffer(bool writable) {
  const nb::python_error error;
  if (has_dlpack(object_)) {
    refuse_unreachable(role_, device_of(object_).first);
    if (!writable) {
      take_dlpack(false);
      return;
    }
  }
  if (writable) refuse_read_only(object_, role_, error);
  throw nb::python_error(error);
}

void Array::take_dlpack(bool writable) {
  const auto [kind, number] = device_of(object_);
  refuse_unreachable(role_, kind);
  const nb::object negative = nb::getattr(object_, "is_neg", nb::none());  // of torch
  if (!negative.is_none() && nb::cast<bool>(negative()))
    throw nb::value_error("the tensor's bytes are not its values yet: call resolve_neg() first");
  import_dlpack(writable);
  refuse_unreachable(role_, dlpack_.device_type());
  if (dlpack_.dtype().lanes != 1)
    raise_type(fmt::format("the {} has elements of {} lanes; elements of one number are taken", role_, dlpack_.dtype().lanes));
  // What the GPU still does with it has to be done before the CPU looks.
  if (kind == kCudaManaged) nb::module_::import_("lacuna.device").attr("settle")(number);
  if (dlpack_.dtype().code == 3) refuse_objects(role_, "DLPack's opaque handles");
  if (dlpack_.dtype().bits % 8 != 0)
    raise_type(fmt::format("the {} has elements of {} bits; bytes are what can be moved", role_, static_cast<int>(dlpack_.dtype().bits)));
  item_bytes_ = static_cast<std::int64_t>(dlpack_.itemsize());
  data_ = reinterpret_cast<std::byte*>(const_cast<void*>(static_cast<const void*>(dlpack_.data())));
  shape_ = {dlpack_.shape_ptr(), dlpack_.ndim()};
  own_strides_.assign(dlpack_.stride_ptr(), dlpack_.stride_ptr() + dlpack_.ndim());
  for (std::int64_t& stride : own_strides_) stride *= item_bytes_;
  strides_ = own_strides_;
}

void Array::import_dlpack(bool writable) {
  const nb::object capsule = capsule_of(object_);
  nb::ndarray<> may_write;
  if (writable && nb::try_cast(capsule, may_write, false)) {
    dlpack_ = nb::ndarray<nb::ro>(may_write);
    return;
  }
  if (!nb::try_cast(capsule, dlpack_, false)) {
    raise_type(
        fmt::format("the {} ({}) has a __dlpack__() that answers with something else than DLPack's capsule", role_, class_name(object_)));
  }
  if (!writable) return;
  PyErr_SetString(
      PyExc_BufferError,
      fmt::format("the {} is read-only ({}); what is written to needs memory that may be written", role_, class_name(object_)).c_str());
  throw nb::python_error();
}

const layout::Layout& Array::layout() {
  if (!layout_) layout_ = value_or_raise(layout::Layout::strided(item_bytes_, shape_, strides_));
  return *layout_;
}

std::byte* Array::base(const std::optional<layout::Layout>& layout, std::int64_t offset) {
  if (layout) layout_ = *layout;
  return base_of(this->layout(), offset);
}

std::byte* Array::base_of(const layout::Layout& layout, std::int64_t offset) const {
  const Bounds has = bounds();
  constexpr std::int64_t far = layout::kMaxBytes;  // no array reaches so far, and sums of two fit
  const std::int64_t low = std::clamp(offset, -2 * far, 2 * far) + layout.true_lower_bound();
  if (layout.size() > 0 && (low < has.low || low + layout.true_extent() > has.high)) {
    const std::string text = fmt::format("the layout covers bytes {} to {} of the {}, which has bytes {} to {}", low,
                                         low + layout.true_extent(), role_, has.low, has.high);
    throw nb::value_error(text.c_str());
  }
  return data_ + offset;
}

Array::Bounds Array::bounds() const {
  Bounds bounds{0, item_bytes_};
  for (std::size_t d = 0; d < shape_.size(); ++d) {
    if (shape_[d] == 0) return {0, 0};
    const std::int64_t last = (shape_[d] - 1) * strides_[d];
    (last < 0 ? bounds.low : bounds.high) += last;
  }
  return bounds;
}

nb::object Array::element_type() const {
  const nb::module_ elements = nb::module_::import_("lacuna.elements");
  if (dtype_.is_valid()) return elements.attr("of_dtype")(dtype_);
  if (dlpack_.is_valid()) {
    const nb::dlpack::dtype type = dlpack_.dtype();
    return elements.attr("of_dlpack")(static_cast<int>(type.code), static_cast<int>(type.bits), static_cast<int>(type.lanes));
  }
  return elements.attr("of_buffer")(object_);
}

Array::Number Array::number() const {
  if (dtype_.is_valid()) {
    const auto kind = nb::cast<std::string>(dtype_.attr("kind"));
    return {kind.empty() ? 'V' : kind[0], !nb::cast<bool>(dtype_.attr("isnative"))};
  }
  if (dlpack_.is_valid()) {
    const std::uint8_t code = dlpack_.dtype().lanes == 1 ? dlpack_.dtype().code : 255;
    return {code == 0 ? 'i' : code == 1 ? 'u' : 'V', false};
  }
  std::string_view format = buffer_.format == nullptr ? "B" : buffer_.format;
  const bool ordered = !format.empty() && std::string_view("@=<>!").contains(format[0]);
  const bool swapped = ordered && (format[0] == '>' || format[0] == '!');
  if (ordered) format.remove_prefix(1);
  if (format.size() != 1) return {};
  return {std::string_view("bhilqn").contains(format[0]) ? 'i' : std::string_view("BHILQN").contains(format[0]) ? 'u' : 'V', swapped};
}

void Array::check_same_elements(const Array& target, const Array& source) {
  // NumPy has one object for each of its own types.
  if (target.dtype_.is_valid() && target.dtype_.is(source.dtype_)) return;
  nb::module_::import_("lacuna.elements").attr("check")(target.element_type(), source.element_type());
}

}  // namespace lacuna::python
