// Peers that die, close, or refuse. Those that write nonsense are in hostile_test.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <fstream>

#include "tests/nic/rig.hpp"

namespace lacuna::test {
namespace LACUNA_TEST_FILE {

using nic::Status;

std::size_t shared_mappings() {
  std::ifstream maps("/proc/self/maps");
  std::size_t count = 0;
  for (std::string line; std::getline(maps, line);) count += line.find("memfd:lacuna") != std::string::npos ? 1 : 0;
  return count;
}

// What this process has mapped, or has open, and what has a name in a file system: it would outlive a process that
// dies.
std::string named_memory() {
  std::ifstream maps("/proc/self/maps");
  std::string found;
  for (std::string line; std::getline(maps, line);) found += line.contains("/dev/shm/") ? line + "\n" : "";
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    const std::string target = std::filesystem::read_symlink(entry.path(), none).string();
    found += target.starts_with("/dev/shm/") ? target + "\n" : "";
  }
  return found;
}

// Rank 1 dies in the middle of a stream of messages; rank 0 learns it and can still leave.
std::string killed(nic::Path path, bool receiving, int rank, nic::Bootstrap& bootstrap) {
  Rig rig = LACUNA_END_TRY(Rig::make(bootstrap, path, 1 << 20));
  const nic::Sge sge = rig.sge(0, 1 << 20);
  LACUNA_END_EXPECT(named_memory().empty() || tested_nic() == "ofi:shm");  // that provider's own
  for (int i = 0;; ++i) {
    if (rank == 1 && i == 20) raise(SIGKILL);
    const bool known = rig.qp->fault() != nullptr;  // it died when nothing was under way
    if ((rank == 0) == receiving) {
      LACUNA_END_TRY(rig.qp->post_recv({.sg_list = {&sge, 1}}));
    } else {
      LACUNA_END_TRY(rig.qp->post_send({.sg_list = {&sge, 1}}));
    }
    const nic::Completion completion = LACUNA_END_TRY(rig.next());
    if (completion.status == Status::success) continue;
    LACUNA_END_EXPECT(rank == 0);
    LACUNA_END_EXPECT(completion.status == (receiving || known ? Status::wr_flush_err : Status::retry_exc_err));
    LACUNA_END_EXPECT(rig.qp->fault() != nullptr && rig.qp->fault()->code == base::Code::peer_lost);
    LACUNA_END_EXPECT(path == nic::Path::wire ? rig.qp->fault()->message.starts_with("the peer does not answer")
                                              : rig.qp->fault()->message.ends_with("died"));
    return {};
  }
}

class PeerDeath : public testing::TestWithParam<std::tuple<nic::Path, bool>> {};
TEST_P(PeerDeath, IsAnErrorTwoProcesses) {
  const auto [path, receiving] = GetParam();
  LACUNA_NEEDS_PATH(path);
  EXPECT_EQ(in_two_processes([&](int rank, nic::Bootstrap& b) { return killed(path, receiving, rank, b); }, SIGKILL), "");
  EXPECT_EQ(shared_mappings(), 0U);
}
INSTANTIATE_TEST_SUITE_P(Nic, PeerDeath, testing::Combine(testing::ValuesIn(tested_paths()), testing::Bool()), [](const auto& info) {
  return std::string(nic::path_name(std::get<0>(info.param))) + (std::get<1>(info.param) ? "_WhileReceiving" : "_WhileSending");
});

// A death is looked for each few milliseconds, while this end polls and waits: once they have passed, some rounds tell.
std::string known_soon(nic::Path path, int rank, nic::Bootstrap& bootstrap) {
  Rig rig = LACUNA_END_TRY(Rig::make(bootstrap, path, 4096));
  const nic::Hello theirs = LACUNA_END_TRY(bootstrap.exchange({}, kPatience));
  if (rank == 1) raise(SIGKILL);
  const auto dead = [&] {
    siginfo_t ended{};
    return waitid(P_PID, static_cast<id_t>(theirs.process), &ended, WEXITED | WNOHANG | WNOWAIT) == 0 && ended.si_pid != 0;
  };
  if (std::string wrong = await("the peer's death", dead); !wrong.empty()) return wrong;
  usleep(50'000);
  for (int round = 0; round < 1000 && rig.qp->fault() == nullptr; ++round) {
    rig.context->poll(*rig.queue, {});
    LACUNA_END_TRY(rig.context->wait(rig.context->now() + kPatience));
  }
  LACUNA_END_EXPECT(rig.qp->fault() != nullptr && rig.qp->fault()->message.ends_with("died"));
  return {};
}
class Death : public EveryPath {};
TEST_P(Death, IsKnownSoonTwoProcesses) {
  if (tested_nic() != "local") GTEST_SKIP() << "a device knows of it by what it sends";
  LACUNA_NEEDS_PATH(GetParam());
  EXPECT_EQ(in_two_processes([&](int rank, nic::Bootstrap& b) { return known_soon(GetParam(), rank, b); }, SIGKILL), "");
}
INSTANTIATE_TEST_SUITE_P(Nic, Death, testing::ValuesIn(tested_paths()), path_test_name);

// A peer that leaves in good order: what it had finished arrives, then the fault says "closed".
std::string closed(nic::Path path, int rank, nic::Bootstrap& bootstrap) {
  Rig rig = LACUNA_END_TRY(Rig::make(bootstrap, path, 4096));
  const nic::Sge sge = rig.sge(0, 4096);
  if (rank == 0) {
    LACUNA_END_TRY(rig.qp->post_send({.sg_list = {&sge, 1}}));
    return LACUNA_END_TRY(rig.next()).status == Status::success ? "" : "the send failed";
  }
  LACUNA_END_TRY(rig.qp->post_recv({.wr_id = 1, .sg_list = {&sge, 1}}));
  LACUNA_END_TRY(rig.qp->post_recv({.wr_id = 2, .sg_list = {&sge, 1}}));
  LACUNA_END_EXPECT(LACUNA_END_TRY(rig.next()).status == Status::success);
  const nic::Completion second = LACUNA_END_TRY(rig.next());
  LACUNA_END_EXPECT(second.wr_id == 2 && second.status == Status::wr_flush_err);
  LACUNA_END_EXPECT(rig.qp->fault()->code == base::Code::peer_lost);
  return {};
}
class Closing : public EveryPath {};
TEST_P(Closing, DeliversThenSaysSoTwoProcesses) {
  LACUNA_NEEDS_PATH(GetParam());
  EXPECT_EQ(in_two_processes([&](int rank, nic::Bootstrap& b) { return closed(GetParam(), rank, b); }), "");
}
INSTANTIATE_TEST_SUITE_P(Nic, Closing, testing::ValuesIn(tested_paths()), path_test_name);

// Memory that the peer loads and stores itself: when this end has closed, the peer, which does not know yet, still
// finds it, and no other's.
std::string kept(int rank, nic::Bootstrap& bootstrap) {
  Rig rig = LACUNA_END_TRY(Rig::make(bootstrap, nic::Path::mapped, 1 << 20));
  const std::array<std::uint64_t, 2> mine{rig.region.addr(), rig.region.rkey()};
  const auto tell = [&] {
    nic::Hello hello;
    hello.bytes.resize(sizeof mine);
    std::memcpy(hello.bytes.data(), mine.data(), sizeof mine);
    return bootstrap.exchange(hello, kPatience);
  };
  const nic::Hello told = LACUNA_END_TRY(tell());
  std::array<std::uint64_t, 2> theirs{};
  std::memcpy(theirs.data(), told.bytes.data(), sizeof theirs);
  if (rank == 1) {
    LACUNA_END_TRY(tell());  // the peer has closed
    std::byte* there = rig.qp->rkey_ptr(theirs[0], static_cast<std::uint32_t>(theirs[1]), 1 << 20);
    LACUNA_END_EXPECT(there != nullptr);
    std::memset(there, 0xEE, 1 << 20);
    LACUNA_END_TRY(tell());
    LACUNA_END_TRY(rig.fault());
    LACUNA_END_TRY(tell());  // in error, but not gone
    LACUNA_END_TRY(tell());
    rig.qp.reset();
    LACUNA_END_TRY(tell());
    return {};
  }
  const auto allocated = [&]() -> base::Result<nic::Buffer> {
    nic::Buffer other = LACUNA_TRY(rig.context->allocate(1 << 20));
    std::memset(other.data(), 0, other.size());
    return other;
  };
  const std::byte* old = rig.buffer.data();
  rig.qp->keep(std::make_shared<nic::RegisteredBuffer>(std::move(rig.buffer), std::move(rig.region)));
  rig.qp.reset();
  const nic::Buffer other = LACUNA_END_TRY(allocated());
  LACUNA_END_EXPECT(other.data() != old);
  LACUNA_END_TRY(tell());
  LACUNA_END_TRY(tell());
  LACUNA_END_EXPECT(other.data()[0] == std::byte{0} && old[0] == std::byte{0xEE});
  LACUNA_END_TRY(tell());
  LACUNA_END_EXPECT(LACUNA_END_TRY(allocated()).data() != old);
  LACUNA_END_TRY(tell());
  LACUNA_END_TRY(tell());
  LACUNA_END_EXPECT(LACUNA_END_TRY(allocated()).data() == old);
  return {};
}
TEST(Closed, KeepsWhatThePeerReachesTwoProcesses) {
  if (tested_nic() != "local") GTEST_SKIP() << "NIC " << tested_nic() << " has no rkey_ptr";
  EXPECT_EQ(in_two_processes(kept), "");
}

// The same when the other end's context goes with all else: what the peer reads is still what was there, not zeros.
std::string kept_at_the_end(int rank, nic::Bootstrap& bootstrap) {
  Rig rig = LACUNA_END_TRY(Rig::make(bootstrap, nic::Path::mapped, 1 << 20));
  std::memset(rig.buffer.data(), 0xEE, 1 << 20);
  const std::array<std::uint64_t, 2> mine{rig.region.addr(), rig.region.rkey()};
  nic::Hello hello;
  hello.bytes.resize(sizeof mine);
  std::memcpy(hello.bytes.data(), mine.data(), sizeof mine);
  const nic::Hello told = LACUNA_END_TRY(bootstrap.exchange(hello, kPatience));
  std::array<std::uint64_t, 2> theirs{};
  std::memcpy(theirs.data(), told.bytes.data(), sizeof theirs);
  if (rank == 0) {
    rig.qp->keep(std::make_shared<nic::RegisteredBuffer>(std::move(rig.buffer), std::move(rig.region)));
    rig.qp.reset();
    rig.queue.reset();
    rig.context.reset();
    LACUNA_END_TRY(bootstrap.exchange(hello, kPatience));
    return {};
  }
  const std::byte* there = rig.qp->rkey_ptr(theirs[0], static_cast<std::uint32_t>(theirs[1]), 1 << 20);
  LACUNA_END_EXPECT(there != nullptr && there[0] == std::byte{0xEE});
  LACUNA_END_TRY(bootstrap.exchange(hello, kPatience));
  LACUNA_END_EXPECT(there[0] == std::byte{0xEE} && there[(1 << 20) - 1] == std::byte{0xEE});
  return {};
}
TEST(Closed, KeepsItWhenTheContextEndsTwoProcesses) {
  if (tested_nic() != "local") GTEST_SKIP() << "NIC " << tested_nic() << " has no rkey_ptr";
  EXPECT_EQ(in_two_processes(kept_at_the_end), "");
}

// Where the kernel forbids process_vm_*, here by decree of one end, both ends learn why, and the other paths work.
std::string forbidden(int rank, nic::Bootstrap& bootstrap) {
  nic::OpenOptions options;
  if (rank == 1) options.forbidden_paths = {nic::Path::kernel};
  const base::Result<Rig> kernel = Rig::make(bootstrap, nic::Path::kernel, 4096, options);
  LACUNA_END_EXPECT(!kernel && kernel.error().code == base::Code::unsupported);
  LACUNA_END_EXPECT(kernel.error().message.find("forbidden by the caller") != std::string::npos);
  LACUNA_END_TRY(Rig::make(bootstrap, nic::Path::slots, 4096, options));
  return {};
}
TEST(ForbiddenPath, IsRefusedAtBothEndsTwoProcesses) { EXPECT_EQ(in_two_processes(forbidden), ""); }

// Ends that ask for different paths.
std::string at_odds(int rank, nic::Bootstrap& bootstrap) {
  const base::Result<Rig> rig = Rig::make(bootstrap, rank == 0 ? nic::Path::slots : nic::Path::mapped, 4096);
  LACUNA_END_EXPECT(!rig && rig.error().message.find("both must name the same") != std::string::npos);
  return {};
}
TEST(Connecting, NeedsTheSamePathTwoProcesses) { EXPECT_EQ(in_two_processes(at_odds), ""); }

}  // namespace LACUNA_TEST_FILE
}  // namespace lacuna::test
