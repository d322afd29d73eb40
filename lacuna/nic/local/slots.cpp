// The path slots: the sender fills slots of the target's inbox from its sg_lists; the target, when it polls, empties
// them into its posted receives or, for writes, into the memory that the slot names. While one core fills slot k + 1
// the other empties slot k. A read is a slot without bytes; the target answers it with replies in the reader's inbox.
#include <algorithm>

#include "lacuna/copy/copy.hpp"
#include "lacuna/nic/local/queue_pair.hpp"

namespace lacuna::nic::local {
namespace {

constexpr std::size_t kAll = ~std::size_t{0};  // a slot's part has at most as many extents as bytes

constexpr std::string_view kTooManyEmptied = "that it emptied more slots than were filled";

class Slots final : public QueuePair {
 public:
  using QueuePair::QueuePair;

  bool progress() override {
    if (failed()) return false;
    bool moved = false;
    while (!failed() && empty_one()) moved = true;
    if (!failed() && !sends_.empty()) moved = collect() || moved;
    while (!failed() && sent_ < sends_.size() && fill_one()) moved = true;
    return moved;
  }

 private:
  void announce(const Work& /*recv*/) override {}

  // --- the initiator's half ---

  bool fill_one() {
    Work& work = sends_[sent_];
    if ((work.fence || work.on_keys()) && reads_ > 0) return false;  // a read that is under way may use the key
    if (work.on_keys()) {
      const Status status = run_on_keys(work);
      if (status != Status::success && sent_ > 0) return false;  // what was posted before it completes first
      if (status != Status::success) return end_in(status), true;
      work.end = filled_;
      ++sent_;
      if (sent_ == 1) collect();
      return true;
    }
    const std::uint64_t consumed = peer_inbox().consumed.value.load(std::memory_order_acquire);
    if (consumed > filled_) return fail(nonsense(kTooManyEmptied)), true;
    if (filled_ - consumed >= kSlots) return false;
    const bool read = work.opcode == Opcode::read;
    const std::uint64_t bytes = read ? 0 : std::min<std::uint64_t>(work.total - work.moved, kSlotBytes);
    memory_.clear();
    const std::uint64_t looked_at = read ? std::min<std::uint64_t>(work.total, kSlotBytes) : bytes;
    if (!work.local(context_.keys(), work.moved, looked_at, read ? kRightLocalWrite : 0, kAll, memory_)) {
      return sent_ == 0 ? (end_in(Status::loc_prot_err), true) : false;
    }
    context_.busy();
    Slot& slot = peer_inbox().slots[filled_ % kSlots];
    if (!read) gather(slot.bytes.data());
    const bool last = read || work.moved + bytes == work.total;
    slot.head = {static_cast<std::uint32_t>(work.opcode),
                 static_cast<std::uint32_t>(bytes),
                 last ? 1U : 0U,
                 work.rkey,
                 work.remote_addr + work.moved,
                 work.total,
                 work.imm_data};
    peer_inbox().filled.value.store(++filled_, std::memory_order_release);
    if (!read) work.moved += bytes;
    if (!last) return true;
    if (read) ++reads_;
    work.end = filled_;
    ++sent_;
    return true;
  }

  // Takes replies, and completes the oldest requests as far as the peer has served them.
  bool collect() {
    const std::uint64_t fault = peer_inbox().fault.value.load(std::memory_order_acquire);
    const std::uint64_t replied = own_inbox().replied.value.load(std::memory_order_acquire);
    const std::uint64_t consumed = peer_inbox().consumed.value.load(std::memory_order_acquire);
    if (consumed > filled_) return fail(nonsense(kTooManyEmptied)), true;
    bool moved = false;
    while (!failed() && sent_ > 0) {
      Work& work = sends_.front();
      if (work.opcode == Opcode::read && work.moved < work.total) {
        if (taken_ == replied) break;
        take_reply(work);
      } else if (work.end <= consumed) {
        if (work.opcode == Opcode::read) --reads_;
        --sent_;
        complete_send(Status::success);
      } else {
        break;
      }
      moved = true;
    }
    if (failed()) return true;
    if (fault == 0 || (fault >> 8) - 1 != consumed) return moved;
    const std::uint64_t told = fault & 0xff;
    return end_in(told <= static_cast<std::uint64_t>(Status::retry_exc_err) ? static_cast<Status>(told) : Status::rem_op_err), true;
  }

  void take_reply(Work& read) {
    const Reply& reply = own_inbox().replies[taken_ % kSlots];
    const std::uint32_t length = base::read_once(reply.length);
    if (length == 0 || length > kSlotBytes || length > read.total - read.moved)
      return fail(nonsense("a reply of another length than was asked for"));
    memory_.clear();
    if (!read.local(context_.keys(), read.moved, length, kRightLocalWrite, kAll, memory_)) return end_in(Status::loc_prot_err);
    scatter(reply.bytes.data());
    read.moved += length;
    own_inbox().taken.value.store(++taken_, std::memory_order_release);
  }

  // The oldest request failed.
  void end_in(Status status) {
    const Opcode opcode = sends_.empty() ? Opcode::send : sends_.front().opcode;
    if (!sends_.empty()) complete_send(status);
    fail(opcode, status);
  }

  // --- the target's half ---

