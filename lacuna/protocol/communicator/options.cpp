// What a communicator is told by the environment.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <cstring>

#include "lacuna/protocol/protocol.hpp"
#include "lacuna/protocol/stream/stream.hpp"

namespace lacuna::protocol {
namespace {

constexpr const char* kShared = "LACUNA_SHARED_BYTES";
// Of all ranks of a node, as long as each has no more than is of use, and no less than it needs to talk to many.
constexpr std::int64_t kOfANode = std::int64_t{2} << 30;
constexpr std::int64_t kMostUseful = 256 << 20, kLeastUseful = 16 << 20;

Result<std::int64_t> shared_bytes_of_environment() {
  const char* const said = std::getenv(kShared);
  if (said == nullptr || *said == '\0') return 0;
  std::int64_t bytes = 0;
  const char* const end = said + std::strlen(said);
  const auto [stopped, error] = std::from_chars(said, end, bytes);
  if (error != std::errc() || stopped != end || bytes < RingPool::kLeastBytes)
    return base::fail(base::Code::invalid_argument,
                      fmt::format("{} is '{}'; it may be a number of bytes from {} on", kShared, said, RingPool::kLeastBytes));
  return bytes;
}

}  // namespace

std::int64_t Options::shared_bytes_of(int ranks) const { return shared_bytes > 0 ? shared_bytes : usual_shared_bytes(ranks); }

std::int64_t usual_shared_bytes(int ranks) { return std::clamp(kOfANode / std::max(ranks, 1), kLeastUseful, kMostUseful); }

Result<Options> Options::from_environment(Options options) {
  options.force = LACUNA_TRY(guide::Force::from_environment());
  if (const auto way = LACUNA_TRY(guide::message_way_of_environment())) options.way = way;
  options.learn = LACUNA_TRY(guide::LearnOptions::from_environment());
  if (const std::int64_t bytes = LACUNA_TRY(shared_bytes_of_environment()); bytes > 0) options.shared_bytes = bytes;
  const char* name = std::getenv("LACUNA_REGISTERING");
  if (name == nullptr || *name == '\0') return options;
  options.registering = LACUNA_TRY(registering_from_name(name));
  return options;
}

}  // namespace lacuna::protocol
