// trace: what happened in a simulated world, in order: the same story has the same one, byte for byte.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <utility>

namespace lacuna::simulate {

class Trace {
 public:
  explicit Trace(bool keeps) : keeps_(keeps) {}
  template <class... Args>
  void say(std::int64_t now, int rank, fmt::format_string<Args...> format, Args&&... args) {
    line_.clear();
    fmt::format_to(std::back_inserter(line_), "{:>12} rank {:>2}  ", now, rank);
    fmt::format_to(std::back_inserter(line_), format, std::forward<Args>(args)...);
    line_ += '\n';
    for (const char c : line_) digest_ = (digest_ ^ static_cast<unsigned char>(c)) * 0x100000001b3u;  // FNV-1a
    if (keeps_) text_ += line_;
  }
  [[nodiscard]] const std::string& text() const { return text_; }
  [[nodiscard]] std::uint64_t digest() const { return digest_; }

 private:
  bool keeps_;
  std::string line_, text_;
  std::uint64_t digest_ = 0xcbf29ce484222325u;
};

}  // namespace lacuna::simulate
