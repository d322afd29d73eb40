// Preloaded programs over a fake MPI to which things happen: tests/fuzz/programs.
#include <cstdio>
#include <cstdlib>

#include "tests/fuzz/programs/story.hpp"
#include "tests/fuzz/rows/rows.hpp"
#include "tests/support/environment.hpp"

namespace lacuna::fuzz {
namespace {

Verdict judge(const Bytes& input, bool planted) {
  const std::uint64_t seed = seed_of(input);
  const test::Set offer("LACUNA_MPI_OFFER", seed % 2 == 0 ? "254" : "");
  const Story story = draw_story(seed);
  if (std::getenv("LACUNA_FUZZ_TRACE") != nullptr) std::fputs(story.describe().c_str(), stderr);
  std::string wrong = play(story, true, planted);
  if (!wrong.empty() && !planted) {
    if (const std::string plain = play(story, false, false); !plain.empty()) wrong += " (and so without the interposer: " + plain + ")";
    wrong += "\n" + shorter(story).describe();
  }
  return {.taken = true, .wrong = wrong};
}

}  // namespace

Fuzzer mpi_programs() {
  return {.name = "mpi_programs",
          .what = "programs of 2 to 8 ranks, with windows: no memory, calls that fail, ranks that are late, or die",
          .smoke = 400,
          .least_taken = 1,
          .draw = draw_seed,
          .judge = judge};
}

}  // namespace lacuna::fuzz
