#include "lacuna/protocol/progress/dispatch.hpp"

#include <fmt/format.h>

#include "lacuna/base/rarely.hpp"

namespace lacuna::protocol {
namespace {

std::unexpected<base::Error> malformed(const Peer& peer, std::string_view what) {
  LACUNA_RARELY("nonsense: of a head");
  return base::fail(base::Code::malformed, fmt::format("rank {} says {}", peer.rank, what));
}

}  // namespace

Result<void> Dispatch::take(Peer& peer, const Channel::Arrival& arrival) {
  const Head& head = arrival.head;
  switch (head.kind) {
    case HeadKind::eager:
      if (head.payload > 0 ? head.payload != head.bytes : head.bytes > kBody) return malformed(peer, "that a message has other bytes");
      return receives_.take(peer, arrival);
    case HeadKind::stream:
      if (const auto ring = body_of<RingDescriptor>(head); ring.answer != 0) return streams_.take_expected(peer, head, ring);
      return receives_.take(peer, arrival);
    case HeadKind::announce: return receives_.take(peer, arrival);
    case HeadKind::answer: return take_answer(peer, arrival);
    case HeadKind::part: return rendezvous_.take_part(peer, arrival);
    case HeadKind::ready: return rendezvous_.take_ready(peer, arrival);
    case HeadKind::dropped: return take_dropped(peer, head);
    case HeadKind::access: return accesses_.serve(peer, head);
    case HeadKind::accessed: return accesses_.take_accessed(peer, head);
    case HeadKind::layout: return peer.heard.part(body_of<LayoutPart>(head), {arrival.payload, head.payload});
    case HeadKind::credit: return peer.credit.freed(head.bytes) ? Result<void>() : malformed(peer, "that it received more than was sent");
    case HeadKind::bye: peer.left = true; return {};
    case HeadKind::lost:
      LACUNA_RARELY("lose: the peer tells");
      return base::fail(base::Code::transfer, fmt::format("rank {} met an error, and ended all messages with this rank", peer.rank));
    default: return malformed(peer, fmt::format("something of kind {}", static_cast<int>(head.kind)));
  }
}

// The message stays announced until the answer is accepted, so that losing the peer ends it.
Result<void> Dispatch::take_answer(Peer& peer, const Channel::Arrival& arrival) {
  auto& announced = peer.announcements.announced;
  const auto found = announced.find(arrival.head.number);
  if (found == announced.end()) return malformed(peer, "that it wants what was not announced");
  Request& send = *found->second;
  const auto answer = body_of<Answer>(arrival.head);
  const bool has_bytes = send.bytes > 0;
  if (answer.how == AnswerKind::nothing && !has_bytes) {
    completion_.done(send);
  } else if (answer.how == AnswerKind::stream && has_bytes && peer.channel->shares_memory()) {
    send.announce.number = answer.number;
    peer.streams.for_rings.push_back(&send);
  } else if (answer.how == AnswerKind::method && has_bytes) {
    LACUNA_TRY(rendezvous_.take_answer(peer, send, answer, {arrival.payload, arrival.head.payload}));
  } else {
    return malformed(peer, "an invalid answer");
  }
  announced.erase(found);
  return {};
}

Result<void> Dispatch::take_dropped(Peer& peer, const Head& head) {
  auto& announced = peer.announcements.announced;
  const auto found = announced.find(head.number);
  if (found == announced.end()) return malformed(peer, "that it drops what was not announced");
  LACUNA_RARELY("rendezvous: the peer cannot receive it");
  Request& send = *found->second;
  announced.erase(found);
  completion_.fail(send, {base::Code::transfer, fmt::format("rank {} cannot receive it", peer.rank)});
  return {};
}

}  // namespace lacuna::protocol
