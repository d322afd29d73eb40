// Exchanges through the C API and its C++ layer, among three processes.
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <functional>
#include <numeric>
#include <string>
#include <vector>

#include <lacuna.hpp>
#include "tests/support/names.hpp"
#include "tests/support/patience.hpp"

namespace LACUNA_TEST_FILE {

constexpr int kRanks = 3;
constexpr double kSeconds = lacuna::test::kPatience * 1e-9;

void in_ranks(const std::function<void(lacuna::Communicator&)>& program) {
  const std::string name = lacuna::test::unique_name("c-exchange-test");
  const lacuna::test::Watchdog dog("the ranks to end");
  const auto run = [&](int rank) {
    try {
      lacuna::Communicator ranks = lacuna::Communicator::connect(name, {.size = kRanks, .rank = rank, .secret = {}, .timeout_s = kSeconds});
      program(ranks);
    } catch (const std::exception& e) {
      ADD_FAILURE() << "rank " << rank << ": " << e.what();
    }
  };
  std::vector<pid_t> children;
  for (int rank = 1; rank < kRanks; ++rank) {
    children.push_back(fork());
    if (children.back() != 0) continue;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    run(rank);
    _exit(testing::Test::HasFailure() ? 1 : 0);
  }
  run(0);
  for (const pid_t child : children) {
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
  }
}

TEST(CExchanges, MoveColumnsToRows) {
  in_ranks([](lacuna::Communicator& ranks) {
    // Column i of four rows goes to rank i, which has it in a row.
    std::array<int, 4 * kRanks> matrix{};
    for (int i = 0; i < 4 * kRanks; ++i) matrix.at(static_cast<std::size_t>(i)) = 100 * ranks.rank() + i;
    std::array<int, 4 * kRanks> rows{};
    const auto column = lacuna::Layout::hvector(4, 1, sizeof(int) * kRanks, lacuna::Layout::bytes(sizeof(int)));
    const auto row = lacuna::Layout::bytes(4 * sizeof(int));
    std::vector<const void*> from;
    std::vector<void*> to;
    for (std::size_t i = 0; i < kRanks; ++i) {
      from.push_back(&matrix.at(i));
      to.push_back(&rows.at(4 * i));
    }
    const std::vector<const lacuna_layout*> columns(kRanks, column.get()), whole(kRanks, row.get());
    const auto check = [&] {
      for (int source = 0; source < kRanks; ++source) {
        for (int i = 0; i < 4; ++i) EXPECT_EQ(rows.at(static_cast<std::size_t>(4 * source + i)), 100 * source + kRanks * i + ranks.rank());
      }
      rows.fill(-1);
    };
    ASSERT_EQ(lacuna_alltoallw(ranks.get(), from.data(), columns.data(), to.data(), whole.data(), nullptr), LACUNA_OK)
        << lacuna_error_message();
    check();
    for (const char* schedule : {"automatic", "at_once", "pairwise", "forward"}) {
      const lacuna_exchange_options options{schedule, 1, kSeconds};
      lacuna_exchange* exchange = nullptr;
      ASSERT_EQ(lacuna_alltoallw_init(ranks.get(), from.data(), columns.data(), to.data(), whole.data(), &options, &exchange), LACUNA_OK);
      for (int again = 0; again < 2; ++again) {
        ASSERT_EQ(lacuna_exchange_start(exchange), LACUNA_OK) << lacuna_error_message();
        for (int done = 0; done == 0; sched_yield()) ASSERT_EQ(lacuna_exchange_test(exchange, &done), LACUNA_OK) << lacuna_error_message();
        ASSERT_EQ(lacuna_exchange_wait(exchange), LACUNA_OK);
        check();
      }
      std::string text(lacuna_exchange_explain(exchange, nullptr, 0), '\0');
      lacuna_exchange_explain(exchange, text.data(), text.size() + 1);
      EXPECT_NE(text.find("alltoallw, rank "), std::string::npos) << text;
      lacuna_exchange_free(exchange);
    }
    lacuna_exchange_free(nullptr);
  });
}

TEST(CExchanges, AreRefusedEverywhere) {
  in_ranks([](lacuna::Communicator& ranks) {
    std::array<std::byte, 16> memory{};
    const auto eight = lacuna::Layout::bytes(8), nine = lacuna::Layout::bytes(9);
    const int to = (ranks.rank() + 1) % kRanks, from = (ranks.rank() + 2) % kRanks;
    const void* out = memory.data();
    void* in = memory.data();
    const lacuna_layout* sent = eight.get();
    const lacuna_layout* expected = ranks.rank() == 1 ? nine.get() : eight.get();
    EXPECT_EQ(lacuna_neighbor_exchange(ranks.get(), 1, &to, &out, &sent, 1, &from, &in, &expected, nullptr), LACUNA_ERR_INVALID_ARGUMENT);
    EXPECT_NE(std::string(lacuna_error_message()).find("rank 0 sends rank 1"), std::string::npos) << lacuna_error_message();
    const lacuna_exchange_options options{ranks.rank() == 0 ? "best" : nullptr, 0, 0};
    EXPECT_EQ(lacuna_neighbor_exchange(ranks.get(), 0, nullptr, nullptr, nullptr, 0, nullptr, nullptr, nullptr, &options),
              LACUNA_ERR_INVALID_ARGUMENT);
    EXPECT_EQ(lacuna_neighbor_exchange(ranks.get(), 0, nullptr, nullptr, nullptr, 0, nullptr, nullptr, nullptr, nullptr), LACUNA_OK);
  });
}

TEST(HppExchanges, MoveHalosAndTransposeMatrices) {
  in_ranks([](lacuna::Communicator& ranks) {
    std::vector<double> field(5 * 6, ranks.rank());
    const auto column = lacuna::Layout::hvector(5, 1, 6 * 8, lacuna::Layout::bytes(8));
    const int left = (ranks.rank() + kRanks - 1) % kRanks, right = (ranks.rank() + 1) % kRanks;
    const std::array<lacuna::Outgoing, 2> sends{{{left, &field[1], &column}, {right, &field[4], &column}}};
    const std::array<lacuna::Incoming, 3> receives{
        {{left, &field[0], &column}, {right, &field[5], &column}, {ranks.rank(), nullptr, nullptr}}};
    EXPECT_THROW(ranks.neighbor_exchange(sends, receives), lacuna::Error);  // nobody sends oneself anything
    lacuna::Exchange halo = ranks.neighbor_exchange_init(sends, std::span(receives).first(2));
    halo.start();
    while (!halo.test()) sched_yield();
    halo.start();
    halo.wait();
    EXPECT_NE(halo.explain().find("neighbor_exchange"), std::string::npos);
    for (std::size_t i = 0; i < 5; ++i) {
      EXPECT_EQ(field[6 * i], left);
      EXPECT_EQ(field[6 * i + 1], ranks.rank());
      EXPECT_EQ(field[6 * i + 5], right);
    }

    // 7 x 4: rows by 3, 2, 2; columns by 0, 4, 0.
    const std::array<std::int64_t, kRanks> columns{0, 4, 0};
    const int rows = ranks.rank() == 0 ? 3 : 2, first = ranks.rank() == 0 ? 0 : 1 + 2 * ranks.rank();
    std::vector<int> before(static_cast<std::size_t>(rows) * 4), after(4 * 8, -1);
    std::iota(before.begin(), before.end(), 4 * first);
    ranks.transpose({7, 4, sizeof(int), nullptr, columns.data(), 0, 8}, before.data(), after.data());
    for (int c = 0; c < 4; ++c) {
      for (int r = 0; r < 8; ++r) EXPECT_EQ(after.at(static_cast<std::size_t>(8 * c + r)), ranks.rank() == 1 && r < 7 ? 4 * r + c : -1);
    }

    std::vector<int> words(kRanks, ranks.rank()), got(kRanks);
    const auto word = lacuna::Layout::bytes(4);
    std::vector<lacuna::Outgoing> out;
    std::vector<lacuna::Incoming> in;
    for (int i = 0; i < kRanks; ++i) {
      out.push_back({i, &words[static_cast<std::size_t>(i)], &word});
      in.push_back({i, &got[static_cast<std::size_t>(i)], &word});
    }
    ranks.alltoallw(out, in, {.schedule = "forward"});
    for (int i = 0; i < kRanks; ++i) EXPECT_EQ(got[static_cast<std::size_t>(i)], i);
    std::swap(out[0], out[1]);
    EXPECT_THROW(ranks.alltoallw(out, in), lacuna::Error);
  });
}

}  // namespace LACUNA_TEST_FILE
