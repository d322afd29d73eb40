// A channel over the sends and receives of a queue pair. Each end posts receives for heads with their payload; a send
// is taken out of one of as many buffers. A sender never has more on its way than the peer has receives posted: heads
// carry back how many were posted again, and one receive is kept for a head that carries nothing else. What was posted
// again has taken a message, whose buffer is free then. So a completion, which on some networks is a message of its
// own, is asked for only where the peer says nothing, and once for many places of the queue.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <deque>
#include <utility>

#include "lacuna/base/rarely.hpp"
#include "lacuna/protocol/channel/channel.hpp"

namespace lacuna::protocol {
namespace {

constexpr int kReceives = 64;
constexpr int kSends = 32;    // buffers
constexpr int kPlaces = 128;  // of the queue for them
constexpr int kQuarters = 4;  // of both: the last one of each asks for a completion, which tells of all before it
constexpr std::size_t kSlot = sizeof(Head) + kMostPayload;

class QueueChannel final : public Channel {
 public:
  QueueChannel(nic::Context& context, nic::RegisteredBuffer memory, std::unique_ptr<nic::CompletionQueue> queue,
               std::unique_ptr<nic::QueuePair> qp, int receives, int sends, int places)
      : context_(context),
        memory_(std::move(memory)),
        queue_(std::move(queue)),
        qp_(std::move(qp)),
        receives_(receives),
        sends_(sends),
        places_(places),
        credits_(receives) {}

  Result<void> post_all() {
    for (int i = 0; i < receives_; ++i) LACUNA_TRY(post(i));
    return {};
  }

  std::byte* claim(std::size_t /*bytes*/) override {
    if (broken_ || credits_ < 2) {
      LACUNA_RARELY("queue channel: no receive of the peer is left");
      return nullptr;
    }
    if (!may_send()) poll();
    if (may_send()) return send_slot() + sizeof(Head);
    LACUNA_RARELY("queue channel: all buffers are on their way");
    return nullptr;
  }

  void commit(Head& head) override {
    head.credits = static_cast<std::uint16_t>(std::exchange(owed_, 0));
    std::memcpy(send_slot(), &head, sizeof head);
    const auto bytes = static_cast<std::int64_t>(sizeof head + head.payload);
    const nic::Sge sge = memory_.sge((receives_ + next_send_) * static_cast<std::int64_t>(kSlot), bytes);
    ++sent_;
    // What a goodbye is behind of has arrived with it
    const bool signaled = head.kind == HeadKind::bye || a_quarter(sent_ - asked_, places_) ||
                          (a_quarter(sent_ - std::max(taken_, arrived_sends_), sends_) && a_quarter(sent_ - asked_, sends_));
    if (signaled) asked_ = sent_;
    const Result<void> posted = qp_->post_send({.wr_id = sent_,
                                                .opcode = nic::Opcode::send,
                                                .sg_list = {&sge, 1},
                                                .signaled = signaled,
                                                .inline_data = bytes <= qp_->limits().max_inline});
    if (!posted) {
      LACUNA_RARELY("queue channel: a send is refused");
      broken_ = posted.error();
    }
    next_send_ = (next_send_ + 1) % sends_;
    --credits_;
  }

  Result<bool> next(Arrival& arrival) override {
    // A peer that sends nothing but credit shall not keep this end from everything else
    for (int i = 0; i < receives_; ++i) {
      if (arrived_.empty() && !std::exchange(emptied_, false)) poll();
      if (owed_ >= receives_ / 2 && credits_ > 0 && may_send() && !broken_) {
        LACUNA_RARELY("queue channel: a head for credit alone");
        Head nothing;
        commit(nothing);
      }
      if (arrived_.empty()) {
        arrival.failed = std::exchange(failed_, false) || broken_;
        return false;
      }
      const Came& came = arrived_.front();
      const std::byte* slot = memory_.buffer.data() + static_cast<std::size_t>(came.receive) * kSlot;
      if (came.bytes < sizeof(Head)) return base::fail(base::Code::malformed, "a message that is too short for a head");
      arrival.head = base::read_once(*reinterpret_cast<const Head*>(slot));
      if (came.bytes != sizeof(Head) + arrival.head.payload)
        return base::fail(base::Code::malformed, "a message of another length than it says");
      if (!std::exchange(shown_, true)) {
        if (arrival.head.credits > receives_ - credits_) return base::fail(base::Code::malformed, "more receives than there were");
        credits_ += arrival.head.credits;
        taken_ += arrival.head.credits;
      }
      arrival.payload = slot + sizeof(Head);
      if (arrival.head.kind != HeadKind::none) return true;
      pop();
    }
    return false;
  }

  void pop() override {
    const int receive = arrived_.front().receive;
    arrived_.pop_front();
    emptied_ = arrived_.empty();
    shown_ = false;
    post_again();
    if (unposted_.empty() && qp_ != nullptr && post(receive))
      ++owed_;
    else
      unposted_.push_back(receive);
  }

