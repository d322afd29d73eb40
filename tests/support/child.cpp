#include "tests/support/child.hpp"

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <utility>

namespace lacuna::test {

Child::Child(const std::function<std::string()>& work) {
  const bool usable = pipe(pipe_.data()) == 0;
  pid_ = fork();
  if (pid_ != 0) return;
  const std::string words = work();
  usable&& write(pipe_[1], words.data(), words.size()) < 0;
  _exit(0);
}

Child::~Child() {
  for (const int end : pipe_) {
    if (end >= 0) close(end);
  }
}

std::string Child::end(int expected_signal) {
  close(std::exchange(pipe_[1], -1));
  std::string words;
  std::array<char, 4096> part;
  for (ssize_t n = 0; (n = read(pipe_[0], part.data(), part.size())) > 0;) words.append(part.data(), static_cast<std::size_t>(n));
  int status = 0;
  waitpid(pid_, &status, 0);
  const bool as_expected =
      expected_signal == 0 ? WIFEXITED(status) && WEXITSTATUS(status) == 0 : WIFSIGNALED(status) && WTERMSIG(status) == expected_signal;
  if (!as_expected) words += fmt::format(" (ended with wait status {:#x})", status);
  return words;
}

}  // namespace lacuna::test
