// Measuring: every method on a pair of layouts, between two processes.
//
//   lacuna (Python: plan, progress, report) ──JSON lines──▶ lacuna-worker (tools/worker)
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

#include "lacuna/method/method.hpp"
#include "lacuna/nic/nic.hpp"
#include "tools/corpus/cases.hpp"
#include "tools/measure/statistics.hpp"

namespace lacuna::measure {

using base::Result;
using corpus::Case;
using layout::Layout;

struct Row {
  std::string method;
  nic::Path path{};
  method::Notify notify{};
  /// From the sender's start to the data in place; if the receiver is not told, to the sender's completion
  Median latency_us;
  Median behind;  ///< how many times as long as the best combination of the case, round by round; 1 for that one
  std::array<double, 2>
      /// Medians of every other visit, from the first and from the second on: one to choose by, one to judge by
      halves{};
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
  double budget_ms = 50;  ///< for all combinations of the case together
  /// A combination whose first transfer takes longer is not measured further
  double censor_ms = 100;
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
  /// By how much one-way times may be wrong, since the two machines' clocks are set by messages; 0: one clock
  double clock_us = 0;
};

struct Report {
  std::vector<Row> rows;
  std::vector<Refusal> refusals;
  Conditions conditions;
};

/// A fault planted on purpose, to see that the guide notices.
struct Fault {
  std::string method;     ///< empty: none
  double slower = 1;      ///< its transfers take so many times as long
  int corrupt_from = -1;  ///< not negative: from this transfer on a byte of what it moved is flipped
  /// The receiver's clock is ahead by so much, as if it were another machine's
  std::optional<std::int64_t> skew_ns = {};
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
  /// Measures what an indirect key over a list of `entries` blocks of kKeyBlock bytes costs: rows create_key, bind_key,
  /// invalidate_key.
  virtual Result<Report> measure_keys(int entries, const Budget& budget) = 0;
  static constexpr std::int64_t kKeyBlock = 64;
  /// Limits with the paths that this pair of processes really has.
  [[nodiscard]] virtual const nic::Limits& limits() const = 0;
};

/// `rank` 0 or 1; the other rank calls it with the other end of the bootstrap channel. Errors: those of
/// Context::connect on every path.
Result<std::unique_ptr<Link>> make_link(int rank, nic::Context& context, nic::Bootstrap& bootstrap, const Fault& fault = {});

/// Both ranks of a simulated platform (guide::simulated_platform()), in this process. Errors: those of nic::simulate().
Result<std::unique_ptr<Link>> make_simulated_link(const std::string& platform);

}  // namespace lacuna::measure
