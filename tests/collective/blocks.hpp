// Exchanges of random layouts for tests: what every rank knows of all ranks' blocks, memory with a pattern, and a
// reference from sends and receives.
#pragma once

#include "lacuna/collective/collective.hpp"
#include "tests/support/random_layout.hpp"
#include "tests/support/ranks.hpp"

namespace lacuna::test {

using collective::Schedule;
using layout::Layout;
using protocol::Communicator;

/// Memory for a layout, and some around it, in a pattern that a seed gives.
struct Field {
  Layout layout;
  std::vector<std::byte> bytes;
  std::int64_t origin = 0;

  Field(Layout what, std::uint64_t seed);
  [[nodiscard]] std::byte* base() { return bytes.data() + origin; }
};

/// A message of an exchange.
struct Edge {
  int from = 0, to = 0;
  Layout send, receive;
};

/// How large the blocks of an exchange are.
struct Sizes {
  std::int64_t most = 2000;  ///< bytes of a block
  int empty = 4;             ///< one in so many is
};

/// The same on every rank: a block of a random layout for each pair.
std::vector<Edge> everyone(int ranks, std::uint64_t seed, const Sizes& sizes);
/// Some pairs, some of them several times, some ranks not at all.
std::vector<Edge> some(int ranks, std::uint64_t seed, const Sizes& sizes);

/// Does the exchange, twice with one Exchange, and compares all that is received with what sends and receives of the
/// same layouts leave there, gaps included.
std::string matches_messages(Communicator& ranks, const std::vector<Edge>& edges, bool all, const collective::Options& options);

/// Everyone to everyone, blocks of so many elements with gaps between them, that say where they come from and where
/// they go; all compared, gaps included.
std::string exchanges(Communicator& ranks, std::int64_t elements, Schedule schedule);

}  // namespace lacuna::test
