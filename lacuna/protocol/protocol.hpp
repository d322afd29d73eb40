// protocol: messages with tags between processes, and when memory gets registered for them. It hides how a message
// travels.
//
//   send(layout, dest, tag) ── CPUs share memory: the guide chooses; else by eager_bytes ─┐
//      ┌──────────────────────────────────────────────────────────────────────────────────┘
//      ├─▶ eager: packed into the channel ────────────────────────────────────────────────┐
//      ├─▶ stream: packed into a ring as it empties, before it is matched ────────────────┼──▶ matched, and unpacked
//      ├─▶ direct: offered; both CPUs copy from memory to memory ─────────────────────────┤
//      └─▶ rendezvous: announced; the receiver chooses the method, and answers ───────────┘
//
// Matching follows MPI (MPI-4.1, 3.5): messages of one sender arrive in the order of their sends as far as the same
// receive could take them, wildcards take the earliest, and a message longer than its receive is an error of the
// receive.
//
// Progress: messages move only in calls of the communicator, unless it has a thread for them
// (Options::progress_thread). A call that waits moves all messages, whichever it waits for. A small send is done when
// it returns; a large one needs both ends in such calls.
//
// Everything that a peer says may be false, and is checked. A peer that breaks a rule is lost (Code::malformed), and so
// are the messages under way between the two; no byte is written where no receive named it.
//
// Rooms, from the top down; each folder's header of the same name says what it hides. scripts/ladder.py checks that a
// room includes only those above:
//
//   bootstrap      how processes find one another         message        sends and receives, by every protocol
//   channel        what two ranks say to one another      access         puts and gets
//   matching       which message a receive gets           progress       which peer gets a turn, where its heads go
//   registration   which memory the NIC knows             offer          messages that another library matches
//   choice         how memory is cut, and by which way    communicator   the calls below
//   stream         bytes through shared memory
//   rendezvous     bytes by a device or the kernel
//   request        a message, a peer, and how they end
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lacuna/base/base.hpp"
#include "lacuna/guide/guide.hpp"
#include "lacuna/guide/usual_thresholds.hpp"
#include "lacuna/layout/layout.hpp"
#include "lacuna/nic/nic.hpp"
#include "lacuna/nic/world.hpp"

