// What the files of the C API share: handles, and statuses from Results.
#pragma once

#include <cxxabi.h>

#include <algorithm>
#include <cstring>
#include <string>

#include "include/lacuna.h"
#include "lacuna/base/base.hpp"
#include "lacuna/layout/layout.hpp"

struct lacuna_layout {
  lacuna::layout::Layout value;
};

namespace lacuna::c {

/// Keeps a text for lacuna_error_message().
void remember(std::string text);
/// The status of an error, whose text is kept.
lacuna_status failed(const base::Error& error);

/// The status of the exception that is being handled, whose text is kept if there is memory for it. Only within a
/// catch.
lacuna_status thrown() noexcept;

/// Which of a call's pointers is NULL though it must not be.
struct Missing {
  const char* function = nullptr;
  const char* names = nullptr;  ///< of the pointers, with ", " between them
  int index = -1;               ///< -1: none is
};
constexpr Missing missing_among(const char* function, const char* names, const auto*... pointers) {
  int before = 0;
  const bool found = ((pointers == nullptr || (++before, false)) || ...);
  return {function, names, found ? before : -1};
}
constexpr Missing either(const Missing& one, const Missing& other) { return one.index >= 0 ? one : other; }

/// Within a function of the API: its pointers that must not be NULL.
#define LACUNA_GIVEN(...) lacuna::c::missing_among(__func__, #__VA_ARGS__, __VA_ARGS__)
/// Those that must not be NULL where there are `count` of them.
#define LACUNA_LISTS(count, ...) ((count) > 0 ? LACUNA_GIVEN(__VA_ARGS__) : lacuna::c::Missing{})

/// invalid_argument, with the function and the pointer.
base::Error error_of(const Missing& missing);

/// Runs `body` behind C's back, unless a pointer is missing: what the standard library throws becomes a status.
lacuna_status guarded(const Missing& missing, const auto& body) {
  try {
    return missing.index >= 0 ? failed(error_of(missing)) : body();
  } catch (const abi::__forced_unwind&) {  // a thread that is cancelled, or ends itself
    throw;
  } catch (...) {
    return thrown();
  }
}

/// For a function that calls another one of the API, whose name an error would have else.
inline lacuna_status check(const Missing& missing) {
  return guarded(missing, [] { return LACUNA_OK; });
}

/// What `body` returns; `otherwise` where a pointer is missing, or where it throws. lacuna_error_message() tells why.
template <class Value>
Value value_or(const Missing& missing, Value otherwise, const auto& body) {
  guarded(missing, [&] {
    otherwise = body();
    return LACUNA_OK;
  });
  return otherwise;
}

/// As much of a text as there is room for; how long it is.
inline std::size_t write_text(const std::string& whole, char* text, std::size_t size) {
  if (text != nullptr && size > 0) {
    const std::size_t shown = std::min(whole.size(), size - 1);
    std::memcpy(text, whole.data(), shown);
    text[shown] = '\0';
  }
  return whole.size();
}

}  // namespace lacuna::c
