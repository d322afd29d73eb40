// The two ends of a connection on two machines. The same test program runs on both, with the same filter, and each runs
// its end of every pair:
//
//   LACUNA_TEST_RANK   0 or 1: which end runs here
//   LACUNA_TEST_MEET   address:port, where rank 0 listens; the same on both
//
// For each pair they meet anew by TCP and say at which test they are, so they cannot get out of step; at its end each
// says what went wrong. Once they have not met they meet no more: a machine that is gone costs one deadline, not one
// for each test.
#pragma once

#include "tests/support/pair.hpp"

namespace lacuna::test {

/// Whether this process runs one end only.
[[nodiscard]] bool apart();
/// As in_two_processes(). Rank 1 dies in a child if it is to die.
std::string in_two_machines(const End& end, int expected_signal);

}  // namespace lacuna::test
