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

#include "tests/support/environment.hpp"
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

TEST(Hpp, SeveralRequestsAreWaitedForTogether) {
  two_ranks([](lacuna::Communicator& ranks) {
    const int peer = 1 - ranks.rank();
    std::vector<int> out(20'000, ranks.rank()), first(out.size()), second(out.size());
    std::array<lacuna::Request, 3> all{ranks.irecv(first, peer, 1), ranks.irecv(second, peer, 2), ranks.isend(out, peer, 2)};
    const auto ended = ranks.wait_any(std::span(all).subspan(1));
    EXPECT_EQ(ended.message.bytes, 80'000);
    EXPECT_TRUE(all[1 + ended.index].done());
    EXPECT_FALSE(all[0].done());
    ranks.send(out, peer, 1);
    const std::vector<lacuna::Message> messages = ranks.wait_all(all);
    EXPECT_EQ(messages[0].tag, 1);
    for (const lacuna::Request& request : all) EXPECT_TRUE(request.done());
    EXPECT_EQ(first, std::vector<int>(out.size(), peer));
    EXPECT_EQ(second, first);
    EXPECT_THROW(ranks.wait_any(all), lacuna::Error);
  });
}

TEST(Hpp, PutsAndGetsAreBegunAndExplained) {
  two_ranks([](lacuna::Communicator& ranks) {
    std::vector<int> numbers(1000, ranks.rank());
    const lacuna::Layout ten = lacuna::Layout::bytes(40);
    lacuna::Exposed exposed = ranks.expose(numbers);
    lacuna::Exposed theirs{};
    lacuna::Request receive = ranks.irecv(std::span(&theirs, 1), 1 - ranks.rank());
    ranks.send(std::span(&exposed, 1), 1 - ranks.rank());
    receive.wait();
    std::array<int, 10> here{}, out{};
    out.fill(7);
    std::array<lacuna::Request, 2> both{ranks.iput(out.data(), ten, theirs, 0, ten), ranks.iget(here.data(), ten, theirs, 400, ten)};
    ranks.wait_all(both);
    EXPECT_EQ(here[9], 1 - ranks.rank());
    ranks.put(out.data(), ten, theirs, 40, ten);
    ranks.get(here.data(), ten, theirs, 40, ten);
    EXPECT_EQ(here[9], 7);
    EXPECT_FALSE(ranks.explain(ten, ten, 1 - ranks.rank()).empty());
    receive = ranks.irecv(std::span(here).first(1), 1 - ranks.rank());
    ranks.send(std::span(here).first(1), 1 - ranks.rank());
    receive.wait();
    EXPECT_EQ(numbers[0] + numbers[19] + numbers[20], 14 + ranks.rank());
    ranks.withdraw(exposed);
  });
}

TEST(Hpp, LayoutsAreMadeSlicedAndTold) {
  const lacuna::Layout eight = lacuna::Layout::bytes(8);
  const std::array<std::int64_t, 2> ones{1, 1}, places{0, 3}, byte_places{0, 24}, sizes{4, 6};
  const lacuna::Layout pair = lacuna::Layout::hvector(2, 1, 24, eight);
  for (const lacuna::Layout& same :
       {lacuna::Layout::indexed(ones, places, eight), lacuna::Layout::hindexed(ones, byte_places, eight),
        lacuna::Layout::indexed_block(1, places, eight), lacuna::Layout::hindexed_block(1, byte_places, eight),
        lacuna::Layout::structure(ones, byte_places, std::array{eight, eight}), lacuna::Layout::vector(2, 1, 3, eight),
        lacuna::Layout::strided(8, std::array<std::int64_t, 1>{2}, std::array<std::int64_t, 1>{24}), lacuna::Layout::decode(pair.encode()),
        lacuna::Layout::hvector(3, 1, 24, eight).slice(0, 16)})
    EXPECT_TRUE(same.same_runs(pair)) << same.describe();
  const lacuna::Layout box = lacuna::Layout::subarray(sizes, ones, ones, eight, lacuna::Order::fortran);
  EXPECT_EQ(box.true_lower_bound(), (1 * 4 + 1) * 8);
  EXPECT_EQ(box.true_extent(), 8);
  const std::array spread{lacuna::Distribution::block, lacuna::Distribution::none};
  const std::array<std::int64_t, 2> blocks{lacuna::default_block, lacuna::default_block}, grid{2, 1};
  EXPECT_EQ(lacuna::Layout::darray(2, 1, sizes, spread, blocks, grid, eight).true_lower_bound(), 2 * 6 * 8);
  EXPECT_FALSE(pair.overlaps());
  EXPECT_EQ(lacuna::Layout::contiguous(2, lacuna::Layout::resized(eight, 0, 24)).describe(), pair.describe());
  EXPECT_NE(pair.explain().find("runs"), std::string::npos);
  const lacuna::Layout copy = pair;
  copy.prepare();
  EXPECT_EQ(copy.get(), pair.get());
}

TEST(Hpp, CopiesFromViewToView) {
  std::vector<int> matrix(6 * 4);
  std::iota(matrix.begin(), matrix.end(), 0);
  std::vector<int> turned(matrix.size());
  lacuna::transpack(matrix, Grid<int>{turned.data(), {6, 4}, {1, 6}});
  for (std::size_t i = 0; i < 6; ++i) {
    for (std::size_t j = 0; j < 4; ++j) ASSERT_EQ(turned[j * 6 + i], matrix[i * 4 + j]);
  }
  const Grid<int> columns{matrix.data() + 1, {6, 2}, {4, 2}};
  const std::vector<std::byte> packed = lacuna::pack(columns);
  ASSERT_EQ(packed.size(), 6 * 2 * sizeof(int));
  std::vector<int> other(matrix.size(), -1);
  lacuna::unpack(packed, Grid<int>{other.data() + 1, {6, 2}, {4, 2}});
  EXPECT_EQ(other[0], -1);
  EXPECT_EQ(other[23], 23);
  EXPECT_THROW(lacuna::unpack(packed, std::span(other)), lacuna::Error);
  EXPECT_THROW(lacuna::transpack(matrix, std::span(other).first(3)), lacuna::Error);
  lacuna::Team team(2);
  std::vector<std::byte> by_threads(packed.size());
  const lacuna::Layout layout = lacuna::Layout::of(columns);
  team.pack(layout, columns.data, 0, layout.size(), by_threads.data());
  EXPECT_EQ(by_threads, packed);
  team.unpack(layout, other.data(), 0, layout.size(), packed.data());
  EXPECT_EQ(other[22], 23);
  std::vector<int> third(matrix.size(), -1);
  team.transpack(layout, columns.data, layout, third.data() + 1);
  EXPECT_EQ(third[23], 23);
  std::vector<std::byte> given(packed.size());
  lacuna::pack(columns, given);
  EXPECT_EQ(given, packed);
  EXPECT_THROW(lacuna::pack(columns, std::span(given).first(8)), lacuna::Error);
  EXPECT_EQ(lacuna::version(), lacuna_version());
}

TEST(Hpp, ChoosesAndExplains) {
  const lacuna::test::Set none("LACUNA_PROFILE", "no/such/profile.json");
  lacuna::Guide guide;
  const lacuna::Layout src = lacuna::Layout::hvector(100, 1, 48, lacuna::Layout::bytes(16));
  const lacuna::Layout dst = lacuna::Layout::bytes(1600);
  const lacuna::Choice choice = guide.choose(src, dst);
  EXPECT_GT(choice.latency_us, 0);
  EXPECT_TRUE(guide.explain(src, dst).starts_with("Chosen: " + std::string(choice.method)));
  EXPECT_LE(guide.choose(src, dst, lacuna::Objective::cpu).cpu_us[0], choice.cpu_us[0] + choice.cpu_us[1]);
  lacuna::Placement placement{};
  placement.cold = 1;
  EXPECT_GE(guide.choose(src, dst, placement).latency_us, choice.latency_us);
  EXPECT_THROW(guide.choose(src, lacuna::Layout::bytes(3)), lacuna::Error);
  EXPECT_THROW(lacuna::Guide("abacus"), lacuna::Error);
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
  try {
    (void)lacuna::Layout::blocks(offsets, lengths);
    FAIL();
  } catch (const lacuna::Error& e) {
    EXPECT_EQ(e.status(), LACUNA_ERR_INVALID_ARGUMENT);
    EXPECT_STREQ(e.what(), "blocks: lists of 2 and of 1 entries");
  }
  EXPECT_TRUE(lacuna::Layout::paged(8, offsets).same_runs(lacuna::Layout::hvector(2, 1, 80, lacuna::Layout::bytes(8))));
  EXPECT_THROW((void)lacuna::Communicator::connect("", {.size = 2, .secret = {}, .nic = "local"}), lacuna::Error);
}

}  // namespace LACUNA_TEST_FILE