  const base::Error* fault() override {
    // next() polls, and is called as often; a second look makes whatever comes meanwhile late
    if (!broken_ && qp_->fault() == nullptr) return nullptr;
    poll();
    if (!arrived_.empty()) {  // what came before goes first
      LACUNA_RARELY("queue channel: more came before the fault");
      failed_ = true;  // for another look behind it
      return nullptr;
    }
    return broken_ ? &*broken_ : qp_->fault();
  }
  // The peer sees that the connection ends.
  void give_up() override {
    if (broken_) qp_.reset();
  }
  [[nodiscard]] std::byte* rkey_ptr(std::uint64_t addr, std::uint32_t rkey, std::size_t bytes) const override {
    return qp_ == nullptr ? nullptr : qp_->rkey_ptr(addr, rkey, bytes);
  }
  void keep(const nic::SharedBuffer& memory) override {
    if (qp_ != nullptr) qp_->keep(memory);
  }
  [[nodiscard]] bool shares_memory() const override { return false; }

 private:
  struct Came {
    int receive;
    std::size_t bytes;
  };
  [[nodiscard]] bool may_send() const {
    return std::cmp_less(sent_ - std::max(taken_, arrived_sends_), sends_) && std::cmp_less(sent_ - arrived_sends_, places_);
  }
  [[nodiscard]] static bool a_quarter(std::uint64_t part, int whole) {
    return std::cmp_greater_equal(part, std::max(1, whole / kQuarters));
  }
  [[nodiscard]] std::byte* send_slot() const { return memory_.buffer.data() + static_cast<std::size_t>(receives_ + next_send_) * kSlot; }
  Result<void> post(int receive) {
    const nic::Sge sge = memory_.sge(receive * static_cast<std::int64_t>(kSlot), kSlot);
    return qp_->post_recv({.wr_id = static_cast<std::uint64_t>(receive), .sg_list = {&sge, 1}});
  }
  // The peer is told of receives that are posted. One that is refused is tried again.
  void post_again() {
    while (!unposted_.empty() && qp_ != nullptr) {
      if (!post(unposted_.front())) {
        LACUNA_RARELY("queue channel: a receive is refused");
        return;
      }
      unposted_.pop_front();
      ++owed_;
    }
  }
  void poll() {
    post_again();
    // Until something came or all was seen: with sends alone this rank would wait, and nothing wakes it for the rest.
    std::array<nic::Completion, 16> completions;
    bool more = true;
    while (more) {
      const int n = context_.poll(*queue_, completions);
      for (const nic::Completion& done : std::span(completions).first(static_cast<std::size_t>(n))) {
        if (done.opcode != nic::Opcode::recv)
          arrived_sends_ = std::max(arrived_sends_, done.wr_id);
        else if (done.status == nic::Status::success)
          arrived_.push_back({static_cast<int>(done.wr_id), done.byte_len});
        failed_ = failed_ || done.status != nic::Status::success;
      }
      more = n == std::ssize(completions) && arrived_.empty();
    }
  }

  nic::Context& context_;
  nic::RegisteredBuffer memory_;  // of each receive, then of each send
  std::unique_ptr<nic::CompletionQueue> queue_;
  std::unique_ptr<nic::QueuePair> qp_;
  int receives_, sends_, places_;
  int credits_;  // receives that the peer has posted and nothing is on its way to
  int owed_ = 0;
  std::uint64_t sent_ = 0, arrived_sends_ = 0;  // messages; those that a completion has told of
  std::uint64_t asked_ = 0, taken_ = 0;         // the last that asked for a completion; those that the peer has taken
  int next_send_ = 0;
  bool emptied_ = false;  // what came last was just taken: a look for more would make its answer late
  bool shown_ = false;    // the oldest arrival's credits are counted
  bool failed_ = false;   // some request
  std::deque<Came> arrived_;
  std::deque<int> unposted_;  // receives that were refused
  std::optional<base::Error> broken_;
};

}  // namespace

Result<std::unique_ptr<Channel>> make_queue_channel(nic::Context& context, nic::Bootstrap& bootstrap, nic::Path path) {
  const nic::Limits& limits = context.limits();
  const int receives = std::min(kReceives, limits.max_recv_wr);
  const int sends = std::min(kSends, limits.max_send_wr);
  if (receives < 4 || sends < 2)
    return base::fail(base::Code::limit, fmt::format("queues of {} sends and {} receives; messages need 2 and 4", sends, receives));
  const int places = std::min(kPlaces, limits.max_send_wr);
  nic::RegisteredBuffer memory = LACUNA_TRY(nic::RegisteredBuffer::create(context, (receives + sends) * static_cast<std::int64_t>(kSlot)));
  auto queue = LACUNA_TRY(context.create_completion_queue(receives + places));
  auto qp = LACUNA_TRY(context.connect(bootstrap, *queue, {path, places, receives}));
  auto made = std::make_unique<QueueChannel>(context, std::move(memory), std::move(queue), std::move(qp), receives, sends, places);
  LACUNA_TRY(made->post_all());
  LACUNA_TRY(bootstrap.exchange({}, 60'000'000'000));  // the peer's receives are posted too
  return made;
}

}  // namespace lacuna::protocol
