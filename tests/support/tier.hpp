// The tier of a test: the first of `make check`, `make test`, `.ci/run` and `make test-all` that runs it. A label
// stands beside the tests that it is of. A test without one is of tier check; of several labels the last tier counts.
#pragma once

#include <cstdint>
#include <vector>

namespace lacuna::test {

enum class Tier : std::uint8_t {
  check,  ///< one process, and quick
  test,   ///< several processes, or seconds
  gate,   ///< before a change goes in
  all     ///< minutes, or one more of a product whose pairs are tested above
};

/// Where a test tells nothing, or costs too much for what it tells.
enum class Build : std::uint8_t { release, address, thread };

/// `pattern`: a full name with GoogleTest's wildcards. A label in a file of tests is of at least one test of the
/// program.
struct Label {
  Label(Tier tier, const char* pattern, const char* file);
  Label(Build leaves_out, const char* pattern, const char* file);
};

/// Labels as main() sees them: all of those that this build knows.
struct Known {
  Tier tier;
  bool build;  ///< it leaves tests out of this build, and has no tier
  const char* pattern;
  bool general;  ///< from tests/support: a program may have no such test
};
[[nodiscard]] std::vector<Known>& labels();

#define LACUNA_TIER(tier, pattern) LACUNA_LABEL_(Tier::tier, pattern, __COUNTER__)
/// Tests that one build leaves out: LACUNA_LEFT_OUT(thread, "Copy.*").
#define LACUNA_LEFT_OUT(build, pattern) LACUNA_LABEL_(Build::build, pattern, __COUNTER__)
#define LACUNA_LABEL_(what, pattern, number) LACUNA_LABEL_NAMED_(what, pattern, number)
#define LACUNA_LABEL_NAMED_(what, pattern, number) \
  [[maybe_unused]] const ::lacuna::test::Label lacuna_label_##number { ::lacuna::test::what, pattern, __FILE__ }

}  // namespace lacuna::test