namespace lacuna::protocol {

using base::Result;
using layout::Layout;

// --- how processes find one another ----------------------------------------------------------------------------------

/// Processes that are connected with one another, as one of them sees it.
struct Group {
  int rank = 0;
  std::vector<std::unique_ptr<nic::Bootstrap>> peers;  ///< by rank; null for the own
  /// Instead of connections, by rank: each process reaches the others by itself, when it first has to. Such a group has
  /// offers only.
  std::vector<nic::Card> cards = {};
  bool one_machine = true;  ///< and one user: NIC local connects all of them
  /// Instead of connections: so many processes, two of which the NIC connects when they first talk (nic::Hub).
  int hub = 0;
  [[nodiscard]] int size() const { return std::max(static_cast<int>(std::max(peers.size(), cards.size())), hub); }
};

struct BootstrapOptions {
  /// A name: processes of one user on one machine; or "host:port": processes that have the secret
  std::string address;
  int size = 2;  ///< of the group
  /// -1: in the order in which they come. With "host:port", rank 0 listens there, so the rank has to be given
  int rank = -1;
  std::string secret;     ///< for "host:port"; at least 16 bytes
  double timeout_s = 30;  ///< for all of them to come
  std::string machine;    ///< for tests, with "host:port": the machine that this process claims to be on
};

/// Waits for the other processes and connects with them. Errors: invalid_argument (an invalid address, a rank that is
/// not below size, a secret too short; what contradicts those that came before: another size, a rank that is taken, one
/// process too many); permission (another user's process holds the name; a wrong secret); timeout (and which ranks are
/// missing); limit (more than kMostRanks or than there may be open files, a name too long); io (the host is unknown,
/// the port is in use); malformed, peer_lost; out_of_memory with a name, also where another
/// process has none. Between several machines, or several users, the connections carry no
/// files: a NIC that connects one machine's processes says so (unsupported) when it is to connect them.
Result<Group> form_group(const BootstrapOptions& options);
/// A rank of a simulated world among all others, within World::run(). The world outlives it.
Group form_group(nic::World& world, int rank);
/// The same, but two ranks are connected when they first talk, and what a rank needs does not grow with the others.
Group form_group_by_hub(nic::World& world, int rank);
inline constexpr int kMostRanks = 1024;

/// A group, and the NIC that connects its processes.
struct Meeting {
  std::unique_ptr<nic::Context> context;
  Group group;
};
/// `nic`: as nic::open(); empty: as nic::open_usual(), for where the processes turn out to be. Errors: those of both
/// and of form_group().
Result<Meeting> meet(const BootstrapOptions& options, std::string_view nic);

// --- messages --------------------------------------------------------------------------------------------------------

inline constexpr int kAnySource = -1;
inline constexpr int kAnyTag = -1;

/// How a message travels.
enum class Protocol : std::uint8_t { eager, stream, rendezvous, self, direct };
inline constexpr std::size_t kProtocols = 5;
[[nodiscard]] std::string_view protocol_name(Protocol protocol);

/// The outcome of a message; of a send, the message that was sent.
struct Status {
  int source = 0;
  int tag = 0;
  std::int64_t bytes = 0;  ///< of its data, packed
  Protocol protocol = Protocol::eager;
};

/// Names memory of a rank that the others may put to and get from: a few bytes, which the program gives to them by any
/// message.
struct Exposed {
  std::int32_t rank = 0;
  std::uint32_t number = 0;
  std::int64_t bytes = 0;
  bool operator==(const Exposed&) const = default;
};

/// Whether an offered message will be left behind (Communicator::leave()).
enum class Behind : std::uint8_t {
  no,       ///< not as long as its receiver takes it in time
  bounded,  ///< yes, where Options::shared_bytes has room
  always,   ///< the same; between nodes, whatever the bound there
};

/// What the receiver of an offered message needs. The caller gives it to the receiver by other means.
struct Ticket {
  std::array<std::byte, 32> bytes{};
  bool operator==(const Ticket&) const = default;
};

/// What becomes of a message's memory where a NIC has to know it: copied into, and out of, memory that it knows; or
/// registered with it.
enum class Registering : std::uint8_t {
  automatic,              ///< the one of the others that is expected to cost least
  copy,                   ///< copied, part by part
  leave_pinned,           ///< registered whole, and left so
  pipeline,               ///< registered and moved part by part, the first of them copied; not left so
  leave_pinned_pipeline,  ///< the same, and left so
};
[[nodiscard]] std::string_view registering_name(Registering registering);
/// Errors: invalid_argument (the message lists what there is).
Result<Registering> registering_from_name(std::string_view name);

/// Counted since the communicator was made.
struct RegistrationStatistics {
  std::string mode;             ///< what ends a registration here, and why, in words
  std::int64_t registered = 0;  ///< times
  std::int64_t found = 0;       ///< memory that was registered already
  std::int64_t changed = 0;     ///< registrations that ended because of what happened to their pages,
  std::int64_t evicted = 0;     ///< or to make room
  std::int64_t unwatched = 0;   ///< that ended with their transfer, since the memory could not be watched
  std::int64_t entries = 0;     ///< there now,
  std::int64_t bytes = 0;       ///< and theirs
};

/// Counted since the communicator was made.
struct Statistics {
  struct Count {
    std::int64_t messages = 0;
    std::int64_t bytes = 0;
  };
  Count sent[kProtocols];
  Count received[kProtocols];
  std::int64_t unexpected = 0;        ///< messages that came before their receive
  std::int64_t unexpected_bytes = 0;  ///< what they hold now,
  std::int64_t unexpected_most = 0;   ///< and held at most
  std::int64_t without_credit = 0;    ///< small sends that had to be announced because the peer's room was used up
  std::int64_t layouts_told = 0;      ///< layouts that went to a peer; the other times a number did
  struct Way {
    guide::Way way;
    Count count;
  };
  /// Memory through which messages reach ranks that share it
  struct Shared {
    std::int64_t bytes = 0;    ///< now,
    std::int64_t most = 0;     ///< at most so far,
    std::int64_t bound = 0;    ///< and at most ever
    std::int64_t refused = 0;  ///< offers that found no room there
  };
  Shared shared;
  std::vector<Way> ways;          ///< of what was received by rendezvous, part by part
  std::int64_t parts = 0;         ///< of messages by rendezvous that were cut, at either end,
  std::int64_t copied_bytes = 0;  ///< and bytes that this end copied for it
  RegistrationStatistics memory;
  std::string learning;  ///< a line of text; empty where learning is off
  static void count(Count (&counts)[kProtocols], Protocol protocol, std::int64_t bytes) {
    ++counts[static_cast<std::size_t>(protocol)].messages;
    counts[static_cast<std::size_t>(protocol)].bytes += bytes;
  }
  [[nodiscard]] std::string describe() const;  ///< lines of text
};

class Channel;

struct Options {
  /// Of data, at most, in a message that is sent before its receive is posted
  std::int64_t eager_bytes = guide::usual::kEagerBytes;
  std::int64_t unexpected_bytes = 4 << 20;  ///< for each peer: small messages that wait for their receive
  /// Of this rank's memory through which messages reach ranks that share it, for all of them together, at most; 0:
  /// usual_shared_bytes()
  std::int64_t shared_bytes = 0;
  /// Idle pages of that memory go back while the program makes no call: by a thread, there as long as there are some
  bool idle_thread = false;
  bool progress_thread = false;              ///< a thread of its own moves things on while the program computes
  std::int64_t timeout_ns = 60'000'000'000;  ///< for setting up
  guide::Force force = {};
  /// Of messages and offers between ranks that share memory, wherever it can be; nothing: as the guide chooses
  std::optional<guide::MessageWay> way = {};
  guide::LearnOptions learn = {};  ///< of messages by rendezvous, where this rank receives
  Registering registering = Registering::automatic;
  std::int64_t part_bytes = 256 << 10;                    ///< of a message that is registered, or copied, part by part
  std::int64_t registered_bytes = std::int64_t{1} << 30;  ///< that may be left registered while nothing uses it,
  std::size_t registered_entries = 1024;                  ///< in so many stretches
  /// For tests: called with the name of each step of a protocol as it is reached.
  std::function<void(std::string_view step)> at_step = {};
  /// For tests: what is put between a communicator and the channel to a peer.
  std::function<std::unique_ptr<Channel>(std::unique_ptr<Channel>)> wrap_channel = {};

