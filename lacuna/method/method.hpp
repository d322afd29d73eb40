// method: the ways to move a layout over a NIC, one file each. It hides the order of posts, polls and copies.
//
// A transfer moves the packed stream of one layout into another. Each method is a pair of operations, one for each end. An operation is
// made once for a pair of layouts and started for each transfer, like a persistent MPI request; it never blocks:
//
//        sender                                   receiver
//   op = sender(transfer, memory)            op = receiver(transfer, memory)
//        ◀───── target: where data may land, by whatever channel the caller has ───── op.target(base)
//   op.start(base, target)                   op.start(base)
//   op.progress() ... until true             op.progress() ... until true
//
// run() below drives one operation to its end. Both ends must know both layouts, as they do after a rendezvous: chains of work requests
// are cut at the same byte positions on both sides, which neither could know alone.
#pragma once

#include <array>
#include <unordered_map>

#include "lacuna/base/base.hpp"
#include "lacuna/layout/layout.hpp"
#include "lacuna/nic/nic.hpp"

namespace lacuna::method {

using base::Result;
using layout::Layout;

/// How the target of a one-sided method learns that the data is there. Two-sided methods need none: the receive's completion says it.
enum class Notify {
  none,  ///< it does not: the initiator's completion is all there is
  flag,  ///< a second small write behind the data; the target polls that word
};
[[nodiscard]] std::string_view notify_name(Notify notify);

struct Transfer {
  Layout src;
  Layout dst;  ///< of the same size; receiving into it must not overlap
  Notify notify = Notify::none;
};

/// The user's memory at one end: layouts lie in `region`, at the base address that start() names.
struct Memory {
  const nic::Region* region = nullptr;
};

/// What a receiver tells its sender. All zero for two-sided methods.
struct Target {
  std::uint64_t addr = 0;  ///< of the layout's base, or of the first byte of a contiguous landing place
  std::uint32_t rkey = 0;
  std::uint32_t flag_rkey = 0;
  std::uint64_t flag_addr = 0;
};

class Operation;

/// One end of a connection over one path, with the completions of all operations on it.
class Endpoint {
 public:
  struct Options {
    int max_send_wr = 128;
    int max_recv_wr = 128;
  };
  /// The peer connects at the same time, with the same path. Errors: those of Context::connect.
  static Result<std::unique_ptr<Endpoint>> connect(nic::Context& context, nic::Bootstrap& bootstrap, nic::Path path,
                                                   const Options& options);
  static Result<std::unique_ptr<Endpoint>> connect(nic::Context& context, nic::Bootstrap& bootstrap, nic::Path path) {
    return connect(context, bootstrap, path, Options());
  }

  [[nodiscard]] nic::Context& context() const { return context_; }
  [[nodiscard]] nic::QueuePair& qp() const { return *qp_; }
  [[nodiscard]] const nic::Limits& limits() const { return qp_->limits(); }
  [[nodiscard]] const Options& options() const { return options_; }

  /// Hands completions to their operations; how many there were.
  int poll();
  /// Drives `operation` to its end. Errors: its own; peer_lost, transfer (the queue pair failed); timeout (`timeout_ns` went by).
  Result<void> run(Operation& operation, std::int64_t timeout_ns);

 private:
  friend class Operation;
  Endpoint(nic::Context& context, std::unique_ptr<nic::CompletionQueue> queue, std::unique_ptr<nic::QueuePair> qp, const Options& options)
      : context_(context), options_(options), queue_(std::move(queue)), qp_(std::move(qp)) {}

  nic::Context& context_;
  Options options_;
  std::unique_ptr<nic::CompletionQueue> queue_;
  std::unique_ptr<nic::QueuePair> qp_;
  std::unordered_map<std::uint32_t, Operation*> operations_;  // by the upper half of their wr_ids
  std::uint32_t tokens_ = 0;
};

/// One end of one method for one pair of layouts.
class Operation {
 public:
  explicit Operation(Endpoint& endpoint);
  virtual ~Operation();
  Operation(const Operation&) = delete;
  Operation& operator=(const Operation&) = delete;

  /// A receiver's: where the next transfer to `base` may land.
  [[nodiscard]] virtual Target target(std::byte* /*base*/) const { return {}; }
  /// Begins a transfer from or to the layout at `base`. The one before must have ended. Errors: invalid_argument (outside the region).
  Result<void> start(std::byte* base, const Target& target = {});
  /// Moves on as far as it can; true once this end is finished.
  virtual Result<bool> progress() = 0;

 protected:
  virtual Result<void> begin() = 0;

  // Posting. Requests of one operation complete in order, so a count tells which have.
  /// Whether the send queue takes another request of this operation.
  [[nodiscard]] bool send_room() const { return sends_posted_ - sends_done_ < send_window_; }
  Result<void> send(std::span<const nic::Sge> list);
  Result<void> write(std::span<const nic::Sge> list, std::uint64_t addr, std::uint32_t rkey, bool last);
  Result<void> receive(std::span<const nic::Sge> list);
  [[nodiscard]] std::uint32_t sends_in_flight() const { return sends_posted_ - sends_done_; }
  [[nodiscard]] std::uint32_t receives_done() const { return receives_done_; }  ///< since start()
  [[nodiscard]] std::uint32_t receives_posted() const { return receives_posted_; }
  /// The error of a failed completion, if there was one.
  [[nodiscard]] Result<void> healthy() const;

  Endpoint& endpoint_;
  std::byte* base_ = nullptr;
  Target target_;
  const Layout* layout_ = nullptr;  // this end's, for the check of bounds in start()
  const nic::Region* region_ = nullptr;

 private:
  friend class Endpoint;
  void complete(const nic::Completion& completion);
  [[nodiscard]] std::uint64_t wr_id(std::uint32_t sequence) const { return std::uint64_t{token_} << 32 | sequence; }

  std::uint32_t token_;
  std::uint32_t send_window_;
  std::uint32_t sends_posted_ = 0, sends_done_ = 0;
  std::uint32_t receives_posted_ = 0, receives_done_ = 0;
  bool failed_ = false;
};

/// A way to move a layout; a line of the table.
struct Method {
  std::string_view name;
  std::string_view summary;
  std::span<const Notify> notifies;  ///< what Transfer::notify may be; the first is the usual one
  bool lands_in_place;               ///< needs the destination itself to be reachable by the path, whatever its layout
  Result<std::unique_ptr<Operation>> (*sender)(Endpoint&, const Transfer&, const Memory&);
  Result<std::unique_ptr<Operation>> (*receiver)(Endpoint&, const Transfer&, const Memory&);

  [[nodiscard]] bool one_sided() const { return notifies.front() != Notify::none; }
};
[[nodiscard]] std::span<const Method> methods();
/// Errors: invalid_argument, with the names that there are.
Result<const Method*> find(std::string_view name);

enum class Role { sender, receiver };

/// Makes one end of a method after checking all that can be checked without the peer. Errors: invalid_argument (sizes
/// differ, the destination overlaps itself, a notification that the method has not), unsupported (the path does not reach
/// the destination's memory), limit, out_of_memory.
Result<std::unique_ptr<Operation>> make(const Method& method, Role role, Endpoint& endpoint, const Transfer& transfer,
                                        const Memory& memory);

}  // namespace lacuna::method
