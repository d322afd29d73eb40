// Random datatypes of a given number of bytes.
#pragma once

#include "tests/interposer/fake.hpp"
#include "tests/support/random.hpp"

namespace lacuna::test::fake {

struct DrawnType {
  Datatype type{};
  Count count = 1;
  std::int64_t span = 0;  ///< bytes from the start of the buffer to the end of what is touched
  bool own = true;        ///< to be freed
};

/// Committed. Elements are bytes, or ints where 4 divides `bytes`.
DrawnType draw_type(const Host& mpi, support::Random& random, std::int64_t bytes);

}  // namespace lacuna::test::fake
