#include "tests/support/pair.hpp"

#include <thread>

#include "tests/support/apart.hpp"
#include "tests/support/child.hpp"
#include "tests/support/tier.hpp"

namespace lacuna::test {

// Tests that call in_two_processes() have it in their names.
LACUNA_TIER(test, "*TwoProcesses*");
LACUNA_LEFT_OUT(thread, "*TwoProcesses*");  // ThreadSanitizer does not see across processes

std::string both(const std::string& first, const std::string& second) {
  std::string all;
  if (!first.empty()) all += "rank 0: " + first + "\n";
  if (!second.empty()) all += "rank 1: " + second + "\n";
  return all;
}

std::string in_two_processes(const End& end, int expected_signal) {
  if (apart()) return in_two_machines(end, expected_signal);
  auto sockets = nic::UnixBootstrap::socket_pair();
  if (!sockets) return sockets.error().text();
  Child child([&] {
    sockets->first = base::Fd();
    nic::UnixBootstrap bootstrap(std::move(sockets->second));
    return end(1, bootstrap);
  });
  sockets->second = base::Fd();
  std::string mine;
  {
    nic::UnixBootstrap bootstrap(std::move(sockets->first));
    mine = end(0, bootstrap);
  }
  return both(mine, child.end(expected_signal));
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
  return both(mine, theirs);
}

}  // namespace lacuna::test
