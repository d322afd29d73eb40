// The properties: pack, unpack and transpack move what copy::reference moves, whole and in fragments in any order, and
// touch nothing else.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>

#include "lacuna/copy/copy.hpp"
#include "tests/copy/memory.hpp"
#include "tests/copy/recipe.hpp"
#include "tests/copy/shapes.hpp"

namespace lacuna::copy_test {

/// What copies: the library's, or with a fault that has to be seen.
struct Copies {
  void (*pack)(const layout::Layout& layout, const std::byte* base, std::int64_t position, std::int64_t length, std::byte* out);
  void (*unpack)(const layout::Layout& layout, std::byte* base, std::int64_t position, std::int64_t length, const std::byte* in);
  bool (*transpack)(const layout::Layout& from, const std::byte* source, const layout::Layout& to, std::byte* target);
};
extern const Copies kRight;
/// pack, and unpack where no byte occurs twice. The seed places the memory and cuts the stream.
[[nodiscard]] testing::AssertionResult moves(const Recipe& recipe, std::uint64_t seed, const Copies& copies = kRight);
/// The steps as they are run where the destination is in no cache; whatever the size, and whether it is or not.
[[nodiscard]] testing::AssertionResult streams(const Recipe& recipe, std::uint64_t seed);
/// Both of the same size; no byte of `to` occurs twice.
[[nodiscard]] testing::AssertionResult transpacks(const Recipe& from, const Recipe& to, std::uint64_t seed, const Copies& copies = kRight);

/// What dice of `rounds` seeds make: two of three without a byte that occurs twice.
template <class Make>
void check_moves(std::uint64_t first_seed, std::uint64_t rounds, Make make) {
  for (std::uint64_t seed = first_seed; seed < first_seed + rounds; ++seed) {
    Dice dice(seed);
    dice.receive = seed % 3 != 0;
    ASSERT_TRUE(moves(make(dice), seed));
  }
}

/// A composition of any shapes.
[[nodiscard]] Recipe drawn(Dice& dice);
/// Two of them of the same size, each into the other.
[[nodiscard]] testing::AssertionResult check_pair(std::uint64_t seed, const Copies& copies = kRight);

/// Where two differ, for messages.
[[nodiscard]] std::string difference(std::span<const std::byte> found, std::span<const std::byte> expected);

}  // namespace lacuna::copy_test
