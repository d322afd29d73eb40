// What indirect keys cost: creating one, binding it, taking it back (F20).
#pragma once

#include "lacuna/guide/mailbox.hpp"

namespace lacuna::guide {

/// Both ranks call it; rank 0 gets the rows. `wire` is used by nothing else.
Result<Report> measure_keys(int rank, nic::Context& context, const Wire& wire, Mailbox& mailbox, int entries, const Budget& budget);

}  // namespace lacuna::guide
