// method: the ways to move a layout over a NIC, one file each. It hides the order of posts, polls and copies.
//
// A transfer moves the packed stream of one layout into another. Each method is a pair of operations, one for each end.
// An operation is made once for a pair of layouts and started for each transfer, like a persistent MPI request; it
// never blocks:
//
//        sender                                   receiver
//   op = sender(transfer, memory)            op = receiver(transfer, memory)
//   op.prepare(base)                         op.prepare(base)
//   op.target() ────── by whatever channel the caller has ──────▶
//        ◀──────────────────────────────────────────────── op.target()
//   op.start(base, peer's target)            op.start(base, peer's target)
//   op.progress() ... until true             op.progress() ... until true
//
// A target stays good for as many transfers at the same base as one likes. Endpoint::run() and Endpoint::prepare() are
// the loops for those who want to wait. Both ends must know both layouts, as they do after a rendezvous: chains of work
// requests are cut at the same byte positions on both sides, which neither could know alone.
//
// One operation of an endpoint is under way at a time: messages are matched by their order, and two operations would
// take one another's. Transfers that shall overlap use several endpoints.
#pragma once

#include <algorithm>
#include <array>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "lacuna/base/base.hpp"
#include "lacuna/layout/layout.hpp"
#include "lacuna/nic/nic.hpp"

namespace lacuna::method {

using base::Result;
using layout::Layout;

/// How the passive end of a one-sided method learns that the other is done. Two-sided methods need none: the receive's
/// completion says it.
enum class Notify {
  none,  ///< it does not: the initiator's completion is all there is
  imm,   ///< the last write carries an immediate, which takes a posted receive; behind reads, an empty write does
  flag,  ///< a second small write behind the data; the passive end polls that word
};
[[nodiscard]] std::string_view notify_name(Notify notify);
[[nodiscard]] std::optional<Notify> notify_from_name(std::string_view name);

struct Transfer {
  Layout src;
  Layout dst;  ///< of the same size; receiving into it must not overlap
  Notify notify = Notify::none;
};

/// The user's memory at one end: layouts lie in `region`, at the base address that start() names.
struct Memory {
  const nic::Region* region = nullptr;
};

/// What one end tells the other. The passive end of a one-sided method says where data lies or may land.
struct Target {
  /// A stretch of the stream: where it begins, with which key. An indirect key's addresses begin at 0.
  struct Part {
    std::uint64_t addr = 0;
    std::uint32_t rkey = 0;
  };
  std::vector<Part> parts;  ///< in the order of the stream
  Part flag;                ///< a word that this end polls

  [[nodiscard]] std::vector<std::byte> encode() const;
  /// Errors: malformed.
  static Result<Target> decode(std::span<const std::byte> wire);
};

/// The work of one end for one transfer, counted as it is posted.
struct Counters {
  std::int64_t work_requests = 0;  ///< posted to the send queue
  std::int64_t receives = 0;       ///< posted to the receive queue
  std::int64_t sges = 0;           ///< of all these
  std::int64_t doorbells = 0;      ///< of the send queue: one for each post, whatever its chain holds
  std::int64_t completions = 0;    ///< signaled requests and receives: what has to be polled
  std::int64_t keys_created = 0;
  std::int64_t keys_bound = 0;
  std::int64_t key_entries = 0;   ///< of these bindings
  std::int64_t bytes_copied = 0;  ///< by this CPU, in pack and unpack; what the NIC moves is the NIC's
  std::int64_t copy_ns = 0;       ///< it took so long
};

class Operation;
class KeyCache;
class Words;

/// One end of a connection over one path, with the completions of all operations on it.
class Endpoint {
 public:
  struct Options {
    int max_send_wr = 128;
    int max_recv_wr = 128;
  };
  /// How a queue pair comes to be connected.
  using Connect = std::function<Result<std::unique_ptr<nic::QueuePair>>(nic::CompletionQueue& queue, const nic::QueuePairOptions& options)>;
  /// Errors: those of `make`, and of Context::create_completion_queue.
  static Result<std::unique_ptr<Endpoint>> connect(nic::Context& context, const Connect& make, nic::Path path, const Options& options);
  /// The peer connects at the same time, with the same path. Errors: those of Context::connect.
  static Result<std::unique_ptr<Endpoint>> connect(nic::Context& context, nic::Bootstrap& bootstrap, nic::Path path,
                                                   const Options& options);
  static Result<std::unique_ptr<Endpoint>> connect(nic::Context& context, nic::Bootstrap& bootstrap, nic::Path path) {
    return connect(context, bootstrap, path, Options());
  }
  ~Endpoint();
  Endpoint(const Endpoint&) = delete;
  Endpoint& operator=(const Endpoint&) = delete;

