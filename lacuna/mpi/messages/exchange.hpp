// Blocking collectives: what has gaps goes straight from one rank's memory to another's, as messages do.
//
//   with boards (board.hpp)                                 without: from each rank to each │ of one root, or neighbors
//
//   1. Each rank packs short blocks onto its board,         1. Each rank offers its blocks  │ MPI_Allreduce: does one
//      offers longer ones, and notes for each other            with gaps, and tells each by │ gain? Then each offers,
//      rank what there is. Whose note is there, its            MPI_Alltoall of the host, 64 │ and tells by MPI_Gather,
//      blocks are unpacked.                                    bytes for each               │ _Scatter or _Neighbor_...
//   2. What was not offered (short blocks, other nodes) the host moves, by a call that takes a number for each block,
//      with nothing in the other blocks; if no rank has such blocks, not at all.
//   3. What was offered is taken, and a rank's own block is copied.
//
// So all ranks have to do it, or none, and no rank knows of the others' datatypes. A call whose blocks have one length
// on all ranks is asked about from a length on that the ranks agree on in MPI_Init; others always. Until a rank gains,
// the ranks ask by inquiries (inquiry.hpp), without the host. Then they agree, by one MPI_Allreduce, that all of them
// have memory for what they will tell one another; else the communicator stays the host's. Then they get boards, if all
// of them can. Where no rank had anything to offer, the next call is the host's alone, and after each further such
// answer twice as many, which all ranks count alike. The longer the blocks, the fewer: to ask takes no time beside
// them.
#pragma once

#include <limits>
#include <memory_resource>
#include <new>

#include "lacuna/mpi/collectives/collectives.hpp"
#include "lacuna/mpi/job/job.hpp"

namespace lacuna::mpi {

/// A blocking collective. Its blocks are the caller's: copied, they would take as long as all else of a call that is
/// left to the host.
template <class Number, class At>
struct CollectiveCall {
  const char* name;  ///< of the function
  Collective kind;
  int root;
  Comm comm;
  MpiUse use;
  const Blocks<Number, At>&out, &in;
};

/// False: the call is to go on by other ways, with all blocks. `tried`: what this rank tries in it.
template <class Number, class At>
bool exchange(Job& job, const CollectiveCall<Number, At>& call, Ways::OneWay& tried, int& result);
/// The same of a persistent collective, which is initialized here. Its request is added to the job's operations.
template <class Number, class At>
bool stand(Job& job, const CollectiveCall<Number, At>& call, Request* request, int& result);

namespace detail {

/// The function for such counts.
template <class Number, class Small, class Large>
constexpr auto for_number(Small small, Large large) {
  if constexpr (std::is_same_v<Number, int>) {
    return small;
  } else {
    return large;
  }
}

/// What ranks tell one another.
struct Slot {
  enum : unsigned char { offers = 1, offers_some = 2, has_rest = 4, refuses = Note::kRefuses, on_board = 16, leaves = 32 };
  /// offers: to this rank; offers_some: to anyone; has_rest: blocks for anyone that were not offered; refuses: does not
  /// understand its own datatypes; on_board: what is offered lies there; leaves: all go other ways, by its order.
  unsigned char says = 0;
  unsigned char sizes = 0;  ///< a bit for each size class of its blocks
  unsigned char unused = 0;
  Descriptor::Said said{};
};
static_assert(sizeof(Slot) == 64);

/// What a rank says of a call, or all ranks do.
struct Said {
  unsigned char says = 0, sizes = 0;  ///< as in Slot
  void add(unsigned char other, unsigned char other_sizes) {
    says |= other;
    sizes |= other_sizes;
  }
  /// Whether some gain, none refuses, and none has the call left.
  [[nodiscard]] bool gains() const { return (says & (Slot::offers_some | Slot::refuses | Slot::leaves)) == Slot::offers_some; }
};

/// One rank's part in one call.
class Exchange {
 public:
  Exchange(Job& job, const char* name, MpiUse use, Comm comm, CommOf& of, const Pattern& pattern)
      : job_(job),
        name_(name),
        use_(use),
        comm_(comm),
        of_(of),
        pattern_(pattern),
        board_(of.board.get()),
        memory_(of.exchange_memory.data(), of.exchange_memory.size(), std::pmr::null_memory_resource()) {
    if (Mutex::multiple()) return;
    out.swap(job.spare_blocks[0]);
    in.swap(job.spare_blocks[1]);
  }
  ~Exchange();
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;

