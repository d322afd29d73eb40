#include "lacuna/protocol/request/completion.hpp"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <utility>

#include "lacuna/base/rarely.hpp"

namespace lacuna::protocol {
namespace {

// For a peer to end the pieces of a direct copy that it has begun: as long as NIC local waits for a peer to leave
// memory that is taken from it.
constexpr std::int64_t kStopping = 60'000'000'000;  // ns

}  // namespace

void Completion::done(Request& request) {
  request.stream.end();
  request.announce.lease = {};
  request.status.protocol = request.protocol;
  AccessState& access = request.access;
  access.went = true;
  if (access.needs_word && !access.word_came && !local_.peer(request.peer).lost) {
    request.state = Request::State::moving;
    return;
  }
  const bool again = std::exchange(request.state, Request::State::done) == Request::State::done;
  if (access.number == 0 || again) return;
  if (access.served) {
    served_(request);
  } else {
    local_.peer(request.peer).accesses.begun.erase(access.number);
  }
}

void Completion::fail(Request& request, base::Error error) {
  stop_copying(request);
  request.error = std::move(error);
  done(request);
}

// Of a request that fails: its memory is the caller's again, so the peer may not read or write it any more.
void Completion::stop_copying(Request& request) {
  const StreamState& stream = request.stream;
  DirectMemory* memory = stream.copy && stream.in ? &stream.in->direct_memory() : nullptr;
  if (stream.out && stream.out->direct() && !request.stream.out->withdraw()) memory = &stream.out->direct_memory();
  request.stream.copy.reset();
  if (memory == nullptr) return;
  Peer& peer = local_.peer(request.peer);
  const nic::QueuePair* const copying = peer.copying(request.sends);
  DirectCopy::stop(*memory);
  const std::int64_t deadline = base::now_ns() + kStopping;
  while (DirectCopy::at_work(*memory, request.bytes)) {
    [[maybe_unused]] const base::Error* const looked = peer.channel->fault();  // whether the peer lives
    if (copying == nullptr || copying->fault() != nullptr) return;
    if (base::now_ns() > deadline)
      return base::log(base::Level::error, fmt::format("rank {} does not end a copy into memory that is taken from it", peer.rank));
    sched_yield();
  }
}

void Completion::give_up(Request& request) {
  if (request.state == Request::State::done) return;
  // The peer knows of a get, whose data this one is for, and may send it still.
  const bool is_get = request.access.number != 0;
  if (!request.sends && request.state == Request::State::waiting && !is_get) return local_.matcher.withdraw(request);
  Peer& peer = local_.peer(request.peer);
  if (peer.channel != nullptr) {
    LACUNA_RARELY("give up: half way");
    lose(peer, {base::Code::timeout, fmt::format("rank {}: a message was given up half way", peer.rank)});
    return;
  }
  local_.matcher.each_message([&](Matchable& one) {  // to the own rank
    if (static_cast<Unexpected&>(one).send != &request) return;
    local_.matcher.remove(one);
    delete static_cast<Unexpected*>(&one);
  });
}

void Completion::lose(Peer& peer, base::Error error) {
  if (peer.lost) return;
  auto waiting = std::exchange(peer.outbox, {});
  if (error.code != base::Code::peer_lost && peer.channel != nullptr && peer.channel->carries()) {
    LACUNA_RARELY("lose: the peer is told");
    Head head;  // the peer may wait for this end. Before it sees that the lines end
    head.kind = HeadKind::lost;
    local_.say(peer, head);
  }
  if (peer.channel != nullptr) peer.channel->give_up();
  peer.lost = error;
  const bool leaves = peer.left && error.code == base::Code::peer_lost;  // not if it said so, and then nonsense
  if (!local_.lost && !leaves) local_.lost = error;
  for (QueuedHead& one : waiting) {
    if (one.eager == nullptr) continue;
    LACUNA_RARELY("lose: a small message that waited for the channel");
    fail(*one.eager, error);
  }
  const auto end_all = [&](auto& list) {
    for (Request* request : list) fail(*request, error);
    list.clear();
  };
  end_all(peer.streams.sending);
  end_all(peer.streams.receiving);
  end_all(peer.streams.for_rings);
  for (RendezvousLine* line : {&peer.outgoing, &peer.incoming}) {
    for (RendezvousTransfer& one : line->transfers) {
      LACUNA_RARELY("lose: a transfer that was under way");
      fail(*one.request, error);
    }
    line->end();
  }
  for (auto* waiting : {&peer.announcements.announced, &peer.announcements.expected, &peer.accesses.begun}) {
    for (auto& [number, request] : std::exchange(*waiting, {})) {
      LACUNA_RARELY("lose: a message that was announced");
      fail(*request, error);
    }
  }
  local_.matcher.each_message([&](Matchable& one) {
    auto& message = static_cast<Unexpected&>(one);
    if (message.source != peer.rank || message.head.kind == HeadKind::eager) return;
    LACUNA_RARELY("lose: an announcement that no receive took");
    local_.matcher.remove(message);
    delete &message;
  });
  // A peer that died may be the one that a receive from any source waits for. A peer that left is not, as long as there
  // are others.
  const bool ends_any = !leaves || all_lost();
  local_.matcher.each_receive([&](Matchable& one) {
    if (one.source != peer.rank && (one.source != kAnySource || !ends_any)) return;
    LACUNA_RARELY("lose: a receive that waited");
    local_.matcher.withdraw(one);
    fail(static_cast<Request&>(one), error);
  });
}

bool Completion::all_lost() const {
  const auto here = [](const Peer& peer) { return peer.channel != nullptr && !peer.lost; };
  const auto unknown = [this](const auto& peer) {
    return peer == nullptr && local_.hub != nullptr && &peer != &local_.peers[static_cast<std::size_t>(local_.rank)];
  };
  return std::ranges::none_of(local_.known(), here) && std::ranges::none_of(local_.peers, unknown);
}

Result<void> Completion::still_there(int source) const {
  if (source == kAnySource) {
    if (local_.size() == 1 || !all_lost()) return {};
    return base::fail(base::Code::peer_lost, "a receive from any source, and all other ranks are gone");
  }
  const Peer* const peer = local_.peers[static_cast<std::size_t>(source)].get();
  if (peer != nullptr && peer->lost) return std::unexpected(*peer->lost);
  return {};
}

}  // namespace lacuna::protocol
