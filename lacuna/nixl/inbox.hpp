// inbox: notifications that came and were not fetched. It hides how much room they have.
#pragma once

#include <cstddef>
#include <mutex>
#include <string>

#include "lacuna/nixl/interface.hpp"
#include "lacuna/nixl/nixl.hpp"

namespace lacuna::nixl {

/// Any thread may call.
class Inbox {
 public:
  /// Bytes of notifications that wait for their program, at most, with the names of their agents and what a list takes
  /// for each: the program asks for them in a loop or never.
  static constexpr std::size_t kMostBytes = 64 << 20;
  /// Errors: limit (there is no room).
  Result<void> put(const std::string& agent, std::string text);
  /// All, in the order in which they came.
  notif_list_t take();

 private:
  std::mutex mutex_;
  notif_list_t all_;
  std::size_t bytes_ = 0;
};

}  // namespace lacuna::nixl
