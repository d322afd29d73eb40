// Windows of a story: how they are drawn, played, and what has to be in them.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tests/fuzz/programs/story.hpp"

namespace lacuna::fuzz {

/// Of a communicator of these ranks of a world.
StoryWindow draw_window(support::Random& random, int world, const std::vector<int>& ranks);
std::string describe(const StoryWindow& window);

/// Makes a call of the story's which may find no memory.
using MadeCall = std::function<void(const char* name, const std::function<int()>& call)>;
/// `ranks` of the world, by their numbers in the communicator, of which `me` is this one's. What is wrong.
std::string play_window(const StoryWindow& story, const test::fake::Host& mpi, test::fake::Comm comm, const std::vector<int>& ranks, int me,
                        const MadeCall& made);

}  // namespace lacuna::fuzz
