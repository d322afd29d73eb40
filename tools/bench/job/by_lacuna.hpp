// Lacuna as one of the ways of an exchange.
#pragma once

#include "lacuna/protocol/protocol.hpp"
#include "tools/bench/job/exchange.hpp"

namespace lacuna::bench {

/// Messages of `communicator` between the case's layouts, as they lie. It outlives the exchange.
void add_lacuna(Exchange& exchange, const std::string& name, int peer, protocol::Communicator& communicator);

}  // namespace lacuna::bench