  [[nodiscard]] nic::Context& context() const { return context_; }
  [[nodiscard]] nic::QueuePair& qp() const { return *qp_; }
  [[nodiscard]] const nic::Limits& limits() const { return qp_->limits(); }
  [[nodiscard]] const Options& options() const { return options_; }
  [[nodiscard]] KeyCache& keys() const { return *keys_; }
  /// Memory for packed data, at least `bytes` of it, for operations of this endpoint; they share it, since one of them
  /// at a time is under way. It is kept, and grows. Errors: those of Context::allocate and register_memory.
  Result<std::shared_ptr<const nic::RegisteredBuffer>> staging(std::int64_t bytes);
  /// Registered words for flags.
  [[nodiscard]] Words& words() const { return *words_; }
  /// Send requests that the queue takes now.
  [[nodiscard]] int send_room() const { return options_.max_send_wr - static_cast<int>(sends_posted_ - sends_retired_); }

  /// Hands completions to their operations; how many there were.
  int poll();
  /// Drives a preparation to its end. Errors: as run().
  Result<Target> prepare(Operation& operation, std::byte* base, std::int64_t timeout_ns);
  /// Drives `operation` to its end. Errors: its own; peer_lost, transfer (the queue pair failed); timeout (`timeout_ns`
  /// went by).
  Result<void> run(Operation& operation, std::int64_t timeout_ns);
  /// Before a region goes: no indirect key stands for a part of it afterwards. Errors: as run(); limit (an operation
  /// uses such a key).
  Result<void> forget(const nic::Region& region, std::int64_t timeout_ns);

 private:
  friend class Operation;
  friend class KeyCache;
  Endpoint(nic::Context& context, std::unique_ptr<nic::CompletionQueue> queue, std::unique_ptr<nic::QueuePair> qp, const Options& options);

  /// Posts a chain, some of it signaled because otherwise nobody would free the queue's places.
  Result<void> post(std::span<nic::SendRequest> chain, Counters& counters);
  Result<void> until(const auto& step, std::int64_t timeout_ns, const char* what);

  nic::Context& context_;
  Options options_;
  std::unique_ptr<nic::CompletionQueue> queue_;
  std::unique_ptr<nic::QueuePair> qp_;
  std::unique_ptr<KeyCache> keys_;
  std::unique_ptr<Words> words_;
  std::shared_ptr<const nic::RegisteredBuffer> staging_;
  Operation* active_ = nullptr;
  std::unordered_map<std::uint32_t, Operation*> operations_;  // by the upper half of their wr_ids
  std::uint32_t tokens_ = 0;                                  // 0 is the key cache's
  std::uint64_t sends_posted_ = 0, sends_retired_ = 0;
  std::deque<std::uint64_t> signaled_;  // numbers of the signaled requests in flight
  int silent_ = 0;                      // unsignaled requests since the last signaled one
};

/// One end of one method for one pair of layouts.
class Operation {
 public:
  Operation(Endpoint& endpoint, Layout own, const Memory& memory);
  virtual ~Operation();
  Operation(const Operation&) = delete;
  Operation& operator=(const Operation&) = delete;

  /// Begins to make ready for transfers at `base`. The transfer before must have ended. Errors: invalid_argument
  /// (outside the region).
  Result<void> prepare(std::byte* base);
  /// Moves the preparation on; what the peer has to know, once that is complete.
  Result<std::optional<Target>> target();
  /// Begins a transfer from or to the layout at `base`. Errors: as prepare(); invalid_argument (another operation of
  /// the endpoint is under way); malformed (a target that does not fit). After these nothing has begun.
  Result<void> start(std::byte* base, const Target& peer = {});
  /// Moves on as far as it can; true once this end is finished.
  Result<bool> progress();
  /// Of the last transfer, with its preparation if it needed one.
  [[nodiscard]] const Counters& counters() const { return counters_; }

 protected:
  /// One step of the preparation at base_; true once it is complete.
  virtual Result<bool> prepare_more() { return true; }
  [[nodiscard]] virtual Target offer() const { return {}; }
  /// Whether the peer's target has what this operation needs. Errors: malformed.
  [[nodiscard]] virtual Result<void> check_peer() const { return {}; }
  virtual Result<void> begin() = 0;
  virtual Result<bool> advance() = 0;

