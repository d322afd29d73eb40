// Small messages between the two ranks while they measure: over the NIC itself, so that neither sleeps in the kernel between two transfers.
#pragma once

#include <cstring>
#include <type_traits>

#include "lacuna/guide/guide.hpp"

namespace lacuna::guide {

class Mailbox {
 public:
  static constexpr std::int64_t kBytes = 1024;

  static Result<std::unique_ptr<Mailbox>> create(method::Endpoint& endpoint);

  /// Sends a small plain value; ends when it has arrived.
  template <class T>
  Result<void> send(const T& value) {
    static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= kBytes);
    std::memcpy(out_.data(), &value, sizeof value);
    LACUNA_TRY(sender_->start(out_.data()));
    return endpoint_.run(*sender_, kTimeout);
  }
  /// Waits for one. `meanwhile` is polled too, for transfers that need this CPU.
  template <class T>
  Result<T> receive(method::Endpoint* meanwhile = nullptr) {
    static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= kBytes);
    LACUNA_TRY(receiver_->start(in_.data()));
    const std::int64_t deadline = endpoint_.context().now() + kTimeout;
    while (meanwhile != nullptr && !LACUNA_TRY(receiver_->progress())) {
      if (const base::Error* fault = meanwhile->qp().fault()) return std::unexpected(*fault);
      if (endpoint_.qp().fault() != nullptr) break;  // run() says why
      if (meanwhile->poll() + endpoint_.poll() == 0) LACUNA_TRY(endpoint_.context().wait(deadline));
    }
    LACUNA_TRY(endpoint_.run(*receiver_, kTimeout));
    T value;
    std::memcpy(&value, in_.data(), sizeof value);
    return value;
  }

 private:
  static constexpr std::int64_t kTimeout = 60'000'000'000;  // ns: longer than any transfer that is measured

  explicit Mailbox(method::Endpoint& endpoint) : endpoint_(endpoint) {}

  method::Endpoint& endpoint_;
  nic::Buffer out_, in_;
  nic::Region out_region_, in_region_;
  std::unique_ptr<method::Operation> sender_, receiver_;
};

}  // namespace lacuna::guide
