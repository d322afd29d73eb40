#include "lacuna/nic/ofi/queue_pair.hpp"

#include <poll.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "lacuna/nic/checks.hpp"

namespace lacuna::nic::ofi {
namespace {

constexpr std::int64_t kLinger = 1'000'000'000;       // ns
constexpr std::int64_t kUnreachable = 1'000'000'000;  // ns in which a provider finds a peer again that it lost

// What a provider's error says of a request; none: of the connection.
std::optional<Status> refusal_of(int error) {
  switch (error) {
    case FI_EACCES:
    case FI_EPERM:
    case FI_EKEYREJECTED: return Status::rem_access_err;
    case FI_ETRUNC:
    case FI_EMSGSIZE: return Status::rem_inv_req_err;
    default: return std::nullopt;
  }
}

}  // namespace

base::Error cause_of(Status status) {
  switch (status) {
    case Status::loc_prot_err:
      return {base::Code::transfer,
              "this end's memory may not be reached so: a wrong or old lkey, bytes outside its region, or a right that it does not give"};
    case Status::rem_access_err:
      return {base::Code::transfer,
              "the peer's memory may not be reached so: a wrong or old rkey, bytes outside its region, or a right that it does not give"};
    case Status::loc_len_err: return {base::Code::transfer, "a receive is shorter than what arrived"};
    case Status::rem_inv_req_err:
      return {base::Code::transfer, "the peer could not take the request: its receive is shorter than the message"};
    case Status::rem_op_err: return {base::Code::transfer, "the peer failed while it executed the request"};
    case Status::loc_qp_op_err: return {base::Code::transfer, "the provider refuses a request"};
    case Status::retry_exc_err:
      return {base::Code::peer_lost, "the peer does not answer: it is gone, or the network between the two ends broke"};
    default: return {base::Code::transfer, "the connection failed"};
  }
}

QueuePair::QueuePair(Context& context, CompletionQueue& queue, const QueuePairOptions& options)
    : context_(context),
      queue_(queue),
      options_(options),
      limits_(context.limits()),
      number_(context.next_number()),
      sends_(static_cast<std::size_t>(options.max_send_wr)),
      receives_(static_cast<std::size_t>(options.max_recv_wr)) {
  const auto lock = context_.used();
  queue_.enroll(*this);
  context_.enroll(*this);
}

QueuePair::~QueuePair() {
  const auto lock = context_.used();
  linger();
  if (opened_ && !fault_) say({.kind = Said::bye, .key = Said::kClosed});
  // A provider may keep what was said until then.
  if (ends_.talk.endpoint && context_.provider().connected()) fi_shutdown(ends_.talk.endpoint.get(), 0);
  context_.withdraw(*this);
  close(ends_.data);
  close(ends_.talk);
  queue_.withdraw(*this);
}

void QueuePair::close(Endpoint& endpoint) {
  context_.regions().release(endpoint.endpoint.get());
  endpoint.endpoint.reset();
}

// What was posted arrives, as it would from a device that has it already: a second at most.
void QueuePair::linger() {
  const std::int64_t deadline = base::now_ns() + kLinger;
  bool asked = false;
  while (opened_ && !fault_ && sends_done_ < sends_posted_ && base::now_ns() < deadline) {
    // A word arrives behind the messages that nothing asked for.
    if (!asked && usage_ && sends_started_ == sends_posted_ && !silent_.empty()) asked = set_word(*usage_, usage_->said);
    queue_.progress();
    sched_yield();
  }
}

Result<void> QueuePair::make_control() {
  control_ = LACUNA_TRY(Control::create(context_, *this, queue_));
  if (context_.provider().limits().emulated) usage_ = LACUNA_TRY(Usage::create(context_));
  return {};
}

void QueuePair::open(Limits limits) {
  limits_ = std::move(limits);
  opened_ = true;
  Said greeting{};
  if (usage_) greeting = context_.describe(usage_->key(), *ends_.data.endpoint);
  greeting.kind = usage_ ? Said::word : Said::beat;
  say(greeting);
}

// --- posting ---------------------------------------------------------------------------------------------------------

Result<void> QueuePair::post_chain(std::span<const SendRequest> chain) {
  for (const SendRequest& request : chain) {
    if (request.opcode == Opcode::bind || request.opcode == Opcode::invalidate)
      return base::fail(base::Code::unsupported, limits_.indirect.refusal());
    LACUNA_TRY(check_send(request, limits_, 0));
  }
  const auto lock = context_.used();
  LACUNA_TRY(check_room(sends_posted_ - sends_retired_, chain.size(), options_.max_send_wr, "send"));
  context_.busy();
  for (const SendRequest& request : chain) {
    Send& own = send_at(sends_posted_);
    own.wr_id = request.wr_id;
    own.opcode = request.opcode;
    own.signaled = request.signaled;
    own.fence = request.fence;
    own.inlined = request.inline_data;
    own.imm_data = request.imm_data;
    own.rkey = request.rkey;
    own.remote_addr = request.remote_addr;
    own.list.assign(request.sg_list.begin(), request.sg_list.end());
    own.bytes.clear();
    for (const Sge& sge : request.inline_data ? request.sg_list : std::span<const Sge>()) {
      const auto* from = reinterpret_cast<const std::byte*>(sge.addr);
      own.bytes.insert(own.bytes.end(), from, from + sge.length);
    }
    own.asks = request.signaled || request.opcode == Opcode::read || request.opcode == Opcode::write_imm ||
               !context_.provider().ordered() || !context_.provider().connected() ||
               (&request == &chain.back() && (request.opcode != Opcode::send || !usage_));
    own.wrote = own.done = false;
    own.flying = 0;
    own.status = Status::success;
    const std::uint64_t number = sends_posted_++;
    if (fault_) flush_send(number, Status::wr_flush_err);
  }
  if (!fault_) start_sends();
  return {};
}

Result<void> QueuePair::post_recv(const RecvRequest& request) {
  LACUNA_TRY(check_list(request.sg_list, limits_.max_sge, limits_));
  const auto lock = context_.used();
  LACUNA_TRY(check_room(receives_posted_ - receives_done_, 1, options_.max_recv_wr, "receive"));
  context_.busy();
  Receive& own = receive_at(receives_posted_);
  own.wr_id = request.wr_id;
  own.list.assign(request.sg_list.begin(), request.sg_list.end());
  own.spoiled = own.done = own.awaits_length = false;
  own.status = Status::success;
  const std::uint64_t number = receives_posted_++;
  if (fault_) {
    flush_receive(number, Status::wr_flush_err);
  } else {
    start_receives();
  }
  return {};
}

// --- completions -----------------------------------------------------------------------------------------------------

const base::Error* QueuePair::fault() const {
  const auto lock = context_.used();
  return fault_ ? &*fault_ : nullptr;
}

void QueuePair::take(Operation::Kind kind, std::uint64_t number, const Outcome& outcome) {
  switch (kind) {
    case Operation::Kind::message:
    case Operation::Kind::remote: take_send(kind, number, outcome); break;
    case Operation::Kind::word:
      --flying_;
      --answers_;
      data_dead_ = data_dead_ || outcome.error != 0;
      if (outcome.error == 0 && number > 0) arrived_before(number - 1);
      break;
    case Operation::Kind::receive: take_receive(number, outcome); break;
    case Operation::Kind::say:
      control_->said(number);
      if (outcome.error != 0) lost();
      break;
    case Operation::Kind::hear:
      if (outcome.error == 0) {
        if (const std::optional<Said> message = control_->heard(number, outcome.bytes)) {
          hear(*message);
        } else if (!end_) {
          end_ = {Status::general_err, Status::wr_flush_err, {base::Code::malformed, "the peer says what no NIC ofi says"}, Said::kClosed};
        }
        break;
      }
      lost();
      break;
  }
}

void QueuePair::take_send(Operation::Kind kind, std::uint64_t number, const Outcome& outcome) {
  if (number < sends_done_ || number > sends_started_) return;  // it was flushed
  Send& request = send_at(number);
  if (!was_silent(kind, number) && request.opcode != Opcode::read) --answers_;
  if (outcome.error == 0) arrived_before(number);
  const std::optional<Status> refusal = refusal_of(outcome.error);
  const bool broke = outcome.error != 0 && !refusal;
  // The peer says why, or is gone. Said before over() forgets a region that goes: settle() looks whether it was one.
  data_dead_ = data_dead_ || broke;
  over(number, kind == Operation::Kind::remote);
  if (refusal) refuse(request, *refusal);
  if (broke) request.done = false;
}

// A silent operation that failed: the provider has given it back.
bool QueuePair::was_silent(Operation::Kind kind, std::uint64_t number) {
  return std::erase_if(silent_, [&](const Silent& one) { return one.number == number && one.operation->kind == kind; }) > 0;
}

// Providers with an order make nothing visible before what was posted before it.
void QueuePair::arrived_before(std::uint64_t number) {
  for (; !silent_.empty() && silent_.front().number <= number; silent_.pop_front()) {
    const Silent one = silent_.front();
    over(one.number, one.operation->kind == Operation::Kind::remote);
    queue_.give_back(one.operation);
  }
}

void QueuePair::over(std::uint64_t number, bool remote) {
  Send& request = send_at(number);
  --request.flying;
  --flying_;
  if (request.opcode == Opcode::read) --reads_flying_;
  request.done = request.flying == 0 && number < sends_started_;
  if (!remote) return;
  let_go(request.rkey, true);
  if (usage_) --usage_->flying;
}

void QueuePair::take_receive(std::uint64_t number, const Outcome& outcome) {
  if (number < receives_done_ || number >= receives_started_) return;
  Receive& request = receive_at(number);
  if (outcome.error != 0 && outcome.error != FI_ETRUNC) {
    data_dead_ = true;
    return;
  }
  request.done = true;
  request.completion = {.wr_id = request.wr_id, .opcode = Opcode::recv, .byte_len = outcome.bytes, .qp_num = number_};
  if (outcome.error == FI_ETRUNC) request.status = request.spoiled ? Status::loc_prot_err : Status::loc_len_err;
  if ((outcome.flags & FI_REMOTE_CQ_DATA) == 0) return;
  request.completion.opcode = Opcode::recv_imm;
  request.completion.imm_data = static_cast<std::uint32_t>(outcome.data);
  request.completion.byte_len = outcome.data >> 32;
  if (context_.provider().tells_lengths()) return;
  const auto said = lengths_.find(number);
  request.done = said != lengths_.end();
  request.awaits_length = !request.done;
  if (!request.done) return;
  request.completion.byte_len = said->second;
  lengths_.erase(said);
}

void QueuePair::advance() {
  if (!opened_) return;
  control_->advance();
  if (fault_) return;
  start_receives();
  start_sends();
  if (usage_ && usage_->said && !usage_->wanted && usage_->flying == 0 && !data_dead_) set_word(*usage_, false);
  deliver();
  if (!fault_) deliver_receives();
  if (!fault_) announce_receives();
  if (!fault_) settle();
}

void QueuePair::deliver() {
  for (; sends_done_ < sends_started_ && send_at(sends_done_).done; ++sends_done_) {
    const Send& request = send_at(sends_done_);
    if (request.status != Status::success) {
      // What the peer is told: nothing of its own went wrong.
      fail({request.status, Status::wr_flush_err, cause_of(request.status), static_cast<std::uint32_t>(Status::wr_flush_err)});
      return;
    }
    if (!request.signaled) continue;
    sends_retired_ = sends_done_ + 1;
    queue_.push({.wr_id = request.wr_id, .opcode = request.opcode, .qp_num = number_});
  }
}

void QueuePair::deliver_receives() {
  for (; receives_done_ < receives_started_ && receive_at(receives_done_).done; ++receives_done_) {
    const Receive& request = receive_at(receives_done_);
    if (request.status == Status::success) {
      queue_.push(request.completion);
      continue;
    }
    const Status to_say = request.status == Status::loc_len_err ? Status::rem_inv_req_err : Status::rem_op_err;
    fail({Status::wr_flush_err, request.status, cause_of(request.status), static_cast<std::uint32_t>(to_say)});
    return;
  }
}

// --- the end ---------------------------------------------------------------------------------------------------------

void QueuePair::lost() {
  data_dead_ = true;
  if (!end_) end_ = {Status::retry_exc_err, Status::wr_flush_err, cause_of(Status::retry_exc_err), kSayNothing};
}

void QueuePair::watch(std::int64_t process) {
  if (process > 0 && !context_.provider().connected()) peer_ = base::Fd(static_cast<int>(syscall(SYS_pidfd_open, process, 0)));
}

void QueuePair::look() {
  if (!opened_ || fault_) return;
  if (!context_.provider().connected()) {
    pollfd ended{peer_.get(), POLLIN, 0};
    const std::int64_t since = control_->refused_since();
    const bool unreachable = heard_ && since > 0 && base::now_ns() - since > kUnreachable;
    if (unreachable || (peer_ && ::poll(&ended, 1, 0) == 1)) return lost();
    if (control_->quiet()) say({.kind = Said::beat});
    return;
  }
  fi_eq_cm_entry entry{};
  std::uint32_t kind = 0;
  if (fi_eq_read(ends_.events.get(), &kind, &entry, sizeof entry, 0) < 0 || kind != FI_SHUTDOWN) return;
  if (entry.fid == &ends_.data.endpoint->fid) {
    data_dead_ = true;
  } else {
    lost();
  }
}

// What the peer had finished before it gave up comes first: until its data endpoint is seen to be gone.
void QueuePair::settle() {
  if (data_dead_ && !end_ && !std::exchange(asked_why_, true)) say({.kind = Said::bye, .key = kBroken});
  const bool waits = flying_ > 0 || receives_started_ > receives_done_;
  if (!end_ || (!data_dead_ && end_->behind > receives_done_)) return;
  const bool too_long = end_->receive == Status::loc_len_err || end_->receive == Status::loc_prot_err;
  if (context_.provider().connected() && !data_dead_ && waits && !too_long) return;
  End end = *end_;
  // It broke since the peer's region had gone: the peer has said so before.
  if (sends_done_ < sends_started_ && end.send == Status::retry_exc_err && reaches_what_goes(send_at(sends_done_)))
    end = {Status::rem_access_err, Status::wr_flush_err, cause_of(Status::rem_access_err), std::to_underlying(Status::wr_flush_err)};
  fail(std::move(end));
}

bool QueuePair::reaches_what_goes(const Send& request) {
  const RemoteRegion* region = request.opcode == Opcode::send ? nullptr : remote_.find(request.rkey);
  return region != nullptr && region->revoked;
}

void QueuePair::fail(End end) {
  fault_ = std::move(end.why);
  if (end.to_say != kSayNothing) say({.kind = Said::bye, .key = end.to_say});
  close(ends_.data);  // the provider touches no memory of the requests any more
  silent_.clear();    // the provider may still give their operations back
  for (std::uint64_t number = sends_done_; number < sends_posted_; ++number) {
    flush_send(number, end.send);
    end.send = Status::wr_flush_err;
  }
  for (std::uint64_t number = receives_done_; number < receives_posted_; ++number) {
    flush_receive(number, end.receive);
    end.receive = Status::wr_flush_err;
  }
  told_.clear();
}

void QueuePair::flush_send(std::uint64_t number, Status status) {
  const Send& request = send_at(number);
  queue_.push({.wr_id = request.wr_id, .status = status, .opcode = request.opcode, .qp_num = number_});
  sends_started_ = sends_done_ = sends_retired_ = number + 1;
}

void QueuePair::flush_receive(std::uint64_t number, Status status) {
  queue_.push({.wr_id = receive_at(number).wr_id, .status = status, .opcode = Opcode::recv, .qp_num = number_});
  receives_started_ = receives_done_ = number + 1;
}

}  // namespace lacuna::nic::ofi
