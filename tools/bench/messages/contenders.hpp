// Lacuna and what it is compared with, all between the same buffers.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "lacuna/nic/nic.hpp"
#include "lacuna/protocol/protocol.hpp"
#include "tools/bench/job/exchange.hpp"

namespace lacuna::bench {

/// The two processes of a pair, connected through Lacuna as well.
class Connection {
 public:
  /// Meets the other by `name`. Throws Broken.
  Connection(const Pair& pair, const std::string& name);
  [[nodiscard]] protocol::Communicator& ranks() const { return *ranks_; }

  /// One way for all messages, or one method or path for all but the smallest.
  struct Forced {
    std::string name;
    protocol::Options options;
    std::unique_ptr<protocol::Communicator> ranks;
  };
  /// Every way of messages, every method, and paths mapped and kernel; connected when they are first asked for, by
  /// both. Throws Broken.
  std::vector<Forced>& forced();

 private:
  [[nodiscard]] std::unique_ptr<protocol::Communicator> meet(const std::string& name, protocol::Options options) const;
  std::string name_;
  int rank_;
  std::unique_ptr<nic::Context> context_;
  std::unique_ptr<protocol::Communicator> ranks_;
  std::vector<Forced> forced_;
};

/// Lacuna is the first; then the MPI, and loops by hand around its contiguous messages; `forced`: then Lacuna by every
/// way that this case can go.
void add_contenders(Exchange& exchange, const Pair& pair, Connection& connection, bool forced);

}  // namespace lacuna::bench
