// Requests that need something of us before they are complete: receives that may turn out to be descriptors, sends
// whose packed bytes the host still reads. The program's handle is always one of the host's, so that whatever we do not
// take works on it; this table knows what else there is to it.
#pragma once

#include <algorithm>
#include <functional>
#include <list>
#include <memory>
#include <unordered_map>
#include <vector>

#include "lacuna/mpi/collectives/collectives.hpp"
#include "lacuna/mpi/host/bounce.hpp"
#include "lacuna/mpi/inter_node/transport.hpp"
#include "lacuna/mpi/process/comms.hpp"
#include "lacuna/mpi/process/descriptor.hpp"
#include "lacuna/mpi/report/passed.hpp"
#include "lacuna/mpi/types/device_memory.hpp"
#include "lacuna/mpi/types/types.hpp"

namespace lacuna::mpi {

/// Where a receive's bytes belong. Its type may not be decoded yet, since a type's first use is the host's, or may be
/// one that cannot be.
struct Target {
  std::byte* base = nullptr;
  Count asked = 0;  ///< elements that the program has room for, and
  Count count = 0;  ///< those of them that can be: no memory has more
  Use type;         ///< null: not decoded
  std::int64_t capacity = 0;
  Datatype handle{};  ///< while the receive is begun; if the host puts the bytes, until it ends, which the loan sees to
  Loan loan;
  bool unknowable = false;  ///< the type cannot be decoded
  enum class Memory { unknown, host, device } memory = Memory::unknown;
  MpiUse use = MpiUse::send;
  bool left_to_host = false;  ///< which is expected to be faster at putting the bytes where they belong
  Why why{};                  ///< the host is to receive it, if it is
  Function function = Function::Recv;

  [[nodiscard]] bool contiguous() const { return type != nullptr && type->contiguous(count); }
  [[nodiscard]] std::byte* start() const { return base + type->start(); }
  /// Of so many elements of its type.
  void make_room(Count elements) {
    asked = elements;
    count = std::min(elements, type->most());
    capacity = type->bytes(count);
  }
  /// The same of a type that is not decoded. False: the host does not know how large it is.
  bool make_room_undecoded(Count elements);
  /// Decodes the type if it is not. False: it cannot be, or the CPU cannot touch the memory; then the host moves the
  /// bytes.
  bool know(Types& types);
  /// Whether the CPU cannot touch the memory. Of a type that is decoded.
  [[nodiscard]] bool on_device();
  /// For longer than a call.
  void keep(Types& types);
};

enum class SendMode { standard, synchronous, ready, buffered };

/// What a send moves.
struct Source {
  const std::byte* base = nullptr;
  Count count = 0;
  Use type;
  Elements layout;  ///< of all elements, if it is ours to send
  std::int64_t bytes = 0;
  RankPlace to;                ///< the receiver,
  guide::Distance distance{};  ///< which is so far away
  int dest = 0;                ///< in its communicator
  Datatype handle{};           ///< while the send is begun
  MpiUse use = MpiUse::send;
  Why why{};  ///< the host is to send it, if it is

  [[nodiscard]] bool contiguous() const { return type->contiguous(count); }
};

struct Operation {
  Request handle{};  ///< the program's, and the host's
  Request left{};    ///< what the host made of it when it completed: a persistent one stays, mostly
  Comm comm{};
  bool persistent = false;
  bool active = true;
  bool generalized = false;  ///< the handle is a generalized request of ours

  // A receive.
  bool receives = false;
  bool plain = false;     ///< as the program asked for it: too short for a descriptor
  bool typed = false;     ///< the host puts it where it belongs, though it has gaps
  int from = 0, tag = 0;  ///< of a persistent one
  Target target;
  Bounce bounce;  ///< where the host puts it, if it has gaps; of a send, what the host reads
  protocol::Request* payload = nullptr;
  std::unique_ptr<IncomingMessage> incoming;
  Request matched{};  ///< of a message that a probe has matched, which the host puts
  Bounce aside;       ///< here
  Bounce through;     ///< of a type that cannot be decoded: where the payload comes first

  // A persistent send that is offered at each start.
  Source source;
  protocol::Request* offered = nullptr;       ///< until the host has started it
  std::unique_ptr<OutgoingMessage> outgoing;  ///< packed
  Descriptor::Wire wire{};                    ///< of any send: what the host reads
  bool offers = false;
  Request
      /// Of one that is packed in the bounce after all: its message, while the host sends it; what the program has is
      /// not started then
      instead{};

  // A collective whose blocks are packed and unpacked here.
  std::unique_ptr<Collection> collection;
  // Or that goes without the host, which never starts its request.
  std::unique_ptr<Standing> standing;
  std::uint32_t looks = 0;     ///< at it, in which nothing had moved
  int lost = kSuccess;         ///< what the host told of a rank that has died; the board is not used again
  std::function<int()> store;  ///< once it is over: the host puts its bytes where they belong; what that fails with

  // A pair (MPI_Isendrecv): complete when both are.
  Request parts[2]{};
  bool pair = false;

  bool taken = false;   ///< the host's request was completed already
  bool raised = false;  ///< the error handler knows
  enum class State { posted, moving, done } state = State::posted;
  int error = kSuccess;
  int failed = kSuccess;  ///< what a send ends with, where the host knows of no error
  Status status{};
  std::int64_t began = 0;

