// Communicators: which of their ranks are processes of this job on this node, and the messages that were probed in
// them.
#pragma once

#include <array>
#include <list>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "lacuna/guide/mpi_ways.hpp"
#include "lacuna/mpi/host/host.hpp"
#include "lacuna/mpi/host/mutex.hpp"
#include "lacuna/mpi/process/board.hpp"
#include "lacuna/mpi/process/descriptor.hpp"
#include "lacuna/mpi/process/order.hpp"

namespace lacuna::mpi {

/// A message that a probe took from the host. If it has a descriptor's size it was received, else the host still has
/// its bytes.
struct Probed {
  Comm comm{};
  Status status{};  ///< as the program is to see it
  Message message{};
  bool received = false;
  Descriptor::Wire wire;
  std::optional<Descriptor> descriptor;
  std::int64_t size = 0;  ///< of its bytes in the host
  [[nodiscard]] std::int64_t bytes() const { return descriptor ? static_cast<std::int64_t>(descriptor->bytes) : size; }
};

/// Matched messages that were received already have names of ours: small numbers, which are no handles of the host's.
class Matched {
  using Table = std::unordered_map<std::uintptr_t, std::unique_ptr<Probed>>;

 public:
  using Taken = Table::node_type;
  /// For a message that will be matched, so that add() wants no memory then.
  Taken make() {
    const std::scoped_lock lock(mutex_);
    if (!spare_.empty()) return std::move(spare_);
    Table one;
    Taken made = one.extract(one.try_emplace(0, std::make_unique<Probed>()).first);
    all_.reserve(all_.size() + kAtOnce);
    return made;
  }
  /// What was made, and not needed: a program that polls wants no memory each time.
  void keep(Taken made) {
    const std::scoped_lock lock(mutex_);
    *made.mapped() = {};
    spare_ = std::move(made);
  }
  Message add(Taken made) {
    const std::scoped_lock lock(mutex_);
    const std::uintptr_t name = made.key() = ++names_;
    all_.insert(std::move(made));
    return reinterpret_cast_message(name);
  }
  /// Empty: it is the host's.
  Taken take(Message message) {
    const std::scoped_lock lock(mutex_);
    return all_.extract(number_of(message));
  }
  /// As it was; returns its name.
  Message put_back(Taken taken) {
    const std::scoped_lock lock(mutex_);
    const std::uintptr_t name = taken.key();
    all_.insert(std::move(taken));
    return reinterpret_cast_message(name);
  }
  /// As an int that is none of the host's; 0: it is the host's.
  int to_number(Message message) {
    const std::scoped_lock lock(mutex_);
    return all_.contains(number_of(message)) ? kNumbers + static_cast<int>(number_of(message)) : 0;
  }
  static bool is_number(int number) { return number > kNumbers && number < kNumbers * 4; }
  static Message of_number(int number) { return reinterpret_cast_message(static_cast<std::uintptr_t>(number - kNumbers)); }

 private:
  static constexpr std::size_t kAtOnce = 64;  // threads between make() and add()
  // Open MPI counts from 0, and MPICH's numbers have other bits above.
  static constexpr int kNumbers = 0x1000'0000;
#if !defined(LACUNA_MPI_ABI_MPICH)
  // No address, and nothing that an MPI makes of an int
  static constexpr std::uintptr_t kStep = std::uintptr_t{1} << 33;
  static Message reinterpret_cast_message(std::uintptr_t name) { return reinterpret_cast<Message>(name * kStep); }
  static std::uintptr_t number_of(Message message) { return reinterpret_cast<std::uintptr_t>(message) / kStep; }
#else
  static Message reinterpret_cast_message(std::uintptr_t name) { return static_cast<Message>(name); }
  static std::uintptr_t number_of(Message message) { return static_cast<std::uintptr_t>(static_cast<unsigned>(message)); }
#endif
  Mutex mutex_;
  std::uintptr_t names_ = 0;
  Table all_;
  Taken spare_;
};

/// Those of a communicator with a topology, in the order of its collectives' blocks.
struct Neighbors {
  std::vector<bool> out, in;               ///< whether each is a rank; MPI_PROC_NULL is none
  std::vector<int> destinations, sources;  ///< their ranks,
  bool has_ranks = false;                  ///< if the host was asked: not about a graph (MPI_Graph_create)
};

struct CommOf {
  bool kept = false, in_making = false;  ///< until an attribute tells that it is gone; a thread sets that attribute
  bool inter = false;
  bool foreign = false;                      ///< it has ranks of another MPI_COMM_WORLD, which agreed on other things
  bool of_host = false;                      ///< of MPICH's threads or streams: its messages are the host's alone
  bool of_threads = false;                   ///< MPICH's: of_host on all its ranks
  std::uint64_t name = 0;                    ///< of its ranks in their order, the same on all of them
  Circle* circle = nullptr;                  ///< once it was looked for
  std::uint64_t identity = 0;                ///< the same on all its ranks, and no other's; 0: none is known
  std::unique_ptr<Order> order;              ///< of its collectives with requests, once one was begun,
  bool without_order = false;                ///< unless there is none
  std::optional<Neighbors> neighbors;        ///< once they were asked for
  std::vector<RankPlace> places;             ///< of each rank, of the remote group if it is an intercommunicator
  std::list<std::unique_ptr<Probed>> stash;  ///< of each source, what came first
  /// Of collectives, the same on all its ranks (exchange.hpp): whether they may be Lacuna's, how often the ranks ask.
  enum class Exchanges { unknown, agreed, refused } exchanges = Exchanges::unknown;
  bool one_node = false;  ///< all its ranks are on this node
  Askings askings;
  std::vector<std::byte> exchange_memory;  ///< what ranks tell one another there,
  BoardUse board;                          ///< or by this; empty on all its ranks, if on one
  std::vector<int> neighbor_blocks;        ///< of each block from a neighbor, which of that rank's blocks it is

