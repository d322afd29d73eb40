// Which threads of this process a signal may come to.
#pragma once

#include <filesystem>
#include <fstream>
#include <string>

namespace lacuna::test {

/// Threads that do not block it.
inline int threads_that_take(int signal) {
  int found = 0;
  for (const auto& thread : std::filesystem::directory_iterator("/proc/self/task")) {
    std::ifstream status(thread.path() / "status");
    for (std::string line; std::getline(status, line);) {
      if (line.starts_with("SigBlk:")) found += (std::stoull(line.substr(7), nullptr, 16) >> (signal - 1) & 1) == 0 ? 1 : 0;
    }
  }
  return found;
}

}  // namespace lacuna::test
