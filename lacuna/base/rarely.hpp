// rarely: marks of branches that run seldom, so that a test can say which of them it never reached.
//
//   if (queue_full) {
//     LACUNA_RARELY("queue: full");   ──▶ a counter in the linker's section lacuna_rarely ──▶ rare_branches()
//
// The library never reads a counter: they are its only process-global state. A mark belongs on a branch that is seldom
// run: it costs an addition to a word in memory that threads of a process share. It may stand in functions of .cpp
// files only, and in no template: copies of an inline function would put the section into groups of the linker's.
#pragma once

#include <cstdint>
#include <span>

namespace lacuna::base {

/// One mark. Of two words, so that they lie in the section without gaps.
struct alignas(16) RareBranch {
  const char* name;
  std::uint64_t times;

  /// Threads that come at the same time may count once.
  void reach() { __atomic_store_n(&times, __atomic_load_n(&times, __ATOMIC_RELAXED) + 1, __ATOMIC_RELAXED); }
};
static_assert(sizeof(RareBranch) == 16);

/// All marks of this process, in no order; each name may be there several times.
[[nodiscard]] std::span<RareBranch> rare_branches();

}  // namespace lacuna::base

#define LACUNA_RARELY(name)                                                                                 \
  do {                                                                                                      \
    [[gnu::section("lacuna_rarely"), gnu::used]] static ::lacuna::base::RareBranch lacuna_rarely_{name, 0}; \
    lacuna_rarely_.reach();                                                                                 \
  } while (false)
