// What makes a communicator, moves it on, and ends it.
#include <fmt/format.h>

#include <algorithm>

#include "lacuna/protocol/communicator/communicator.hpp"

namespace lacuna::protocol {
namespace {

constexpr int kSpins = 64;
constexpr int kArrivalsPerRound = 64;              // of one peer, so that all get their turn
constexpr int kLastRounds = 1024;                  // for what a peer sent before it went; one that only seems gone may go on for ever
constexpr std::int64_t kClosing = 60'000'000'000;  // ns that a peer has to take what was sent to it
constexpr std::array<std::string_view, kProtocols> kNames{"eager", "stream", "rendezvous", "self", "direct"};

}  // namespace

std::string_view protocol_name(Protocol protocol) { return kNames.at(static_cast<std::size_t>(protocol)); }

Result<std::unique_ptr<Communicator>> Communicator::create(nic::Context& context, const std::string& nic, Group group, Options options) {
  auto made = std::make_unique<Ranks>(context, nic, group.rank, std::move(options));
  LACUNA_TRY(made->connect(std::move(group)));
  return made;
}

// Pairs connect in one order everywhere, so that nobody waits in a circle.
Result<void> Ranks::connect(Group group) {
  peers_ = std::vector<Peer>(static_cast<std::size_t>(group.size()));
  options_.eager_bytes = std::clamp<std::int64_t>(options_.eager_bytes, 0, kMostPayload);
  for (std::size_t i = 0; i < peers_.size(); ++i) {
    peers_[i].rank = static_cast<int>(i);
    peers_[i].bootstrap = std::move(group.peers[i]);
    if (std::cmp_equal(i, rank_)) continue;
    LACUNA_TRY(connect(peers_[i]));
  }
  if (std::ranges::any_of(peers_, [](const Peer& peer) { return peer.channel != nullptr && peer.channel->shares_memory(); }))
    spins_ = kSpins;
  if (options_.progress_thread) thread_ = std::thread([this] { run_thread(); });
  return {};
}

Result<void> Ranks::connect(Peer& peer) {
  const nic::Limits& limits = context_.limits();
  const auto available = [&](nic::Path path) { return limits.path(path) != nullptr && limits.path(path)->available; };
  if (available(nic::Path::mapped)) {
    peer.channel = LACUNA_TRY(make_ring(context_, *peer.bootstrap));
  } else {
    constexpr std::array kInOrder{nic::Path::wire, nic::Path::slots, nic::Path::kernel};
    const auto path = std::ranges::find_if(kInOrder, available);
    if (path == kInOrder.end()) return base::fail(base::Code::unsupported, "this NIC has no path that takes messages");
    peer.channel = LACUNA_TRY(make_queue_channel(context_, *peer.bootstrap, *path));
  }
  LACUNA_TRY(agree(peer));
  if (options_.wrap_channel) peer.channel = options_.wrap_channel(std::move(peer.channel));
  const bool first = rank_ < peer.rank;
  LACUNA_TRY((first ? peer.outgoing : peer.incoming).connect(context_, *peer.bootstrap));
  return (first ? peer.incoming : peer.outgoing).connect(context_, *peer.bootstrap);
}

// What both ends have to know of one another, and whether they speak the same language.
Result<void> Ranks::agree(Peer& peer) const {
  struct Terms {
    std::uint64_t magic = 0x3530'6c6f'636f'7470;  // changes with message.hpp and the bodies in stream.hpp
    std::int64_t room = 0;
  };
  const Terms mine{.room = options_.unexpected_bytes};
  nic::Hello hello;
  hello.bytes.resize(sizeof mine);
  std::memcpy(hello.bytes.data(), &mine, sizeof mine);
  const nic::Hello answer = LACUNA_TRY(peer.bootstrap->exchange(hello, options_.timeout_ns));
  Terms theirs;
  if (answer.bytes.size() == sizeof theirs) std::memcpy(&theirs, answer.bytes.data(), sizeof theirs);
  if (answer.bytes.size() != sizeof theirs || theirs.magic != mine.magic || theirs.room < 0)
    return base::fail(base::Code::malformed, fmt::format("rank {} speaks another version of the protocol", peer.rank));
  peer.room = theirs.room;
  return {};
}

Ranks::~Ranks() {
  if (thread_.joinable()) {
    stop_ = true;
    thread_.join();
  }
  close();
  for (Peer& peer : peers_) {
    peer.outgoing.carried.clear();
    peer.incoming.carried.clear();
    if (peer.channel != nullptr) peer.windows.end(*peer.channel);
  }
  keep_what_was_learned();
  registrations_.clear();  // while there are endpoints whose keys may stand for something
  matcher_.each_message([](Matchable& message) { delete static_cast<Unexpected*>(&message); });
}

void Ranks::keep_what_was_learned() const {
  if (options_.learn.learning != guide::Learning::on || learner_.learned().empty()) return;
  const Result<void> kept = guide::merge_learned(learned_file_, learner_.learned());
  if (!kept) base::log(base::Level::warn, "what was learned is lost: " + kept.error().message);
}

// Waits until the peers have what was sent to them, as far as they take it: windows are this end's memory.
void Ranks::close() {
  for (Peer& peer : peers_) {
    if (peer.channel == nullptr || peer.lost) continue;
    Head head;
    head.kind = Kind::bye;
    say(peer, head);
  }
  const auto over = [&](const Peer& peer) {
    return peer.channel == nullptr || peer.lost || peer.left ||
           (peer.outbox.empty() && peer.sending.empty() && peer.windows.empty() && peer.outgoing.carried.empty());
  };
  const std::int64_t deadline = context_.now() + kClosing;
  while (!std::ranges::all_of(peers_, over)) {
    if (advance()) continue;
    look_for_faults();
    if (!context_.wait(deadline)) {
      base::log(base::Level::warn, "a communicator ends before its peers have taken all that was sent to them");
      return;
    }
  }
}

void Ranks::run_thread() {
  while (!stop_) {
    bool moved = false;
    {
      const std::unique_lock lock(mutex_);
      moved = advance();
      if (!moved) look_for_faults();
    }
    if (!moved) std::this_thread::sleep_for(std::chrono::microseconds(20));
  }
}

// --- requests --------------------------------------------------------------------------------------------------------

Request* Ranks::fresh() {
  if (free_.empty()) {
    if (free_.capacity() <= requests_.size()) free_.reserve(2 * requests_.size() + 16);  // retire() is to want no memory
    return &requests_.emplace_back();
  }
  Request* request = free_.back();
  free_.pop_back();
  return request;
}

void Ranks::retire(Request* request) {
  *request = Request();
  free_.push_back(request);
}

void Ranks::done(Request& request) {
  request.out.reset();
  request.in.reset();
  request.copy.reset();
  request.lease = {};
  request.status.protocol = request.protocol;
  request.went = true;
  if (request.needs_word && !request.word_came && !peers_[static_cast<std::size_t>(request.peer)].lost) {
    request.state = Request::State::moving;
    return;
  }
  const bool again = std::exchange(request.state, Request::State::done) == Request::State::done;
  if (request.access == 0 || again) return;
  if (request.served) {
    end_served(request);
  } else {
    peers_[static_cast<std::size_t>(request.peer)].accesses.erase(request.access);
  }
}

// Its caller waits for it no longer, and its memory is his.
void Ranks::abandon(Request& request) {
  if (request.state == Request::State::done) return;
  if (!request.sends && request.state == Request::State::waiting) return matcher_.withdraw(request);
  Peer& peer = peers_[static_cast<std::size_t>(request.peer)];
  if (peer.channel != nullptr) {
    lose(peer, {base::Code::timeout, fmt::format("rank {}: a message was given up half way", peer.rank)});
  } else {
    matcher_.each_message([&](Matchable& one) {  // to oneself
      if (static_cast<Unexpected&>(one).send != &request) return;
      matcher_.remove(one);
      delete static_cast<Unexpected*>(&one);
    });
  }
}

void Ranks::fail(Request& request, base::Error error) {
  stop_copying(request);
  request.error = std::move(error);
  done(request);
}

std::optional<Result<Status>> Ranks::test(Request* request) {
  const auto lock = enter();
  if (request->state != Request::State::done && !advance()) idle();
  if (request->state != Request::State::done) return std::nullopt;
  return end(request);
}

// What became of a request that is done; it is gone then.
Result<Status> Ranks::end(Request* request) {
  Result<Status> result = request->status;
  if (request->access != 0) result->tag = 0;
  if (request->error) result = std::unexpected(std::move(*request->error));
  retire(request);
  return result;
}

Result<Status> Ranks::wait(Request* request) {
  auto lock = enter();
  LACUNA_TRY(until(lock, [&] { return request->state == Request::State::done; }));
  return end(request);
}

bool Ranks::cancel(Request* request) {
  const auto lock = enter();
  if (request->offered) return take_back(request);
  if (request->sends || request->access != 0 || request->state != Request::State::waiting) return false;
  matcher_.withdraw(*request);
  retire(request);
  return true;
}

void Ranks::give_up(Request* request) {
  const auto lock = enter();
  abandon(*request);
  retire(request);
}

Result<std::size_t> Ranks::wait_any(std::span<Request* const> requests, std::int64_t timeout_ns) {
  auto lock = enter();
  if (std::ranges::none_of(requests, [](const Request* r) { return r != nullptr; }))
    return base::fail(base::Code::invalid_argument, "wait_any() of no request");
  std::size_t found = 0;
  const auto one_is = [&] {
    for (found = 0; found < requests.size(); ++found) {
      if (requests[found] != nullptr && requests[found]->state == Request::State::done) return true;
    }
    return false;
  };
  LACUNA_TRY(until(lock, one_is, timeout_ns));
  return found;
}

Result<void> Communicator::wait_all(std::span<Request* const> requests) {
  std::optional<base::Error> first;
  for (Request* request : requests) {
    if (request == nullptr) continue;
    if (Result<Status> ended = wait(request); !ended && !first) first = std::move(ended).error();
  }
  if (first) return std::unexpected(std::move(*first));
  return {};
}

// --- moving on -------------------------------------------------------------------------------------------------------

bool Ranks::advance() {
  bool moved = false;
  for (Peer& peer : peers_) {
    if (peer.channel == nullptr || peer.lost) continue;
    const Result<bool> some = advance(peer);
    if (!some) lose(peer, some.error());
    moved = moved || !some || *some;
  }
  if (!served_.empty()) retire_served();
  return moved;
}

Result<bool> Ranks::advance(Peer& peer) {
  bool moved = false;
  Channel::Arrival arrival;
  for (int i = 0; i < kArrivalsPerRound && LACUNA_TRY(peer.channel->next(arrival)); ++i) {
    LACUNA_TRY(take(peer, arrival));
    if (peer.lost) return true;
    peer.channel->pop();
    moved = true;
  }
  if (!peer.outbox.empty()) moved = flush(peer) || moved;
  if (peer.idle()) return moved;
  while (!peer.for_windows.empty()) {
    Windows::Place* window = LACUNA_TRY(peer.windows.take(context_, peer.for_windows.front()->bytes, true, Transit::wide));
    if (window == nullptr) break;
    Request& send = *peer.for_windows.front();
    peer.for_windows.pop_front();
    LACUNA_TRY(begin_stream(peer, send, *window, send.number));
    if (peer.lost) return true;
    moved = true;
  }
  const auto step_all = [&](std::vector<Request*>& list, const auto& stepped) -> Result<void> {
    for (std::size_t i = 0; i < list.size();) {
      Request& request = *list[i];
      moved = LACUNA_TRY(stepped(request)) || moved;
      if (request.out || request.in) {  // a put is not done then, but its stream is
        ++i;
        continue;
      }
      list.erase(list.begin() + static_cast<std::ptrdiff_t>(i));
    }
    return {};
  };
  LACUNA_TRY(step_all(peer.sending, [&](Request& send) { return go_on(peer, send); }));
  LACUNA_TRY(step_all(peer.receiving, [&](Request& receive) -> Result<bool> {
    const bool some = LACUNA_TRY(come_on(receive, *receive.in));
    if (some) step("unpacked");
    if (receive.in->done()) {
      statistics_.count(statistics_.received, receive.protocol, receive.bytes);
      done(receive);
    }
    return some;
  }));
  moved = LACUNA_TRY(carry(peer, method::Role::sender)) || moved;
  moved = LACUNA_TRY(carry(peer, method::Role::receiver)) || moved;
  return moved;
}

void Ranks::look_for_faults() {
  for (Peer& peer : peers_) {
    if (peer.channel == nullptr || peer.lost) continue;
    const base::Error* fault = peer.channel->fault();
    if (fault == nullptr) continue;
    // What it sent before is still there.
    const base::Error error{fault->code == base::Code::malformed ? fault->code : base::Code::peer_lost,
                            fmt::format("rank {}: {}", peer.rank, fault->message)};
    if (error.code == base::Code::peer_lost) {
      Result<bool> some = true;
      for (int i = 0; i < kLastRounds && some && *some; ++i) some = advance(peer);
    }
    lose(peer, error);
  }
}

// Everything that needs the peer ends. Its small messages that came before stay.
void Ranks::lose(Peer& peer, base::Error error) {
  if (peer.lost) return;
  peer.lost = error;
  for (Outgoing& waiting : peer.outbox) {
    if (waiting.eager != nullptr) fail(*waiting.eager, error);
  }
  peer.outbox.clear();
  const auto end_all = [&](auto& list) {
    for (Request* request : list) fail(*request, error);
    list.clear();
  };
  end_all(peer.sending);
  end_all(peer.receiving);
  end_all(peer.for_windows);
  for (Line* line : {&peer.outgoing, &peer.incoming}) {
    for (Carried& one : line->carried) fail(*one.request, error);
    line->carried.clear();
  }
  for (auto* waiting : {&peer.announced, &peer.expected, &peer.accesses}) {
    for (auto& [number, request] : std::exchange(*waiting, {})) fail(*request, error);
  }
  matcher_.each_message([&](Matchable& one) {
    auto& message = static_cast<Unexpected&>(one);
    if (message.source != peer.rank || message.head.kind == Kind::eager) return;
    matcher_.remove(message);
    delete &message;
  });
  // A peer that died may have been the one that a receive from anybody waits for. One that left was not, as long as there are others.
  const bool ends_any = !peer.left || nobody_left();
  matcher_.each_receive([&](Matchable& one) {
    if (one.source != peer.rank && (one.source != kAnySource || !ends_any)) return;
    matcher_.withdraw(one);
    fail(static_cast<Request&>(one), error);
  });
}

bool Ranks::nobody_left() const {
  return std::ranges::none_of(peers_, [](const Peer& peer) { return peer.channel != nullptr && !peer.lost; });
}

Statistics Ranks::statistics() const {
  const auto lock = enter();
  Statistics all = statistics_;
  all.memory = registrations_.statistics();
  if (options_.learn.learning != guide::Learning::off) all.learning = learner_.statistics().describe();
  return all;
}

}  // namespace lacuna::protocol
