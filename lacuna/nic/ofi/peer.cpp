// What the peer says, all of which is checked before it is believed; and what it is told of this end's regions.
#include <utility>

#include "lacuna/nic/ofi/queue_pair.hpp"

namespace lacuna::nic::ofi {
namespace {

constexpr std::size_t kMostRooms = 4096;  // more than a queue has receives

}  // namespace

void QueuePair::say(const Said& message) {
  const Result<void> said = control_->say(message);
  if (!said && !end_) end_ = {Status::general_err, Status::wr_flush_err, said.error(), kSayNothing};
}

void QueuePair::hear(const Said& message) {
  heard_ = true;
  switch (message.kind) {
    case Said::credit: credit(message); break;
    case Said::word:
      if (usage_ && !usage_->known()) usage_->learn(message);
      break;
    case Said::ask: tell(message.key); break;
    case Said::tell:
      if (const Result<void> told = remote_.told(message); !told && !end_)
        end_ = {Status::general_err, Status::wr_flush_err, told.error(), Said::kClosed};
      break;
    case Said::revoke:
      if (RemoteRegion* region = remote_.find(message.key)) region->revoked = true;
      let_go(message.key, false);
      break;
    case Said::length: length(message); break;
    case Said::beat: break;
    case Said::released: revoking_.erase(message.key); break;
    default: farewell(message); break;
  }
}

void QueuePair::credit(const Said& message) {
  if (message.count <= credit_) return;
  credit_ = message.count;
  room_.push_back({message.count, message.bytes, message.rights == Said::kSpoiled});
  if (room_.size() > kMostRooms && !end_)
    end_ = {
        Status::general_err, Status::wr_flush_err, {base::Code::malformed, "the peer posts more receives than there are"}, Said::kClosed};
}

void QueuePair::length(const Said& message) {
  if (message.count < receives_done_ || message.count >= receives_started_) return;
  Receive& request = receive_at(message.count);
  if (!std::exchange(request.awaits_length, false)) {
    lengths_[message.count] = message.bytes;
    return;
  }
  request.completion.byte_len = message.bytes;
  request.done = true;
}

void QueuePair::tell(std::uint32_t key) {
  if (fault_) return;
  const Said told = context_.describe(key, *ends_.data.endpoint);
  if (told.bytes > 0) told_.insert(key);
  say(told);
}

bool QueuePair::revoke(std::uint32_t key) {
  if (fault_ || told_.erase(key) == 0) return false;
  revoking_.insert(key);
  say({.kind = Said::revoke, .key = key});
  return true;
}

// An operation of this end to the peer's region is over (`done`), or the peer wants none any more.
void QueuePair::let_go(std::uint32_t key, bool done) {
  RemoteRegion* region = remote_.find(key);
  if (region != nullptr && done && region->flying > 0) --region->flying;
  if (region != nullptr && (!region->revoked || region->flying > 0 || data_dead_)) return;  // settle() looks at it
  if (region == nullptr && done) return;
  remote_.forget(key);
  if (!fault_) say({.kind = Said::released, .key = key});
}

void QueuePair::farewell(const Said& message) {
  if (end_) return;
  const std::uint32_t status = message.key;
  const base::Error closed{base::Code::peer_lost, "the peer closed the connection"};
  const base::Error gave_up{base::Code::peer_lost, "the peer gave the connection up, after an error of a request of its own"};
  switch (status) {
    case Said::kClosed: end_ = {Status::retry_exc_err, Status::wr_flush_err, closed, kSayNothing}; break;
    case Said::kTooLong: {
      // The receive that it was for says which of both it was.
      const bool known = message.count >= receives_done_ && message.count < receives_started_;
      const Status why = known && receive_at(message.count).spoiled ? Status::loc_prot_err : Status::loc_len_err;
      end_ = {Status::wr_flush_err, why, cause_of(why), kSayNothing, known ? message.count : 0};
      break;
    }
    case kBroken:  // it waits for an answer, as this end may do
      end_ = {Status::retry_exc_err, Status::wr_flush_err, cause_of(Status::retry_exc_err), kBroken};
      break;
    case std::to_underlying(Status::rem_inv_req_err):
    case std::to_underlying(Status::rem_op_err):
      end_ = {static_cast<Status>(status), Status::wr_flush_err, cause_of(static_cast<Status>(status)), kSayNothing};
      break;
    default: end_ = {Status::retry_exc_err, Status::wr_flush_err, gave_up, kSayNothing}; break;
  }
}

}  // namespace lacuna::nic::ofi