  /// Of each side nothing where the program said MPI_IN_PLACE, and one block where all are the same.
  std::vector<Block> out, in;
  /// Whether this rank would gain.
  [[nodiscard]] Said looks(bool understood) const;
  /// What this rank, the first, has all ranks do.
  void give(const TrialOrder& order) { order_ = order; }
  /// Offers and tells; false: no rank has offered anything that all can take, or the host failed.
  bool ask(bool understood, Asking& asking, int& result);
  /// Instead: a call of one root, in which all ranks know that blocks of so many bytes go by their boards, and not all
  /// wait for all. `understood`: this rank has its blocks.
  static bool passes(const Pattern& pattern, const CommOf& of, const Asking& asking, std::int64_t bytes, bool crowded);
  void pass(bool understood);
  /// Whether the host has to move some blocks, of any rank.
  [[nodiscard]] bool has_rest() const { return has_rest_; }
  /// Whether the host is not to move a block.
  [[nodiscard]] bool moves_out(int i) const {
    return i == pattern_.own_out() || (tells_[static_cast<std::size_t>(i)].says & Slot::offers) != 0;
  }
  [[nodiscard]] bool moves_in(int i) const {
    return i == pattern_.own_in() || (told_[static_cast<std::size_t>(i)].says & Slot::offers) != 0;
  }
  [[nodiscard]] const Pattern& pattern() const { return pattern_; }
  /// The communicator's, so that no rank can fail to tell the others.
  [[nodiscard]] std::pmr::memory_resource* memory() { return &memory_; }
  /// Bytes of that, for so many blocks on each side.
  static std::size_t memory_for(std::size_t blocks);
  /// Begins to take what was offered.
  void take();
  /// Copies the own block, and waits. What the call returns.
  int finish();

