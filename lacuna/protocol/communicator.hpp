// The communicator: requests, matching and the peers, moved on together. Its parts: channels carry heads, streams and rendezvous carry
// bytes, the matcher says for whom they are.
#pragma once

#include <algorithm>
#include <deque>
#include <mutex>
#include <thread>
#include <unordered_map>

#include "lacuna/guide/learner.hpp"
#include "lacuna/protocol/layouts.hpp"
#include "lacuna/protocol/rendezvous.hpp"
#include "lacuna/protocol/reuse.hpp"
#include "lacuna/protocol/transits.hpp"

namespace lacuna::protocol {

/// What waits for room in a channel: a head with its payload, or a small send.
struct Outgoing {
  Head head;
  std::vector<std::byte> payload;
  Request* eager = nullptr;
};

struct Peer {
  int rank = 0;
  std::unique_ptr<nic::Bootstrap> bootstrap;
  std::unique_ptr<Channel> channel;  // null: this is the own rank
  std::deque<Outgoing> outbox;
  std::optional<base::Error> lost;
  bool left = false;  // it said that nothing follows

  // Credit: bytes of small messages that were sent, and that the peer said were received; and the same of its messages here.
  std::int64_t room = 0;  // that it gives this rank
  std::int64_t eager_sent = 0, eager_released = 0;
  std::int64_t eager_came = 0, released = 0, released_told = 0;
  std::int64_t waiting = 0;  // its announcements that no receive took
  std::size_t served = 0;    // its puts and gets under way

  // Streams, and what waits for an answer, or for what an answer asked for.
  Windows windows;
  Stores stores;
  Transits transits;
  Seen seen;
  std::vector<Request*> sending;     // being packed
  std::vector<Request*> receiving;   // being unpacked
  std::deque<Request*> for_windows;  // answered sends without a window
  std::unordered_map<std::uint32_t, Request*> announced;
  std::unordered_map<std::uint32_t, Request*> expected;
  std::uint32_t numbers = 0;

  // Accesses of this end that the peer has not spoken of, by number.
  std::unordered_map<std::uint32_t, Request*> accesses;

  // Rendezvous.
  Told told;
  Heard heard;
  Line outgoing, incoming;

  /// Nothing is under way but what may arrive.
  [[nodiscard]] bool idle() const {
    return sending.empty() && receiving.empty() && for_windows.empty() && outgoing.carried.empty() && incoming.carried.empty();
  }
};

class Ranks final : public Communicator {
 public:
  Ranks(nic::Context& context, const std::string& nic, int rank, Options options)
      : context_(context),
        rank_(rank),
        options_(std::move(options)),
        guide_(options_.force),
        kind_(&guide_.add(context.limits(), guide::find_profile(nic))),
        learner_(options_.learn),
        learned_file_(guide::learned_file(guide::profile_file(nic))),
        registrations_(context, {.keep = options_.registering != Registering::copy && options_.registering != Registering::pipeline,
                                 .most_bytes = options_.registered_bytes,
                                 .most = options_.registered_entries,
                                 .forget = [this](const nic::Region& region) { return forget(region); }}) {}
  ~Ranks() override;
  Ranks(const Ranks&) = delete;
  Ranks& operator=(const Ranks&) = delete;
  Result<void> connect(Group group);

  [[nodiscard]] int rank() const override { return rank_; }
  [[nodiscard]] int size() const override { return static_cast<int>(peers_.size()); }
  [[nodiscard]] nic::Context& context() override { return context_; }

  Result<Request*> isend(const void* base, const Layout& layout, int dest, int tag) override;
  Result<Request*> irecv(void* base, const Layout& layout, int source, int tag) override;
  std::optional<Result<Status>> test(Request* request) override;
  Result<std::size_t> wait_any(std::span<Request* const> requests, std::int64_t timeout_ns) override;
  Result<Status> wait(Request* request) override;
  bool cancel(Request* request) override;
  void give_up(Request* request) override;
  int take_tag() override {
    const auto lock = enter();
    return taken_tag(tags_taken_++);
  }
  Result<void> send(const void* base, const Layout& layout, int dest, int tag) override;
  Result<Status> recv(void* base, const Layout& layout, int source, int tag) override;
  Result<std::optional<Status>> probe(int source, int tag) override;
  bool progress() override {
    const auto lock = enter();
    const bool moved = advance();
    if (!moved) idle();
    return moved;
  }
  Result<std::uint32_t> register_memory(void* base, std::int64_t bytes) override;
  Result<void> deregister_memory(std::uint32_t number) override;
  Result<Exposed> expose(void* base, std::int64_t bytes) override;
  Result<void> withdraw(const Exposed& exposed, std::int64_t timeout_ns) override;
  Result<Request*> put(const void* base, const Layout& src, const Exposed& to, std::int64_t offset, const Layout& dst) override;
  Result<Request*> get(void* base, const Layout& dst, const Exposed& from, std::int64_t offset, const Layout& src) override;
  Result<Request*> offer(const void* base, const Layout& layout, int dest, Behind behind, Ticket& ticket) override;
  void set_aside(Request* offer) override;
  void pack(Request* offer) override;
  Result<void> leave(Request* offer) override;
  Result<Request*> accept(void* base, const Layout& layout, int source, std::int64_t bytes, const Ticket& ticket) override;
  [[nodiscard]] Statistics statistics() const override;
  Result<std::string> explain(const Layout& src, const Layout& dst, int dest) override;

