// A link that goes down, and a device that is removed, under a connection that is in use. Needs a machine where that
// may be done to the network device that LACUNA_TEST_LINK names, on which the RDMA device under test lies: `make
// test-rdma` has one.
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>

#include <chrono>
#include <thread>

#include "tests/nic/rig.hpp"
#include "tests/support/apart.hpp"

namespace lacuna::test {
namespace LACUNA_TEST_FILE {

using nic::Status;

constexpr std::size_t kBytes = 64 << 10;
constexpr std::int64_t kSettle = kPatience;  // until an address and a GID are back

const char* link() { return std::getenv("LACUNA_TEST_LINK"); }
std::string device() { return tested_nic().substr(tested_nic().find(':') + 1); }
bool run(const std::string& command) { return std::system(command.c_str()) == 0; }
void rest() { std::this_thread::sleep_for(std::chrono::milliseconds(20)); }

#define LACUNA_NEEDS_LINK() \
  if (link() == nullptr) GTEST_SKIP() << "needs a network device that may be taken down (LACUNA_TEST_LINK): make test-rdma"

/// Rank 0 sends and rank 1 receives for `time`, or until an error; how it ended, and after how long.
struct Traffic {
  std::int64_t messages = 0;
  Status status = Status::success;
  std::string fault;
  std::int64_t waited_ns = 0;  // for the last completion
};
base::Result<Traffic> traffic(Rig& rig, int rank, std::int64_t time) {
  Traffic seen;
  const nic::Sge sge = rig.sge(0, kBytes);
  for (const std::int64_t end = rig.context->now() + time; rig.context->now() < end || rank == 1;) {
    if (rank == 0) {
      LACUNA_TRY(rig.qp->post_send({.sg_list = {&sge, 1}}));
    } else {
      LACUNA_TRY(rig.qp->post_recv({.sg_list = {&sge, 1}}));
    }
    const std::int64_t began = rig.context->now();
    const base::Result<nic::Completion> completion = rig.next(rank == 0 ? kPatience : kSecond);
    if (!completion && rank == 1 && rig.qp->fault() == nullptr) return seen;  // nothing more comes
    seen.status = LACUNA_TRY(completion).status;
    seen.waited_ns = rig.context->now() - began;
    if (seen.status != Status::success) {
      seen.fault = LACUNA_TRY(rig.fault()).text();
      return seen;
    }
    ++seen.messages;
  }
  return seen;
}

// Opens the device again: its port may need a moment.
base::Result<std::unique_ptr<nic::Context>> open_soon() {
  for (const std::int64_t deadline = base::now_ns() + kSettle;; rest()) {
    auto context = open_tested();
    if (context || base::now_ns() > deadline) return context;
  }
}

// The device may not know yet when the first request fails.
bool names_the_link(const std::string& text) {
  return text.find("of " + device() + " is down") != std::string::npos || text.find("a network device that goes down") != std::string::npos;
}

// The sender's part while the link is down.
std::string watched(Rig& rig, std::string& seen) {
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  const Traffic result = LACUNA_END_TRY(traffic(rig, 0, 2 * kSecond));
  if (result.status == Status::success) {
    seen = fmt::format("{} messages in 2 s while the link was down: no error", result.messages);
    // Between two machines nothing gets through; within one a driver need not use the link
    LACUNA_END_EXPECT(!apart());
    return {};
  }
  seen = fmt::format("{} after {} ms: {}", status_name(result.status), result.waited_ns / 1'000'000, result.fault);
  // Here the port is up, and nobody answers; or it is this one's that is down.
  LACUNA_END_EXPECT(!apart() || result.status == Status::retry_exc_err);
  if (apart() ? result.fault.find("the peer does not answer") == std::string::npos : !names_the_link(result.fault)) return result.fault;
  return {};
}

// Rank 1 takes its link down for as long as the sender needs to see it.
std::string down(int rank, nic::Bootstrap& bootstrap, std::string& seen) {
  {
    Rig rig = LACUNA_END_TRY(Rig::make(bootstrap, nic::Path::wire, kBytes));
    LACUNA_END_EXPECT(LACUNA_END_TRY(traffic(rig, rank, kSecond / 4)).status == Status::success);
    LACUNA_END_TRY(barrier(bootstrap));
    if (rank == 1) {
      LACUNA_END_EXPECT(run(fmt::format("ip link set {} down", link())));
      const base::Result<Traffic> result = traffic(rig, rank, 0);
      std::this_thread::sleep_for(std::chrono::seconds(2));
      LACUNA_END_EXPECT(run(fmt::format("ip link set {} up", link())));
      const Traffic own = LACUNA_END_TRY(result);
      if (own.status != Status::success && !names_the_link(own.fault)) return own.fault;
    } else {
      std::string wrong = watched(rig, seen);
      if (!wrong.empty()) return wrong;
    }
    LACUNA_END_TRY(barrier(bootstrap));  // its channel may have been cut, too
  }
  const auto context = LACUNA_END_TRY(open_soon());
  LACUNA_END_TRY(barrier(bootstrap));
  return works_again(*context, nic::Path::wire, rank, bootstrap);
}

TEST(LinkDown, IsAnErrorWithACauseTwoProcesses) {
  LACUNA_NEEDS_LINK();
  std::string seen;
  EXPECT_EQ(in_two_processes([&](int rank, nic::Bootstrap& b) { return down(rank, b, seen); }), "");
  RecordProperty("seen", seen);
}

// The administrator removes the device. A driver may wait with that until no process has it open; then everything works
// until then.
std::string removed(int rank, nic::Bootstrap& bootstrap, std::string& seen) {
  pid_t removal = -1;
  {
    Rig rig = LACUNA_END_TRY(Rig::make(bootstrap, nic::Path::wire, kBytes));
    if (rank == 0) {
      const std::string name = device();
      std::string words[] = {"rdma", "link", "delete", name};
      char* arguments[] = {words[0].data(), words[1].data(), words[2].data(), words[3].data(), nullptr};
      LACUNA_END_EXPECT(posix_spawnp(&removal, "rdma", nullptr, nullptr, arguments, environ) == 0);
      std::this_thread::sleep_for(std::chrono::milliseconds(500));
    }
    LACUNA_END_TRY(barrier(bootstrap));
    const Traffic result = LACUNA_END_TRY(traffic(rig, rank, 2 * kSecond));
    if (rank == 0) {
      int status = 0;
      const bool gone = waitpid(removal, &status, WNOHANG) == removal;
      if (gone) removal = -1;
      seen = fmt::format("{}; {}",
                         result.status == Status::success
                             ? fmt::format("{} messages in 2 s meanwhile, without an error", result.messages)
                             : fmt::format("{} after {} ms: {}", status_name(result.status), result.waited_ns / 1'000'000, result.fault),
                         gone ? "it was removed at once" : "the removal waits until the device is closed");
      LACUNA_END_EXPECT(!gone || result.status != Status::success);
      if (result.status != Status::success)
        LACUNA_END_EXPECT(result.fault.find("was removed") != std::string::npos ||
                          result.fault.find("does not answer") != std::string::npos);
    }
    LACUNA_END_TRY(barrier(bootstrap));
  }
  LACUNA_END_TRY(barrier(bootstrap));  // both have closed it
  if (rank == 0) {
    int status = 0;
    const std::int64_t deadline = base::now_ns() + kPatience;
    while (removal > 0 && waitpid(removal, &status, WNOHANG) == 0 && base::now_ns() < deadline) rest();
    LACUNA_END_EXPECT(base::now_ns() < deadline && status == 0);
    const auto opened = open_tested();
    LACUNA_END_EXPECT(!opened && opened.error().message.find("no RDMA device") != std::string::npos);
    LACUNA_END_EXPECT(run(fmt::format("rdma link add {} type rxe netdev {}", device(), link())));
  }
  LACUNA_END_TRY(barrier(bootstrap));
  const auto context = LACUNA_END_TRY(open_soon());
  LACUNA_END_TRY(barrier(bootstrap));
  return works_again(*context, nic::Path::wire, rank, bootstrap);
}

TEST(DeviceRemoved, IsAnErrorOrWaitsAndComesBackTwoProcesses) {
  LACUNA_NEEDS_LINK();
  if (apart()) GTEST_SKIP() << "each machine's own device: shown on one machine";
  std::string seen;
  EXPECT_EQ(in_two_processes([&](int rank, nic::Bootstrap& b) { return removed(rank, b, seen); }), "");
  RecordProperty("seen", seen);
}

}  // namespace LACUNA_TEST_FILE
}  // namespace lacuna::test
