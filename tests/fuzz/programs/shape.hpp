// Datatypes that are known twice: as MPI has them, and as a list of blocks that nothing of the library or of the fake
// MPI has made.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "tests/interposer/fake.hpp"
#include "tests/support/random.hpp"

namespace lacuna::fuzz {

/// `count` elements, each of which has these blocks, in the order of the data.
struct Shape {
  struct Block {
    std::int64_t at, bytes;
  };
  enum class Kind : std::uint8_t { bytes, vector, indexed, structure, nested } kind = Kind::bytes;
  std::vector<Block> blocks;
  std::int64_t count = 1, extent = 0;

  [[nodiscard]] std::int64_t size() const;
  /// Bytes from the first of an element to behind the last of all.
  [[nodiscard]] std::int64_t span() const { return count == 0 ? 0 : extent * count; }
  [[nodiscard]] std::vector<std::byte> pack(const std::byte* base) const;
  /// As many bytes as there are.
  void unpack(const std::vector<std::byte>& bytes, std::byte* base) const;
  /// Committed; the caller frees it.
  [[nodiscard]] test::fake::Datatype make(const test::fake::Host& mpi) const;
  [[nodiscard]] std::string describe() const;
};

/// Of exactly so many bytes.
Shape draw_shape(support::Random& random, std::int64_t bytes);

}  // namespace lacuna::fuzz