  // Posting. Requests of one operation complete in order, so a count tells which have.
  [[nodiscard]] int send_room() const { return endpoint_.send_room(); }
  /// Posts a chain with one doorbell; wr_ids are filled in.
  Result<void> post(std::span<nic::SendRequest> chain);
  Result<void> send(std::span<const nic::Sge> list, bool signaled);
  Result<void> receive(std::span<const nic::Sge> list);
  [[nodiscard]] bool receive_room() const {
    return receives_posted_ - receives_done_ < static_cast<std::uint32_t>(endpoint_.options().max_recv_wr);
  }
  [[nodiscard]] std::uint32_t sends_posted() const { return sends_posted_; }
  [[nodiscard]] std::uint32_t sends_done() const { return sends_done_; }
  [[nodiscard]] std::uint32_t sends_in_flight() const { return sends_posted_ - sends_done_; }
  [[nodiscard]] std::uint32_t receives_posted() const { return receives_posted_; }  ///< since start()
  [[nodiscard]] std::uint32_t receives_done() const { return receives_done_; }
  /// The error of a failed completion, if there was one.
  [[nodiscard]] Result<void> healthy() const;

  // The CPU's copies, counted.
  void pack(std::int64_t position, std::int64_t length, std::byte* out);
  void unpack(std::int64_t position, std::int64_t length, const std::byte* in);

  /// An entry for a run of the own layout.
  [[nodiscard]] nic::Sge sge(layout::Run run) const {
    return {reinterpret_cast<std::uint64_t>(base_ + run.offset), static_cast<std::uint32_t>(run.length), region_->lkey()};
  }

  Endpoint& endpoint_;
  Layout own_;
  const nic::Region* region_;
  std::byte* base_ = nullptr;
  Target peer_;
  Counters counters_;

 private:
  friend class Endpoint;
  void complete(const nic::Completion& completion);
  [[nodiscard]] std::uint64_t wr_id(std::uint32_t sequence) const { return std::uint64_t{token_} << 32 | sequence; }

  std::uint32_t token_;
  std::uint32_t sends_posted_ = 0, sends_done_ = 0;
  std::uint32_t receives_posted_ = 0, receives_done_ = 0;
  bool fresh_ = false;     // prepared, and not started since
  bool prepared_ = false;  // completely
  bool failed_ = false;
};

// --- what a transfer is made of, for whoever prices it ---------------------------------------------------------------

/// Where time goes.
enum class Stage : std::uint8_t { post, fetch, translate, copy, wire, unpack, registration, notify };
inline constexpr std::size_t kStages = 8;
[[nodiscard]] std::string_view stage_name(Stage stage);

/// What a path asks for one of each thing that a transfer does: nanoseconds, but for the last three, which are bytes.
enum class Price : std::uint8_t {
  start,            ///< of a transfer: the way there and back to whoever notices
  post,             ///< a doorbell
  build,            ///< a work request, at the CPU
  build_entry,      ///< an entry of its list, at the CPU
  receive,          ///< a posted receive, at the CPU
  poll,             ///< a completion, at the CPU
  message,          ///< what a message takes beyond a write
  request,          ///< a work request, at the engine that fetches it
  entry,            ///< an entry that is gathered
  scatter,          ///< an entry that is scattered
  key_entry,        ///< an entry behind an indirect key
  key_scan,         ///< for each unit that the path moves: an entry of the key's list that is passed to find it
  key_again,        ///< the same for the second and later entries within a unit, once more for each 1024 of the list
  page,             ///< a page of memory that is touched
  write_byte,       ///< a byte that is moved away, from and to caches
  write_far_byte,   ///< from or to memory
  read_byte,        ///< a byte that is fetched
  read_far_byte,    ///< from or to memory
  piece,            ///< a stretch that is contiguous on both sides, where a CPU moves it
  read,             ///< a read request's way there, and the word that says that the source is ready
  write_none,       ///< the notification behind writes: the completion at the sender
  write_imm,        ///< an immediate
  write_flag,       ///< a word
  read_none,        ///< behind reads, to the source: none
  read_imm,         ///< an empty write with an immediate
  read_flag,        ///< a word
  copy_call,        ///< a call of pack or unpack
  pack_run,         ///< a run that is packed
  unpack_run,       ///< a run that is unpacked
  listed_run,       ///< a run more, where places are listed one by one
  uneven_run,       ///< a run more, where lengths differ
  pack_byte,        ///< a byte that is packed, within caches
  pack_far_byte,    ///< from memory
  unpack_byte,      ///< a byte that is unpacked, within caches
  unpack_far_byte,  ///< to memory
  cold_line,        ///< a cache line that is in no cache
  bind,             ///< binding an indirect key
  bind_entry,       ///< each entry of it
  /// What a line that a CPU writes costs beyond its bytes, where the other CPU has it in its cache since it read what
  /// was there
  held_line,
  /// What a line that a CPU fetches costs beyond its bytes, where the other CPU has just written it; what is unpacked
  /// is fresh as well
  fresh_line,
  key_lookup,  ///< an indirect key, where a CPU looks into it
  near_bytes,  ///< a copy that touches fewer bytes is within caches,
  far_bytes,   ///< one that touches more is not; in between it is so in part
  /// Of the last so many bytes that a CPU has touched, its cache holds all lines; of twice as many, none of the first
  held_bytes,
};
inline constexpr std::size_t kPrices = static_cast<std::size_t>(Price::held_bytes) + 1;
[[nodiscard]] std::string_view price_name(Price price);
using Prices = std::array<double, kPrices>;

enum class Role { sender, receiver };

/// The work of one transfer, item by item, and the time that it takes: some is done before anything moves, some in
/// between, some after. What is done in between, the CPUs, the engines of both devices and the wire do side by side: it
/// takes as long as the slowest, and what the first unit has to wait for each of the others. A method writes the cost
/// items; the guide has the prices.
class CostItems {
 public:
  /// aside: a CPU's work that no peer waits for
  enum class When : std::uint8_t { before, between, after, aside };
  /// A CPU, its device's engine, the wire, and the other end's
  enum class Who : std::uint8_t { sender, fetch, wire, place, receiver };
  static constexpr std::size_t kWho = 5;