 private:
  // Whoever enters: alone, if there is a thread.
  [[nodiscard]] std::unique_lock<std::mutex> enter() const {
    return options_.progress_thread ? std::unique_lock(mutex_) : std::unique_lock<std::mutex>();
  }
  void step(std::string_view name) const {
    if (options_.at_step) [[unlikely]]
      options_.at_step(name);
  }
  Request* fresh();
  Result<Status> end(Request* request);
  void retire(Request* request);
  /// Until `ready` says true. Errors: timeout.
  template <class Ready>
  Result<void> until(std::unique_lock<std::mutex>& lock, const Ready& ready, std::int64_t timeout_ns = kForever) {
    const std::int64_t deadline = timeout_ns == kForever ? kForever : context_.now() + timeout_ns;
    int spins = spins_;
    while (!ready()) {
      if (advance()) continue;
      if (--spins >= 0) {  // a peer that answers at once shall not wait for a look at the clock
        base::cpu_relax();
        continue;
      }
      idle();
      LACUNA_TRY(context_.wait(deadline));
      if (!lock.owns_lock()) continue;
      lock.unlock();
      lock.lock();
    }
    return {};
  }
  Result<void> connect(Peer& peer);
  Result<void> agree(Peer& peer) const;
  void abandon(Request& request);
  void run_thread();
  void close();
  void keep_what_was_learned() const;

  // send.cpp
  Result<Peer*> peer_of(int rank, int tag);
  [[nodiscard]] bool has_room(const Peer& peer, std::int64_t bytes) const {
    return peer.eager_sent + bytes + kEagerCost - peer.eager_released <= peer.room;
  }
  /// Whether what is too long for a small message goes by a stream (docs/design/messages.md says what that was compared with).
  [[nodiscard]] bool streams(const Peer& peer) const {
    return peer.channel->shares_memory() && options_.force.method == nullptr && !options_.force.path;
  }
  /// Whether it does so if there is a window, though it may be a small message: from 2 KiB on it is with the receiver sooner.
  [[nodiscard]] bool streams_first(const Peer& peer, std::int64_t bytes) const {
    return streams(peer) && bytes > std::min<std::int64_t>(options_.eager_bytes, 2 << 10);
  }
  bool send_small(Peer& peer, const void* base, const Layout& layout, int tag);
  bool send_eager(Peer& peer, const void* base, const Layout& layout, int tag);
  Result<void> begin_send(Request& request);
  Result<void> send_to_self(Request& request);
  Result<void> send_large(Peer& peer, Request& request);
  Result<void> begin_stream(Peer& peer, Request& request, Windows::Place& window, std::uint32_t answer);
  Result<bool> go_on(Peer& peer, Request& send);
  void say(Peer& peer, Head head, std::span<const std::byte> payload = {});
  bool flush(Peer& peer);

  // receive.cpp
  static Result<void> check_destination(const Layout& layout);
  Result<void> begin_receive(Request& request);
  [[nodiscard]] Result<void> still_there(int source) const;
  Result<void> take(Peer& peer, const Channel::Arrival& arrival);
  Result<void> take_message(Peer& peer, const Channel::Arrival& arrival);
  Result<void> deliver(Request& receive, Unexpected& message);
  void keep_eager(const Peer& peer, const Head& head, const std::byte* data);
  void keep(std::unique_ptr<Unexpected> message);
  void deliver_eager(Request& receive, int source, const Head& head, const std::byte* data);
  void deliver_stream(Peer& peer, Request& receive, const Head& head, InStream stream);
  void deliver_announced(Peer& peer, Request& receive, const Unexpected& message);
  Result<void> take_answer(Peer& peer, Request& send, const Channel::Arrival& arrival);
  static Result<Cut> check_cut(const Answer& answer, const Request& send);
  Result<void> take_part(Peer& peer, const Channel::Arrival& arrival);
  Result<void> take_ready(Peer& peer, const Channel::Arrival& arrival);
  Result<void> deliver_self(Request& receive, Request& send);
  void release(Peer& peer, std::int64_t bytes);

