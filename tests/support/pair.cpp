#include "tests/support/pair.hpp"

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <thread>

namespace lacuna::test {
namespace {

std::string combine(const std::string& first, const std::string& second) {
  std::string all;
  if (!first.empty()) all += "rank 0: " + first + "\n";
  if (!second.empty()) all += "rank 1: " + second + "\n";
  return all;
}

// Where a child's last words go.
class Pipe {
 public:
  Pipe() { usable_ = pipe(ends_.data()) == 0; }
  ~Pipe() { close(ends_[0]), close(ends_[1]); }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  void say(const std::string& text) const { usable_&& write(ends_[1], text.data(), text.size()) < 0; }
  std::string hear() {
    close(ends_[1]);
    std::string text;
    std::array<char, 4096> part;
    for (ssize_t n = 0; (n = read(ends_[0], part.data(), part.size())) > 0;) text.append(part.data(), static_cast<std::size_t>(n));
    return text;
  }

 private:
  std::array<int, 2> ends_{-1, -1};
  bool usable_ = false;
};

}  // namespace

std::string in_two_processes(const End& end, int expected_signal) {
  auto sockets = nic::UnixBootstrap::socket_pair();
  if (!sockets) return sockets.error().text();
  Pipe words;
  const pid_t child = fork();
  if (child == 0) {
    sockets->first = base::Fd();
    {
      nic::UnixBootstrap bootstrap(std::move(sockets->second));
      words.say(end(1, bootstrap));
    }
    _exit(0);
  }
  sockets->second = base::Fd();
  std::string mine;
  {
    nic::UnixBootstrap bootstrap(std::move(sockets->first));
    mine = end(0, bootstrap);
  }
  std::string theirs = words.hear();
  int status = 0;
  waitpid(child, &status, 0);
  const bool as_expected =
      expected_signal == 0 ? WIFEXITED(status) && WEXITSTATUS(status) == 0 : WIFSIGNALED(status) && WTERMSIG(status) == expected_signal;
  if (!as_expected) theirs += fmt::format(" (ended with wait status {:#x})", status);
  return combine(mine, theirs);
}

std::string in_two_threads(const End& end) {
  auto sockets = nic::UnixBootstrap::socket_pair();
  if (!sockets) return sockets.error().text();
  std::string theirs;
  std::thread other([&] {
    nic::UnixBootstrap bootstrap(std::move(sockets->second));
    theirs = end(1, bootstrap);
  });
  std::string mine;
  {
    nic::UnixBootstrap bootstrap(std::move(sockets->first));
    mine = end(0, bootstrap);
  }
  other.join();
  return combine(mine, theirs);
}

}  // namespace lacuna::test
