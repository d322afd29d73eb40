// What every NIC asks of a work request before it takes it. Internal to nic.
#pragma once

#include "lacuna/nic/nic.hpp"

namespace lacuna::nic {

[[nodiscard]] std::uint64_t bytes_of(std::span<const Sge> list);
/// Errors: limit (entries, bytes).
Result<void> check_list(std::span<const Sge> list, int most, const Limits& limits);
/// `room`: entries of the binding's key; 0 if it is no key, which the request's completion says. Errors: limit, invalid_argument, overflow.
Result<void> check_send(const SendRequest& request, const Limits& limits, int room);
/// Errors: limit: a place in a queue is free once its completion, or a later one, was polled.
Result<void> check_room(std::uint64_t outstanding, std::size_t more, int depth, const char* queue);
/// Errors: limit (the queues' depths).
Result<void> check_depths(const QueuePairOptions& options, const Limits& limits, std::string_view nic);

/// The limits that both ends of a connection have.
[[nodiscard]] Limits common(const Limits& mine, const Limits& theirs);

}  // namespace lacuna::nic
