// What a hand-over costs the CPU before anything moves: planning (a method's operations made and prepared) and posting
// (every request written and every completion polled), on a NIC that does nothing else (posting_nic.hpp). Copies that a
// method has the CPU do are taken off: they are the transfer. All times are CPU time.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "lacuna/method/method.hpp"
#include "tools/handover/posting_nic.hpp"

namespace lacuna::handover {

using base::Result;

struct Posting {
  std::string refusal;      ///< why there are no times; empty if there are
  double layout_ns = 0;     ///< both layouts, from page tables
  double plan_ns = 0;       ///< both ends' operations made and prepared: overlap, cuts, indirect keys, copy plans
  double post_ns = 0;       ///< the sender's transfer, without its copies
  method::Counters counts;  ///< the sender's, of one transfer
};

/// One method's sender (and, where it needs one, its receiver) on a posting NIC, for layouts at two bases.
class PostingBench {
 public:
  /// `dst` is not touched unless moves() is set, so it may be addresses alone.
  static Result<PostingBench> create(const method::Method& method, const method::Transfer& transfer, std::span<std::byte> src,
                                     std::span<std::byte> dst);
  /// Posts a whole transfer; nanoseconds. Errors: the operation's.
  Result<double> post();
  /// The receiver's part, where requests were carried out: unpacks what has to be. Errors: the operation's.
  Result<void> land();
  void moves(bool wanted) { nic_->moves = wanted; }
  [[nodiscard]] double plan_ns() const { return plan_ns_; }
  [[nodiscard]] const method::Counters& counts() const { return sender_->counters(); }
  [[nodiscard]] const PostingNic& nic() const { return *nic_; }

 private:
  PostingBench() = default;
  struct Regions {
    nic::Region src, dst;
  };
  std::unique_ptr<PostingNic> nic_;
  std::unique_ptr<Regions> regions_;  // operations know where they are, and a bench is moved
  std::unique_ptr<method::Endpoint> here_, there_;
  std::unique_ptr<method::Operation> sender_, receiver_;
  method::Target target_;
  double plan_ns_ = 0;
};

/// Whether it is the sender who posts, which is what can be seen here.
[[nodiscard]] inline bool sender_posts(const method::Method& method) { return method.initiator == method::Role::sender; }

/// Medians of `times` rounds, each from new layouts on: what was planned once stays with a layout.
[[nodiscard]] Posting measure_posting(const method::Method& method, const std::function<Result<method::Transfer>()>& make_transfer,
                                      std::span<std::byte> src, std::span<std::byte> dst, int times);
[[nodiscard]] double median(std::vector<double> values);

}  // namespace lacuna::handover
