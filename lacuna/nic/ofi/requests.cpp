// What starts: requests in the order of posting, each as soon as its keys, the peer's receives and the provider allow.
#include <cstring>

#include "lacuna/nic/ofi/queue_pair.hpp"

namespace lacuna::nic::ofi {
namespace {

constexpr std::uint64_t kSendFlags = FI_COMPLETION | FI_DELIVERY_COMPLETE;

// Answers that a peer's provider owes. It puts them into a socket's buffer, 16 KiB on Linux, of which each takes 1 KiB;
// what has no room waits for the peer's next poll, and a peer that has all it waited for may poll no more.
constexpr std::uint64_t kMostAnswers = 8;

bool is_message(Opcode opcode) { return opcode == Opcode::send || opcode == Opcode::write_imm; }

std::uint64_t total(std::span<const Sge> list) {
  std::uint64_t bytes = 0;
  for (const Sge& sge : list) bytes += sge.length;
  return bytes;
}

}  // namespace

// --- receives --------------------------------------------------------------------------------------------------------

void QueuePair::start_receives() {
  if (!opened_ || data_dead_) return;
  for (; receives_started_ < receives_posted_; ++receives_started_) {
    Receive& request = receive_at(receives_started_);
    Pieces pieces;
    request.spoiled = !context_.regions().resolve(request.list, true, *ends_.data.endpoint, pieces);
    request.takes = request.spoiled ? 0 : pieces.bytes;
    if (request.spoiled) pieces.count = 0;  // a message without bytes needs no memory
    Operation* operation = queue_.take(*this, Operation::Kind::receive, receives_started_);
    const fi_msg message{pieces.iov.data(), pieces.desc.data(), pieces.count, ends_.data.peer, &operation->provider, 0};
    if (fi_recvmsg(ends_.data.endpoint.get(), &message, FI_COMPLETION) == 0) continue;
    queue_.give_back(operation);
    break;
  }
  announce_receives();
}

// Said when as many are new as the peer still knows of: rarely while many are posted, and at once when there was none.
// Receives of one length are said together.
void QueuePair::announce_receives() {
  const std::uint64_t fresh = receives_started_ - credit_said_;
  const std::uint64_t left = credit_said_ > receives_done_ ? credit_said_ - receives_done_ : 0;
  if (fresh == 0 || fresh < left) return;
  while (credit_said_ < receives_started_) {
    const Receive& first = receive_at(credit_said_);
    const auto alike = [&](const Receive& other) { return other.takes == first.takes && other.spoiled == first.spoiled; };
    while (credit_said_ < receives_started_ && alike(receive_at(credit_said_))) ++credit_said_;
    say({.kind = Said::credit, .count = credit_said_, .bytes = first.takes, .rights = first.spoiled ? Said::kSpoiled : 0});
  }
}

// Whether the peer's receive takes a message of so many bytes; else this end gives up.
bool QueuePair::fits(Send& request, std::uint64_t bytes) {
  while (!room_.empty() && room_.front().count <= messages_) room_.pop_front();
  if (bytes == 0 || room_.empty() || bytes <= room_.front().bytes) return true;
  say({.kind = Said::bye, .key = Said::kTooLong, .count = messages_});
  refuse(request, room_.front().spoiled ? Status::rem_op_err : Status::rem_inv_req_err);
  return false;
}

// --- sends -----------------------------------------------------------------------------------------------------------

void QueuePair::start_sends() {
  while (opened_ && !refused_ && !data_dead_ && sends_started_ < sends_posted_) {
    if (!start(send_at(sends_started_), sends_started_)) return;
    ++sends_started_;
  }
}

void QueuePair::refuse(Send& request, Status status) {
  request.status = status;
  request.done = true;
  refused_ = true;
}

bool QueuePair::may_start(const Send& request) {
  if (request.asks && request.opcode != Opcode::read && answers_ >= kMostAnswers) return false;
  if (request.wrote) return true;
  if (!context_.provider().ordered() && flying_ > 0) return false;
  if (request.fence && reads_flying_ > 0) return false;
  return !is_message(request.opcode) || messages_ < credit_;
}

// Whether it will be posted right behind the one that is being posted.
bool QueuePair::follows(std::uint64_t number) {
  if (number >= sends_posted_ || !context_.provider().ordered() || answers_ + 2 > kMostAnswers) return false;
  const Send& next = send_at(number);
  if (next.fence && reads_flying_ > 0) return false;
  if (is_message(next.opcode) && messages_ + 1 >= credit_) return false;
  if (next.opcode == Opcode::send) return true;
  const RemoteRegion* region = remote_.find(next.rkey);
  return region != nullptr && region->state == RemoteRegion::State::known && !region->revoked && total(next.list) > 0;
}

bool QueuePair::start(Send& request, std::uint64_t number) {
  if (!may_start(request)) return false;
  Pieces pieces;
  RemoteRegion* region = nullptr;
  if (!find_memory(request, pieces, region)) return request.done;
  if (pieces.bytes == 0 && !is_message(request.opcode)) return request.done = true;  // nothing moves
  return post(request, number, pieces, region);
}

// False: it cannot start, now or (then it is done) ever.
bool QueuePair::find_memory(Send& request, Pieces& pieces, RemoteRegion*& region) {
  if (request.inlined) {
    pieces.iov[0] = {request.bytes.data(), request.bytes.size()};
    pieces.desc[0] = nullptr;
    pieces.count = request.bytes.empty() ? 0 : 1;
    pieces.bytes = request.bytes.size();
  } else if (!context_.regions().resolve(request.list, request.opcode == Opcode::read, *ends_.data.endpoint, pieces)) {
    refuse(request, Status::loc_prot_err);
    return false;
  }
  if (request.opcode == Opcode::send || pieces.bytes == 0 || request.wrote) return true;
  region = remote_.find(request.rkey);
  if (region == nullptr) {
    remote_.asked(request.rkey);
    say({.kind = Said::ask, .key = request.rkey});
    return false;
  }
  if (region->state == RemoteRegion::State::asked || region->revoked) return false;
  const std::uint64_t right = request.opcode == Opcode::read ? Said::kMayRead : Said::kMayWrite;
  if (region->state == RemoteRegion::State::known && region->allows(request.remote_addr, pieces.bytes, right)) return true;
  if (region->state == RemoteRegion::State::none) remote_.forget(request.rkey);
  refuse(request, Status::rem_access_err);
  return false;
}

// What an operation was answered; true: it is under way.
bool QueuePair::posted(Send& request, std::uint64_t number, long returned, Operation* operation, bool asks) {
  if (returned == 0) {
    ++request.flying;
    ++flying_;
    if (!asks) silent_.push_back({number, operation});
    if (asks && request.opcode != Opcode::read) ++answers_;
    return true;
  }
  queue_.give_back(operation);
  if (returned == -FI_EAGAIN) return false;
  if (returned == -FI_EINVAL || returned == -FI_EMSGSIZE || returned == -FI_EOPNOTSUPP || returned == -FI_ENOSYS) {
    refuse(request, Status::loc_qp_op_err);
  } else {
    data_dead_ = true;
  }
  return false;
}

// False: what follows has to wait, for the word or for room.
bool QueuePair::set_word(Usage& usage, bool set) {
  Pieces pieces;
  const Sge value = usage.value(set);
  if (!usage.known() || !context_.regions().resolve({&value, 1}, false, *ends_.data.endpoint, pieces)) return false;
  const fi_rma_iov target{usage.peer().target, value.length, usage.peer().provider_key};
  Operation* operation = queue_.take(*this, Operation::Kind::word, sends_started_);
  const fi_msg_rma message{pieces.iov.data(), pieces.desc.data(), 1, ends_.data.peer, &target, 1, &operation->provider, 0};
  if (const ssize_t returned = fi_writemsg(ends_.data.endpoint.get(), &message, kSendFlags); returned != 0) {
    queue_.give_back(operation);
    data_dead_ = data_dead_ || returned != -FI_EAGAIN;
    return false;
  }
  ++flying_;
  ++answers_;
  usage.said = set;
  return context_.provider().ordered();
}

bool QueuePair::post(Send& request, std::uint64_t number, const Pieces& pieces, RemoteRegion* region) {
  fid_ep* endpoint = ends_.data.endpoint.get();
  void** desc = const_cast<void**>(pieces.desc.data());
  const bool immediate = request.opcode == Opcode::write_imm;
  const bool ordered = context_.provider().ordered();
  // The message behind a write asks for both.
  const bool asks = request.asks && !(immediate && ordered && context_.provider().connected());
  const std::uint64_t more = follows(number + 1) ? FI_MORE : 0;
  const std::uint64_t flags = (asks ? kSendFlags : 0) | (request.inlined && pieces.bytes > 0 ? FI_INJECT : 0) | more;
  if (region != nullptr) {
    if (usage_) usage_->wanted = true;
    if (usage_ && !usage_->said && !set_word(*usage_, true)) return false;
    const fi_rma_iov target{region->place(request.remote_addr), pieces.bytes, region->provider_key};
    Operation* operation = queue_.take(*this, Operation::Kind::remote, number);
    const fi_msg_rma message{pieces.iov.data(), desc, pieces.count, ends_.data.peer, &target, 1, &operation->provider, 0};
    const bool reads = request.opcode == Opcode::read;
    const long returned = reads ? fi_readmsg(endpoint, &message, FI_COMPLETION) : fi_writemsg(endpoint, &message, flags);
    if (!posted(request, number, returned, operation, asks)) return request.done;
    ++region->flying;
    if (usage_) {
      ++usage_->flying;
      usage_->wanted = false;
    }
    if (reads) ++reads_flying_;
    request.wrote = true;
    if (!immediate) return true;
    if (!ordered) return false;  // the message goes once the write is done
  }
  if (!ordered && flying_ > 0) return false;
  if (!immediate && !fits(request, pieces.bytes)) return request.done;
  Operation* operation = queue_.take(*this, Operation::Kind::message, number);
  const fi_msg message{pieces.iov.data(),
                       desc,
                       immediate ? 0 : pieces.count,
                       ends_.data.peer,
                       &operation->provider,
                       context_.provider().tells_lengths() ? total(request.list) << 32 | request.imm_data : request.imm_data};
  std::uint64_t how = immediate ? kSendFlags | FI_REMOTE_CQ_DATA | more : flags;
  if (pieces.bytes == 0 || immediate) how &= ~context_.provider().unanswered_when_empty();
  if (!posted(request, number, fi_sendmsg(endpoint, &message, how), operation, immediate || asks)) return request.done;
  if (immediate && !context_.provider().tells_lengths()) say({.kind = Said::length, .count = messages_, .bytes = total(request.list)});
  ++messages_;
  return true;
}

}  // namespace lacuna::nic::ofi
