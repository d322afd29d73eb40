// What every NIC asks of a work request before it takes it. Internal to nic.
#pragma once

#include "lacuna/nic/nic.hpp"

namespace lacuna::nic {

[[nodiscard]] std::uint64_t bytes_of(std::span<const Sge> list);
/// Errors: limit (entries, bytes).
Result<void> check_list(std::span<const Sge> list, int most, const Limits& limits);
/// `room`: entries of the binding's key; 0 if it is no key, which the request's completion says. Errors: limit,
/// invalid_argument, overflow.
Result<void> check_send(const SendRequest& request, const Limits& limits, int room);
/// Errors: limit: a place in a queue is free once its completion, or a later one, was polled.
Result<void> check_room(std::uint64_t outstanding, std::size_t more, int depth, const char* queue);
/// Errors: limit (the queues' depths).
Result<void> check_depths(const QueuePairOptions& options, const Limits& limits, std::string_view nic);

/// What is left of a device's limits when a caller sets some; `name`: the device's. Errors: invalid_argument: one is
/// above the device's.
Result<Limits> limited(Limits limits, const OpenOptions& options, std::string_view name);

/// The limits that both ends of a connection have.
[[nodiscard]] Limits common(const Limits& mine, const Limits& theirs);

/// Limits as an introduction carries them.
struct LimitsOnWire {
  std::int64_t max_message_bytes = 0;
  std::int64_t indirect_stride = 0;
  std::int32_t max_sge = 0;
  std::int32_t max_sge_rd = 0;
  std::int32_t max_inline = 0;
  std::int32_t max_send_wr = 0;
  std::int32_t max_recv_wr = 0;
  std::int32_t indirect_keys = 0;
  std::int32_t indirect_entries = 0;
  std::int32_t indirect_inline = 0;
  std::int32_t indirect_strided = 0;
  std::int32_t emulated = 0;

  [[nodiscard]] static LimitsOnWire of(const Limits& limits);
  /// Errors: malformed (none at all, or negative ones).
  [[nodiscard]] Result<Limits> read() const;
};

/// Tells the peer whether this end is content with what both have said, and hears the same of it, so that they fail
/// together or not at all. Errors: this end's; unsupported, with the peer's words; those of Bootstrap.
Result<void> agree(Bootstrap& bootstrap, const Result<void>& mine, Path path, std::int64_t timeout_ns);

}  // namespace lacuna::nic
