// Transfers of inference and training systems, as their users describe them in public issue threads: many more blocks
// than in scientific codes, and often another layout at either end.
#pragma once

#include <span>
#include <string_view>

#include "tools/corpus/cases.hpp"

namespace lacuna::corpus {

struct AiTransfer {
  std::string_view name;
  std::string_view what;                                         ///< for people
  std::int64_t block_bytes;                                      ///< of the finer side
  std::int64_t block_count;                                      ///< of a whole transfer in the field
  std::int64_t unit;                                             ///< blocks come in groups of so many
  Result<Case> (*make)(const AiTransfer&, std::int64_t blocks);  ///< of a part of it
};
[[nodiscard]] std::span<const AiTransfer> ai_transfers();
/// How many of its blocks fit `most_payload` bytes; at least one unit.
[[nodiscard]] std::int64_t blocks_within(const AiTransfer& transfer, std::int64_t most_payload);

}  // namespace lacuna::corpus
