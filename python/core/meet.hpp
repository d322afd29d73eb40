// Where simulated ranks wait for one another.
#pragma once

#include "lacuna/protocol/protocol.hpp"

namespace lacuna::python {

/// All ranks come here before any goes on. Errors: those of messages.
base::Result<void> meet(protocol::Communicator& ranks);

}  // namespace lacuna::python
