// Numbers that environment variables set.
#pragma once

#include <cstdint>

namespace lacuna::mpi {

/// A number of `unit`s above `above`; `otherwise`, where the variable is not set, and where it is wrong, which is said
/// on stderr.
std::int64_t number_of_environment(const char* name, std::int64_t otherwise, const char* unit, std::int64_t above);

}  // namespace lacuna::mpi