  /// With what the user forces: LACUNA_METHOD, LACUNA_PATH, LACUNA_WAY, LACUNA_REGISTERING (registering_name()),
  /// LACUNA_LEARN; and LACUNA_SHARED_BYTES.
  /// Errors: invalid_argument (the message lists what there is).
  static Result<Options> from_environment(Options options);
  /// What shared_bytes is for a rank that shares memory with so many ranks, itself among them.
  [[nodiscard]] std::int64_t shared_bytes_of(int ranks) const;
};

/// Bytes of a rank that shares memory with so many ranks, itself among them: a node of many has as much in all as a
/// node of few.
std::int64_t usual_shared_bytes(int ranks);

/// Whether this system tells of memory that is freed while it is registered, without which registrations end with their
/// transfer on a NIC that pins.
/// Errors: why it does not.
Result<void> freed_memory_is_told();

/// A send or a receive that is under way. It belongs to its communicator.
class Request;

/// A group of processes that send one another messages. Belongs to one thread at a time, unless it has a progress
/// thread: then any thread may call.
class Communicator {
 public:
  /// All of the group at the same time. `context` must outlive it. `nic`: as guide::find_profile() takes it.
  /// Errors: those of nic::Context::connect(); unsupported (no path that takes messages); timeout.
  static Result<std::unique_ptr<Communicator>> create(nic::Context& context, const std::string& nic, Group group, Options options = {});
  ~Communicator();
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  [[nodiscard]] int rank() const;
  [[nodiscard]] int size() const;
  [[nodiscard]] nic::Context& context();
  /// Why this rank and another one have lost one another: the first such error; null: they have not.
  [[nodiscard]] const base::Error* lost() const;
  /// Whether ranks are connected when they first talk (Group::hub), so that a look finds what any of them sent.
  [[nodiscard]] bool by_hub() const;
  /// What this machine's profile says of exchanges among many ranks; nothing: it does not.
  [[nodiscard]] const std::optional<guide::ExchangePrices>& exchange_prices() const;

  // Sends and receives that are begun. The memory, from `base` as the layout says, belongs to the request until it is
  // done; that of a send may not change meanwhile. Errors: invalid_argument (no such rank, a tag below 0, a receive
  // whose layout overlaps itself), limit, out_of_memory, peer_lost (the peer is gone already). Then nothing has begun.
  Result<Request*> isend(const void* base, const Layout& layout, int dest, int tag);
  Result<Request*> irecv(void* base, const Layout& layout, int source, int tag);
  /// Moves all messages on. The outcome of the request, if it is done; the request is gone then. Errors, of the
  /// message: truncated (it was longer than the receive; the memory may hold a part of it); peer_lost; transfer;
  /// malformed.
  std::optional<Result<Status>> test(Request* request);
  /// Whether it is done, as far as this rank knows. Moves nothing on: for a caller that has many, and moves on once.
  [[nodiscard]] bool is_done(const Request* request) const;
  /// Moves on until one of them is done; nullptrs are skipped. The index of one that is, without ending it: test() says
  /// what became of it.
  /// Errors: invalid_argument (none that is not null); timeout, where `timeout_ns` went by.
  Result<std::size_t> wait_any(std::span<Request* const> requests, std::int64_t timeout_ns = kForever);
  /// Moves on until it is done. Errors: as test(), and the NIC's, which end it as give_up() does. Whatever it returns,
  /// the request is gone, and its memory is the caller's.
  Result<Status> wait(Request* request);
  /// Takes back a receive that has found no message, or an offer that is not done and whose ticket was not given away;
  /// then the request is gone. False: it has found one, or it is another send; test() or wait() ends it.
  bool cancel(Request* request);
  /// Ends a request that is not done, so that its memory is the caller's again. What the peer waits for meanwhile never
  /// comes, so unless it is a receive that has found no message, or goes to the own rank, that peer is lost.
  void give_up(Request* request);
  /// Ends all that is under way with another rank, which is lost from then on: their memory is the caller's again.
  void give_up_rank(int rank);
  /// Errors: the first one's; all are ended, whatever becomes of them.
  Result<void> wait_all(std::span<Request* const> requests);
  static constexpr std::int64_t kForever = INT64_MAX;
  /// A tag for the messages of a layer between this one and the program, which no wildcard finds. Negative, taken
  /// wherever a tag is. Ranks that make the same calls in the same order get the same tags; they come again after 2^29.
  int take_tag();