  /// Whether the host has nothing to complete.
  [[nodiscard]] bool alone() const { return generalized || taken; }
};

/// Requests of the host's that it never starts, for operations without a part of the host's: kept for the next ones.
class IdleRequests {
 public:
  /// Makes one if there is none. False: the host has none.
  bool has_one() {
    if (kept_ == 0 && host().Send_init(nullptr, 0, host().byte, kProcNull, 0, host().self, &all_[0]) == kSuccess) kept_ = 1;
    return kept_ != 0;
  }
  /// After has_one().
  Request take() { return all_[--kept_]; }
  void give_back(Request request) {
    if (kept_ == all_.size())
      host().Request_free(&request);
    else
      all_[kept_++] = request;
  }
  void end() {
    while (kept_ > 0) host().Request_free(&all_[--kept_]);
  }

 private:
  std::array<Request, 16> all_{};
  std::size_t kept_ = 0;
};

class Operations {
  using Table = std::unordered_map<Request, std::unique_ptr<Operation>>;

 public:
  /// An operation outside the table.
  using Taken = Table::node_type;
  [[nodiscard]] bool empty() const { return all_.empty(); }
  /// Whether some are ours to complete alone.
  [[nodiscard]] bool some_alone() const { return alone_ != 0; }
  void taken_while_here(Operation& operation) {  ///< one that is in the table
    alone_ += operation.alone() ? 0 : 1;
    operation.taken = true;
  }
  /// Null: the host's alone.
  [[nodiscard]] Operation* find(Request handle) {
    const auto found = all_.find(handle);
    return found == all_.end() ? nullptr : found->second.get();
  }
  /// Gets what add() needs next, so that it wants no memory once the host has begun a request.
  void make_room() {
    if (all_.size() + 1 >= all_.bucket_count()) {
      ++changes_;
      all_.reserve(2 * all_.size() + 16);
    }
    if (!spare_.empty()) return;
    Table one;
    spare_ = one.extract(one.try_emplace(Request{}).first);
  }
  Operation& add(Request handle, std::unique_ptr<Operation> operation) {
    make_room();
    displace(handle);
    operation->handle = operation->left = handle;
    alone_ += operation->alone() ? 1 : 0;
    spare_.key() = handle;
    spare_.mapped() = std::move(operation);
    ++changes_;
    return *all_.insert(std::move(spare_)).position->second;
  }
  /// One that was never in the table; after make_room() it wants no memory.
  [[nodiscard]] Taken outside(Request handle, std::unique_ptr<Operation> operation) {
    make_room();
    operation->handle = operation->left = handle;
    spare_.key() = handle;
    spare_.mapped() = std::move(operation);
    return std::move(spare_);
  }
  /// The host has put another request in the place of one; null: that one is not here.
  Operation* rename(Request before, Request after) {
    Taken taken = all_.extract(before);
    if (taken.empty()) return nullptr;
    ++changes_;
    taken.key() = taken.mapped()->handle = taken.mapped()->left = after;
    return all_.insert(std::move(taken)).position->second.get();
  }
  void remove(Request handle) {
    const auto found = all_.find(handle);
    if (found == all_.end()) return;
    leaves(*found->second);
    ++changes_;
    all_.erase(found);
  }
  /// Takes one that is active out, before the host completes it: then another may get its handle. Empty: the host's
  /// alone.
  [[nodiscard]] Taken take(Request handle) {
    const auto found = all_.find(handle);
    if (found == all_.end() || !found->second->active) return {};
    ++moves_;
    ++changes_;
    leaves(*found->second);
    return all_.extract(found);
  }
  /// One that the host has completed, though its handle may be another's by now: while a call ends what it finds, an
  /// error handler may begin more.
  [[nodiscard]] Taken take_ended(Request handle) {
    const auto found = std::ranges::find(displaced_, handle, [](const Taken& taken) { return taken.empty() ? Request{} : taken.key(); });
    return found != displaced_.end() ? std::move(*found) : take(handle);
  }
  /// Between the two, what loses its handle to another one is kept for take_ended().
  void begin_ending() { ++endings_; }
  void end_ending() {
    if (--endings_ == 0) displaced_.clear();
  }
  void put_back(Taken taken) {
    alone_ += taken.mapped()->alone() ? 1 : 0;
    ++changes_;
    all_.insert(std::move(taken));
  }
  /// The program has freed the request (MPI_Request_free), and it goes on.
  void orphan(Request handle) {
    const auto found = all_.find(handle);
    std::unique_ptr<Operation>& orphan = orphans_.emplace_back();
    leaves(*found->second);
    ++changes_;
    orphan = std::move(found->second);
    all_.erase(found);
  }
  /// How often one was taken out: for tests, which count instead of measuring.
  [[nodiscard]] std::int64_t moves() const { return moves_; }
  using Orphans = std::list<std::unique_ptr<Operation>>;
  [[nodiscard]] Orphans& orphans() { return orphans_; }
  /// All of them, some perhaps again: an error handler of the program may begin and end requests while one is visited.
  template <class Visit>
  void each(const Visit& visit) {
    for (auto at = all_.begin(); at != all_.end();) {
      const std::uint64_t before = changes_;
      visit(*at->second);
      at = changes_ == before ? std::next(at) : all_.begin();
    }
  }

 private:
  void displace(Request handle) {
    if (Taken taken = endings_ == 0 ? Taken() : take(handle); !taken.empty()) displaced_.push_back(std::move(taken));
    remove(handle);  // what the host has completed behind our back
  }
  void leaves(const Operation& operation) { alone_ -= operation.alone() ? 1 : 0; }
  Table all_;
  Taken spare_;
  int alone_ = 0;
  int endings_ = 0;
  std::int64_t moves_ = 0;
  std::uint64_t changes_ = 0;  // of the table
  std::vector<Taken> displaced_;
  Orphans orphans_;
};

}  // namespace lacuna::mpi