  // access.cpp
  struct Memory {
    std::byte* base = nullptr;
    std::int64_t bytes = 0;
    int in_use = 0;  // served requests
  };
  Result<Request*> begin_access(void* base, const Layout& own, const Exposed& there, std::int64_t offset, const Layout& theirs, bool gets);
  Result<void> access_own(void* base, const Layout& own, const Exposed& there, std::int64_t offset, const Layout& theirs, bool gets);
  Result<void> serve(Peer& peer, const Head& head);
  Result<void> take_accessed(Peer& peer, const Head& head);
  void tell_accessed(Peer& peer, std::uint32_t number, bool gets, std::optional<base::Code> refused);
  void end_served(Request& request);
  void retire_served();

  // offers.cpp
  Result<Peer*> sharing(int rank, std::int64_t bytes);
  [[nodiscard]] bool may_gain_directly(const Layout& layout) const;
  Advice advice(const Peer& peer, const Layout& layout);
  Result<Windows::Place*> place_for(Peer& peer, const Layout& layout, Behind behind);
  Result<std::vector<Windows::Hold>> rest_of(Peer& peer, const OutStream& out, std::int64_t bytes);
  Result<bool> copy_out(Peer& peer, Request& send, OutStream& out);
  void take_directly(Peer& peer, Request& receive, InStream& in);
  Result<bool> come_on(Request& receive, InStream& in);
  void stop_copying(Request& request);
  bool take_back(Request* offer);

  // rendezvous.cpp
  /// Who forces a method wants it for the layouts, not for their copies.
  [[nodiscard]] Registering registering() const {
    const bool forced = options_.registering == Registering::automatic && options_.force.method != nullptr;
    return forced ? Registering::leave_pinned : options_.registering;
  }
  bool can_register(Request& send);
  bool knows(const Request& send);
  std::uint32_t tell(Peer& peer, const Layout& layout);
  Result<void> cut(Carried& now);
  Result<void> make_part(Peer& peer, Carried& now, method::Role role);
  static bool may_make(const Line& line, const Carried& now, method::Role role);
  Result<bool> carry(Peer& peer, method::Role role);
  Result<bool> move_part(Peer& peer, Carried& now, Moving& part, method::Role role);
  Result<void> tell_part(Peer& peer, Carried& now, const Moving& part, const method::Target& target, method::Role role);
  Result<void> forget(const nic::Region& region);
  Result<guide::Way> way_for(Moving& part, const method::Transfer& layouts, const guide::Placement& placement, bool alone);
  void drop(Peer& peer, std::uint32_t number, base::Code code);
  static Result<bool> alive(const method::Endpoint& endpoint, bool moved);
  void count(const guide::Way& way, std::int64_t bytes);
  Result<void> say_long(Peer& peer, Head head, std::span<const std::byte> payload);

  // progress.cpp
  bool advance();
  Result<bool> advance(Peer& peer);
  // After a round in which nothing moved.
  void idle() {
    if (++idle_ % kIdlePerLook == 0) look_for_faults();
  }
  void done(Request& request);
  void fail(Request& request, base::Error error);
  void lose(Peer& peer, base::Error error);
  void look_for_faults();
  /// Whether all other ranks are lost.
  [[nodiscard]] bool nobody_left() const;

  nic::Context& context_;
  int rank_;
  Options options_;
  guide::Guide guide_;
  const guide::Peer* kind_;  // what the peers are to the guide
  guide::Learner learner_;
  std::string learned_file_;
  Reuse reuse_;
  Registrations registrations_;
  std::vector<Peer> peers_;  // whose messages lease registrations
  Matcher matcher_;
  std::deque<Request> requests_;
  std::vector<Request*> free_;
  std::unordered_map<std::uint32_t, Memory> exposed_;
  std::uint32_t exposures_ = 0;
  std::vector<Request*> served_;  // done, to be retired
  Statistics statistics_;
  std::uint32_t tags_taken_ = 0;
  static constexpr std::uint32_t kIdlePerLook = 64;
  static constexpr std::uint32_t kCallsPerAdvance = 256;
  std::uint32_t calls_ = 0;  // that name a peer
  std::uint32_t idle_ = 0;
  int spins_ = 0;  // rounds of waiting before the context is asked to wait

  mutable std::mutex mutex_;
  std::thread thread_;
  std::atomic<bool> stop_ = false;
};

}  // namespace lacuna::protocol