  [[nodiscard]] Probed* find(int source, int tag) const {
    for (const auto& one : stash) {
      if ((source == kAnySource || source == one->status.source) && (tag == kAnyTag || tag == one->status.tag)) return one.get();
    }
    return nullptr;
  }
  std::unique_ptr<Probed> take(const Probed& which) {
    for (auto at = stash.begin(); at != stash.end(); ++at) {
      if (at->get() != &which) continue;
      std::unique_ptr<Probed> found = std::move(*at);
      stash.erase(at);
      return found;
    }
    return nullptr;
  }
};

class Comms {
 public:
  /// `world`: of each rank of MPI_COMM_WORLD.
  explicit Comms(std::vector<RankPlace> world);
  /// No rank of another node can be reached. Before a communicator is asked for.
  void forget_other_nodes() {
    for (std::vector<RankPlace>* const places : {&world_, &of_world_.places}) {
      for (RankPlace& place : *places) place.remote = -1;
    }
  }
  /// Null: the host knows no such communicator. Throws std::bad_alloc, also where the host does not say of which ranks
  /// the communicator is; then the communicator may be Lacuna's on other ranks.
  CommOf* find(Comm comm) {
    if (comm == host().world) return &of_world_;
    return recent_.of != nullptr && recent_.comm == comm && !Mutex::multiple() ? recent_.of : find_known(comm);
  }
  /// Whether messages from this rank may be descriptors. Without memory to know: yes.
  bool may_send_descriptors(Comm comm, int source);
  /// Whether all of its ranks may be asked by a collective. Wants no memory.
  static bool has_one_group(Comm comm);
  /// Whether all its ranks are on this node, of one that is not known. Wants no memory. Nothing: the host does not say.
  std::optional<bool> is_of_one_node(Comm comm) const;
  /// This rank has no memory for the communicator's exchanges, and remembers that until it is gone. Wants no memory.
  void refuse(Comm comm);
  /// Whether it did, of one that it does not know yet.
  [[nodiscard]] bool refuses(Comm comm);
  /// False: the host has not said which ranks there are.
  [[nodiscard]] bool sound() const { return sound_; }
  /// Where a message goes to, or comes from.
  RankPlace place(Comm comm, int rank) {
    const CommOf* found = rank < 0 ? nullptr : find(comm);
    const bool known = found != nullptr && !found->of_host && static_cast<std::size_t>(rank) < found->places.size();
    return known ? found->places[static_cast<std::size_t>(rank)] : RankPlace{};
  }
  /// Whether its messages are the host's alone. Without memory to know: no; then they are received as if they were not.
  bool of_host(Comm comm);
  /// A communicator was made of `parent` by the function of that number; `made` is no_comm on ranks that have no part
  /// in it. All ranks of a communicator make such calls in one order, so that their number tells what they have made.
  void born(Comm parent, std::size_t function, Comm made);
  static constexpr std::size_t kBirths = 10;  ///< functions that make some
  /// It is freed.
  void gone(Comm comm);
  /// Whether it is known and was not freed.
  [[nodiscard]] bool lives(Comm comm);

 private:
  static int copied(Comm, int, void*, void*, void*, int* flag);
  static int deleted(Comm comm, int, void*, void* comms);
  CommOf* find_known(Comm comm);
  CommOf* make(Comm comm);
  std::uint64_t identity_of(Comm comm);
  void find_ranks(CommOf& of, std::span<const int> worlds) const;
  Mutex mutex_;
  std::vector<RankPlace> world_;
  CommOf of_world_;
  std::unordered_map<Comm, std::unique_ptr<CommOf>> known_;
  struct Recent {
    Comm comm{};
    CommOf* of = nullptr;  // null: none; of known_, and kept
  };
  Recent recent_;  // the one that was asked for last; not where threads call MPI at once
  // What communicators are called by that were made by calls which are seen.
  struct Birth {
    std::uint64_t identity = 0;
    std::array<std::uint32_t, kBirths> children{};  // made of it, by function
  };
  std::unordered_map<Comm, Birth> births_;
  struct Refused {
    Comm comm{};
    bool kept = false;  // its attribute is set
  };
  Refused* find_refused(Comm comm);
  bool asks_host();
  std::array<Refused, 64> refused_;  // those that there was no memory to know; with Comm{} where there is none
  Group group_{};
  int keyval_ = 0;
  bool sound_ = false;  // behind what asks_host() fills in
};

}  // namespace lacuna::mpi