  bool empty_one() {
    const std::uint64_t filled = own_inbox().filled.value.load(std::memory_order_acquire);
    if (filled == consumed_) return false;
    if (filled - consumed_ > kSlots) return fail(nonsense("that it filled more slots than there are")), true;
    const Slot& slot = own_inbox().slots[consumed_ % kSlots];
    const SlotHead head = base::read_once(slot.head);
    if (head.length > kSlotBytes) return refuse(Opcode::recv, Status::rem_op_err), true;
    switch (static_cast<Opcode>(head.opcode)) {
      case Opcode::send: return take_send(head, slot.bytes.data());
      case Opcode::write:
      case Opcode::write_imm: return take_write(head, slot.bytes.data());
      case Opcode::read: return serve_read(head);
      default: return refuse(Opcode::recv, Status::rem_op_err), true;
    }
  }

  // False while no receive is posted: the slot waits, and with it the sender (receiver not ready).
  bool take_send(const SlotHead& head, const std::byte* bytes) {
    if (recvs_.empty()) return false;
    context_.busy();
    Work& recv = recvs_.front();
    memory_.clear();
    if (head.length > recv.total - recv.moved) {
      complete_recv(Status::loc_len_err);
      return refuse(Opcode::recv, Status::rem_inv_req_err), true;
    }
    if (!recv.local(context_.keys(), recv.moved, head.length, kRightLocalWrite, kAll, memory_)) {
      complete_recv(Status::loc_prot_err);
      return refuse(Opcode::recv, Status::rem_op_err), true;
    }
    scatter(bytes);
    recv.moved += head.length;
    consume();
    if (head.last != 0) complete_recv(Status::success, Opcode::recv, recv.moved);
    return true;
  }

  bool take_write(const SlotHead& head, const std::byte* bytes) {
    const bool notifies = head.opcode == static_cast<std::uint32_t>(Opcode::write_imm) && head.last != 0;
    if (notifies && recvs_.empty()) return false;
    context_.busy();
    memory_.clear();
    const Sge target{head.addr, head.length, head.rkey};
    if (!resolve(context_.keys(), {&target, 1}, 0, head.length, kRightRemoteWrite, kAll, memory_))
      return refuse(Opcode::write, Status::rem_access_err), true;
    scatter(bytes);
    consume();
    if (notifies) complete_recv(Status::success, Opcode::recv_imm, head.total, head.imm_data);
    return true;
  }

  // Fills replies while there is room; the request's slot is consumed once all its bytes are on their way.
  bool serve_read(const SlotHead& head) {
    if (served_ < head.total && replied_ - peer_inbox().taken.value.load(std::memory_order_acquire) >= kSlots) return false;
    context_.busy();
    if (served_ < head.total) {
      const auto bytes = static_cast<std::uint32_t>(std::min<std::uint64_t>(head.total - served_, kSlotBytes));
      memory_.clear();
      const Sge source{head.addr + served_, bytes, head.rkey};
      if (head.addr + served_ < head.addr || !resolve(context_.keys(), {&source, 1}, 0, bytes, kRightRemoteRead, kAll, memory_))
        return refuse(Opcode::read, Status::rem_access_err), true;
      Reply& reply = peer_inbox().replies[replied_ % kSlots];
      gather(reply.bytes.data());
      reply.length = bytes;
      peer_inbox().replied.value.store(++replied_, std::memory_order_release);
      served_ += bytes;
    }
    if (served_ < head.total) return true;
    served_ = 0;
    consume();
    return true;
  }

  void gather(std::byte* bytes) const {
    copy::Pieces pieces;
    for (const Extent& extent : memory_) {
      pieces.add(bytes, reinterpret_cast<const std::byte*>(extent.addr), static_cast<std::int64_t>(extent.length));
      bytes += extent.length;
    }
    pieces.move();
  }

  void scatter(const std::byte* bytes) const {
    copy::Pieces pieces;
    for (const Extent& extent : memory_) {
      pieces.add(reinterpret_cast<std::byte*>(extent.addr), bytes, static_cast<std::int64_t>(extent.length));
      bytes += extent.length;
    }
    pieces.move();
  }

  void consume() { own_inbox().consumed.value.store(++consumed_, std::memory_order_release); }

  // Tells the initiator which slot could not be taken, and why.
  void refuse(Opcode opcode, Status status) {
    own_inbox().fault.value.store((consumed_ + 1) << 8 | static_cast<std::uint64_t>(status), std::memory_order_release);
    fail(opcode, status);
  }

  std::vector<Extent> memory_;  // of the part at hand
  // Initiator: sends_[0, sent_) are in slots whole, sends_[sent_] is so up to its `moved`. Of a read, `moved` counts
  // what came back.
  std::size_t sent_ = 0;
  std::size_t reads_ = 0;  // of them, reads
  std::uint64_t filled_ = 0;
  std::uint64_t taken_ = 0;  // replies
  // Target: recvs_.front() is filled up to its `moved`, the read in the oldest slot served up to served_.
  std::uint64_t consumed_ = 0;
  std::uint64_t replied_ = 0;
  std::uint64_t served_ = 0;
};

}  // namespace

std::unique_ptr<QueuePair> make_slots(Context& context, CompletionQueue& queue, const QueuePairOptions& options, Limits limits,
                                      Wiring wiring) {
  return std::make_unique<Slots>(context, queue, options, std::move(limits), std::move(wiring));
}

}  // namespace lacuna::nic::local
