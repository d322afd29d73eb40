#include "lacuna/protocol/request/local_rank.hpp"

#include <algorithm>

#include "lacuna/base/rarely.hpp"

namespace lacuna::protocol {

Result<void> LocalRank::attach(Peer& peer) {
  if (peer.channel == nullptr) peer.channel = LACUNA_TRY(make_attached_channel(context, cards[static_cast<std::size_t>(peer.rank)]));
  return {};
}

Peer& LocalRank::make(int number) {
  std::unique_ptr<Peer>& made = peers[static_cast<std::size_t>(number)];
  made = std::make_unique<Peer>();
  made->rank = number;
  if (hub == nullptr || number == rank) return *made;
  made->channel = hub->channel(number);
  if (options.wrap_channel) made->channel = options.wrap_channel(std::move(made->channel));
  made->credit.grant(options.unexpected_bytes);  // all ranks of a world have the same
  return *made;
}

Result<void> LocalRank::connect_line(Peer& peer, bool sends) {
  RendezvousLine& line = sends ? peer.outgoing : peer.incoming;
  if (hub == nullptr || line.connected()) return {};
  const bool up = sends == (rank < peer.rank);  // from the lower rank to the higher one
  return line.connect(context.limits(), [&](nic::Path path, int number, const method::Endpoint::Options& wanted) {
    const auto make = [&](nic::CompletionQueue& queue, const nic::QueuePairOptions& queues) {
      return hub->hub().connect(peer.rank, 2 * number + (up ? 1 : 0), queue, queues);
    };
    return method::Endpoint::connect(context, make, path, wanted);
  });
}

void LocalRank::say(Peer& to, Head head, std::span<const std::byte> payload) {
  if (to.lost) return;
  head.payload = static_cast<std::uint32_t>(payload.size());
  if (to.outbox.empty()) {
    if (std::byte* room = to.channel->claim(payload.size()); room != nullptr) {
      std::ranges::copy(payload, room);
      to.channel->commit(head);
      return;
    }
  }
  LACUNA_RARELY("heads: one waits for room");
  to.outbox.push_back({.head = head, .payload = {payload.begin(), payload.end()}});
  queue(to);
}

std::uint32_t LocalRank::tell(Peer& to, const Layout& layout) {
  const LayoutsTold::Telling telling = to.told.tell(layout);
  for (std::size_t from = 0; from < telling.wire.size(); from += kMostPayload) {
    Head head;
    head.kind = HeadKind::layout;
    put_body(head, LayoutPart{.layout = telling.number, .unused = 0, .total = telling.wire.size(), .from = from});
    say(to, head, std::span(telling.wire).subspan(from, std::min(kMostPayload, telling.wire.size() - from)));
  }
  if (!telling.wire.empty()) ++statistics.layouts_told;
  return telling.number;
}

void LocalRank::keep_unexpected(std::unique_ptr<Unexpected> message) {
  if (message->data != nullptr) {
    statistics.unexpected_bytes += static_cast<std::int64_t>(message->head.bytes);
    statistics.unexpected_most = std::max(statistics.unexpected_most, statistics.unexpected_bytes);
  }
  ++statistics.unexpected;
  step("keep unexpected");
  matcher.keep(*message.release());
}

}  // namespace lacuna::protocol
