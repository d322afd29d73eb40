// collective: what all ranks of a communicator do together: everyone to everyone, neighbours to neighbours, a matrix
// transposed. It hides the schedule.
//
//   alltoallw ─────────┐                       ┌─▶ at_once   ─┐
//   neighbor_exchange ─┼─▶ the ranks agree ────┼─▶ pairwise  ─┼─▶ messages of the protocol, by tags that no program has
//   transpose ─────────┘   (once for each      └─▶ forward   ─┘
//                           Exchange)
//
// Nothing is packed here but blocks that other ranks forward: layouts go to the protocol as they are, which moves them
// by the way that is best.
//
// The ranks agree before anything moves: what kind of exchange it is, whether each message has as many bytes at both
// ends, how large the largest block is. So all come to the same schedule, though no rank knows the others' layouts; and
// what does not fit is an error on every rank, with the pair named, before a byte was written. It takes log2(ranks)
// small messages one after the other; an Exchange that is started again has agreed already.
//
// All ranks make these calls, in the same order. As long as a rank makes no call, the others wait for it.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lacuna/base/base.hpp"
#include "lacuna/layout/layout.hpp"
#include "lacuna/protocol/protocol.hpp"

namespace lacuna::collective {

using base::Result;
using layout::Layout;
using protocol::Communicator;

/// The order in which messages go.
enum class Schedule : std::uint8_t {
  automatic,  ///< the one that is expected to be fastest
  at_once,    ///< all are begun at once
  pairwise,   ///< in the order of the distance between two ranks, a few at a time
  /// Store and forward (Bruck et al. 1997): log2(ranks) messages, each of half of all blocks. Of everyone to everyone
  /// only
  forward,
  unknown,  ///< of a name that is none: the ranks learn of it when they agree
};
inline constexpr std::size_t kSchedules = 4;
[[nodiscard]] std::string_view schedule_name(Schedule schedule);
[[nodiscard]] std::optional<Schedule> schedule_from_name(std::string_view name);

struct Options {
  Schedule schedule = Schedule::automatic;  ///< all ranks the same
  /// Of pairwise: sends, and receives, under way at once; 1 at least
  int window = 8;
  std::int64_t timeout_ns = Communicator::kForever;  ///< of a call that waits, for the other ranks
};

/// Memory: `layout` at `base`.
struct Source {
  const void* base = nullptr;
  Layout layout;
};
/// Memory that is received into. Blocks of one exchange must not overlap one another, nor what is sent.
struct Target {
  void* base = nullptr;
  Layout layout;
};
struct Send {
  int to = 0;
  Source what;
};
struct Receive {
  int from = 0;
  Target where;
};

/// A matrix of `rows` x `columns` elements, whose rows are spread over the ranks in blocks, and its transpose, whose
/// rows (the columns) are, too. All ranks say the same but for the leading dimensions.
struct Matrix {
  std::int64_t rows = 0, columns = 0;
  std::int64_t element_bytes = 8;
  std::span<const std::int64_t> row_blocks = {};  ///< rows of each rank before; empty: even_blocks()
  /// Columns of each rank, its rows afterwards; empty: even_blocks()
  std::span<const std::int64_t> column_blocks = {};
  std::int64_t leading_before = 0;  ///< elements from one row of the memory to the next; 0: `columns`
  std::int64_t leading_after = 0;   ///< the same of the transpose's; 0: `rows`
};
/// n rows over the ranks: the first n % ranks have one more.
[[nodiscard]] std::vector<std::int64_t> even_blocks(std::int64_t n, int ranks);

/// What a schedule is chosen by; the same on every rank.
struct Load {
  int ranks = 1;
  bool everyone = false;           ///< each rank has a block for each rank
  std::int64_t largest = 0;        ///< bytes of the largest block of any rank
  std::int64_t most_bytes = 0;     ///< that a rank sends or receives, at most
  std::int64_t most_messages = 0;  ///< that a rank sends or receives, without empty ones
  std::int64_t most_runs = 0;      ///< contiguous ones that a rank sends and receives, at most
  bool shared_memory = false;      ///< messages go through memory that CPUs share
  bool by_hub = false;             ///< one look finds what any rank sent (Communicator::by_hub)
  int sharing = 1;                 ///< ranks that share a NIC, at most
  /// The highest of each that the ranks' profiles have; nothing: none has any, and the usual ones hold
  std::optional<guide::ExchangePrices> prices = {};
  bool all_priced = false;  ///< each rank's profile has them
};
struct Choice {
  Schedule schedule = Schedule::at_once;
  Schedule best = Schedule::at_once;  ///< what is chosen where none is asked for
  bool forced = false;
  std::array<double, kSchedules> expected_us{};  ///< by schedule; 0: it cannot be
  std::string why;                               ///< in words; so are
  std::string prices;                            ///< those it was chosen by, and where they come from
};
/// Errors: invalid_argument (a schedule that this load cannot have), limit (blocks too large to be forwarded).
Result<Choice> choose(const Load& load, Schedule wanted = Schedule::automatic);

/// An exchange that can be started again and again: the same memory, layouts and schedule. It belongs to its
/// communicator's thread, and goes before it. Once a call has failed, all further calls do, with the same error.
class Exchange {
 public:
  virtual ~Exchange() = default;
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;

