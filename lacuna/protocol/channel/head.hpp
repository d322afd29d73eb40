// Heads: what ranks tell one another, in one cache line each, some with a payload behind them. A peer may write
// anything into them, so everything is checked where it is used.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

namespace lacuna::protocol {

enum class HeadKind : std::uint8_t {
  none,      ///< the channel's own: only the fields that every head has
  eager,     ///< a whole message: in the body if it fits there, else in the payload
  stream,    ///< a message that its sender packs into a ring; after an answer, only the ring: RingDescriptor
  announce,  ///< a message whose bytes wait for an answer: Announce
  answer,    ///< to an announcement: Answer, and the receiver's target as payload
  part,      ///< the same for a further part of its message: PartBody
  ready,     ///< to an answer, or a part: PartBody, and the sender's target as payload
  dropped,   ///< an announced message cannot be received: Dropped
  access,    ///< the sender wants to put to, or to get from, exposed memory: Access
  accessed,  ///< the outcome of an access: Accessed
  layout,    ///< a part of a layout's wire form as payload: LayoutPart
  credit,    ///< how many bytes of small messages were received
  bye,       ///< nothing will follow
  lost,      ///< the sender has lost this rank: nothing that is under way between the two will end
};

inline constexpr std::size_t kBody = 36;
/// What a small message takes beside its bytes where it waits for its receive.
inline constexpr std::int64_t kEagerCost = 256;

struct Head {
  std::uint32_t mark = 0;  ///< the channel's own
  HeadKind kind = HeadKind::none;
  std::uint8_t again = 0;     ///< the channel's own
  std::uint16_t credits = 0;  ///< the channel's own
  std::int32_t tag = 0;
  std::uint32_t number = 0;   ///< the sender's, for the announcement and what follows it
  std::uint64_t bytes = 0;    ///< of the message's data
  std::uint32_t payload = 0;  ///< bytes behind the head
  std::byte body[kBody]{};
};
static_assert(sizeof(Head) == 64 && std::is_trivially_copyable_v<Head>);

/// A head that has come.
struct Arrived {
  Head head;
  const std::byte* payload = nullptr;  ///< head.payload bytes
  bool failed = false;                 ///< there is none, and a request of the channel failed: it may be broken
};

// Bodies; stream/stream_ring.hpp has the one of a stream.

struct Announce {
  std::uint32_t layout;  ///< its number, or 0: it was not told
  std::uint8_t method;   ///< 1: it goes by a method; 0: by a stream
  std::uint8_t shared;   ///< 1: the source lies in memory that every path reaches
  std::uint8_t known;    ///< 1: the source is registered
};

/// How an announced message is to be sent.
enum class AnswerKind : std::uint8_t {
  nothing,  ///< it has no bytes
  stream,   ///< through a ring; the head of the stream names the answer
  method,   ///< by the way that the answer says
};

struct Answer {
  std::uint32_t number;  ///< the receiver's
  std::uint32_t layout;
  std::uint8_t way[3];  ///< guide::Way::encode()
  AnswerKind how;
  // Of a method: the message is cut into parts (choice/cut.hpp).
  std::uint64_t part;       ///< bytes of each but the last
  std::uint32_t copied[2];  ///< parts of which the sender, and the receiver, copies its side
};

static_assert(sizeof(Answer) <= kBody);

struct PartBody {
  std::uint32_t index;
  std::uint8_t way[3];  ///< of the receiver's
  std::uint8_t copied;  ///< 1: the receiver copies its side, whatever the cut says: it could not register it
};

struct Dropped {
  std::uint32_t number;  ///< of the message, at the rank that is told
  std::uint32_t code;    ///< base::Code
};

/// The data of an access is a message of its own, with a tag that only accesses have (access_tag()).
struct Access {
  std::int64_t offset;
  std::uint32_t exposed;
  std::uint32_t layout;
  std::uint32_t gets;  ///< 0: puts
};

struct Accessed {
  std::uint32_t code;  ///< 0: it is done; else 1 + base::Code
  std::uint32_t gets;
};

/// Below all tags that programs use. Numbers come again after 2^29 accesses.
inline std::int32_t access_tag(std::uint32_t number, bool gets) {
  return -2 - static_cast<std::int32_t>((number & 0x1fff'ffff) * 2 + (gets ? 1 : 0));
}

/// Below those: the tags that Communicator::take_tag() gives.
inline constexpr std::int32_t kMostTaken = -2 - (1 << 30);
inline std::int32_t taken_tag(std::uint32_t number) { return kMostTaken - static_cast<std::int32_t>(number & 0x1fff'ffff); }
inline bool is_taken(std::int32_t tag) { return tag <= kMostTaken; }

struct LayoutPart {
  std::uint32_t layout;
  std::uint32_t unused;
  std::uint64_t total;  ///< bytes of the wire form
  std::uint64_t from;
};

template <class Body>
void put_body(Head& head, const Body& body) {
  static_assert(sizeof body <= kBody && std::is_trivially_copyable_v<Body>);
  std::memcpy(head.body, &body, sizeof body);
}
template <class Body>
[[nodiscard]] Body body_of(const Head& head) {
  Body body;
  std::memcpy(&body, head.body, sizeof body);
  return body;
}

}  // namespace lacuna::protocol
