// trace: what happened in a simulated world, in order: the same story has the same one, byte for byte.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <cstdio>
#include <string>
#include <utility>

namespace lacuna::simulate {

class Trace {
 public:
  /// Lines are kept, or go to a file at once, which has them where the process ends in the middle of the story.
  explicit Trace(bool keeps, std::FILE* shown = nullptr) : keeps_(keeps), shown_(shown) {}
  template <class... Args>
  void say(std::int64_t now, int rank, fmt::format_string<Args...> format, Args&&... args) {
    line_.clear();
    fmt::format_to(std::back_inserter(line_), "{:>12} rank {:>2}  ", now, rank);
    fmt::format_to(std::back_inserter(line_), format, std::forward<Args>(args)...);
    line_ += '\n';
    for (const char c : line_) digest_ = (digest_ ^ static_cast<unsigned char>(c)) * 0x100000001b3u;  // FNV-1a
    if (keeps_) text_ += line_;
    if (shown_ == nullptr) return;
    std::fputs(line_.c_str(), shown_);
    std::fflush(shown_);
  }
  [[nodiscard]] const std::string& text() const { return text_; }
  [[nodiscard]] std::uint64_t digest() const { return digest_; }

 private:
  bool keeps_;
  std::FILE* shown_;
  std::string line_, text_;
  std::uint64_t digest_ = 0xcbf29ce484222325u;
};

}  // namespace lacuna::simulate