  // The same, done.
  Result<void> send(const void* base, const Layout& layout, int dest, int tag);
  Result<Status> recv(void* base, const Layout& layout, int source, int tag);
  /// Whether a receive would find a message now, and what.
  Result<std::optional<Status>> probe(int source, int tag);
  /// Moves on without waiting; true if something moved.
  bool progress();

  /// Registers memory until deregister_memory(), for all messages in it: the program promises to keep it mapped until
  /// then. Messages need no registration of their own where the system does not tell of freed memory
  /// (Statistics::memory), and no look at it elsewhere. Errors: those of nic::Context::register_memory.
  Result<std::uint32_t> register_memory(void* base, std::int64_t bytes);
  /// Errors: invalid_argument (no such number).
  Result<void> deregister_memory(std::uint32_t number);

  // One-sided: the program of the other rank makes no call for it, but it has to be in calls, or to have a progress
  // thread: what is put or got travels as a message does, by the same protocols.
  /// Errors: invalid_argument (no bytes, or a null pointer).
  Result<Exposed> expose(void* base, std::int64_t bytes);
  /// No rank reaches it afterwards; waits for accesses that are under way. Errors: invalid_argument (it is not exposed
  /// here), timeout (further accesses are refused, but some are still under way; to be called again).
  Result<void> withdraw(const Exposed& exposed, std::int64_t timeout_ns = kForever);
  /// Moves `src` at base into `dst`, which lies `offset` bytes behind the exposed memory's beginning. Done once the
  /// bytes are there. Several puts and gets are done in any order. Errors: invalid_argument (sizes differ, dst overlaps
  /// itself or is not within the memory), limit (dst's wire form is longer than 256 KiB, or whether it overlaps takes
  /// too long to say), peer_lost; of the request: invalid_argument (it was withdrawn).
  Result<Request*> put(const void* base, const Layout& src, const Exposed& to, std::int64_t offset, const Layout& dst);
  /// Moves `src` of the exposed memory into `dst` at base. Errors: as put().
  Result<Request*> get(void* base, const Layout& dst, const Exposed& from, std::int64_t offset, const Layout& src);

  // Messages that another library announces and matches, an MPI for example: only their bytes travel here, by a stream.
  // Between ranks whose CPUs share memory.
  /// Offers a message: its receiver gets `ticket` from the caller, and accepts it once. Nothing is packed yet; test()
  /// and wait() do that, and are done once the receiver needs this end no more. What will be left behind gets memory
  /// for all of it. Errors: invalid_argument (no such rank, the own one, no bytes), unsupported (CPUs do not share
  /// memory), limit (Options::shared_bytes has no room), out_of_memory, peer_lost. Then
  /// nothing has begun.
  Result<Request*> offer(const void* base, const Layout& layout, int dest, Behind behind, Ticket& ticket);
  /// No other call moves this offer on until leave() or cancel(): so pack() may.
  void set_aside(Request* offer);
  /// Packs as much of an offer that is set aside as its ring has room for: all, except of a message of more than 64
  /// MiB. Meanwhile other threads may be in other calls, as long as none names this offer.
  void pack(Request* offer);
  /// Packs the rest of an offer, whether or not the receiver empties chunks: then it is done, or has failed. Errors:
  /// out_of_memory (only with Behind::no; the offer goes on as before).
  Result<void> leave(Request* offer);
  /// Receives an offered message of `bytes` bytes. Errors: as offer(); malformed (an invalid ticket); of the request,
  /// as test().
  Result<Request*> accept(void* base, const Layout& layout, int source, std::int64_t bytes, const Ticket& ticket);

  [[nodiscard]] Statistics statistics() const;
  /// How a message would travel to `dest`, in words, with the ways that there are.
  Result<std::string> explain(const Layout& src, const Layout& dst, int dest);

  /// From now on messages and offers go that way where they can, as with Options::way. For what measures.
  void force(std::optional<guide::MessageWay> way);
  /// For tests: every request that ends from now on ends with this error, whatever became of its message.
  void end_all_with(base::Error error);

 private:
  class Parts;
  explicit Communicator(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts_;
};

}  // namespace lacuna::protocol
