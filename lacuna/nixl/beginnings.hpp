// beginnings: transfers up to their first request: the connection has to be there, and the peer's answers. It hides
// that these may come after the program has posted the transfer.
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "lacuna/nixl/connection.hpp"
#include "lacuna/nixl/nixl.hpp"

namespace lacuna::nixl {

/// Any thread may call, but each transfer belongs to one at a time.
class Beginnings {
 public:
  explicit Beginnings(std::int64_t timeout_ns) : timeout_ns_(timeout_ns) {}

  /// Makes a transfer ready, or leaves it for post() after `deadline`. Errors: those of Attempt::outcome() and
  /// Connection::resolve().
  Result<void> prepare(Transfer& transfer, std::int64_t deadline);
  /// Posts a transfer, as soon as it can be. Errors: invalid_argument (it is under way), those of prepare() and
  /// Connection::post().
  Result<void> post(Transfer& transfer, std::optional<std::string> notice);
  /// As Connection::check(). Errors also: timeout (the peer did not answer).
  std::optional<Result<void>> check(Transfer& transfer);
  /// Whether its peer has answered.
  [[nodiscard]] bool is_ready(const Transfer& transfer) const;
  /// Moves on those that wait; true if some do no more.
  bool step();
  /// Whether a transfer is none of the connection's: it never began.
  bool forget(Transfer& transfer);

 private:
  using Stage = Transfer::Stage;
  Result<bool> ready(Transfer& transfer) const;
  bool begin(Transfer& transfer);

  const std::int64_t timeout_ns_;
  mutable std::mutex mutex_;
  std::vector<Transfer*> waiting_;
};

}  // namespace lacuna::nixl
