// What the one-sided methods share. Writes: the sender is active, the receiver offers a place to land. Reads: the
// receiver is active, the sender offers what is to be read and says when it is there. A method says how its stream
// becomes work requests.
//
//   Initiator ── writes, the last with the notification ──▶ Landing ── unpacks, if the place was staging
//   Reader    ◀── a flag: ready ── Source (packs first, if its layout has to be)
//             ◀═══ reads ═══
//             ── the notification ──▶ Source
#pragma once

#include <limits>

#include "lacuna/method/staging.hpp"

namespace lacuna::method {

inline constexpr Notify kOneSided[] = {Notify::flag, Notify::imm, Notify::none};
inline constexpr Notify kTwoSided[] = {Notify::none};

using Made = Result<std::unique_ptr<Operation>>;

/// What fits one work request and one sge.
[[nodiscard]] std::int64_t largest_message(const nic::Limits& limits);

/// For cost items: so many requests carry a stream, if each carries at most `most` bytes;
[[nodiscard]] double messages_of(std::int64_t bytes, const nic::Limits& limits,
                                 std::int64_t most = std::numeric_limits<std::int64_t>::max());
/// and so many if each has a list of at most `list` entries.
[[nodiscard]] double lists_of(double entries, int list, std::int64_t bytes, const nic::Limits& limits);

/// Requests to be posted with one doorbell, and their lists.
class Chain {
 public:
  Chain(int requests, int sges);
  void clear();
  [[nodiscard]] bool empty() const { return requests_.empty(); }
  [[nodiscard]] int size() const { return static_cast<int>(requests_.size()); }
  /// Appends to the list of the next request; call add() when it is complete.
  void append(const nic::Sge& sge) { sges_.push_back(sge); }
  [[nodiscard]] int list_size() const { return static_cast<int>(sges_.size() - taken_); }
  nic::SendRequest& add(nic::Opcode opcode, std::uint64_t addr, std::uint32_t rkey);
  void add(const nic::SendRequest& request) { requests_.push_back(request); }
  /// A write with a list of one entry.
  void add_write(const nic::Sge& sge, std::uint64_t addr, std::uint32_t rkey) {
    sges_.push_back(sge);
    nic::SendRequest& request = requests_.emplace_back();
    request.opcode = nic::Opcode::write;
    request.sg_list = {&sges_.back(), 1};
    request.remote_addr = addr;
    request.rkey = rkey;
    request.signaled = false;
    taken_ = sges_.size();
  }
  [[nodiscard]] std::span<nic::SendRequest> requests() { return requests_; }

 private:
  std::vector<nic::Sge> sges_;  // reserved, so that lists stay where they are
  std::vector<nic::SendRequest> requests_;
  std::size_t taken_ = 0;
};

/// The passive end's wait for the notification, and the active end's sending it.
class Notice {
 public:
  static Result<Notice> create(Endpoint& endpoint, Notify notify);
  [[nodiscard]] Notify how() const { return how_; }
  [[nodiscard]] Target::Part part() const { return flag_ ? flag_->part() : Target::Part(); }
  void count() {
    if (flag_) flag_->count();
  }
  /// As a request of its own; of `imm` an empty write.
  [[nodiscard]] nic::SendRequest request(const Endpoint& endpoint, const Target::Part& peers);
  /// It is complete.
  void went() {
    if (flag_) flag_->went();
  }
  [[nodiscard]] bool arrived(nic::Context& context, std::uint32_t receives_done) const {
    return flag_ ? flag_->raised(context) : how_ == Notify::none || receives_done > 0;
  }

