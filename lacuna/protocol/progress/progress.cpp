#include "lacuna/protocol/progress/progress.hpp"

#include <fmt/format.h>

namespace lacuna::protocol {
namespace {

constexpr int kArrivalsPerRound = 64;  // of one peer, so that all get their turn
// For what a peer sent before it went; one that only seems gone may go on for ever
constexpr int kLastRounds = 1024;
constexpr std::int64_t kClosing = 60'000'000'000;  // ns that a peer has to take what was sent to it

}  // namespace

bool Progress::advance() {
  bool moved = false;
  for (Peer& peer : local_.peers) {
    if (peer.channel == nullptr || peer.lost) continue;
    const Result<bool> some = advance(peer);
    if (!some) completion_.lose(peer, some.error());
    moved = moved || !some || *some;
  }
  accesses_.retire_served();
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
  if (!peer.outbox.empty()) moved = sends_.flush(peer) || moved;
  if (peer.idle()) return moved;
  moved = LACUNA_TRY(streams_.advance(peer)) || moved;
  if (peer.lost) return true;
  moved = LACUNA_TRY(rendezvous_.advance(peer, method::Role::sender)) || moved;
  moved = LACUNA_TRY(rendezvous_.advance(peer, method::Role::receiver)) || moved;
  return moved;
}

void Progress::look_for_faults() {
  local_.pool.tidy(local_.context.now());
  for (Peer& peer : local_.peers) {
    if (peer.channel == nullptr || peer.lost || (!peer.channel->carries() && peer.idle())) continue;
    const base::Error* fault = peer.channel->fault();
    if (fault == nullptr) continue;
    // What it sent before is still there.
    const base::Error error{fault->code == base::Code::malformed ? fault->code : base::Code::peer_lost,
                            fmt::format("rank {}: {}", peer.rank, fault->message)};
    if (error.code == base::Code::peer_lost) {
      Result<bool> some = true;
      for (int i = 0; i < kLastRounds && some && *some; ++i) some = advance(peer);
    }
    completion_.lose(peer, error);
  }
}

void Progress::close() {
  for (Peer& peer : local_.peers) {
    if (peer.channel == nullptr || peer.lost || !peer.channel->carries()) continue;
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
  const std::int64_t deadline = local_.context.now() + kClosing;
  while (!std::ranges::all_of(local_.peers, over)) {
    if (advance()) continue;
    look_for_faults();
    if (!local_.context.wait(deadline)) {
      base::log(base::Level::warn, "a communicator ends before its peers have taken all that was sent to them");
      return;
    }
  }
}

}  // namespace lacuna::protocol
