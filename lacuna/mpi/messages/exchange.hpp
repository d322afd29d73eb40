// MPI_Alltoallw, blocking: what has gaps goes straight from one rank's memory to another's, as messages do.
//
//   1. Each rank offers its blocks with gaps to the ranks of its node, and tells everyone by one MPI_Alltoall of the
//   host, 64 bytes for each.
//   2. What was not offered (short blocks, other nodes) the host moves, by the same call with nothing in the other
//   blocks; if no rank has such blocks, not at all.
//   3. What was offered is taken, and a rank's own block is copied.
//
// So all ranks have to do it, or none, and no rank knows of the others' datatypes. In the first call on a communicator
// the ranks agree, by one MPI_Allreduce, that all of them have memory for what they will tell one another; else the
// communicator stays the host's. Then they ask one another; where no rank had anything to offer, the next call is the
// host's alone, and after each further such answer twice as many, which all ranks count alike.
#pragma once

#include <memory_resource>
#include <new>

#include "lacuna/mpi/collectives/collectives.hpp"
#include "lacuna/mpi/job/job.hpp"

namespace lacuna::mpi {

/// False: the call is to go on by other ways, with all blocks. `rest` is the call of the host with other counts.
template <class Number, class At, class Rest>
bool exchange(Job& job, const Blocks<Number, At>& out, const Blocks<Number, At>& in, Comm comm, int& result, const Rest& rest);

namespace detail {

/// What ranks tell one another.
struct Slot {
  enum : unsigned char { offers = 1, offers_some = 2, has_rest = 4, refuses = 8 };
  /// offers: to this rank; offers_some: to anyone; has_rest: blocks for anyone that were not offered; refuses: does not
  /// understand its own datatypes.
  unsigned char says = 0;
  unsigned char unused[2] = {};
  Descriptor::Said said{};
};
static_assert(sizeof(Slot) == 64);

/// One rank's part in one call.
class Exchange {
 public:
  Exchange(Job& job, Comm comm, CommOf& of)
      : job_(job),
        comm_(comm),
        of_(of),
        size_(static_cast<int>(of.places.size())),
        memory_(of.exchange_memory.data(), of.exchange_memory.size(), std::pmr::null_memory_resource()) {}
  ~Exchange();
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;

  std::vector<Block> out, in;
  /// Offers and tells; false: nobody has offered anything that all can take, or the host failed.
  bool ask(bool understood, int& result);
  /// Whether the host has to move some blocks, of any rank.
  [[nodiscard]] bool has_rest() const { return has_rest_; }
  [[nodiscard]] bool offered_to(int rank) const { return rank == rank_ || offers_[static_cast<std::size_t>(rank)] != nullptr; }
  [[nodiscard]] bool offered_by(int rank) const {
    return rank == rank_ || (told_[static_cast<std::size_t>(rank)].says & Slot::offers) != 0;
  }
  [[nodiscard]] int size() const { return size_; }
  /// The communicator's, so that no rank can fail to tell the others.
  [[nodiscard]] std::pmr::memory_resource* memory() { return &memory_; }
  /// Bytes of that, for so many ranks.
  static std::size_t memory_for(std::size_t ranks);
  /// Begins to take what was offered.
  void take();
  /// Copies the own block, and waits. What the call returns.
  int finish();

 private:
  protocol::Request* offer(std::size_t i, int local);
  void copy_own();
  base::Result<protocol::Request*> accept(std::size_t i, const Descriptor& descriptor);
  bool begin_takes();
  bool look();
  void move_on(std::int64_t now, std::int64_t& since);
  Job& job_;
  Comm comm_;
  CommOf& of_;
  int rank_ = 0, size_;
  bool has_rest_ = false;
  int error_ = kSuccess;
  std::int64_t began_ = 0;
  std::pmr::monotonic_buffer_resource memory_;
  std::pmr::vector<protocol::Request*> offers_{&memory_}, takes_{&memory_};  // of each rank
  std::pmr::vector<Slot> tells_{&memory_}, told_{&memory_};
  std::pmr::vector<unsigned char> wanted_{&memory_};  // of each rank: whether its offer is to be taken still
  bool some_wanted_ = false;
  std::int64_t in_vain_since_ = 0;
};

/// The communicator, if all of its ranks have agreed to exchange on it. Throws nothing. `result` is what goes wrong.
CommOf* agreed(Job& job, Comm comm, int& result);

}  // namespace detail

template <class Number, class At, class Rest>
bool exchange(Job& job, const Blocks<Number, At>& out, const Blocks<Number, At>& in, Comm comm, int& result, const Rest& rest) {
  result = kSuccess;
  if (comm == host().no_comm || out.base == in_place()) return false;
  CommOf* const of = detail::agreed(job, comm, result);
  if (of == nullptr) return result != kSuccess;
  if (of->unasked > 0) {
    --of->unasked;
    return false;
  }
  detail::Exchange now(job, comm, *of);
  std::vector<std::int64_t> places;
  const int size = now.size();
  bool understood = false;
  Why why{};
  try {
    understood = list(job, out, size, {}, now.out, places, why) && list(job, in, size, {}, now.in, places, why);
  } catch (const std::bad_alloc&) {
    understood = false;  // the others have to be told
  }
  std::pmr::vector<Number> out_counts(static_cast<std::size_t>(size), now.memory()), in_counts(out_counts, now.memory());
  if (!now.ask(understood, result)) return result != kSuccess;  // whatever is understood, the others wait for an answer
  now.take();
  if (now.has_rest()) {
    for (int i = 0; i < size; ++i) {
      out_counts[static_cast<std::size_t>(i)] = now.offered_to(i) ? 0 : out.counts[i];
      in_counts[static_cast<std::size_t>(i)] = now.offered_by(i) ? 0 : in.counts[i];
    }
    result = rest(out_counts.data(), in_counts.data());
  }
  const int moved = now.finish();
  if (result == kSuccess) result = moved;
  return true;
}

}  // namespace lacuna::mpi
