// Transfers of one case by one method, each verified byte by byte.
#pragma once

#include <string>

#include "tests/nic/rig.hpp"
#include "tools/measure/mailbox.hpp"
#include "tools/measure/proof.hpp"

namespace lacuna::test {

inline constexpr std::int64_t kMoveTimeout = kPatience;  // of an emulated machine that shares its host

/// A case of two layouts, which lie at and above their base.
corpus::Case pair(std::string name, layout::Layout send, layout::Layout receive);

/// Blocks of 1 to 50 bytes, and now and then one of up to `most`, in an order of their own, with gaps of 0 to 8 bytes.
/// The last is short.
layout::Layout irregular(std::uint64_t seed, std::int64_t total, std::int64_t most);

/// One rank's arrays of a case between guards. All of it holds the pattern of proof.hpp.
struct Arrays {
  nic::Buffer buffer;
  nic::Region region;  // over the guards too: a method that wrote there would not be stopped by its keys
  std::byte* base = nullptr;
  measure::CheckedRanges windows;  // that the receiver looks at

  static base::Result<Arrays> make(nic::Context& context, const corpus::Case& c, int rank);
};

/// Both ranks: a transfer of the stream of each seed in [first, first + times), by one pair of operations. What went
/// wrong, or nothing.
std::string move_verified(const method::Method& method, method::Notify notify, method::Endpoint& endpoint, const corpus::Case& c,
                          const Arrays& arrays, std::uint64_t first, std::uint64_t times, int rank, nic::Bootstrap& bootstrap,
                          measure::Mailbox& mailbox);

}  // namespace lacuna::test
