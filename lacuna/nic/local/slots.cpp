// The path slots: the sender fills slots of the target's inbox from its sg_lists; the target, when it polls, empties them into its posted
// receives or, for writes, into the memory that the slot names. While one core fills slot k + 1 the other empties slot k.
#include <algorithm>
#include <cstring>

#include "lacuna/nic/local/queue_pair.hpp"

namespace lacuna::nic::local {
namespace {

// A place in an sg_list.
struct Position {
  std::size_t sge = 0;
  std::uint32_t within = 0;
};

// Calls step(address, bytes) for the next `bytes` of a list, which must hold them.
void walk(std::span<const Sge> list, Position& at, std::uint64_t bytes, const auto& step) {
  while (bytes > 0) {
    const Sge& sge = list[at.sge];
    const auto part = static_cast<std::uint32_t>(std::min<std::uint64_t>(bytes, sge.length - at.within));
    step(reinterpret_cast<std::byte*>(sge.addr) + at.within, part);
    bytes -= part;
    at.within += part;
    if (at.within == sge.length) at = {at.sge + 1, 0};
  }
}

class Slots final : public QueuePair {
 public:
  using QueuePair::QueuePair;

  bool progress() override {
    if (failed()) return false;
    bool moved = false;
    while (!failed() && empty_one()) moved = true;
    if (!failed() && !sends_.empty()) moved = collect() || moved;
    while (!failed() && filling_ < sends_.size() && fill_one()) moved = true;
    return moved;
  }

 private:
  void announce(const Work& /*recv*/) override {}

  // --- the sender's half ---

  bool fill_one() {
    const std::uint64_t consumed = peer_inbox().consumed.value.load(std::memory_order_acquire);
    if (filled_ - consumed >= kSlots) return false;
    const Work& work = sends_[filling_];
    if (!local_access(work.list(), 0)) {
      if (filling_ > 0) return false;  // what was posted before it completes first
      const Opcode opcode = work.opcode;
      return complete_send(Status::loc_prot_err), fail(opcode, Status::loc_prot_err), true;
    }
    context_.busy();
    Slot& slot = peer_inbox().slots[filled_ % kSlots];
    const std::uint64_t bytes = std::min<std::uint64_t>(work.total - sent_, kSlotBytes);
    std::byte* out = slot.bytes.data();
    walk(work.list(), from_, bytes, [&](const std::byte* source, std::uint32_t part) {
      std::memcpy(out, source, part);
      out += part;
    });
    const bool last = sent_ + bytes == work.total;
    slot.head = {work.opcode == Opcode::send ? SlotKind::send : SlotKind::write, static_cast<std::uint32_t>(bytes), last ? 1U : 0U,
                 work.rkey, work.remote_addr + sent_};
    peer_inbox().filled.value.store(++filled_, std::memory_order_release);
    sent_ += bytes;
    if (last) {
      ends_.push_back(filled_);
      ++filling_;
      sent_ = 0;
      from_ = {};
    }
    return true;
  }

  // Completes requests whose last slot the peer has emptied.
  bool collect() {
    const std::uint64_t consumed = peer_inbox().consumed.value.load(std::memory_order_acquire);
    const std::uint64_t fault = peer_inbox().fault.value.load(std::memory_order_acquire);
    if (consumed > filled_) return fail(nonsense("that it emptied more slots than were filled")), true;
    bool moved = false;
    while (!ends_.empty() && ends_.front() <= consumed) {
      complete_send(Status::success);
      ends_.pop_front();
      --filling_;
      moved = true;
    }
    if (fault == 0 || (fault >> 8) - 1 != consumed) return moved;
    const std::uint64_t told = fault & 0xff;
    const Status status = told <= static_cast<std::uint64_t>(Status::retry_exc_err) ? static_cast<Status>(told) : Status::rem_op_err;
    const Opcode opcode = sends_.empty() ? Opcode::send : sends_.front().opcode;
    if (!sends_.empty()) complete_send(status);
    return fail(opcode, status), true;
  }

  // --- the receiver's half ---

  bool empty_one() {
    const std::uint64_t filled = own_inbox().filled.value.load(std::memory_order_acquire);
    if (filled == consumed_) return false;
    if (filled - consumed_ > kSlots) return fail(nonsense("that it filled more slots than there are")), true;
    const Slot& slot = own_inbox().slots[consumed_ % kSlots];
    if (!recvs_.empty() || slot.head.kind != SlotKind::send) context_.busy();
    const SlotHead head = slot.head;  // a copy, which the peer cannot change under our hands
    if (head.length > kSlotBytes) return refuse(Opcode::recv, Status::rem_op_err), true;
    if (head.kind == SlotKind::send) return take_send(head, slot.bytes.data());
    if (head.kind != SlotKind::write) return refuse(Opcode::recv, Status::rem_op_err), true;
    if (head.length > 0) {
      if (!check(context_.keys(), head.rkey, head.addr, head.length, kRightRemoteWrite))
        return refuse(Opcode::write, Status::rem_access_err), true;
      std::memcpy(reinterpret_cast<std::byte*>(head.addr), slot.bytes.data(), head.length);
    }
    return consume(), true;
  }

  // False while no receive is posted: the slot waits, and with it the sender (receiver not ready).
  bool take_send(const SlotHead& head, const std::byte* bytes) {
    if (recvs_.empty()) return false;
    const Work& recv = recvs_.front();
    if (head.length > recv.total - landed_) {
      complete_recv(Status::loc_len_err, 0);
      return refuse(Opcode::recv, Status::rem_inv_req_err), true;
    }
    if (!local_access(recv.list(), kRightLocalWrite)) {
      complete_recv(Status::loc_prot_err, 0);
      return refuse(Opcode::recv, Status::rem_op_err), true;
    }
    walk(recv.list(), to_, head.length, [&](std::byte* target, std::uint32_t part) {
      std::memcpy(target, bytes, part);
      bytes += part;
    });
    landed_ += head.length;
    consume();
    if (head.last == 0) return true;
    complete_recv(Status::success, landed_);
    landed_ = 0;
    to_ = {};
    return true;
  }

  void consume() { own_inbox().consumed.value.store(++consumed_, std::memory_order_release); }

  // Tells the sender which slot could not be taken, and why.
  void refuse(Opcode opcode, Status status) {
    own_inbox().fault.value.store((consumed_ + 1) << 8 | static_cast<std::uint64_t>(status), std::memory_order_release);
    fail(opcode, status);
  }

  // Sender: sends_[0, filling_) are in slots whole, sends_[filling_] is so up to sent_.
  std::size_t filling_ = 0;
  std::uint64_t sent_ = 0;
  Position from_;
  std::uint64_t filled_ = 0;
  std::deque<std::uint64_t> ends_;  // filled_ after the last slot of each of sends_[0, filling_)
  // Receiver: recvs_.front() is filled up to landed_.
  std::uint64_t consumed_ = 0;
  std::uint64_t landed_ = 0;
  Position to_;
};

}  // namespace

std::unique_ptr<QueuePair> make_slots(Context& context, CompletionQueue& queue, const QueuePairOptions& options, Limits limits,
                                      Wiring wiring) {
  return std::make_unique<Slots>(context, queue, options, std::move(limits), std::move(wiring));
}

}  // namespace lacuna::nic::local
