// Measuring. Internal to the guide.
//
//   lacuna (Python: plan, progress, report) ──JSON lines──▶ lacuna-worker: serve()
//                                                               │ fork
//                              rank 0, the sender  ◀── Link ──▶  rank 1, the receiver       two processes on two cores
//                                        └── every method × path × notification on one case, interleaved, verified
//
// A Case is a pair of layouts. measure() runs on both ranks in step; rank 0 gets the rows.
#pragma once

#include <array>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lacuna/guide/guide.hpp"

namespace lacuna::guide {

/// How the sender's blocks relate to the receiver's.
enum class Shape {
  symmetric,
  sender_finer,    ///< four times the blocks of a quarter of the size (F22)
  sender_coarser,  ///< half the blocks of twice the size (R5.3.2)
};
Result<Shape> shape_from_name(std::string_view name);

/// Equal blocks with a gap of twice the block between them, as in the seeds' Table 4. Errors: invalid_argument if the shape does not divide
/// the blocks.
Result<Case> grid_case(std::int64_t block_bytes, std::int64_t block_count, Shape shape);
/// The same blocks, cold: as far apart as a working set of twice the last-level cache allows (a page at least), so that each costs a cache and a
/// TLB miss. The copies lie in each other's gaps. Errors: as grid_case().
Result<Case> cold_grid_case(std::int64_t block_bytes, std::int64_t block_count, Shape shape);
Result<Case> cold_grid_case_beyond(std::int64_t cache, std::int64_t block_bytes, std::int64_t block_count,
                                   Shape shape);  ///< of so many bytes
/// Any case cold, with its own gaps: copies side by side, until their cache lines are twice the last-level cache, or they
/// take 256 MiB.
Case cold(Case what);
Case cold_beyond(std::int64_t cache, Case what);
/// Equal blocks, on either side with the same gap between them: the seeds' other experiments. The blocks are the receiver's; if that is one
/// contiguous buffer (`to_contiguous`), the sender's. Errors: as grid_case().
Result<Case> blocks_case(std::int64_t block_bytes, std::int64_t block_count, std::int64_t gap_bytes, Shape shape, bool to_contiguous);
/// The cross of a 2D stencil of 4k + 1 points in an array with rows of 1000 points: k rows with one point, one with 2k + 1, k with one (F24).
/// Errors: invalid_argument.
Result<Case> stencil_case(std::int64_t points, std::int64_t point_bytes);
/// A transfer of today's AI systems (ai.hpp), cut to `most_payload` bytes. Errors: invalid_argument.
Result<Case> ai_case(const std::string& name, std::int64_t most_payload);

/// A median and its bootstrap interval: between the 2.5 % and the 97.5 % point of the medians of all resamples. These are known exactly (the k-th
/// smallest value is at least the median of a resample with a binomial probability), so nothing is drawn and the same data give the same
/// interval. Nothing is assumed about the shape of the noise. Values must be independent: a visit's median, not each of its samples. Below
/// six values the interval is the whole range, and `level` says how little that means.
struct Median {
  double value = 0;
  double low = 0;
  double high = 0;
  double level = 0;
};
inline constexpr std::size_t kFewestVisits = 6;  ///< that an interval of 95 % needs
[[nodiscard]] Median median_of(std::vector<double> values);

struct Row {
  std::string method;
  nic::Path path{};
  method::Notify notify{};
  Median latency_us;  ///< from the sender's start to the data in place; if the receiver is not told, to the sender's completion
  Median behind;      ///< how many times as long as the best combination of the case, round by round; 1 for that one
  std::array<double, 2>
      halves{};    ///< medians of every other visit, from the first and from the second on: one to choose by, one to judge by
  int visits = 0;  ///< groups of transfers, each in another round
  double cpu_send_us = 0;
  double cpu_recv_us = 0;
  double copy_send_us = 0;  ///< of the CPU times, what went to packing and unpacking
  double copy_recv_us = 0;
  method::Counters send;  ///< of one transfer
  method::Counters receive;
  int samples = 0;
  bool censored = false;
  std::string reason;  ///< of censoring
};

/// A combination that cannot move this case (`wrong_data` false: a limit, named), or moved it wrongly.
struct Refusal {
  std::string method;
  nic::Path path{};
  method::Notify notify{};
  std::string reason;
  bool wrong_data = false;
};

struct Budget {
  int max_samples = 200;
  double budget_ms = 50;                                     ///< for all combinations of the case together
  double censor_ms = 100;                                    ///< a combination whose first transfer takes longer is not measured further
  std::vector<std::string> methods;                          ///< only these; empty: all
  std::vector<method::Notify> notifies;                      ///< of the one-sided methods only these; empty: all
  std::vector<std::pair<std::string, nic::Path>> leave_out;  ///< a method on a path that is known to be hopeless
};

/// Fixed pieces of work, which take the same time whenever the machine is in the same state.
struct Probe {
  double message_us = 0;   ///< a message of 16 KiB between the two processes, one way: how far apart the two cores are
  double sender_us = 0;    ///< arithmetic in the first-level cache: how much of its core the sender has,
  double receiver_us = 0;  ///< and the receiver
};

/// How quiet the machine was while a case was measured.
struct Conditions {
  std::vector<Probe> probes;   ///< before, every now and then between two rounds, and after
  std::int64_t preempted = 0;  ///< how often one of them lost its CPU to another process, since each was verified once
  double stolen_ms = 0;        ///< CPU time that the hypervisor gave to other guests
  double setup_ms = 0;
  double measuring_ms = 0;
  double clock_us = 0;  ///< by how much one-way times may be wrong, since the two machines' clocks are set by messages; 0: one clock
};

struct Report {
  std::vector<Row> rows;
  std::vector<Refusal> refusals;
  Conditions conditions;
};

/// A fault planted on purpose, to see that the guide notices.
struct Fault {
  std::string method;                        ///< empty: none
  double slower = 1;                         ///< its transfers take so many times as long
  int corrupt_from = -1;                     ///< not negative: from this transfer on a byte of what it moved is flipped
  std::optional<std::int64_t> skew_ns = {};  ///< the receiver's clock is ahead by so much, as if it were another machine's
};
/// "slow:METHOD:FACTOR", "corrupt:METHOD[:TRANSFER]" or "skew:NANOSECONDS". Errors: invalid_argument.
Result<Fault> fault_from_text(std::string_view text);

/// All that are measured: Lacuna's methods, then what users do by hand (by_hand.hpp), against which gains are told.
[[nodiscard]] std::span<const method::Method> measured_methods();
[[nodiscard]] bool is_by_hand(const method::Method& method);

/// One rank's end of everything that a measurement needs.
class Link {
 public:
  virtual ~Link() = default;
  /// Measures one case; both ranks call it with the same arguments. Rank 0 returns the rows, rank 1 nothing. Errors: a
  /// transport that broke, after which the link is of no use.
  virtual Result<Report> measure(const Case& what, const Budget& budget) = 0;
  /// Measures what an indirect key over a list of `entries` blocks of kKeyBlock bytes costs: rows create_key, bind_key, invalidate_key.
  virtual Result<Report> measure_keys(int entries, const Budget& budget) = 0;
  static constexpr std::int64_t kKeyBlock = 64;
  /// Limits with the paths that this pair of processes really has.
  [[nodiscard]] virtual const nic::Limits& limits() const = 0;
};

/// `rank` 0 or 1; the other rank calls it with the other end of the bootstrap channel. Errors: those of Context::connect on every path.
Result<std::unique_ptr<Link>> make_link(int rank, nic::Context& context, nic::Bootstrap& bootstrap, const Fault& fault = {});

/// Both ranks of a simulated platform (simulated_platform()), in this process. Errors: those of nic::simulate().
Result<std::unique_ptr<Link>> make_simulated_link(const std::string& platform);

/// The worker: forks the receiver, answers requests from standard input on standard output until it ends
/// (docs/design/worker.md). Returns the exit code, as do those below.
int serve(const std::string& nic, const nic::OpenOptions& options = {}, const std::string& fault = {});
/// The same for simulations, which need no second process.
int serve_simulations();

/// The same with a receiver on another machine, where serve_others() listens at `address`, host:port. Both know LACUNA_SECRET. `visit`: the same for all
/// workers of one command; empty: it is the only one.
int serve_with(const std::string& address, const std::string& visit, const std::string& nic, const nic::OpenOptions& options = {},
               const std::string& fault = {});
/// The receivers, at `address`, for the workers of one command: until the first of them ends, or standard input does.
int serve_others(const std::string& address, const std::string& nic, const nic::OpenOptions& options = {}, const std::string& fault = {});

}  // namespace lacuna::guide
