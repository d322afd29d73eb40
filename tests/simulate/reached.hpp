// reached: how often each rare branch of the library (lacuna/base/rarely.hpp) ran, over all processes of a run.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lacuna::simulate {

class Reached {
 public:
  /// Counts from now on. Errors end in an empty list of names, which no library has.
  Reached();
  ~Reached();
  Reached(const Reached&) = delete;
  Reached& operator=(const Reached&) = delete;

  /// Adds what this process has reached since it was asked last. Children of the process that made this add to the
  /// same.
  void take();
  /// The marks, by name.
  [[nodiscard]] const std::vector<std::string_view>& names() const { return names_; }
  /// Of each of them, how often.
  [[nodiscard]] std::vector<std::uint64_t> times() const;

 private:
  std::vector<std::string_view> names_;
  std::vector<std::size_t> places_;  // of each mark, in names_
  std::vector<std::uint64_t> seen_;  // of each mark
  std::span<std::atomic<std::uint64_t>> all_;
};

}  // namespace lacuna::simulate
