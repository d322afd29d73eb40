#include "lacuna/mpi/host/environment.hpp"

#include <cstdio>
#include <cstdlib>

namespace lacuna::mpi {

std::int64_t number_of_environment(const char* name, std::int64_t otherwise, const char* unit, std::int64_t above) {
  const char* said = std::getenv(name);
  if (said == nullptr || *said == '\0') return otherwise;
  char* end = nullptr;
  const long long value = std::strtoll(said, &end, 10);
  if (*end == '\0' && value > above) return value;
  std::fprintf(stderr, "lacuna: %s is '%s'; it takes a number of %s above %lld\n", name, said, unit, static_cast<long long>(above));
  return otherwise;
}

}  // namespace lacuna::mpi
