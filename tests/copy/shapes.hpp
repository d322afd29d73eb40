// Random layouts of the structures that the copy engine has paths for. Two streams of random numbers feed them: what
// there is, and where it lies. Two layouts made from the same `what` have the same structure and size, at other places.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tests/copy/recipe.hpp"
#include "tests/support/random.hpp"

namespace lacuna::copy_test {

using support::Random;

struct Dice {
  explicit Dice(std::uint64_t seed) : Dice(seed, seed + 1) {}
  Dice(std::uint64_t what_seed, std::uint64_t where_seed) : what(what_seed * 2), where(where_seed * 2 + 1) {}

  Random what;                     ///< lengths, counts, and their order
  Random where;                    ///< gaps, strides, places
  bool receive = false;            ///< no byte may occur twice
  std::int64_t budget = 12 << 10;  ///< bytes, more or less
  std::int64_t reach = 512 << 10;  ///< bytes from the first to the last, more or less
};

/// A distance for `count` copies of what spans `span` bytes: just above it, of 64 or of 4096, backwards, far, or 0
/// where bytes may occur twice.
std::int64_t apart(Dice& dice, std::int64_t span, std::int64_t count);

/// The lengths of blocks that have kernels, and those beside them: mostly up to 130.
std::int64_t any_length(Random& random);

// Each takes what it is made of from the dice unless it is an argument.
Recipe vector_of(Dice& dice, std::int64_t length);
Recipe nest_of(Dice& dice, std::int64_t length);        ///< rows of a vector
Recipe short_rows(Dice& dice);                          ///< of fewer than 8 blocks within 64 bytes
Recipe transpose_of(Dice& dice, std::int64_t length);   ///< rows share cache lines, the blocks of a row do not
Recipe cube(Dice& dice);                                ///< three loops or four
Recipe list_of(Dice& dice, std::int64_t length);        ///< sorted, shuffled, with duplicates
Recipe sieve(Dice& dice);                               ///< a sorted selection of numbers, neighbours merged
Recipe ragged(Dice& dice);                              ///< blocks of random lengths
Recipe granular(Dice& dice);                            ///< blocks whose lengths have a divisor
Recipe periodic(Dice& dice);                            ///< blocks that repeat a few lengths, at places without order
Recipe structure_of(Dice& dice, std::int64_t members);  ///< short runs in any order
Recipe struct_array(Dice& dice);
Recipe struct_list(Dice& dice);
Recipe vector_list(Dice& dice);  ///< a list of vectors

/// All of the above, with whatever lengths.
Recipe any_shape(Dice& dice);

/// `parts` one after another in the stream, somewhere in memory.
Recipe sequence_of(Dice& dice, const std::vector<Recipe>& parts);
/// `count` times the same, at a stride or at places of a list.
Recipe repeat_of(Dice& dice, std::int64_t count, const Recipe& part);
/// Sequences and repeats of the shapes, and of themselves.
Recipe composition(Dice& dice, int depth);

/// A composition repeated and filled up to exactly `size` bytes.
Recipe of_size(Dice& dice, std::int64_t size);

}  // namespace lacuna::copy_test
