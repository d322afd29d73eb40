// The progress thread is Lacuna's: the program's signals come to the program's threads alone.
#include <gtest/gtest.h>

#include <csignal>

#include "tests/support/patience.hpp"
#include "tests/support/ranks.hpp"
#include "tests/support/signals.hpp"
#include "tests/support/tier.hpp"

namespace lacuna::test {
namespace LACUNA_TEST_FILE {

LACUNA_TIER(test, "ProgressThread.*");  // processes

TEST(ProgressThread, TakesNoSignals) {
  const auto alone = [](protocol::Communicator& /*ranks*/) -> std::string {
    const auto begun = [] { return threads_that_take(SIGSEGV).size() == 2; };
    if (std::string wrong = await("the progress thread", begun); !wrong.empty()) return wrong;
    LACUNA_END_EXPECT(threads_that_take(SIGUSR1).size() == 1);
    return {};
  };
  EXPECT_EQ(in_ranks({.processes = true, .options = {.progress_thread = true}}, alone), "");
}

}  // namespace LACUNA_TEST_FILE
}  // namespace lacuna::test
