// A Bootstrap for two processes on different machines.
#pragma once

#include <utility>

#include "lacuna/nic/nic.hpp"

namespace lacuna::protocol::meeting {

using base::Result;

/// Carries bytes only: files do not travel between machines, and nobody vouches for the peer's process.
class TcpBootstrap final : public nic::Bootstrap {
 public:
  explicit TcpBootstrap(base::Fd socket) : socket_(std::move(socket)) {}
  Result<nic::Hello> exchange(const nic::Hello& mine, std::int64_t timeout_ns) override;

 private:
  base::Fd socket_;
};

}  // namespace lacuna::protocol::meeting
