#include "lacuna/base/rarely.hpp"

// The linker's names for the ends of a section. Null where nothing is marked.
extern "C" {
// NOLINTBEGIN(bugprone-reserved-identifier,readability-identifier-naming)
[[gnu::weak, gnu::visibility("hidden")]] extern lacuna::base::RareBranch __start_lacuna_rarely[];
[[gnu::weak, gnu::visibility("hidden")]] extern lacuna::base::RareBranch __stop_lacuna_rarely[];
// NOLINTEND(bugprone-reserved-identifier,readability-identifier-naming)
}

namespace lacuna::base {

std::span<RareBranch> rare_branches() { return {__start_lacuna_rarely, __stop_lacuna_rarely}; }

}  // namespace lacuna::base
