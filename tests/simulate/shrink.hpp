// shrink: the shortest story that still fails, as far as it is found by leaving things out.
#pragma once

#include <functional>

#include "tests/simulate/story.hpp"

namespace lacuna::simulate {

/// `fails`: whether a story does. At most so many are tried.
Story shrink(Story story, const std::function<bool(const Story&)>& fails, int most = 400);

}  // namespace lacuna::simulate
