// Some processes on this machine that do a hand-over together: forked, met, and told apart by rank.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "lacuna/protocol/protocol.hpp"

namespace lacuna::handover {

using base::Result;
using Bytes = std::vector<std::byte>;

inline constexpr std::int64_t kTimeout = 60'000'000'000;  // ns: no step of a hand-over takes so long

/// What one process has of the others.
class Crew {
 public:
  explicit Crew(protocol::Group group) : group_(std::move(group)) {}
  [[nodiscard]] int rank() const { return group_.rank; }
  [[nodiscard]] int size() const { return group_.size(); }
  [[nodiscard]] nic::Bootstrap& peer(int rank) { return *group_.peers[static_cast<std::size_t>(rank)]; }
  /// What both say to one another, of any length.
  Result<Bytes> swap(int rank, std::span<const std::byte> mine);
  /// What everybody says, by rank; nobody returns before all have called.
  Result<std::vector<Bytes>> gather(std::span<const std::byte> mine);
  Result<void> meet() { return LACUNA_TRY(gather({})), Result<void>{}; }

 private:
  protocol::Group group_;
};

/// Runs `work` in `size` processes, rank 0 in this one. The exit code: 0 if all of them return 0.
int run_crew(int size, const std::function<int(Crew&)>& work);

/// The bytes of a value, and back. Errors: malformed.
template <class T>
[[nodiscard]] std::span<const std::byte> bytes_of(const T& value) {
  return std::as_bytes(std::span(&value, 1));
}
[[nodiscard]] inline std::span<const std::byte> bytes_of(const std::string& text) { return std::as_bytes(std::span(text)); }
[[nodiscard]] inline std::string text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace lacuna::handover