 private:
  explicit Notice(Notify how) : how_(how) {}
  Notify how_;
  std::optional<Flag> flag_;  // only where it is one
};

/// The active end: a stream of requests of one opcode, in chains, and the notification behind them.
class Initiator : public Operation {
 protected:
  /// `chain`: how many requests one doorbell has, as long as there are so many; the notification behind them rides
  /// along.
  Initiator(Endpoint& endpoint, Layout own, const Memory& memory, Notice notice, int chain);
  [[nodiscard]] Result<void> check_peer() const override;
  Result<void> begin() override;
  Result<bool> advance() override;
  [[nodiscard]] virtual bool exhausted() const = 0;
  /// Adds the next request to the chain, or more of them, up to `room`. False if it has to wait, for what a poll may
  /// bring.
  virtual Result<bool> add_next(Chain& chain, int room) = 0;
  /// Everything is done: keys may go.
  virtual void finished() {}
  /// Whether the first request may go.
  [[nodiscard]] virtual bool may_begin() { return true; }
  /// Part `i` of the peer's target; start() has to have checked that it is there.
  [[nodiscard]] const Target::Part& remote(std::size_t i) const { return peer_.parts[i]; }
  [[nodiscard]] virtual std::size_t remote_parts() const { return 1; }

 private:
  /// Puts the notification behind the last request of a chain if that may have `room` of them.
  void notify(int room);
  /// Requests of a whole chain; the notification rides along with several.
  [[nodiscard]] int chain_room() const { return most_ > 1 ? most_ + 1 : 1; }

  Notice notice_;
  Chain chain_;
  int most_;
  bool notified_ = false;
};

/// The passive end of writes: memory to land in, the notification, and unpacking where that memory is staging.
class Landing : public Operation {
 public:
  /// Lands in the destination itself if it is contiguous and reachable, else in staging; without a notification only
  /// the former.
  static Made make_contiguous(Endpoint& endpoint, const Transfer& transfer, const Memory& memory);
  /// Lands in the destination, whatever its layout; the offered address is that of the layout's base.
  static Made make_in_place(Endpoint& endpoint, const Transfer& transfer, const Memory& memory);

  Landing(Endpoint& endpoint, const Transfer& transfer, const Memory& memory, Notice notice, Staging staging, std::int64_t offset)
      : Operation(endpoint, transfer.dst, memory), notice_(std::move(notice)), staging_(std::move(staging)), offset_(offset) {}

 protected:
  [[nodiscard]] Target offer() const override;
  Result<void> begin() override;
  Result<bool> advance() override;

  Notice notice_;

 private:
  [[nodiscard]] bool staged() const { return staging_ != nullptr; }
  Staging staging_;
  std::int64_t offset_;  // of the offered address from the base
};

/// The active end of reads: waits until the source says that its data is there.
class Reader : public Initiator {
 protected:
  Reader(Endpoint& endpoint, Layout own, const Memory& memory, Notice notice, Flag ready)
      : Initiator(endpoint, std::move(own), memory, std::move(notice), 1), ready_(std::move(ready)) {}
  Result<void> begin() override;
  [[nodiscard]] bool may_begin() override { return ready_.raised(endpoint_.context()); }
  [[nodiscard]] Target offer() const override { return {.parts = {}, .flag = ready_.part()}; }

 private:
  Flag ready_;
};

/// The passive end of reads.
class Source : public Operation {
 public:
  /// Offers the source itself if it is contiguous and reachable, else a packed copy.
  static Made make_contiguous(Endpoint& endpoint, const Transfer& transfer, const Memory& memory);

  Source(Endpoint& endpoint, const Transfer& transfer, const Memory& memory, Notice notice, Flag ready, Staging staging)
      : Operation(endpoint, transfer.src, memory), notice_(std::move(notice)), ready_(std::move(ready)), staging_(std::move(staging)) {}

 protected:
  [[nodiscard]] Target offer() const override;
  [[nodiscard]] Result<void> check_peer() const override;
  Result<void> begin() override;
  Result<bool> advance() override;

  Notice notice_;

 private:
  [[nodiscard]] bool staged() const { return staging_ != nullptr; }
  Flag ready_;
  Staging staging_;
  bool told_ = false;  // the reader, that it may begin
};

}  // namespace lacuna::method
