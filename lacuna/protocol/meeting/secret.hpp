// A secret that processes share, and how each proves to the other that it has it without saying it. This keeps out whoever can connect;
// whoever can change what travels between the machines is not kept out, here as little as by RDMA.
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>

#include "lacuna/base/base.hpp"

namespace lacuna::protocol::meeting {

using base::Result;

inline constexpr std::size_t kProofBytes = 32;
inline constexpr std::size_t kNonceBytes = 32;
inline constexpr std::size_t kDigestBytes = 32;

class Secret {
 public:
  static Result<Secret> create(std::string_view secret);
  /// For what was said, by the one that said it.
  [[nodiscard]] std::string prove(std::string_view text) const;
  /// In constant time.
  [[nodiscard]] bool proves(std::string_view proof, std::string_view text) const;

 private:
  std::array<unsigned char, 32> key_{};
};

// Secret::create() comes before these.
[[nodiscard]] std::string random_bytes(std::size_t count);
[[nodiscard]] std::string digest(std::string_view text);

}  // namespace lacuna::protocol::meeting
