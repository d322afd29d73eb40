// memory: what this agent has registered, by token, and what others have. It hides which registrations are still there.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "lacuna/nixl/interface.hpp"
#include "lacuna/nixl/nixl.hpp"

namespace lacuna::nixl {

/// Names a registration: drawn at random, so that no peer reaches memory of which it was not told.
using Token = std::array<std::byte, 16>;

/// Memory of this process.
class LocalMemory final : public nixlBackendMD {
 public:
  LocalMemory(std::byte* base, std::int64_t bytes, const Token& token) : nixlBackendMD(true), base(base), bytes(bytes), token(token) {}
  std::byte* const base;
  const std::int64_t bytes;
  const Token token;
};

/// Memory that an agent may put to and get from: another one's, or its own.
class RemoteMemory final : public nixlBackendMD {
 public:
  RemoteMemory(std::uint64_t base, std::int64_t bytes, const Token& token) : nixlBackendMD(false), base(base), bytes(bytes), token(token) {}
  const std::uint64_t base;
  const std::int64_t bytes;
  const Token token;
};

/// What goes to other agents with the address and the length, which NIXL tells itself.
[[nodiscard]] std::string encode(const Token& token);
/// Errors: malformed.
Result<Token> decode_token(std::string_view text);

/// The registrations of this agent. Any thread may call.
class Registrations {
 public:
  /// Errors: invalid_argument (no bytes, a null pointer, more than fit).
  Result<LocalMemory*> add(std::uint64_t base, std::uint64_t bytes);
  /// No peer finds it afterwards.
  void remove(const Token& token);
  struct Stretch {
    std::byte* base;
    std::int64_t bytes;
  };
  [[nodiscard]] std::optional<Stretch> find(const Token& token) const;

 private:
  mutable std::mutex mutex_;
  std::map<Token, Stretch> all_;
};

}  // namespace lacuna::nixl
