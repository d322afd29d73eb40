#include "tests/support/child.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "tests/support/patience.hpp"

namespace lacuna::test {
namespace {

constexpr std::int64_t kMost = 3 * kPatience;  // its own waits in vain, and what it says of them, come before that

}  // namespace

Child::Child(const std::function<std::string()>& work) {
  const bool usable = pipe(pipe_.data()) == 0;
  const pid_t parent = getpid();
  pid_ = fork();
  if (pid_ != 0) {
    close(std::exchange(pipe_[1], -1));  // before another child has it, too
    return;
  }
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(1);
  const std::string words = work();
  usable&& write(pipe_[1], words.data(), words.size()) < 0;
  _exit(0);
}

Child::~Child() {
  for (const int end : pipe_) {
    if (end >= 0) close(end);
  }
}

// Until it closes its end of the pipe; false if it does not.
bool Child::hear(std::string& words) const {
  std::array<char, 4096> part;
  for (const std::int64_t deadline = base::now_ns() + kMost;;) {
    const std::int64_t left_ms = (deadline - base::now_ns()) / 1'000'000;
    pollfd waiting{pipe_[0], POLLIN, 0};
    if (left_ms <= 0) return false;
    if (poll(&waiting, 1, static_cast<int>(left_ms)) <= 0) continue;
    const ssize_t n = read(pipe_[0], part.data(), part.size());
    if (n <= 0) return true;
    words.append(part.data(), static_cast<std::size_t>(n));
  }
}

std::string Child::end(int expected_signal) {
  std::string words;
  const bool ended = hear(words);
  if (!ended) kill(pid_, SIGKILL);
  int status = 0;
  waitpid(pid_, &status, 0);
  if (!ended) return words + fmt::format(" ({}; it was killed)", in_vain("this process to end", kMost));
  const bool as_expected =
      expected_signal == 0 ? WIFEXITED(status) && WEXITSTATUS(status) == 0 : WIFSIGNALED(status) && WTERMSIG(status) == expected_signal;
  if (!as_expected) words += fmt::format(" (ended with wait status {:#x})", status);
  return words;
}

}  // namespace lacuna::test
