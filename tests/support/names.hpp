// Names that no other test has, in this program or in another one that runs at the same time or ran before.
#pragma once

#include <fmt/format.h>
#include <unistd.h>

#include <atomic>
#include <random>
#include <string>
#include <string_view>

namespace lacuna::test {

inline std::string unique_name(std::string_view prefix) {
  static std::atomic<int> count = 0;
  static std::random_device random;
  return fmt::format("{}-{}-{}-{:08x}", prefix, getpid(), ++count, random());
}

}  // namespace lacuna::test