  /// What is moved by requests of one kind.
  struct Haul {
    bool reading = false;
    bool messages = false;  ///< they take receives
    double requests = 1;
    double doorbells = 1;
    double gathers = 1;      ///< entries of lists at the source
    double scatters = 1;     ///< at the destination
    double pieces = 1;       ///< contiguous on both sides
    double gather_keys = 0;  ///< entries behind an indirect key at the source, all together,
    double scatter_keys = 0;
    double keys = 1;  ///< and behind how many keys;
    /// The key of an average entry has so many times as many entries as the average key: the last one is shorter
    double longer = 1;
    double staging = 0;  ///< bytes that the destination's CPU unpacks out of, where it is not contiguous
    double credits = 0;  ///< empty messages the other way, where devices move the data
  };

  /// `cold`: the data is in no cache. `uses`: transfers for which a binding of an indirect key holds; 0: any number.
  CostItems(const Prices& prices, const nic::PathInfo& path, const layout::PairOutline& pair, bool cold = false, double uses = 0)
      : prices_(prices), path_(path), pair_(pair), cold_(cold), uses_(uses) {}
  [[nodiscard]] const layout::PairOutline& pair() const { return pair_; }
  void pack(When when, double calls = 1);  ///< before haul()
  void unpack(When when, double calls = 1);
  void haul(const Haul& haul);
  /// The last thing on the cost items; said again, it takes the place of what was said before.
  void notify(Role initiator, Notify notify);
  void bind(double keys, double entries);

  [[nodiscard]] double latency_ns() const;
  [[nodiscard]] std::array<double, kStages> stages_ns() const;  ///< their sum is the latency
  [[nodiscard]] double cpu_ns(Role role) const;
  /// Of the busiest of all for one transfer among many: the inverse of bandwidth
  [[nodiscard]] double busiest_ns() const;

