// Prices of exchanges (lacuna/guide/exchange_prices.hpp) from the times of a few exchanges between two ranks: what the
// choice of a schedule would have to add up to these times.
#pragma once

#include "lacuna/protocol/protocol.hpp"

namespace lacuna::measure {

using base::Result;

/// Rank 0, while rank 1 is in answer_exchanges(): by medians over rounds that begin until so much time of the NIC's
/// clock is over. Every exchange is verified before the first round and after the last. Errors: transfer (wrong bytes
/// arrived; the exchange and the place are named), those of exchanges.
Result<guide::ExchangePrices> time_exchanges(protocol::Communicator& ranks, double milliseconds);
/// Rank 1. Errors: those of exchanges.
Result<void> answer_exchanges(protocol::Communicator& ranks);

}  // namespace lacuna::measure
