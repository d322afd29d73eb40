// What the parts of the module share.
#pragma once

#include <nanobind/nanobind.h>

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "lacuna/base/base.hpp"

namespace lacuna::python {

namespace nb = nanobind;
using namespace nb::literals;
using base::Code;
using base::Result;

/// The value, or Lacuna's message as an exception: ValueError where Python has no better one.
template <class T>
T value_or_raise(Result<T> result) {
  if (result) {
    if constexpr (std::is_void_v<T>) {
      return;
    } else {
      return std::move(*result);
    }
  }
  const std::string text = result.error().text();
  switch (result.error().code) {
    case Code::overflow: PyErr_SetString(PyExc_OverflowError, text.c_str()); break;
    case Code::out_of_memory: PyErr_SetString(PyExc_MemoryError, text.c_str()); break;
    case Code::peer_lost: PyErr_SetString(PyExc_ConnectionError, text.c_str()); break;
    case Code::timeout: PyErr_SetString(PyExc_TimeoutError, text.c_str()); break;
    case Code::permission: PyErr_SetString(PyExc_PermissionError, text.c_str()); break;
    default: PyErr_SetString(PyExc_ValueError, text.c_str());
  }
  throw nb::python_error();
}

/// How many of the threads that a caller allows take part: more than shares of 256 KiB would only wait. Raises
/// ValueError if there are not 1 to 1024.
inline int useful_threads(int threads, std::int64_t bytes) {
  if (threads < 1 || threads > 1024) throw nb::value_error("threads must be between 1 and 1024");
  return static_cast<int>(std::min<std::int64_t>(threads, 1 + bytes / (256 << 10)));
}

void bind_layout(nb::module_& m);
void bind_guide(nb::module_& m);
void bind_message_ways(nb::module_& m);
void bind_mpi_ways(nb::module_& m);
void bind_messages(nb::module_& m);
void bind_policies(nb::module_& m);
void bind_exchanges(nb::module_& m);
void bind_scale(nb::module_& m);
void bind_device(nb::module_& m);

}  // namespace lacuna::python
