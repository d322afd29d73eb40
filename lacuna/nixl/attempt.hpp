// attempt: a connection to another agent that is being made, or is there. It hides which of the two: calls wait for it
// a moment at most, and notifications are kept until it is there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "lacuna/nixl/connection.hpp"
#include "lacuna/nixl/helpers.hpp"
#include "lacuna/nixl/nixl.hpp"

namespace lacuna::nixl {

/// Any thread may call.
class Attempt {
 public:
  using Outcome = Result<std::shared_ptr<Connection>>;

  /// Bytes of notifications that wait for the connection, at most.
  static constexpr std::size_t kMostKept = 64 << 20;

  /// Once. Notifications that were kept go then.
  void end(Outcome outcome);
  /// Nothing: it goes on. Waits until `deadline` for it; 0: not at all.
  [[nodiscard]] std::optional<Outcome> outcome(std::int64_t deadline = 0) const;
  /// Errors: limit (there is no room), why it failed, those of Connection::notify().
  Result<void> notify(std::string text);

 private:
  mutable std::mutex mutex_;
  std::optional<Outcome> outcome_;
  std::vector<std::string> kept_;
  std::size_t kept_bytes_ = 0;
  Errand made_;
};

}  // namespace lacuna::nixl
