// Secrets in memory.
#pragma once

#include <cstring>
#include <string>

namespace lacuna::base {

/// Overwrites a text with zeros when a scope ends, however it ends.
class Wipe {
 public:
  explicit Wipe(std::string& text) : text_(text) {}
  ~Wipe() { explicit_bzero(text_.data(), text_.size()); }
  Wipe(const Wipe&) = delete;
  Wipe& operator=(const Wipe&) = delete;

 private:
  std::string& text_;
};

}  // namespace lacuna::base
