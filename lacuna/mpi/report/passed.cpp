#include "lacuna/mpi/report/passed.hpp"

#include <fmt/format.h>

namespace lacuna::mpi {
namespace {

constexpr const char* kReasons[] = {
#define X(name, text) text,
    LACUNA_MPI_REASONS(X)
#undef X
};

constexpr const char* kFunctions[] = {
#define X(name) "MPI_" #name, "MPI_" #name "_c",
    LACUNA_MPI_PASSING(X)
#undef X
#define X(name) "MPI_" #name,
        LACUNA_MPI_PASSING_SMALL(X)
#undef X
#define X(name, later, arguments) \
  "MPI_" #name, "MPI_" #later, "MPI_" #name "_init", "MPI_" #name "_c", "MPI_" #later "_c", "MPI_" #name "_init_c",
            LACUNA_MPI_COLLECTIVES(X)
#undef X
};
static_assert(std::size(kFunctions) == static_cast<std::size_t>(Function::count_));

}  // namespace

std::span<const char* const> Passed::functions() { return kFunctions; }

std::string Passed::text() const {
  std::string text;
  for (std::size_t function = 0; function < std::size(kFunctions); ++function) {
    for (std::size_t why = 0; why < kWhys; ++why) {
      const std::int64_t n = times(static_cast<Function>(function), static_cast<Why>(why));
      if (n > 0) text += fmt::format("  passed through: {}: {}, {} times\n", kFunctions[function], kReasons[why], n);
    }
  }
  return text;
}

}  // namespace lacuna::mpi