 private:
  void report() const;
  [[nodiscard]] const Block* out_block(std::size_t i) const { return out.empty() ? nullptr : &out[out.size() == 1 ? 0 : i]; }
  [[nodiscard]] const Block* in_block(std::size_t i) const { return i < in.size() ? &in[i] : nullptr; }
  [[nodiscard]] bool gains(const Block& part) const { return part.moves && has_gaps(part) && prefers(part); }
  [[nodiscard]] static bool has_gaps(const Block& part) { return part.bytes > 0 && !part.type->contiguous(part.count); }
  [[nodiscard]] bool prefers(const Block& part) const {
    return part.bytes > 0 && (offers_each_ || job_.ways.choose(use_, *part.type.get(), part.count) == MpiWay::offered);
  }
  Said tell_all(Said all, int& result);
  Said tell_some(Said all, int& result);
  void begin();
  Said tell_by_board(Said all);
  Said hear_all(Said all);
  void lose(int error);
  void obey(Asking& asking);
  void show(int rank, const Said& all);
  void describe(std::size_t i, Note& note);
  void hear(int rank, const Note& note);
  void take_from_board(std::size_t i, int rank, const Note& note);
  [[nodiscard]] bool lay(std::size_t i, const Block& block);
  unsigned char offer_all(bool each);
  protocol::Request* offer(std::size_t i, const Block& block, int local);
  void copy_own();
  base::Result<protocol::Request*> accept(std::size_t i, const Descriptor& descriptor);
  bool begin_takes();
  bool look();
  Job& job_;
  const char* name_;
  MpiUse use_;
  Comm comm_;
  CommOf& of_;
  Pattern pattern_;
  Board* board_;
  std::int64_t laid_ = 0;  // bytes on it
  bool own_copied_ = false;
  bool has_rest_ = false;
  bool offers_each_ = false;  // whatever this rank gains by that
  TrialOrder order_;          // of the first rank
  int error_ = kSuccess;
  bool raised_ = false;  // the host has told of it
  std::int64_t began_ = 0;
  std::pmr::monotonic_buffer_resource memory_;
  std::pmr::vector<protocol::Request*> offers_{&memory_}, takes_{&memory_};  // of each block
  std::pmr::vector<Slot> tells_{&memory_}, told_{&memory_};
  std::pmr::vector<unsigned char> wanted_{&memory_};   // of each block: whether the offer is to be taken still
  std::pmr::vector<std::uint32_t> at_{&memory_};       // of each block, on the board,
  std::pmr::vector<unsigned char> packed_{&memory_};   // and whether it is there
  std::pmr::vector<unsigned char> awaited_{&memory_};  // of each rank
  bool some_wanted_ = false;
  std::int64_t in_vain_since_ = 0;
};

/// A host that returns errors after a death tells of it in a probe of anyone's messages that finds none: here of a tag
/// that programs hardly use. The host's word; its handlers have heard it.
int look_for_dead(Comm comm);
/// What is awaited is not there yet: others are let on, and what else there is moves. `offers`: what this rank has
/// offered; when its receivers take nothing it is packed. `spins`: how often it was looked for. Returns what the host
/// tells of a rank of `comm` that has died.
int await(Job& job, Comm comm, std::span<protocol::Request* const> offers, int spins, std::int64_t& since);

/// What the first rank tries with all of them, of blocks like this one, in a call in which all hear of it. `ordered`:
/// by the last one. `tried`: what this rank does of the call.
TrialOrder order_of(Job& job, MpiUse use, const Type& type, Count count, const CommOf& of, bool ordered, Ways::OneWay& tried);
/// Null: there is no memory for it. Throws nothing.
CommOf* find(Job& job, Comm comm);
/// Whether this rank knows its neighbors, if it has some, and will know when it is gone. Throws nothing.
bool knows(CommOf& of, Comm comm);
/// Whether its ranks may agree to exchange, as far as they know alike without a word.
bool may_agree(Job& job, Comm comm, const CommOf* of, MpiUse use);
/// By which its ranks ask one another before they have agreed; null: by the host. False: a rank answers nothing.
bool find_circle(Job& job, Comm comm, CommOf* of, Circle*& circle);
/// Each says its own, and learns what all say. False: a rank answers nothing, or is dead (`result`).
bool inquire(Job& job, Comm comm, Circle& circle, Said& said, int& result);
/// The same by the host.
int combine(Comm comm, Said& said);
/// Whether the ranks agree to exchange: each can take part, and one gains. Else, where none gains, they ask again later
/// (`asking`; null: this rank cannot take part). `result` is what goes wrong.
bool agree_by_host(Job& job, Comm comm, CommOf* of, Said said, Asking* asking, int& result);
/// All of its ranks get boards, or none does; its exchange_memory is there. What the host says.
int agree_on_boards(Job& job, Comm comm, CommOf& of);
/// Whether all ranks get one for a persistent collective. `memory` as exchange_memory; `numbers`: one for each block
/// from a neighbor, and one more.
bool agree_on_standing(Job& job, Comm comm, const CommOf& of, Standing& standing, std::span<std::byte> memory, std::vector<int> numbers,
                       int& result);
/// The request of one, which the host never starts. What the host says.
int add_standing(Job& job, Comm comm, std::unique_ptr<Operation> operation, Request* request);
/// The kind of a collective. `bytes`: of a block on all ranks; below 0: no rank knows.
std::size_t kind_of(MpiUse use, std::int64_t bytes);
/// Below 4 KiB, below 16 KiB, and so on.
std::size_t size_class(std::int64_t bytes);
/// What all ranks have said decides how often they ask.
void settle(Asking& asking, const Said& said);
/// Whether ranks that have agreed ask about a collective.
bool asks(const CommOf& of, MpiUse use);
/// Nothing: there is no such root, or no neighbors that are known, on all ranks alike.
std::optional<Pattern> pattern_of(Collective kind, int root, Comm comm, const CommOf& of);
/// Bytes of so many elements; below 0: no rank can tell.
std::int64_t bytes_of(Job& job, Datatype type, Count count);

}  // namespace detail

}  // namespace lacuna::mpi

#include "lacuna/mpi/messages/exchange_call.hpp"
