// What the two ends of a connection say to one another beside the data, on an endpoint of its own: which receives are
// posted, which keys stand for what, and why a connection ends.
//
//   credit             so many receives were posted in all, and so many bytes each of the new ones takes. A message is
//                      sent when there is one for it: a provider holds back all that follows a message for which there
//                      is none, or stores it. A longer one is not sent at all: some providers would write its
//                      beginning, and tell the sender of success.
//   length             of the write whose immediate comes with a message, where a completion has room for 4 bytes
//   word               where the peer sets and clears its word (usage.hpp): once, before all else
//   ask, tell          what a key stands for
//   revoke, released   the region of a key that was told goes; nothing is under way to it any more
//   beat               nothing: it cannot be sent to a peer that is gone
//   bye                this end gives the connection up, or closes it; what the peer's first request in flight is told
//
// Messages have one size, and are checked when they come.
#pragma once

#include <cstdint>
#include <type_traits>

namespace lacuna::nic::ofi {

struct Said {
  enum Kind : std::uint32_t { credit = 1, word, ask, tell, revoke, released, length, beat, bye };
  std::uint32_t kind = 0;
  std::uint32_t key = 0;     // ours; of bye: a Status, or kClosed
  std::uint64_t count = 0;   // credit; of length, and of bye with kTooLong: the message's number
  std::uint64_t addr = 0;    // word, tell: of the region, as the layers above name it
  std::uint64_t bytes = 0;   // 0: there is no such region; of credit: that a receive takes; of length
  std::uint64_t target = 0;  // the same place, as the provider wants it
  std::uint64_t provider_key = 0;
  std::uint64_t rights = 0;  // kMayWrite, kMayRead; of credit: kSpoiled
  std::uint64_t spare = 0;

  static constexpr std::uint32_t kClosed = 0;       // of bye: nothing went wrong
  static constexpr std::uint32_t kTooLong = 0x101;  // of bye: a message did not fit into its receive
  static constexpr std::uint64_t kSpoiled = 1;      // the receive's memory may not be reached: no byte fits
  static constexpr std::uint64_t kMayWrite = 1;
  static constexpr std::uint64_t kMayRead = 2;
};
static_assert(sizeof(Said) == 64 && std::has_unique_object_representations_v<Said>);

}  // namespace lacuna::nic::ofi
