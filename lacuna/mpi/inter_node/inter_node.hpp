// A message to or from another node. The host moves its bytes in chunks (transport.hpp), or a device reads them
// (rdma.hpp). All of it is under the job's lock.
#pragma once

#include <memory>

#include "lacuna/mpi/types/types.hpp"

namespace lacuna::mpi {

/// A message that leaves.
class OutgoingMessage {
 public:
  OutgoingMessage() = default;
  OutgoingMessage(const OutgoingMessage&) = delete;
  OutgoingMessage& operator=(const OutgoingMessage&) = delete;
  virtual ~OutgoingMessage() = default;
  /// Packs and sends as much as there is room for on the way; with `all`, everything there is memory for, which is all
  /// of what was made to be left behind.
  virtual void pack(const Layout& layout, const std::byte* base, bool all) = 0;
  /// Looks at what has gone since.
  virtual void reap() {}
  /// Whether the message's own memory may be used again.
  [[nodiscard]] virtual bool packed() const = 0;
  /// Whether nobody waits for any more of it.
  [[nodiscard]] virtual bool gone() const = 0;
  /// Whether nothing has gone for a while in which somebody looked.
  [[nodiscard]] virtual bool stands() const { return false; }
  [[nodiscard]] virtual int error() const = 0;
  /// Whether a device moves it.
  [[nodiscard]] virtual bool by_device() const { return false; }

  std::unique_ptr<OutgoingMessage> next;  ///< of what is left behind, so that leaving wants no memory
};

/// A message that arrives.
class IncomingMessage {
 public:
  IncomingMessage() = default;
  IncomingMessage(const IncomingMessage&) = delete;
  IncomingMessage& operator=(const IncomingMessage&) = delete;
  virtual ~IncomingMessage() = default;
  /// Unpacks what has come; whether that was all. What is beyond the receive's capacity is taken, and lost.
  virtual bool move() = 0;
  [[nodiscard]] virtual int error() const = 0;
  [[nodiscard]] virtual bool by_device() const { return false; }
};

/// Where a message's bytes belong.
struct Destination {
  Layout layout;
  std::byte* base = nullptr;
  std::byte* straight = nullptr;  ///< where all of it belongs, if that is one stretch
  std::int64_t capacity = 0;
};

}  // namespace lacuna::mpi
