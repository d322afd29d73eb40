// Small messages between the two ranks while they measure: over the NIC itself, so that neither sleeps in the kernel
// between two transfers, and on a queue pair of their own, so that no method's work is mixed with them.
#pragma once

#include <cstring>
#include <type_traits>

#include "tools/measure/measure.hpp"

namespace lacuna::measure {

/// A queue pair with its completion queue.
struct Wire {
  std::unique_ptr<nic::CompletionQueue> queue;
  std::unique_ptr<nic::QueuePair> qp;
  static Result<Wire> connect(nic::Context& context, nic::Bootstrap& bootstrap, nic::Path path);
  /// The next completion. Errors: transfer (it was none of success), timeout, whatever ended the queue pair.
  Result<nic::Completion> next(nic::Context& context, method::Endpoint* meanwhile = nullptr) const;
};

class Mailbox {
 public:
  static constexpr std::size_t kBytes = 1 << 19;  // the target of a transfer through as many indirect keys as a NIC has

  static Result<std::unique_ptr<Mailbox>> create(nic::Context& context, nic::Bootstrap& bootstrap, nic::Path path);

  /// Sends up to kBytes; ends when they have arrived. Errors: limit.
  Result<void> send(std::span<const std::byte> message);
  /// Waits for a message; good until the next call. `meanwhile` is polled too, for transfers that need this CPU.
  Result<std::span<const std::byte>> receive(method::Endpoint* meanwhile = nullptr);

  template <class T>
  Result<void> send(const T& value) {
    static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= kBytes);
    return send(std::as_bytes(std::span(&value, 1)));
  }
  template <class T>
  Result<T> receive(method::Endpoint* meanwhile = nullptr) {
    const auto message = LACUNA_TRY(receive(meanwhile));
    T value;
    if (message.size() != sizeof value) return base::fail(base::Code::malformed, "a message of another kind was expected");
    std::memcpy(&value, message.data(), sizeof value);
    return value;
  }

 private:
  Mailbox(nic::Context& context, Wire wire) : context_(context), wire_(std::move(wire)) {}
  Result<void> post_receive();

  nic::Context& context_;
  Wire wire_;
  nic::RegisteredBuffer out_, in_;
  std::vector<std::byte> message_;
  std::optional<std::uint64_t> arrived_;  // bytes of a message that came while a send was waited for
};

}  // namespace lacuna::measure
