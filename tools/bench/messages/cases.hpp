// What is sent: contiguous bytes, every DDTBench layout at every size, and transfers of AI systems.
#pragma once

#include "tools/bench/job/cases.hpp"

namespace lacuna::bench {

const std::vector<MessageCase>& message_cases();

/// The layout as an MPI program would write it: vectors, blocks of one length, blocks of several.
corpus::Datatype written(const layout::Layout& layout);

}  // namespace lacuna::bench
