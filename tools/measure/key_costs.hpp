// What indirect keys cost: creating one, binding it, taking it back (paper, figure 20).
#pragma once

#include "tools/measure/mailbox.hpp"

namespace lacuna::measure {

/// Both ranks call it; rank 0 gets the rows. `wire` is used by nothing else.
Result<Report> measure_keys(int rank, nic::Context& context, const Wire& wire, Mailbox& mailbox, int entries, const Budget& budget);

}  // namespace lacuna::measure
