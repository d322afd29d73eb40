#include "lacuna/protocol/message/stream_transfers.hpp"

#include <fmt/format.h>

#include <utility>

#include "lacuna/guide/usual_thresholds.hpp"
#include "lacuna/protocol/message/self_messages.hpp"

namespace lacuna::protocol {

Result<void> StreamTransfers::begin(Peer& peer, Request& send, StreamRing& ring, std::uint32_t answer) {
  send.protocol = Protocol::stream;
  send.state = Request::State::moving;
  OutStream& out = send.stream.out.emplace(ring, peer.streams.stores, send.bytes);
  peer.streams.transits.sent(ring, out);
  if (out.direct()) offer_directly(peer, send, out);
  Head head;
  head.kind = HeadKind::stream;
  head.tag = send.tag;
  head.bytes = static_cast<std::uint64_t>(send.bytes);
  put_body(head, out.describe(answer));
  local_.step("send stream");
  local_.say(peer, head);
  // What fits the ring is there even if this process makes no further call for long.
  peer.streams.sending.push_back(&send);
  if (const Result<bool> packed = pack(peer, send); !packed) {
    completion_.lose(peer, packed.error());
  } else if (!send.stream.out) {
    peer.streams.sending.pop_back();
  }
  return {};
}

Result<bool> StreamTransfers::pack(Peer& peer, Request& send) {
  if (!send.stream.out) return false;
  OutStream& out = *send.stream.out;
  if (out.direct()) {
    const bool some = LACUNA_TRY(copy_out(peer, send, out));
    if (out.direct() && !out.done()) return some;
  }
  const bool some = LACUNA_TRY(out.step(local_.context, peer.streams.stores, *send.layout, send.base));
  if (some) local_.step("packed");
  if (!out.done()) return some;
  out.give_back();
  Statistics::count(local_.statistics.sent, send.protocol, send.bytes);
  completion_.done(send);
  return true;
}

void StreamTransfers::receive(Peer& peer, Request& receive, const Head& head, InStream stream) {
  receive.bytes = static_cast<std::int64_t>(head.bytes);
  receive.peer = peer.rank;
  receive.protocol = Protocol::stream;
  receive.status = {.source = peer.rank, .tag = head.tag, .bytes = receive.bytes};
  receive.error = truncation(receive.bytes, receive.layout->size());
  receive.state = Request::State::moving;
  InStream& in = receive.stream.in.emplace(stream);
  peer.streams.receiving.push_back(&receive);
  local_.step("receive stream");
  if (!peer.lost && in.offers_directly()) take_directly(peer, receive, in);
}

Result<void> StreamTransfers::take_expected(Peer& peer, const Head& head, const RingDescriptor& ring) {
  auto& expected = peer.announcements.expected;
  const auto found = expected.find(ring.answer);
  if (found == expected.end() || std::cmp_not_equal(found->second->bytes, head.bytes))
    return base::fail(base::Code::malformed, fmt::format("rank {} says that it streams what was not asked for", peer.rank));
  // A receive whose ring is refused stays expected, so that losing the peer ends it.
  Request& receive = *found->second;
  receive.stream.in.emplace(LACUNA_TRY(InStream::open(*peer.channel, peer.streams.seen, ring, receive.bytes)));
  expected.erase(found);
  peer.streams.receiving.push_back(&receive);
  return {};
}

Result<bool> StreamTransfers::advance(Peer& peer) {
  bool moved = false;
  std::list<Request*>& for_rings = peer.streams.for_rings;
  while (!for_rings.empty()) {
    StreamRing* ring = LACUNA_TRY(peer.streams.rings.take(local_.pool, for_rings.front()->bytes, true, Transit::wide));
    if (ring == nullptr) break;
    Request& send = *for_rings.front();
    for_rings.pop_front();
    LACUNA_TRY(begin(peer, send, *ring, send.announce.number));
    if (peer.lost) return true;
    moved = true;
  }
  const auto step_all = [&](std::vector<Request*>& list, const auto& stepped) -> Result<void> {
    for (std::size_t i = 0; i < list.size();) {
      Request& request = *list[i];
      moved = LACUNA_TRY(stepped(request)) || moved;
      if (request.stream.under_way()) {  // a put is not done when its stream is
        ++i;
        continue;
      }
      list.erase(list.begin() + static_cast<std::ptrdiff_t>(i));
    }
    return {};
  };
  LACUNA_TRY(step_all(peer.streams.sending, [&](Request& send) { return pack(peer, send); }));
  LACUNA_TRY(step_all(peer.streams.receiving, [&](Request& receive) -> Result<bool> {
    const bool some = LACUNA_TRY(unpack(receive, *receive.stream.in));
    if (some) local_.step("unpacked");
    if (receive.stream.in->done()) {
      Statistics::count(local_.statistics.received, receive.protocol, receive.bytes);
      completion_.done(receive);
    }
    return some;
  }));
  return moved;
}

Result<bool> StreamTransfers::unpack(Request& receive, InStream& in) {
  std::optional<DirectCopy>& copy = receive.stream.copy;
  if (!copy) return in.step(local_.context, *receive.layout, receive.base);
  if (copy->step()) return true;
  DirectMemory& memory = in.direct_memory();
  if (!DirectCopy::over(memory, receive.bytes)) return false;
  copy.reset();
  if (memory.failed.load(std::memory_order_relaxed) == 0) {
    in.copied();
    receive.protocol = Protocol::direct;
    local_.step("copied in");
  }
  return true;
}

// --- direct copies ---------------------------------------------------------------------------------------------------

Transit StreamTransfers::transit(Peer& peer, const Layout& layout, const MessageWays::Chosen& chosen, Advice advice) {
  const Transit ring = chosen.stream == MessageWay::narrow ? Transit::narrow : Transit::wide;
  if (chosen.forced) return chosen.way == MessageWay::direct ? Transit::direct : ring;
  peer.streams.stores.suggest(chosen.stream == MessageWay::passed ? copy::Caching::passed : copy::Caching::kept);
  if (chosen.way == MessageWay::direct) advice = Advice::one_copy;
  return peer.streams.transits.choose(layout.size(), layout.digest(), advice, layout.size() / layout.run_count(), ring);
}

void StreamTransfers::force_stores() {
  const std::optional<MessageWay> way = local_.options.way;
  for (Peer& peer : local_.known()) {
    peer.streams.stores = {};
    if (way) peer.streams.stores.hold(way == MessageWay::passed ? copy::Caching::passed : copy::Caching::kept);
  }
}

bool StreamTransfers::may_gain_directly(const Layout& layout) const {
  const Options& options = local_.options;
  if (options.force.method != nullptr || options.force.path || options.way == MessageWay::direct) return true;
  return layout.size() >= guide::usual::kDirectBytes && layout.size() / layout.run_count() >= guide::usual::kDirectRun;
}

void StreamTransfers::offer_directly(Peer& peer, const Request& send, OutStream& out) {
  const std::uint32_t wire = peer.streams.layouts.write(*send.layout, out.own_wire());
  if (wire == 0) return out.pack_after_all();
  const DirectEnd own{.addr = reinterpret_cast<std::uint64_t>(send.base), .digest = send.layout->digest(), .wire = wire};
  const bool patient = local_.options.force.path.has_value() && send.offer.offered;
  out.offer_directly(own, patient);
}

// The sender's part. Afterwards the stream is done, still direct, or to be packed.
Result<bool> StreamTransfers::copy_out(Peer& peer, Request& send, OutStream& out) {
  DirectMemory& memory = out.direct_memory();
  const DirectState state = out.direct_state();
  if (state == DirectState::offered && (!out.waited_for_long() || !out.withdraw())) return false;
  if (state == DirectState::taking) return false;
  if (state != DirectState::taken) {
    out.pack_after_all();
    peer.streams.transits.offered(false);
    return true;
  }
  nic::QueuePair* const copying = peer.copying(true);
  std::optional<DirectCopy>& copy = send.stream.copy;
  if (!copy && copying != nullptr) {
    const DirectEnd there = base::read_once(memory.receiver);
    const Layout* const layout = peer.streams.layouts.read(there.digest, out.other_wire(there));
    if (layout != nullptr && layout->size() >= send.bytes)
      copy.emplace(memory, *copying, true, *send.layout, send.base, *layout, there.addr, send.bytes);
  }
  if (copy && copy->step()) return true;
  if (!DirectCopy::over(memory, send.bytes)) return false;
  copy.reset();
  const bool failed = memory.failed.load(std::memory_order_relaxed) != 0;
  peer.streams.transits.offered(!failed);
  if (failed) {
    out.pack_after_all();
  } else {
    out.copied();
    send.protocol = Protocol::direct;
    local_.step("copied out");
  }
  return true;
}

// Refused, and so packed into rings: a message for a receive that is too short, one of short runs (the columns of a
// transpose, whose rows are long), and one whose layout has not come yet.
void StreamTransfers::take_directly(Peer& peer, Request& receive, InStream& in) {
  nic::QueuePair* const copying = peer.copying(false);
  if (copying == nullptr) return in.refuse_directly();
  if (!in.begin_to_take()) return;  // from here on the sender packs nothing over its layout
  const DirectEnd there = base::read_once(in.direct_memory().sender);
  const Layout* const layout = peer.streams.layouts.read(there.digest, in.other_wire(there));
  if (layout == nullptr || layout->size() != receive.bytes || receive.layout->size() < receive.bytes || !may_gain_directly(*receive.layout))
    return in.refuse_what_was_begun();
  DirectEnd here{.addr = reinterpret_cast<std::uint64_t>(receive.base), .digest = receive.layout->digest()};
  here.wire = peer.streams.layouts.write(*receive.layout, in.own_wire());  // 0: this end copies alone
  if (in.take_directly(here))
    receive.stream.copy.emplace(in.direct_memory(), *copying, false, *receive.layout, receive.base, *layout, there.addr, receive.bytes);
}

}  // namespace lacuna::protocol
