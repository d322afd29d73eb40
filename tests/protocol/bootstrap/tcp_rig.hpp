// Bootstraps by TCP, and parts of them played by hand.
#pragma once

#include <stdlib.h>
#include <sys/socket.h>

#include <string>

#include "lacuna/protocol/bootstrap/handshake.hpp"
#include "lacuna/protocol/bootstrap/message.hpp"
#include "tests/protocol/bootstrap/bootstrap_rig.hpp"

namespace lacuna::test {

namespace bootstrap = protocol::bootstrap;
namespace tcp = nic::tcp;
using bootstrap::Claim;
using Kind = bootstrap::MessageKind;
using bootstrap::Message;
using bootstrap::Secret;

inline const std::string kSecret = "of all who may come";
inline const std::string kOtherSecret = "of those who may not";

inline std::int64_t soon() { return base::now_ns() + kPatience; }

/// The machine that this process says it is on; empty: its own.
inline std::string& pretended_machine() {
  static std::string machine;
  return machine;
}
inline void pretend_machine(int number) { pretended_machine() = std::to_string(number); }

inline BootstrapOptions at(const Port& port, int size, int rank) {
  return {.address = port.address(), .size = size, .rank = rank, .secret = kSecret, .machine = pretended_machine()};
}

/// A connection that is introduced with a claim. Who has no CPU for a second is dropped, as a stranger is, and tries
/// again.
inline base::Result<base::Fd> introduced(const std::function<base::Fd()>& connect, const Secret& secret, const Claim& claim) {
  for (const std::int64_t deadline = soon();;) {
    base::Fd socket = connect();
    base::Result<void> known = bootstrap::introduce(socket.get(), secret, claim, deadline);
    if (known) return socket;
    if (known.error().code != base::Code::peer_lost || base::now_ns() > deadline) return std::unexpected(std::move(known).error());
  }
}

/// A member played by hand, which rank 0 knows.
inline base::Result<base::Fd> come(const Port& port, int size, int rank) {
  const Secret secret = LACUNA_TRY(Secret::create(kSecret));
  const Claim claim{.size = static_cast<std::uint32_t>(size),
                    .rank = static_cast<std::uint32_t>(rank),
                    .port = 1,
                    .machine = std::string(bootstrap::kDigestBytes, 'm'),
                    .group_id = std::string(bootstrap::kDigestBytes, '\0')};
  return introduced([&] { return port.connect(); }, secret, claim);
}

/// Until a member played by hand hears of the mesh.
inline std::string come_as_far_as_the_mesh(const Port& port, int size, int rank) {
  const base::Fd socket = LACUNA_END_TRY(come(port, size, rank));
  for (;;) {
    const Message message = LACUNA_END_TRY(bootstrap::receive(socket.get(), soon()));
    if (message.kind == Kind::mesh) return {};
    LACUNA_END_EXPECT(message.kind == Kind::status);
  }
}

/// Rank 0 played by hand.
class HandMade {
 public:
  explicit HandMade(const Port& port) : listener_(port.listen()) {}
  /// Greets the next one who connects, and has its request.
  bootstrap::Caller next() {
    bootstrap::Caller caller;
    caller.socket = accept_one(listener_);
    EXPECT_TRUE(bootstrap::challenge(caller));
    caller.request.resize(bootstrap::kTcpRequestBytes);
    EXPECT_TRUE(bootstrap::receive_bytes(caller.socket.get(), caller.request, soon()));
    return caller;
  }

 private:
  base::Fd listener_;
};

}  // namespace lacuna::test
