// functions: those of a library that is loaded when it is asked for. Internal to the NICs.
#pragma once

#include <dlfcn.h>

#include <string>

#include "lacuna/base/base.hpp"

namespace lacuna::nic {

/// A library that is never closed: it may have threads.
class Functions {
 public:
  explicit Functions(const char* file) : library_(dlopen(file, RTLD_NOW | RTLD_LOCAL)), reason_(library_ == nullptr ? dlerror() : "") {}
  /// Why it could not be loaded; empty: it is.
  [[nodiscard]] const std::string& reason() const { return reason_; }
  /// Null where there is none, in the library nor in what it was linked with.
  template <class F>
  void find(F*& function, const char* name) {
    function = reinterpret_cast<F*>(dlsym(library_, name));
    if (function == nullptr) missing_ = name;
  }
  /// The name of a function that was asked for and is not there; null: all are.
  [[nodiscard]] const char* missing() const { return missing_; }

 private:
  void* library_;
  std::string reason_;
  const char* missing_ = nullptr;
};

}  // namespace lacuna::nic
