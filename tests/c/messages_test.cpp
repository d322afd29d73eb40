// Messages through the C API, between two processes.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <lacuna.h>
#include "tests/support/names.hpp"
#include "tests/support/patience.hpp"

namespace LACUNA_TEST_FILE {

struct Free {
  void operator()(lacuna_layout* layout) const { lacuna_layout_free(layout); }
  void operator()(lacuna_comm* comm) const { lacuna_comm_free(comm); }
};
using Layout = std::unique_ptr<lacuna_layout, Free>;
using Comm = std::unique_ptr<lacuna_comm, Free>;

Layout loop(std::int64_t count, std::int64_t block, std::int64_t stride) {
  lacuna_layout* bytes = nullptr;
  lacuna_layout* made = nullptr;
  EXPECT_EQ(lacuna_layout_bytes(block, &bytes), LACUNA_OK);
  const Layout owned(bytes);
  EXPECT_EQ(lacuna_layout_hvector(count, 1, stride, bytes, &made), LACUNA_OK);
  return Layout(made);
}

constexpr double kMeetSeconds = lacuna::test::kPatience * 1e-9;

Comm connect(const std::string& name, int rank, const lacuna_connect_options* given = nullptr) {
  lacuna_connect_options options{};
  if (given != nullptr) options = *given;
  options.timeout_s = kMeetSeconds;
  lacuna_comm* comm = nullptr;
  EXPECT_EQ(lacuna_connect(name.c_str(), 2, rank, nullptr, &options, &comm), LACUNA_OK) << lacuna_error_message();
  return Comm(comm);
}

// Rank 0 here, rank 1 in a child, whose failed expectations make it end with 1.
void two_ranks(const std::function<void(lacuna_comm*)>& program, const lacuna_connect_options* options = nullptr) {
  const std::string name = lacuna::test::unique_name("c-test");
  const lacuna::test::Watchdog dog("the ranks to end");
  const pid_t child = fork();
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    {
      const Comm comm = connect(name, 1, options);
      if (comm != nullptr) program(comm.get());
    }
    _exit(testing::Test::HasFailure() ? 1 : 0);
  }
  {
    const Comm comm = connect(name, 0, options);
    if (comm != nullptr) program(comm.get());
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

// Returns when the other rank is here too: what is asked of a rank that has left is refused.
void meet(lacuna_comm* comm) {
  const int peer = 1 - lacuna_comm_rank(comm);
  const Layout byte = loop(1, 1, 1);
  char out = 0, in = 0;
  ASSERT_EQ(lacuna_send(comm, &out, byte.get(), peer, 99), LACUNA_OK) << lacuna_error_message();
  ASSERT_EQ(lacuna_recv(comm, &in, byte.get(), peer, 99, nullptr), LACUNA_OK) << lacuna_error_message();
}

TEST(CMessages, AreSentAndReceived) {
  two_ranks([](lacuna_comm* comm) {
    const int rank = lacuna_comm_rank(comm);
    ASSERT_EQ(lacuna_comm_size(comm), 2);
    const Layout fine = loop(2000, 10, 30);
    const Layout coarse = loop(200, 100, 150);
    std::vector<char> memory(60'000, 'x');
    lacuna_message message{};
    if (rank == 0) {
      for (std::size_t i = 0; i < memory.size(); ++i) memory[i] = static_cast<char>(i * 7);
      ASSERT_EQ(lacuna_send(comm, memory.data(), fine.get(), 1, 3), LACUNA_OK) << lacuna_error_message();
    } else {
      ASSERT_EQ(lacuna_recv(comm, memory.data(), coarse.get(), LACUNA_ANY_SOURCE, LACUNA_ANY_TAG, &message), LACUNA_OK)
          << lacuna_error_message();
      EXPECT_EQ(message.source, 0);
      EXPECT_EQ(message.tag, 3);
      EXPECT_EQ(message.bytes, 20'000);
      for (std::size_t i = 0; i < 20'000; ++i) {
        const std::size_t from = i / 10 * 30 + i % 10;
        ASSERT_EQ(memory[i / 100 * 150 + i % 100], static_cast<char>(from * 7));
      }
      EXPECT_EQ(memory[100], 'x');
    }
    char text[20'000];
    EXPECT_GT(lacuna_comm_statistics(comm, text, sizeof text), 20U);
    EXPECT_NE(std::strstr(text, "stream"), nullptr);
    size_t needed = 0;
    EXPECT_EQ(lacuna_comm_explain(comm, fine.get(), coarse.get(), 1 - rank, text, sizeof text, &needed), LACUNA_OK);
    EXPECT_EQ(needed, std::strlen(text));
  });
}

TEST(CMessages, RequestsEndOnce) {
  const lacuna_connect_options options{
      .nic = "local", .timeout_s = kMeetSeconds, .eager_bytes = 100, .unexpected_bytes = 1000, .progress_thread = 1};
  two_ranks(
      [](lacuna_comm* comm) {
        const int peer = 1 - lacuna_comm_rank(comm);
        const Layout block = loop(1, 5000, 5000);
        std::vector<std::vector<char>> out(4, std::vector<char>(5000, 'o'));
        std::vector<std::vector<char>> in(4, std::vector<char>(5000, 'i'));
        lacuna_request* requests[8]{};
        for (std::size_t i = 0; i < 4; ++i) {
          ASSERT_EQ(lacuna_irecv(comm, in[i].data(), block.get(), peer, static_cast<int>(i), &requests[i]), LACUNA_OK);
          ASSERT_EQ(lacuna_isend(comm, out[i].data(), block.get(), peer, static_cast<int>(i), &requests[4 + i]), LACUNA_OK);
        }
        int index = -1;
        lacuna_message message{};
        ASSERT_EQ(lacuna_wait_any(comm, 8, requests, &index, &message), LACUNA_OK);
        ASSERT_TRUE(index >= 0 && index < 8);
        EXPECT_EQ(requests[index], nullptr);
        EXPECT_EQ(message.bytes, 5000);
        int done = 0;
        for (; done == 0; sched_yield()) ASSERT_EQ(lacuna_test(comm, &requests[7], &done, nullptr), LACUNA_OK);
        EXPECT_EQ(requests[7], nullptr);
        ASSERT_EQ(lacuna_wait_all(comm, 8, requests, nullptr), LACUNA_OK);
        EXPECT_EQ(lacuna_wait_any(comm, 8, requests, &index, nullptr), LACUNA_ERR_INVALID_ARGUMENT);
        EXPECT_EQ(lacuna_wait(comm, &requests[0], nullptr), LACUNA_OK);
        for (const auto& memory : in) EXPECT_EQ(memory[4999], 'o');
        int cancelled = 0, found = 1;
        ASSERT_EQ(lacuna_irecv(comm, in[0].data(), block.get(), peer, 50, &requests[0]), LACUNA_OK);
        ASSERT_EQ(lacuna_cancel(comm, &requests[0], &cancelled), LACUNA_OK);
        EXPECT_EQ(cancelled, 1);
        EXPECT_EQ(requests[0], nullptr);
        ASSERT_EQ(lacuna_probe(comm, peer, 50, &found, &message), LACUNA_OK);
        EXPECT_EQ(found, 0);
        meet(comm);
      },
      &options);
}

TEST(CMessages, PutsAndGets) {
  two_ranks([](lacuna_comm* comm) {
    const Layout token = loop(1, sizeof(lacuna_exposed), sizeof(lacuna_exposed));
    const Layout spread = loop(50, 4, 12);
    const Layout block = loop(1, 200, 200);
    std::vector<char> memory(1000, 'm');
    lacuna_exposed exposed{};
    if (lacuna_comm_rank(comm) == 1) {
      ASSERT_EQ(lacuna_expose(comm, memory.data(), 1000, &exposed), LACUNA_OK);
      ASSERT_EQ(lacuna_send(comm, &exposed, token.get(), 0, 1), LACUNA_OK);
      ASSERT_EQ(lacuna_recv(comm, &exposed, token.get(), 0, 1, nullptr), LACUNA_OK);
      EXPECT_EQ(memory[10], 'p');
      EXPECT_EQ(memory[14], 'm');
      EXPECT_EQ(lacuna_withdraw(comm, &exposed), LACUNA_OK);
      EXPECT_EQ(lacuna_withdraw(comm, &exposed), LACUNA_ERR_INVALID_ARGUMENT);
      return;
    }
    ASSERT_EQ(lacuna_recv(comm, &exposed, token.get(), 1, 1, nullptr), LACUNA_OK);
    const std::vector<char> out(200, 'p');
    ASSERT_EQ(lacuna_put(comm, out.data(), block.get(), &exposed, 10, spread.get()), LACUNA_OK) << lacuna_error_message();
    std::vector<char> in(1000, 'i');
    ASSERT_EQ(lacuna_get(comm, in.data(), spread.get(), &exposed, 0, block.get()), LACUNA_OK) << lacuna_error_message();
    EXPECT_EQ(in[0], 'm');
    EXPECT_EQ(in[2 * 12 + 2], 'p');  // the tenth byte of the block
    EXPECT_EQ(in[4], 'i');
    EXPECT_EQ(lacuna_put(comm, out.data(), block.get(), &exposed, 801, block.get()), LACUNA_ERR_INVALID_ARGUMENT);
    ASSERT_EQ(lacuna_send(comm, &exposed, token.get(), 1, 1), LACUNA_OK);
  });
}

TEST(CMessages, MemoryIsRegisteredUntilItIsNot) {
  lacuna_connect_options options{};
  options.registering = "leave_pinned";
  two_ranks(
      [](lacuna_comm* comm) {
        std::vector<char> memory(1000);
        std::uint32_t first = 0, second = 0;
        ASSERT_EQ(lacuna_register_memory(comm, memory.data(), 1000, &first), LACUNA_OK) << lacuna_error_message();
        ASSERT_EQ(lacuna_register_memory(comm, memory.data(), 500, &second), LACUNA_OK) << lacuna_error_message();
        EXPECT_NE(first, second);
        EXPECT_EQ(lacuna_register_memory(comm, nullptr, 10, &first), LACUNA_ERR_INVALID_ARGUMENT);
        EXPECT_EQ(lacuna_deregister_memory(comm, first), LACUNA_OK);
        EXPECT_EQ(lacuna_deregister_memory(comm, first), LACUNA_ERR_INVALID_ARGUMENT);
        EXPECT_EQ(lacuna_deregister_memory(comm, second), LACUNA_OK);
      },
      &options);
}

TEST(CMessages, SayWhatIsWrong) {
  lacuna_comm* comm = nullptr;
  lacuna_connect_options wrong{};
  wrong.registering = "pin";
  EXPECT_EQ(lacuna_connect("x", 2, 0, nullptr, &wrong, &comm), LACUNA_ERR_INVALID_ARGUMENT);
  EXPECT_NE(std::string(lacuna_error_message()).find("leave_pinned_pipeline"), std::string::npos) << lacuna_error_message();
  wrong = {};
  wrong.learning = "on:1";
  EXPECT_EQ(lacuna_connect("x", 2, 0, nullptr, &wrong, &comm), LACUNA_ERR_INVALID_ARGUMENT);
  EXPECT_NE(std::string(lacuna_error_message()).find("\"on:1\""), std::string::npos) << lacuna_error_message();
  EXPECT_EQ(lacuna_connect(nullptr, 2, 0, nullptr, nullptr, &comm), LACUNA_ERR_INVALID_ARGUMENT);
  EXPECT_EQ(lacuna_connect("x", 2, 2, nullptr, nullptr, &comm), LACUNA_ERR_INVALID_ARGUMENT);
  EXPECT_EQ(lacuna_connect("127.0.0.1:1", 2, 0, "short", nullptr, &comm), LACUNA_ERR_INVALID_ARGUMENT);
  lacuna_connect_options options{};
  options.nic = "none such";
  EXPECT_EQ(lacuna_connect("x", 2, 0, nullptr, &options, &comm), LACUNA_ERR_INVALID_ARGUMENT);
  options = {};
  options.timeout_s = 0.1;
  const std::string name = lacuna::test::unique_name("c-alone");
  EXPECT_EQ(lacuna_connect(name.c_str(), 2, 0, nullptr, &options, &comm), LACUNA_ERR_TIMEOUT);
  EXPECT_NE(std::string(lacuna_error_message()).find('1'), std::string::npos);
  EXPECT_EQ(comm, nullptr);
  lacuna_comm_free(nullptr);
  two_ranks([](lacuna_comm* ranks) {
    const Layout word = loop(1, 8, 8);
    const Layout half = loop(1, 4, 4);
    std::int64_t value = 5;
    EXPECT_EQ(lacuna_send(ranks, &value, word.get(), 2, 0), LACUNA_ERR_INVALID_ARGUMENT);
    EXPECT_EQ(lacuna_recv(ranks, &value, word.get(), 0, -2, nullptr), LACUNA_ERR_INVALID_ARGUMENT);
    if (lacuna_comm_rank(ranks) == 0) {
      EXPECT_EQ(lacuna_send(ranks, &value, word.get(), 1, 0), LACUNA_OK);
    } else {
      EXPECT_EQ(lacuna_recv(ranks, &value, half.get(), 0, 0, nullptr), LACUNA_ERR_TRUNCATED);
      EXPECT_EQ(lacuna_recv(ranks, &value, word.get(), 0, 1, nullptr), LACUNA_ERR_PEER_LOST);  // it leaves
    }
  });
}

}  // namespace LACUNA_TEST_FILE
