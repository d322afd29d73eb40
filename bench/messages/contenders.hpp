// Lacuna and what it is compared with, all between the same buffers.
#pragma once

#include <memory>
#include <string>

#include "bench/job/exchange.hpp"
#include "lacuna/nic/nic.hpp"
#include "lacuna/protocol/protocol.hpp"

namespace lacuna::bench {

/// The two processes of a pair, connected through Lacuna as well.
class Connection {
 public:
  /// Meets the other by `name`. Throws Broken.
  Connection(const Pair& pair, const std::string& name);
  [[nodiscard]] protocol::Communicator& ranks() const { return *ranks_; }

 private:
  std::unique_ptr<nic::Context> context_;
  std::unique_ptr<protocol::Communicator> ranks_;
};

/// Lacuna is the first; then the MPI, and loops by hand around its contiguous messages.
void add_contenders(Exchange& exchange, const Pair& pair, const Connection& connection);

}  // namespace lacuna::bench
