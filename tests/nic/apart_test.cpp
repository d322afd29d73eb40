// The two ends of a test in two programs, as on two machines: this program once more, twice, with one end each.
#include "tests/support/apart.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>

#include <array>
#include <cstdio>
#include <thread>

#include "tests/nic/rig.hpp"

namespace lacuna::test {
namespace LACUNA_TEST_FILE {

std::string speak(int rank, nic::Bootstrap& bootstrap) {
  for (int i = 0; i < 5; ++i) LACUNA_END_EXPECT(LACUNA_END_TRY(swap(bootstrap, rank * 100 + i)) == (1 - rank) * 100 + i);
  return {};
}

// What the programs run. It holds for two processes, too.
TEST(Pair, SpeaksTwoProcesses) {
  EXPECT_EQ(in_two_processes(speak), "");
  EXPECT_EQ(in_two_processes(speak), "");
}
TEST(Pair, BothKnowWhatWentWrongTwoProcesses) {
  const auto end = [](int rank, nic::Bootstrap& b) -> std::string { return rank == 1 ? "a reason" : speak(rank, b); };
  const std::string wrong = in_two_processes(end);
  EXPECT_NE(wrong.find("rank 1: a reason"), std::string::npos) << wrong;
  EXPECT_NE(wrong.find("rank 0: "), std::string::npos) << wrong;
}
TEST(Pair, OneDiesTwoProcesses) {
  const auto end = [](int rank, nic::Bootstrap& b) -> std::string {
    LACUNA_END_TRY(barrier(b));
    if (rank == 1) raise(SIGKILL);
    return {};
  };
  EXPECT_EQ(in_two_processes(end, SIGKILL), "");
  EXPECT_EQ(in_two_processes(speak), "");
}

struct Ended {
  bool passed;
  std::string output;
};

// A port that nobody gets by chance while this lives: bound, and not listened at. Who says that he would share it may
// listen there.
class Port {
 public:
  Port() : held_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    const int on = 1;
    setsockopt(held_.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    address_.sin_family = AF_INET;
    address_.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address_;
    EXPECT_EQ(bind(held_.get(), reinterpret_cast<sockaddr*>(&address_), size), 0);
    getsockname(held_.get(), reinterpret_cast<sockaddr*>(&address_), &size);
  }
  [[nodiscard]] std::string text() const { return fmt::format("127.0.0.1:{}", ntohs(address_.sin_port)); }

 private:
  base::Fd held_;
  sockaddr_in address_{};
};

// Both programs, each with a filter of its own.
std::array<Ended, 2> programs(const std::array<const char*, 2>& tests) {
  std::array<char, 4096> self{};
  EXPECT_GT(readlink("/proc/self/exe", self.data(), self.size() - 1), 0);
  const Port port;
  std::array<Ended, 2> ended;
  const auto run = [&](int rank) {
    const auto at = static_cast<std::size_t>(rank);
    const std::string command = fmt::format(
        "LACUNA_TEST_RANK={} LACUNA_TEST_MEET={} GTEST_TOTAL_SHARDS=1 GTEST_SHARD_INDEX=0 {} "
        "--gtest_filter=Pair.{}TwoProcesses 2>&1",
        rank, port.text(), self.data(), tests[at]);
    FILE* pipe = popen(command.c_str(), "r");
    std::array<char, 1024> line;
    while (pipe != nullptr && fgets(line.data(), line.size(), pipe) != nullptr) ended[at].output += line.data();
    ended[at].passed = pipe != nullptr && pclose(pipe) == 0;
  };
  std::thread other(run, 1);
  run(0);
  other.join();
  return ended;
}

TEST(Apart, EndsMeetTwoProcesses) {
  for (const char* test : {"Speaks", "BothKnowWhatWentWrong", "OneDies"}) {
    for (const Ended& end : programs({test, test})) EXPECT_TRUE(end.passed) << end.output;
  }
}
TEST(Apart, OutOfStepIsAnErrorAtBothEndsTwoProcesses) {
  for (const Ended& end : programs({"Speaks", "OneDies"})) {
    EXPECT_FALSE(end.passed);
    EXPECT_NE(end.output.find("out of step"), std::string::npos) << end.output;
    EXPECT_NE(end.output.find("the other machine was lost before"), std::string::npos) << end.output;
  }
}

}  // namespace LACUNA_TEST_FILE
}  // namespace lacuna::test