 private:
  struct Item {
    When when;
    Stage stage;
    Who who;
    double ns;
  };
  static constexpr std::size_t kMost = 40;  // 27 is the longest
  void add_ns(When when, Stage stage, Who who, double ns) {
    // Where there are no engines, a CPU does their work.
    if (path_.mover == nic::Mover::initiator && (who == Who::fetch || who == Who::place)) who = initiator_;
    if (path_.mover == nic::Mover::both && who == Who::fetch) who = Who::sender;
    if (path_.mover == nic::Mover::both && who == Who::place) who = Who::receiver;
    item_.at(items_++) = {when, stage, who, ns};  // throws: a method that writes more of them has to say so here
    account(when, who, ns);
  }
  void add(When when, Stage stage, Who who, Price of, double count) {
    if (count > 0) add_ns(when, stage, who, count * price(of));
  }
  void add_bytes(When when, Stage stage, Who who, Price near, Price far, double bytes, double footprint);
  void add_lines(When when, Stage stage, Who who, Price of, double lines, double touched);
  void copy(When when, double calls, Role role);
  void between_caches(const Haul& haul);
  void translate(Who who, const layout::Outline& side, double entries, const Haul& haul);
  void account(When when, Who who, double ns) {
    whole_[static_cast<std::size_t>(who)] += ns;
    if (when == When::between) between_[static_cast<std::size_t>(who)] += ns;
    if (when == When::before || when == When::after) alone_ += ns;
  }
  [[nodiscard]] static bool is_cpu(std::size_t who) {
    return who == static_cast<std::size_t>(Who::sender) || who == static_cast<std::size_t>(Who::receiver);
  }
  /// What of each one's work side by side with the others is in the latency: all of the slowest's, and the others' on
  /// the first unit, or on the first request. Engines hand units to one another; a CPU waits for a whole request, which
  /// is with the slowest of the engines for longest.
  [[nodiscard]] std::array<double, kWho> shares() const {
    std::size_t last = 0;
    auto engine = static_cast<std::size_t>(Who::fetch);
    for (std::size_t who = 1; who < kWho; ++who) {
      if (between_[who] > between_[last]) last = who;
      if (!is_cpu(who) && between_[who] > between_[engine]) engine = who;
    }
    const bool cpus = path_.mover != nic::Mover::both;
    std::array<double, kWho> shares{};
    for (std::size_t who = 0; who < kWho; ++who) {
      const bool whole = cpus && (is_cpu(who) || (is_cpu(last) && who == engine));
      shares[who] = who == last ? 1 : 1 / (whole ? requests_ : std::max(requests_, units_));
    }
    return shares;
  }
  [[nodiscard]] double price(Price price) const { return prices_[static_cast<std::size_t>(price)]; }

  const Prices& prices_;
  const nic::PathInfo& path_;
  const layout::PairOutline& pair_;
  bool cold_;
  double uses_;
  Who initiator_ = Who::sender;
  double requests_ = 1;  // how finely CPUs take turns with engines,
  double units_ = 1;     // and engines with one another
  std::size_t items_ = 0;
  bool packed_ = false;                 // what haul() moves has been packed
  bool notified_ = false;               // its last item is the notification
  std::array<double, kWho> between_{};  // what each does side by side with the others
  std::array<double, kWho> whole_{};    // and in all
  double alone_ = 0;                    // what is done before and after
  std::array<Item, kMost> item_;
};

/// Which end's own memory the other end reaches into, so that the path must reach it.
enum class Exposes { nothing, source, destination };

/// A way to move a layout; a line of the table.
struct Method {
  std::string_view name;
  std::string_view summary;
  std::span<const Notify> notifies;  ///< what Transfer::notify may be; the first is the usual one
  Role initiator;                    ///< the active end of a one-sided method
  Exposes exposes;
  bool indirect_keys;  ///< needs a NIC that has them
  Result<std::unique_ptr<Operation>> (*make)(Role, Endpoint&, const Transfer&, const Memory&);
  void (*cost_items)(CostItems&, const nic::Limits&);  ///< what it does; the notification comes on top

  [[nodiscard]] bool one_sided() const { return notifies.size() > 1; }
  /// Whether this end is told nothing when a transfer is over.
  [[nodiscard]] bool uninformed(Role role, Notify notify) const { return one_sided() && notify == Notify::none && role != initiator; }
};
[[nodiscard]] std::span<const Method> methods();
/// Errors: invalid_argument, with the names that there are.
Result<const Method*> find(std::string_view name);

/// Makes one end of a method after checking all that can be checked without the peer. Errors: invalid_argument (sizes
/// differ, the destination overlaps itself, a notification that the method has not), unsupported (the path does not
/// reach the memory, the NIC has no indirect keys), limit, out_of_memory.
Result<std::unique_ptr<Operation>> make(const Method& method, Role role, Endpoint& endpoint, const Transfer& transfer,
                                        const Memory& memory);

}  // namespace lacuna::method