  /// Begins, without waiting for anybody. The memory belongs to it until it is done. The first time the ranks agree,
  /// too. Errors: invalid_argument (it is under way); those of test().
  virtual Result<void> start() = 0;
  /// Moves on; whether it is done. Errors, on all ranks: invalid_argument, unsupported, limit (what a rank asked for
  /// cannot be; or what ranks ask for does not fit together; nothing has moved then). On those who are in it: peer_lost
  /// (a rank is gone: memory that is received into may hold a part, and the communicator is good for no more than its
  /// end); out_of_memory, transfer, malformed (the same).
  virtual Result<bool> test() = 0;
  /// Waits for so long, at most; false: it is under way still. Errors: as test().
  virtual Result<bool> wait_for(std::int64_t timeout_ns) = 0;
  /// Waits until it is done. Errors: as test(); timeout (Options::timeout_ns went by: it was given up, as if a rank
  /// were gone).
  virtual Result<void> wait() = 0;

  /// What the ranks agreed on; nothing before.
  [[nodiscard]] virtual const std::optional<Choice>& choice() const = 0;
  /// In words: the exchange as this rank has it, the schedule, and why it.
  [[nodiscard]] virtual std::string explain() const = 0;

 protected:
  Exchange() = default;
};

/// sends[i] goes to rank i, receives[i] comes from rank i; one for each rank, the own one and empty ones included.
std::unique_ptr<Exchange> alltoallw_init(Communicator& ranks, std::span<const Source> sends, std::span<const Target> receives,
                                         const Options& options = {});
/// What any rank sends to any other, in any order of ranks; the i-th block from one rank to another goes into the i-th
/// receive from it.
std::unique_ptr<Exchange> neighbor_exchange_init(Communicator& ranks, std::span<const Send> sends, std::span<const Receive> receives,
                                                 const Options& options = {});
/// `before`: this rank's block of rows; `after`: its block of rows of the transpose.
std::unique_ptr<Exchange> transpose_init(Communicator& ranks, const Matrix& matrix, const void* before, void* after,
                                         const Options& options = {});

// The same, done once. Errors: those of Exchange::wait().
Result<void> alltoallw(Communicator& ranks, std::span<const Source> sends, std::span<const Target> receives, const Options& options = {});
Result<void> neighbor_exchange(Communicator& ranks, std::span<const Send> sends, std::span<const Receive> receives,
                               const Options& options = {});
Result<void> transpose(Communicator& ranks, const Matrix& matrix, const void* before, void* after, const Options& options = {});

}  // namespace lacuna::collective
