// Random programs do with the interposer what they do without, on hosts of all kinds, whatever of the host's fails that
// a program does not see. LACUNA_FUZZ_SECONDS=600 draws new ones for so long, LACUNA_FUZZ_SEED=N runs one again.
#include <gtest/gtest.h>

#include <cstdlib>

#include "lacuna/base/base.hpp"
#include "tests/interposer/buffer.hpp"
#include "tests/interposer/drawn.hpp"
#include "tests/interposer/fake.hpp"
#include "tests/support/environment.hpp"
#include "tests/support/fuzz.hpp"
#include "tests/support/tier.hpp"

namespace lacuna::test {
namespace LACUNA_TEST_FILE {

LACUNA_TIER(test, "RandomPrograms.*");

using namespace fake;
using support::Random;

#if defined(__SANITIZE_THREAD__)
constexpr int kPrograms = 8;
#elif defined(__SANITIZE_ADDRESS__)
constexpr int kPrograms = 20;
#else
constexpr int kPrograms = 100;
#endif

// Calls of the interposer's own: where one fails, it has to do without what it wanted to know.
std::vector<Fault> draw_faults(Random& random, const Options& options) {
  static const std::vector<std::string> calls{"Type_get_envelope", "Type_get_contents", "Type_get_envelope_c", "Type_get_contents_c",
                                              "Type_set_attr",     "Comm_set_attr",     "Type_contiguous"};
  std::vector<Fault> made;
  if (!random.one_in(3)) return made;
  const int n = random.one_in(4) ? Fault::kAll : static_cast<int>(random.between(1, 20));
  made.push_back({.call = random.pick(calls), .n = n, .rank = static_cast<int>(random.below(options.ranks))});
  return made;
}

// Of each rank and thread.
using Seen = std::vector<std::vector<std::string>>;

// Each thread of a rank runs a program of its own, in communicators of its own.
Program program_of(const std::vector<Drawn>& programs, Seen& seen) {
  return [&](const Host& mpi, int rank) {
    std::vector<std::vector<Comm>> comms(programs.size());
    for (std::size_t i = 0; i < programs.size(); ++i) {
      comms[i].resize(static_cast<std::size_t>(programs[i].comms));
      for (Comm& comm : comms[i]) {
        mpi.Comm_dup(mpi.world, &comm);
        return_errors(comm);
      }
    }
    const auto play = [&](std::size_t i) {
      seen[static_cast<std::size_t>(rank) * programs.size() + i] = fake::run(mpi, rank, programs[i], comms[i]);
    };
    {
      std::vector<std::jthread> threads;
      for (std::size_t i = 1; i < programs.size(); ++i) threads.push_back(thread_of_rank([&play, i] { play(i); }));
      play(0);
    }
    for (std::vector<Comm>& of_program : comms) {
      for (Comm& comm : of_program) mpi.Comm_free(&comm);
    }
  };
}

void expect_the_same(std::uint64_t seed) {
  Random random(seed);
  static const std::vector<std::int64_t> eager{0, 253, 4096, 1 << 20};
  Options options{.ranks = static_cast<int>(random.between(2, 4)), .eager = random.pick(eager), .threads = random.one_in(2)};
  options.renews = random.one_in(4);
  options.open_mpi = random.one_in(2);
  options.decode_at = static_cast<int>(random.below(4));
  options.slow = random.one_in(2) ? random.next() : 0;
  const bool devices = random.one_in(4);
  if (devices) {
    ASSERT_EQ(load_driver(), "");
  }
  std::vector<Drawn> programs(options.threads && random.one_in(3) ? 2 : 1);
  for (Drawn& program : programs) program = draw(random, options.ranks, devices);
  const Set offer("LACUNA_MPI_OFFER", random.one_in(2) ? "254" : "");
  const std::vector<Fault> faults = draw_faults(random, options);
  const std::size_t before = types_made();
  Seen seen[2];
  for (const bool preloaded : {false, true}) {
    Seen& all = seen[preloaded ? 1 : 0];
    all.resize(static_cast<std::size_t>(options.ranks) * programs.size());
    const Program program = program_of(programs, all);
    const Outcome outcome = preloaded ? run_preloaded(options, program, faults) : run_plain(options, program);
    for (const std::string& wrong : outcome.wrong) ADD_FAILURE() << (preloaded ? "preloaded: " : "plain: ") << wrong;
  }
  EXPECT_EQ(types_made(), before);
  for (std::size_t i = 0; i < seen[0].size(); ++i)
    ASSERT_EQ(seen[0][i], seen[1][i]) << "of rank " << i / programs.size() << ", thread " << i % programs.size();
}

TEST(RandomPrograms, DoTheSameAsWithout) { RecordProperty("programs", support::fuzz(kPrograms, expect_the_same)); }

}  // namespace LACUNA_TEST_FILE
}  // namespace lacuna::test
