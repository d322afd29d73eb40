// One case, set up on one rank: memory, and every combination's operation.
#pragma once

#include "tools/measure/clocks.hpp"
#include "tools/measure/ground.hpp"
#include "tools/measure/mailbox.hpp"

namespace lacuna::measure {

/// A way to move the case: method, path, notification.
struct Combination {
  const method::Method* method;
  method::Endpoint* endpoint;
  method::Notify notify;
  std::unique_ptr<method::Operation> operation;  // null if it cannot be made
  std::string refusal;                           // then: why, at either end
  std::int64_t transfers = 0;                    // so far, at rank 1
  double honest_us = 0;                          // the last transfer without a planted delay, at rank 0

  [[nodiscard]] bool uninformed(int rank) const {
    return method->uninformed(rank == 0 ? method::Role::sender : method::Role::receiver, notify);
  }
};

/// What rank 0 tells rank 1 to do next.
struct Command {
  enum class Kind : std::int32_t { visit, probe, clocks, finish } kind = Kind::finish;
  std::int32_t combination = 0;
  std::int32_t samples = 0;
  std::int32_t verify_seed = -1;  ///< not negative: the one sample moves this stream, and is checked
};

/// What rank 1 answers.
struct Visit {
  static constexpr int kMost = 16;
  std::array<std::int64_t, kMost> end_ns{};   ///< when the data was in place, by rank 1's clock
  std::array<std::int64_t, kMost> busy_ns{};  ///< of rank 1's CPU
  std::array<std::int64_t, kMost> copy_ns{};
  method::Counters counters;      ///< of the last transfer
  std::int64_t preemptions = 0;   ///< of rank 1 so far
  std::array<char, 256> wrong{};  ///< empty if the data was right
};

/// Rank 0's half of some transfers; answers with both halves.
struct Timed {
  std::vector<double> latency_us;
  std::vector<double> cpu_send_us;
  std::vector<double> cpu_recv_us;
  std::vector<double> copy_send_us;
  std::vector<double> copy_recv_us;
  method::Counters send, receive;  // of the last transfer
  std::string wrong;
};

class Workbench {
 public:
  static constexpr std::int32_t kSeeds = 2;

  /// `clocks`: of two machines; null where both ranks have one.
  Workbench(int rank, nic::Context& context, Mailbox& mailbox, Clocks* clocks, const Case& what, Workspace workspace, const Fault& fault);

  /// Makes every wanted combination at this end, then agrees with the other rank on which work.
  Result<void> set_up(std::span<const std::unique_ptr<method::Endpoint>> endpoints, const Budget& budget, nic::Bootstrap& bootstrap);
  [[nodiscard]] std::vector<Combination>& combinations() { return combinations_; }
  [[nodiscard]] const Case& what() const { return case_; }

  Result<Timed> visit(Command command);  // rank 0
  Result<Probe> probe();                 // rank 0
  [[nodiscard]] std::int64_t peers_preemptions() const { return peers_preemptions_; }
  Result<void> follow();  // rank 1: until rank 0 finishes
  Result<void> finish() { return mailbox_.send(Command{}); }

 private:
  void make(const method::Method& method, method::Endpoint& endpoint, method::Notify notify);
  Result<void> agree(nic::Bootstrap& bootstrap);
  void write_source(std::byte* base, std::int32_t verify_seed);
  Result<Visit> take_part(const Command& command);
  void corrupt(const Combination& combination, std::byte* base) const;
  double slow_down(const Combination& combination);
  Result<void> answer_probe();
  Result<void> set_clocks();

  int rank_;
  nic::Context& context_;
  Mailbox& mailbox_;
  Clocks* clocks_;
  const Case& case_;
  Workspace workspace_;
  const Fault& fault_;
  std::vector<Combination> combinations_;
  std::array<std::vector<std::byte>, kSeeds> streams_;
  std::vector<std::byte> read_;  // rank 1: where it reads its data to
  CheckedRanges windows_;
  bool clean_ = true;           // rank 1: what was not transferred to, and what was examined, holds the pattern
  std::int64_t transfers_ = 0;  // of all combinations; the same at both ranks
  std::int64_t peers_preemptions_ = 0;
};

}  // namespace lacuna::measure
