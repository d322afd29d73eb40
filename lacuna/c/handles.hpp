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

/// The status of the exception that is being handled, whose text is kept if there is memory for it. Only within a catch.
lacuna_status thrown() noexcept;

/// Runs `body` behind C's back: what the standard library throws becomes a status.
lacuna_status guarded(const auto& body) {
  try {
    return body();
  } catch (const abi::__forced_unwind&) {  // a thread that is cancelled, or ends itself
    throw;
  } catch (...) {
    return thrown();
  }
}

/// As much of a text as there is room for; how long it is.
inline std::size_t write_text(const std::string& whole, char* text, std::size_t size) {
  if (size > 0) {
    const std::size_t shown = std::min(whole.size(), size - 1);
    std::memcpy(text, whole.data(), shown);
    text[shown] = '\0';
  }
  return whole.size();
}

}  // namespace lacuna::c
