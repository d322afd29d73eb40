#include "lacuna/protocol/progress/progress.hpp"

#include <fmt/format.h>

#include "lacuna/base/rarely.hpp"

namespace lacuna::protocol {
namespace {

constexpr int kArrivalsPerRound = 64;  // of one peer, or of a hub, so that all get their turn
// For what a peer sent before it went; one that only seems gone may go on for ever
constexpr int kLastRounds = 1024;
constexpr std::int64_t kClosing = 60'000'000'000;  // ns that a peer has to take what was sent to it

// Else this end cannot go on, or the peer breaks the rules, and the peer lives.
bool is_of_connection(base::Code code) { return code == base::Code::peer_lost || code == base::Code::transfer; }

}  // namespace

bool Progress::advance() {
  bool moved = local_.hub != nullptr && advance_by_hub();
  if (local_.hub == nullptr) {
    for (Peer& peer : local_.known()) moved = advance_or_lose(peer) || moved;
  }
  accesses_.retire_served();
  return moved;
}

bool Progress::advance_or_lose(Peer& peer) {
  if (peer.channel == nullptr) return false;
  if (peer.lost) return !peer.outbox.empty() && tell_lost(peer);
  const Result<bool> some = advance(peer);
  if (!some) completion_.lose(peer, some.error());
  return !some || *some;
}

// What a lost peer still says makes room for what it is told.
bool Progress::tell_lost(Peer& peer) {
  LACUNA_RARELY("lose: what the peer is told waits for room");
  Channel::Arrival arrival;
  for (int i = 0; i < kArrivalsPerRound; ++i) {
    const Result<bool> came = peer.channel->next(arrival);
    if (!came) peer.outbox.clear();
    if (!came || !*came) break;
    peer.channel->pop();
  }
  if (peer.channel->fault() != nullptr) peer.outbox.clear();
  return sends_.flush(peer);
}

// Only the peers of which there is something to do: what came, what waits for room, what moves.
bool Progress::advance_by_hub() {
  bool moved = take_from_hub(), looked = false;
  for (std::size_t left = local_.queued.size(); left > 0 && local_.hub->has_room(); --left) {
    Peer& peer = *local_.queued.front();
    local_.queued.pop_front();
    peer.queued = false;
    looked = looked || peer.lost;
    if (peer.lost && peer.channel->fault() != nullptr) peer.outbox.clear();
    moved = sends_.flush(peer) || moved;
    if (!peer.outbox.empty()) local_.queue(peer);
  }
  if (looked) moved = take_from_hub() || moved;  // a look at a fault may find messages of others
  // NOLINTNEXTLINE(modernize-loop-convert): the list grows meanwhile
  for (std::size_t i = 0; i < local_.moving.size(); ++i) moved = advance_or_lose(*local_.moving[i]) || moved;
  std::erase_if(local_.moving, [](Peer* peer) { return (peer->moving = !peer->idle()) == false; });
  return moved;
}

bool Progress::take_from_hub() {
  bool moved = false;
  Channel::Arrival arrival;
  int from = 0;
  for (int i = 0; i < kArrivalsPerRound; ++i) {
    const Result<bool> came = local_.hub->next(arrival, from);
    if (came && !*came) break;
    moved = true;
    Peer& peer = local_.peer(from);
    if (peer.lost) LACUNA_RARELY("hub: a lost peer still speaks");
    const Result<void> taken = peer.lost ? Result<void>() : came ? dispatch_.take(peer, arrival) : std::unexpected(came.error());
    if (!taken) completion_.lose(peer, taken.error());
    local_.hub->pop();
  }
  return moved;
}

Result<bool> Progress::advance(Peer& peer) {
  bool moved = false;
  Channel::Arrival arrival;
  for (int i = 0; i < kArrivalsPerRound && LACUNA_TRY(peer.channel->next(arrival)); ++i) {
    LACUNA_TRY(dispatch_.take(peer, arrival));
    if (peer.lost) return true;
    peer.channel->pop();
    moved = true;
  }
  suspects_ = suspects_ || arrival.failed;
  if (!peer.outbox.empty()) moved = sends_.flush(peer) || moved;
  if (peer.idle()) return moved;
  moved = LACUNA_TRY(streams_.advance(peer)) || moved;
  if (peer.lost) return true;
  moved = LACUNA_TRY(rendezvous_.advance(peer, method::Role::sender)) || moved;
  moved = LACUNA_TRY(rendezvous_.advance(peer, method::Role::receiver)) || moved;
  return moved;
}

bool Progress::look_for_faults() {
  local_.pool.tidy(local_.context.now());
  if (local_.hub != nullptr)
    return std::erase_if(local_.hub->failing(), [this](int rank) { return look_for_fault(local_.peer(rank)); }) > 0;
  bool lost = false;
  for (Peer& peer : local_.known()) lost = (!peer.lost && look_for_fault(peer)) || lost;
  return lost;
}

// True: this rank may not sleep yet. A look may find messages, for which nothing wakes it. In the round behind the look
// the last completions of a connection that has ended may come: then there is a fault to look for.
bool Progress::look() {
  suspects_ = false;
  if (look_for_faults()) return true;
  const auto failing = [this] { return local_.hub != nullptr ? local_.hub->failing().size() : 0; };
  const std::size_t before = failing();
  if (advance()) return true;
  if (!suspects_ && failing() <= before) return false;
  LACUNA_RARELY("progress: a connection ends while another look goes on");
  return true;
}

// True: the peer is lost.
bool Progress::look_for_fault(Peer& peer) {
  if (peer.channel == nullptr || peer.lost || (!peer.channel->carries() && peer.idle())) return peer.lost.has_value();
  const base::Error* fault = peer.channel->fault();
  if (fault == nullptr) return false;
  // What it sent before is still there.
  const base::Error error{is_of_connection(fault->code) ? base::Code::peer_lost : fault->code,
                          fmt::format("rank {}: {}", peer.rank, fault->message)};
  if (error.code == base::Code::peer_lost) {
    LACUNA_RARELY("progress: a peer is gone");
    Result<bool> some = true;
    for (int i = 0; i < kLastRounds && some && *some; ++i) some = advance(peer);
    // Connections of a hub are closed behind all that was sent.
    peer.left = peer.left || (local_.hub != nullptr && fault->code == base::Code::peer_lost);
  }
  completion_.lose(peer, error);
  return true;
}

void Progress::close() {
  for (Peer& peer : local_.known()) {
    if (peer.channel == nullptr || peer.lost || !peer.channel->carries() || local_.hub != nullptr) continue;
    Head head;
    head.kind = HeadKind::bye;
    local_.say(peer, head);
  }
  const auto over = [this](const Peer& peer) {
    if (peer.channel == nullptr || peer.lost || peer.left) return true;
    // One that only reached this end's memory may do so still.
    if (!peer.channel->carries()) return peer.streams.sending.empty();
    return (peer.outbox.empty() && peer.streams.sending.empty() && local_.pool.empty(peer.streams.rings) &&
            peer.outgoing.transfers.empty());
  };
  const auto all_over = [&] {
    return local_.hub != nullptr ? local_.queued.empty() && local_.moving.empty() : std::ranges::all_of(local_.known(), over);
  };
  const std::int64_t deadline = local_.context.now() + kClosing;
  while (!all_over()) {
    if (advance()) continue;
    LACUNA_RARELY("close: peers have not taken all yet");
    if (look()) continue;
    if (!local_.context.wait(deadline)) {
      base::log(base::Level::warn, "a communicator ends before its peers have taken all that was sent to them");
      return;
    }
  }
}

}  // namespace lacuna::protocol
