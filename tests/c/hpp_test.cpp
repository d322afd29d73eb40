// The C++ API: views and ranges of all shapes, requests that go out of scope, errors.
#include <lacuna.hpp>

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

#include "tests/support/names.hpp"
#include "tests/support/patience.hpp"

namespace LACUNA_TEST_FILE {

// What std::mdspan offers, in two dimensions.
template <class Element>
struct Grid {
  Element* data;
  std::array<std::int64_t, 2> extents, strides;
  [[nodiscard]] Element* data_handle() const { return data; }
  static constexpr std::size_t rank() { return 2; }
  [[nodiscard]] std::int64_t extent(std::size_t d) const { return extents.at(d); }
  [[nodiscard]] std::int64_t stride(std::size_t d) const { return strides.at(d); }
};
static_assert(lacuna::StridedView<Grid<double>>);
static_assert(!lacuna::StridedView<std::vector<double>>);

void two_ranks(const std::function<void(lacuna::Communicator&)>& program) {
  const std::string name = lacuna::test::unique_name("hpp-test");
  const lacuna::test::Watchdog dog("the ranks to end");
  const auto run = [&](int rank) {
    try {
      lacuna::Communicator ranks =
          lacuna::Communicator::connect(name, {.size = 2, .rank = rank, .secret = {}, .timeout_s = lacuna::test::kPatience * 1e-9});
      program(ranks);
    } catch (const std::exception& e) {
      ADD_FAILURE() << "rank " << rank << ": " << e.what();
    }
  };
  const pid_t child = fork();
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    run(1);
    _exit(testing::Test::HasFailure() ? 1 : 0);
  }
  run(0);
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

TEST(Hpp, SendsWhateverIsShapedLikeAView) {
  two_ranks([](lacuna::Communicator& ranks) {
    std::vector<double> matrix(300 * 200);
    std::iota(matrix.begin(), matrix.end(), 0.0);
    const Grid<const double> inner{matrix.data() + 201, {298, 198}, {200, 1}};
    if (ranks.rank() == 0) {
      ranks.send(inner, 1, 4);
      ranks.send(matrix, 1);
      ranks.send(std::array{1, 2, 3}, 1);
    } else {
      std::vector<double> turned(198 * 298);
      const lacuna::Message message = ranks.recv(Grid<double>{turned.data(), {298, 198}, {1, 298}}, 0, 4);
      EXPECT_EQ(message.bytes, 298 * 198 * 8);
      for (std::size_t i = 0; i < 298; ++i) {
        for (std::size_t j = 0; j < 198; ++j) ASSERT_EQ(turned[j * 298 + i], matrix[201 + i * 200 + j]);
      }
      std::vector<double> all(matrix.size());
      ranks.recv(std::span(all));
      EXPECT_EQ(all, matrix);
      int three[3]{};
      ranks.recv(three);
      EXPECT_EQ(three[2], 3);
      EXPECT_NE(ranks.statistics().find("stream"), std::string::npos);
    }
  });
}

TEST(Hpp, PutsAndGets) {
  two_ranks([](lacuna::Communicator& ranks) {
    std::vector<int> numbers(1000);
    lacuna::Exposed exposed{};
    if (ranks.rank() == 1) {
      exposed = ranks.expose(numbers);
      ranks.send(std::span(&exposed, 1), 0);
      ranks.recv(std::span(&exposed, 1), 0);
      EXPECT_EQ(numbers[8], 2);
      ranks.withdraw(exposed);
      return;
    }
    ranks.recv(std::span(&exposed, 1), 1);
    const std::uint32_t held = ranks.register_memory(numbers);
    ranks.put(std::array{1, 2, 3}, exposed, 16, lacuna::Layout::hvector(3, 1, 16, lacuna::Layout::bytes(4)));
    ranks.get(numbers, exposed);
    EXPECT_EQ(numbers[4] + numbers[8] + numbers[12], 6);
    ranks.deregister_memory(held);
    EXPECT_THROW(ranks.deregister_memory(held), lacuna::Error);
    ranks.send(std::span(&exposed, 1), 1);
  });
}

TEST(Hpp, RequestsEndWithTheirScope) {
  two_ranks([](lacuna::Communicator& ranks) {
    const int peer = 1 - ranks.rank();
    std::vector<std::int64_t> out(50'000, ranks.rank()), in(50'000), never(1);
    lacuna::Request receive = ranks.irecv(in, peer, 1);
    {
      const lacuna::Request unheard = ranks.irecv(never, peer, 9);  // taken back
      const lacuna::Request send = ranks.isend(out, peer, 1);
    }
    out.assign(out.size(), -1);  // nobody reads it any more
    EXPECT_EQ(receive.wait().bytes, 400'000);
    EXPECT_EQ(in.back(), peer);
    out.assign(out.size(), ranks.rank());
    receive = ranks.irecv(in, peer, 2);
    lacuna::Request send = ranks.isend(out, peer, 2);
    while (!receive.test()) sched_yield();
    EXPECT_TRUE(receive.done());
    EXPECT_EQ(send.wait().bytes, 400'000);
    EXPECT_FALSE(ranks.probe(peer, 5));
  });
}

TEST(Hpp, ErrorsAreExceptions) {
  try {
    (void)lacuna::Layout::bytes(-1);
    FAIL();
  } catch (const lacuna::Error& e) {
    EXPECT_EQ(e.status(), LACUNA_ERR_INVALID_ARGUMENT);
    EXPECT_NE(std::string(e.what()).find("-1"), std::string::npos);
  }
  const std::array<std::int64_t, 2> offsets{0, 10};
  const std::array<std::int64_t, 1> lengths{5};
  EXPECT_THROW((void)lacuna::Layout::blocks(offsets, lengths), std::invalid_argument);
  EXPECT_TRUE(lacuna::Layout::paged(8, offsets).same_runs(lacuna::Layout::hvector(2, 1, 80, lacuna::Layout::bytes(8))));
  EXPECT_THROW((void)lacuna::Communicator::connect("", {.size = 2, .secret = {}, .nic = "local"}), lacuna::Error);
}

}  // namespace LACUNA_TEST_FILE
