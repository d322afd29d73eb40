// Which threads of this process a signal may come to.
#pragma once

#include <filesystem>
#include <fstream>
#include <set>
#include <string>

namespace lacuna::test {

/// The numbers of those that do not block it. A thread that was joined may be among them for a moment still, and one
/// that was started not yet: the C library blocks all signals while a thread begins.
inline std::set<std::string> threads_that_take(int signal) {
  std::set<std::string> found;
  for (const auto& thread : std::filesystem::directory_iterator("/proc/self/task")) {
    std::ifstream status(thread.path() / "status");
    for (std::string line; std::getline(status, line);) {
      if (line.starts_with("SigBlk:") && (std::stoull(line.substr(7), nullptr, 16) >> (signal - 1) & 1) == 0)
        found.insert(thread.path().filename());
    }
  }
  return found;
}

}  // namespace lacuna::test
