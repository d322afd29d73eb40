// A peer that is stopped while its CPU copies into this agent's memory. Its process has a process_vm_writev() of the
// test's own, which stops it before it copies, so that no test depends on where a signal hits it.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>

#include "tests/nixl/ends.hpp"
#include "tests/support/child.hpp"
#include "tests/support/tier.hpp"

namespace {
std::atomic<bool> stops_in_copies{false};  // in this process
}

// NOLINTNEXTLINE(readability-identifier-naming): the name that libc has
extern "C" ssize_t process_vm_writev(pid_t process, const iovec* local, unsigned long locals, const iovec* remote, unsigned long remotes,
                                     unsigned long flags) {
  if (stops_in_copies.exchange(false)) raise(SIGSTOP);
  return syscall(SYS_process_vm_writev, process, local, locals, remote, remotes, flags);
}

namespace lacuna::test {
namespace LACUNA_TEST_FILE {

LACUNA_LEFT_OUT(thread, "NixlStoppedCopy.*");  // the other process has threads
LACUNA_TIER(test, "NixlStoppedCopy.*");

constexpr std::size_t kBytes = 4096;

void write_once(AgentEnd& b) {
  const std::vector<Extent> all{{0, kBytes}};
  static_cast<void>(transfer(b, NIXL_WRITE, b.local(all), b.remote(all), "a"));
}

// One short piece goes without the target's CPU. The call comes back, and says that the memory may be reached still;
// before, it came back after a minute, and said that all was well.
TEST(NixlStoppedCopy, DeregisteringSaysThatThePeerMayReachTheMemory) {
  const Pipe said, heard;
  Child child([&]() -> std::string {
    AgentEnd b("b", "local", kBytes);
    said.say(std::to_string(getpid()));
    const std::string address = heard.hear(), token = heard.hear(), base = heard.hear();
    b.load("a", address, token, std::stoull(base), kBytes);
    write_once(b);  // the two meet
    said.say("met");
    stops_in_copies = true;
    write_once(b);
    said.say(stops_in_copies ? "no copy" : "copied");
    return "";
  });
  const auto process = static_cast<pid_t>(std::stol(said.hear()));
  AgentEnd a("a", "local", kBytes, {{"wait_s", "0.05"}});
  heard.say(a.address());
  heard.say(a.token());
  heard.say(std::to_string(reinterpret_cast<std::uint64_t>(a.memory().data())));
  EXPECT_EQ(said.hear(), "met");
  int status = 0;
  ASSERT_EQ(waitpid(process, &status, WUNTRACED), process);
  if (WIFEXITED(status) && said.hear() == "no copy") GTEST_SKIP() << "this process may not copy into another one's memory";
  ASSERT_TRUE(WIFSTOPPED(status));
  EXPECT_LT(a.deregister(), NIXL_SUCCESS);
  kill(process, SIGCONT);
  EXPECT_EQ(said.hear(), "copied");
  EXPECT_EQ(child.end(), "");
}

}  // namespace LACUNA_TEST_FILE
}  // namespace lacuna::test
