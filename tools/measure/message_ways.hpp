// Times of the ways in which a message travels between two ranks that share memory (lacuna/guide/message_ways.hpp):
// each way forced in turn, round trips between ordinary memory, verified before the first round and after the last.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "lacuna/protocol/protocol.hpp"

namespace lacuna::measure {

using base::Result;

/// A cell of the ways' sheets, and how long it is measured.
struct MessageCell {
  std::int64_t bytes = 0;
  std::int64_t run = 0;
  std::int64_t listed = 0;  ///< 1: gaps of different lengths, so that the runs' places are a list
  double milliseconds = 5;  ///< rounds begin until so much time is over
  /// Else: a layout that the caller gives, the number-th of this communicator, whose wire form of so many bytes rank 1
  /// is told before its first turn.
  std::int64_t given = 0, wire_bytes = 0;
};
/// Medians over the rounds, in ns of one message, half a round trip; 0: the way has no such cell, or cannot be here.
using MessageTimes = std::array<double, guide::kMessageWays>;

/// Options of a communicator in which every cell can go.
[[nodiscard]] protocol::Options message_options();
/// Rank 0. Errors: invalid_argument (bytes that are no multiple of the run, or more than 1 GiB), transfer (wrong bytes
/// arrived; the way and the place are named), those of messages.
Result<MessageTimes> measure_messages(protocol::Communicator& ranks, const MessageCell& cell);
/// The same of a layout of the caller's, by these ways, each of which can be.
Result<MessageTimes> measure_messages(protocol::Communicator& ranks, const layout::Layout& layout, std::span<const guide::MessageWay> ways,
                                      double milliseconds);
/// Rank 0: what a message of 16 KiB takes now, in microseconds: near ranks and distant ones differ. Errors: as above.
Result<double> probe_messages(protocol::Communicator& ranks);
/// Rank 0: prices of exchanges, in rounds that begin until so much time of the NIC's clock is over. Errors: transfer
/// (wrong bytes arrived), those of exchanges.
Result<guide::ExchangePrices> measure_exchanges(protocol::Communicator& ranks, double milliseconds);
/// Rank 1: answers until end_messages(). Errors: those of messages.
Result<void> answer_messages(protocol::Communicator& ranks);
/// Rank 0: rank 1 returns. Errors: as above.
Result<void> end_messages(protocol::Communicator& ranks);

}  // namespace lacuna::measure
