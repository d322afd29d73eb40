// One case, set up on one rank: memory, and every combination's operation. Internal to the guide.
#pragma once

#include "lacuna/guide/image.hpp"
#include "lacuna/guide/mailbox.hpp"

namespace lacuna::guide {

/// The buffers of a case: one copy of the layout's span, or as many as it takes to be out of every cache, each between guards.
class Workspace {
 public:
  static Result<Workspace> create(nic::Context& context, const Case& what, int rank, bool cold);
  [[nodiscard]] std::int64_t copies() const { return copies_; }
  [[nodiscard]] std::byte* base(std::int64_t copy) const { return buffer_.data() + copy * stride_ + kGuard; }
  [[nodiscard]] const nic::Region& region() const { return *region_; }

 private:
  nic::Buffer buffer_;
  std::unique_ptr<nic::Region> region_;  // operations hold its address
  std::int64_t copies_ = 1;
  std::int64_t stride_ = 0;
};

/// A way to move the case: method, path, notification.
struct Combination {
  const method::Method* method;
  method::Endpoint* endpoint;
  method::Notify notify;
  std::unique_ptr<method::Operation> operation;  // null if it cannot be made
  std::string refusal;                           // then: why, at either end

  [[nodiscard]] bool uninformed(int rank) const {
    return method->uninformed(rank == 0 ? method::Role::sender : method::Role::receiver, notify);
  }
};

/// What rank 0 tells rank 1 to do next.
struct Command {
  enum class Kind : std::int32_t { visit, finish } kind = Kind::finish;
  std::int32_t combination = 0;
  std::int32_t samples = 0;
  std::int32_t verify_seed = -1;  ///< not negative: check the data of the last sample
  std::int64_t first_copy = 0;
};

/// What rank 1 answers.
struct Visit {
  static constexpr int kMost = 16;
  std::array<std::int64_t, kMost> end_ns{};   ///< when the data was in place, by the clock that both ranks share
  std::array<std::int64_t, kMost> busy_ns{};  ///< of rank 1's CPU
  std::array<std::int64_t, kMost> copy_ns{};
  method::Counters counters;      ///< of the last transfer
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
  Workbench(int rank, nic::Context& context, Mailbox& mailbox, const Case& what, Workspace workspace)
      : rank_(rank), context_(context), mailbox_(mailbox), case_(what), workspace_(std::move(workspace)) {}

  /// Makes every wanted combination at this end, then agrees with the other rank on which work.
  Result<void> set_up(std::span<const std::unique_ptr<method::Endpoint>> endpoints, const Budget& budget, nic::Bootstrap& bootstrap);
  [[nodiscard]] std::vector<Combination>& combinations() { return combinations_; }
  [[nodiscard]] std::int64_t copies() const { return workspace_.copies(); }

  void fill_source(std::uint64_t seed);           // rank 0
  void prepare_destination(std::uint64_t seeds);  // rank 1: memory before any transfer, and what it must be after those of seeds 0 ...
  Result<Timed> visit(const Command& command);    // rank 0
  Result<void> follow();                          // rank 1: until rank 0 finishes
  Result<void> finish() { return mailbox_.send(Command{}); }

 private:
  void make(const method::Method& method, method::Endpoint& endpoint, method::Notify notify);
  Result<void> agree(nic::Bootstrap& bootstrap);
  /// One transfer at this end, between the two mails that say that the other end is ready.
  Result<Visit> take_part(const Command& command);

  int rank_;
  nic::Context& context_;
  Mailbox& mailbox_;
  const Case& case_;
  Workspace workspace_;
  std::vector<Combination> combinations_;
  std::vector<Image> expected_;        // rank 1, by seed
  std::vector<std::byte> produced_;    // rank 0: the source's bytes, packed
  std::vector<std::byte> unreceived_;  // rank 1: the payload's bytes before a transfer, packed
  std::vector<std::byte> read_;        // rank 1: where it reads its data to
};

}  // namespace lacuna::guide
