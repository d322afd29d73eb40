// Collectives of a story, and what has to come of them.
#pragma once

#include <string>
#include <vector>

#include "tests/fuzz/programs/story.hpp"

namespace lacuna::fuzz {

/// As many bytes of a seed.
std::vector<std::byte> bytes_of(std::uint64_t seed, std::int64_t bytes);
/// What memory has before something comes.
std::vector<std::byte> spoiled(std::int64_t bytes);

/// `ranks` of the world, by their numbers in the communicator, of which `me` is this one's. `may_fail`: one has died.
/// What is wrong.
std::string play_collective(const StoryCollective& story, const test::fake::Host& mpi, test::fake::Comm comm, const std::vector<int>& ranks,
                            int me, bool may_fail);

}  // namespace lacuna::fuzz
