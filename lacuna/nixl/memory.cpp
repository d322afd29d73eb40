#include "lacuna/nixl/memory.hpp"

#include <fmt/format.h>

#include <cstring>
#include <memory>

#include "lacuna/nic/tcp.hpp"

namespace lacuna::nixl {

std::string encode(const Token& token) { return {reinterpret_cast<const char*>(token.data()), token.size()}; }

Result<Token> decode_token(std::string_view text) {
  Token token;
  if (text.size() != token.size())
    return base::fail(base::Code::malformed, fmt::format("a token of {} bytes; tokens have {}", text.size(), token.size()));
  std::memcpy(token.data(), text.data(), token.size());
  return token;
}

Result<LocalMemory*> Registrations::add(std::uint64_t base, std::uint64_t bytes) {
  constexpr auto kMost = static_cast<std::uint64_t>(layout::kMaxBytes);
  if (base == 0 || bytes == 0 || bytes > kMost || base > UINT64_MAX - bytes)
    return base::fail(base::Code::invalid_argument,
                      fmt::format("{} bytes at {:#x} cannot be registered: it has to be memory, of at least one byte", bytes, base));
  const Token token = LACUNA_TRY(decode_token(nic::tcp::random_bytes(Token{}.size())));
  auto made = std::make_unique<LocalMemory>(reinterpret_cast<std::byte*>(base), static_cast<std::int64_t>(bytes), token);
  const std::scoped_lock lock(mutex_);
  all_[token] = {made->base, made->bytes};
  return made.release();
}

void Registrations::remove(const Token& token) {
  const std::scoped_lock lock(mutex_);
  all_.erase(token);
}

std::optional<Registrations::Stretch> Registrations::find(const Token& token) const {
  const std::scoped_lock lock(mutex_);
  const auto found = all_.find(token);
  return found == all_.end() ? std::nullopt : std::optional(found->second);
}

}  // namespace lacuna::nixl
