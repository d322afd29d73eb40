// The two ranks of a worker: where they are is not their business.
#pragma once

#include "tools/worker/worker_json.hpp"

namespace lacuna::measure {

inline constexpr int kProtocol = 1;

/// What the ranks measure with.
struct Station {
  std::string nic;
  nic::OpenOptions options;
  Fault fault;
  std::string fault_text;
};
/// Errors: invalid_argument (the fault).
Result<Station> station_of(const std::string& nic, const nic::OpenOptions& options, const std::string& fault);

/// How the ranks talk before and between requests. Within a request they take turns, so both may be one channel.
struct Channels {
  nic::Bootstrap& bootstrap;
  nic::Bootstrap& control;
};

/// Rank 0: greets, and answers requests from standard input until it ends; rank 1 hears that. `peer`: of the other
/// machine, what it said of itself. Errors: those of the link.
Result<void> lead(const Station& station, Channels channels, const Json* peer = nullptr);
/// Rank 1: until rank 0 has no more requests. `tells`: rank 0 is on another machine, and hears what this one has.
/// Errors: peer_lost (rank 0 went without a word), those of the link.
Result<void> assist(const Station& station, Channels channels, bool tells = false);

/// One JSON object to the other rank, and its own, whose words are short and harmless to a terminal. Errors: those of
/// Bootstrap; malformed.
Result<Json> trade(nic::Bootstrap& control, const Json& mine, std::int64_t timeout_ns);

/// 0, or 1 after the log said what went wrong.
int report_failure(const Result<void>& result, std::string_view who);

}  // namespace lacuna::measure
