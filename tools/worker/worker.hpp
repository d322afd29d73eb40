// The worker: a process that answers requests to measure, JSON lines on standard input, with JSON lines on standard
// output (docs/design/worker.md).
#pragma once

#include <string>

#include "lacuna/nic/nic.hpp"

namespace lacuna::measure {

/// Forks the receiver, answers requests from standard input on standard output until it ends.
/// Returns the exit code, as do those below.
int serve(const std::string& nic, const nic::OpenOptions& options = {}, const std::string& fault = {});
/// The same for simulations, which need no second process.
int serve_simulations();
/// Forks the second rank, if the NIC is not simulated, and answers requests for the ways of messages between ranks that
/// share memory, and for prices of exchanges.
int serve_messages(const std::string& nic);

/// The same with a receiver on another machine, where serve_others() listens at `address`, host:port. Both know
/// LACUNA_SECRET. `visit`: the same for all workers of one command; empty: it is the only one.
int serve_with(const std::string& address, const std::string& visit, const std::string& nic, const nic::OpenOptions& options = {},
               const std::string& fault = {});
/// The receivers, at `address`, for the workers of one command: until the first of them ends, or standard input does.
int serve_others(const std::string& address, const std::string& nic, const nic::OpenOptions& options = {}, const std::string& fault = {});

}  // namespace lacuna::measure
