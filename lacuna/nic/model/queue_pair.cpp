#include "lacuna/nic/model/queue_pair.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "lacuna/base/rarely.hpp"
#include "lacuna/nic/checks.hpp"

namespace lacuna::nic::model {
namespace {

// bytes: a flag, without which a transfer of which only the time is of interest would not end
constexpr std::int64_t kAlwaysMoved = 8;

bool on_keys(Opcode opcode) { return opcode == Opcode::bind || opcode == Opcode::invalidate; }

}  // namespace

Connection::Connection(Context& context, CompletionQueue& queue, const QueuePairOptions& options, std::uint32_t number)
    : Connection(context, queue, options, number, std::make_shared<Receives>(Receives{.depth = options.max_recv_wr})) {
  of_hub_ = false;
}

Connection::Connection(Context& context, CompletionQueue& queue, const QueuePairOptions& options, std::uint32_t number,
                       std::shared_ptr<Receives> receives)
    : shared_(context.shared()),
      context_(&context),
      queue_(&queue),
      options_(options),
      device_(context.device()),
      number_(number),
      receives_(std::move(receives)),
      of_hub_(true) {
  ++context.usage().connections;
}

void Connection::join(const std::shared_ptr<Connection>& peer) {
  peer_ = peer;
  queue_->attach(shared_from_this());
}

template <class F>
void Connection::later(Time time, F f) {
  shared_.schedule.at(time, [self = weak_from_this().lock(), f = std::move(f), time] { f(*self, time); });
}

// --- posting --------------------------------------------------------------------------------------------------------

Shipment Connection::message_of(const SendRequest& request) {
  auto message = std::make_shared<Message>();
  message->opcode = request.opcode;
  message->wr_id = request.wr_id;
  message->sequence = ++sends_posted_;
  message->signaled = request.signaled;
  message->fence = request.fence || on_keys(request.opcode);
  message->inlined = request.inline_data;
  message->list.assign(request.sg_list.begin(), request.sg_list.end());
  message->remote_addr = request.remote_addr;
  message->rkey = request.rkey;
  message->imm_data = request.imm_data;
  message->total = static_cast<std::int64_t>(bytes_of(request.sg_list));
  if (request.inline_data) {
    for (const Sge& sge : request.sg_list) {
      const auto* from = reinterpret_cast<const std::byte*>(sge.addr);
      message->inline_bytes.insert(message->inline_bytes.end(), from, from + sge.length);
    }
    message->local = {{.at = message->inline_bytes.data(), .length = message->total}};
  }
  if (request.opcode == Opcode::bind) {
    message->bind_key = request.binding->key;
    message->bind_rights = request.binding->rights;
    message->bound = spelled_out(*request.binding);
    message->bind_inline = std::cmp_less_equal(request.binding->list.size(), limits().indirect.inline_entries);
  }
  return message;
}

Result<void> Connection::post_chain(std::span<const SendRequest> chain) {
  Context& context = *context_;
  context.settle();
  for (const SendRequest& request : chain) {
    LACUNA_TRY(check_send(request, limits(), request.binding == nullptr ? 0 : context.memory().room(request.binding->key)));
  }
  LACUNA_TRY(check_room(sends_posted_ - sends_retired_, chain.size(), options_.max_send_wr, "send"));
  const Cpu& cpu = context.profile().cpu;
  Time time = cpu.doorbell;
  std::list<Shipment> posted;
  for (const SendRequest& request : chain) {
    time += cpu.post + std::ssize(request.sg_list) * cpu.post_sge;
    if (request.opcode == Opcode::bind)
      time += static_cast<std::int64_t>(request.binding->list.size() + request.binding->strided.size()) * cpu.bind_entry;
    posted.push_back(message_of(request));
  }
  context.charge(time);
  for (const Shipment& message : posted) message->ready = context.clock() + context.profile().nic.doorbell;
  sends_.splice(sends_.end(), posted);
  context.settle();
  pump(context.clock());
  return {};
}

Result<void> Receives::post(Context& context, const RecvRequest& request) {
  context.settle();
  LACUNA_TRY(check_list(request.sg_list, context.limits().max_sge, context.limits()));
  LACUNA_TRY(check_room(numbered - retired, 1, depth, "receive"));
  const Cpu& cpu = context.profile().cpu;
  context.charge(cpu.post_recv + std::ssize(request.sg_list) * cpu.post_sge);
  Receive receive{request.wr_id, ++numbered, {request.sg_list.begin(), request.sg_list.end()}, 0};
  receive.total = static_cast<std::int64_t>(bytes_of(request.sg_list));
  posted.push_back(std::move(receive));
  return {};
}

Result<void> Connection::post_recv(const RecvRequest& request) {
  LACUNA_TRY(receives_->post(*context_, request));
  if (fault_) {
    complete_receive(receives_->posted.back(), Status::wr_flush_err, Opcode::recv, 0, 0, context_->clock());
    receives_->posted.pop_back();
  } else {
    try_again(context_->clock());
  }
  return {};
}

void Connection::retire(Opcode opcode, std::uint64_t sequence) {
  if (opcode == Opcode::recv || opcode == Opcode::recv_imm) {
    ++receives_->retired;  // each completes once, of a hub in any order
  } else {
    sends_retired_ = sequence;
  }
}

// --- the initiator's side -------------------------------------------------------------------------------------------

void Connection::pump(Time now) {
  while (!sends_.empty() && context_ != nullptr) {
    const Shipment message = sends_.front();
    const bool runs = usable();
    if (runs && message->fence && reads_ > 0) {  // the last of them goes on here
      LACUNA_RARELY("model: a fence waits for reads");
      return;
    }
    sends_.pop_front();
    flying_.push_back(message);
    message->ready = std::max(message->ready, now);
    if (runs) {
      launch(message);
    } else {
      complete_send(message, Status::wr_flush_err, now);
    }
  }
}

void Connection::launch(const Shipment& message) {
  if (on_keys(message->opcode)) {
    const Status status = run_on_keys(*message);
    const std::int64_t fetched = message->bind_inline ? 0 : std::ssize(message->bound);
    const Time handled = device_.handle(message->ready, nic().bind + fetched * nic().bind_entry);
    return complete_send(message, status, handled + nic().completion);
  }
  const bool reading = message->opcode == Opcode::read;
  const Access access = reading ? Access::local_write : Access::local_read;
  if (!message->inlined && !context_->memory().resolve(message->list, access, message->local))
    return complete_send(message, Status::loc_prot_err, message->ready + nic().completion);
  const std::shared_ptr<Connection> peer = peer_.lock();
  if (peer == nullptr) return complete_send(message, Status::retry_exc_err, message->ready + nic().retry);
  message->launched = true;
  message->source = message->inlined ? nullptr : context_;
  if (reading) {
    ++reads_;
    return peer->later(device_.ask(message->ready, peer->device_), [message, from = shared_from_this()](Connection& target, Time time) {
      message->ready = time;
      target.arrive(message, *from);
    });
  }
  message->flight = device_.send(message->ready, message->local, message->inlined, peer->device_);
  count(*message);
  peer->later(message->flight.arrivals.front(),
              [message, from = shared_from_this()](Connection& target, Time) { target.arrive(message, *from); });
}

void Connection::count(const Message& message) const {
  World::Usage& usage = context_->usage();
  ++usage.messages;
  usage.bytes += message.total;
}

Status Connection::run_on_keys(Message& message) {
  Memory& memory = context_->memory();
  if (message.opcode == Opcode::invalidate) return memory.invalidate(message.rkey) ? Status::success : Status::mw_bind_err;
  return memory.bind(message.bind_key, message.bind_rights, message.bound) ? Status::success : Status::mw_bind_err;
}

void Connection::complete_send(const Shipment& message, Status status, Time time) {
  if (status != Status::success && !message->launched) stopped_ = true;
  later(time, [message, status](Connection& self, Time now) {
    message->done = true;
    message->status = status;
    if (message->opcode == Opcode::read && message->launched) --self.reads_;
    self.take_completions(now);
    self.pump(now);
  });
}

// Completions keep the order of posting: a read holds up what was posted behind it.
void Connection::take_completions(Time now) {
  while (!flying_.empty() && flying_.front()->done) {
    const Shipment message = flying_.front();
    flying_.pop_front();
    if (context_ == nullptr) continue;
    if (std::exchange(failed_, failed_ || message->status != Status::success) && message->status != Status::success)
      message->status = Status::wr_flush_err;
    if (message->signaled || message->status != Status::success) {
      queue_->push(shared_from_this(), message->sequence,
                   {.wr_id = message->wr_id, .status = message->status, .opcode = message->opcode, .qp_num = number_}, now);
      shared_.schedule.wake(context_->rank(), now);
    }
    if (message->status != Status::success && message->status != Status::wr_flush_err) broken(message->opcode, message->status, now);
  }
  if (context_ == nullptr) tell_peer(now);
}

void Connection::complete_receive(const Receive& receive, Status status, Opcode opcode, std::int64_t bytes, std::uint32_t imm, Time time) {
  const Completion completion{.wr_id = receive.wr_id,
                              .status = status,
                              .opcode = opcode,
                              .byte_len = static_cast<std::uint64_t>(bytes),
                              .qp_num = number_,
                              .imm_data = imm};
  received_ = std::max(received_, time);  // also of those that fail or are flushed
  later(received_, [completion, sequence = receive.sequence](Connection& self, Time now) {
    if (self.context_ == nullptr) return;
    self.queue_->push(self.shared_from_this(), sequence, completion, now);
    self.shared_.schedule.wake(self.context_->rank(), now);
  });
}

// --- the target's side ----------------------------------------------------------------------------------------------

void Connection::arrive(const Shipment& message, Connection& from) {
  arrived_.push_back(message);
  drain(from);
}

void Connection::drain(Connection& from) {
  while (!arrived_.empty() && !waits_ && accept(arrived_.front(), from)) arrived_.pop_front();
}

// False if the message has to come again, since there is no receive.
bool Connection::accept(const Shipment& message, Connection& from) {
  const bool reading = message->opcode == Opcode::read;
  const Time now = reading ? message->ready : message->flight.arrivals.back();
  if (!usable()) {
    LACUNA_RARELY("model: a message comes to an end that does not work");
    const bool gone = context_ == nullptr || !refused_;
    from.complete_send(message, gone ? Status::retry_exc_err : Status::wr_flush_err, now + (gone ? nic().retry : flight(from)));
    return true;
  }
  if (reading) return answer_read(message, from), true;
  if (message->opcode != Opcode::write && receives_->posted.empty()) {
    // Who would send it again?
    if (from.context_ == nullptr) return from.complete_send(message, Status::wr_flush_err, now), true;
    LACUNA_RARELY("model: the receiver is not ready");
    waits_ = from.shared_from_this();
    tried_ = message->flight.arrivals.front();
    ++context_->usage().not_ready;
    if (of_hub_) receives_->hungry.push_back(weak_from_this());
    return false;
  }
  if (message->opcode == Opcode::send) {
    const Receive& receive = receives_->posted.front();
    if (receive.total < message->total) return refuse(message, from, Status::rem_inv_req_err, Status::loc_len_err), true;
    std::vector<Sge> used = receive.list;
    std::int64_t left = message->total;
    for (Sge& sge : used) {
      sge.length = static_cast<std::uint32_t>(std::min<std::int64_t>(sge.length, left));
      left -= sge.length;
    }
    if (!context_->memory().resolve(used, Access::local_write, message->remote))
      return refuse(message, from, Status::rem_op_err, Status::loc_prot_err), true;
  } else {
    const Sge target{message->remote_addr, static_cast<std::uint32_t>(message->total), message->rkey};
    if (!context_->memory().resolve({&target, 1}, Access::remote_write, message->remote))
      return refuse(message, from, Status::rem_access_err, Status::success), true;
  }
  land(message, from);
  return true;
}

// The sender tries every not_ready. Of these tries only that one matters which finds what was missing, or that somebody
// has gone.
bool Connection::try_again(Time now) {
  if (!waits_) return false;
  if (tries_) return true;
  tries_ = true;
  const Time step = nic().not_ready;
  later(tried_ + std::max<Time>(1, (now - tried_ + step - 1) / step) * step, [](Connection& self, Time again) {
    const std::shared_ptr<Connection> from = std::exchange(self.waits_, nullptr);
    self.tries_ = false;
    for (const Shipment& held : self.arrived_) {
      held->ready = std::max(held->ready, again);
      for (Time& arrival : held->flight.arrivals) arrival = std::max(arrival, again);
    }
    self.drain(*from);
    if (self.of_hub_) self.receives_->feed(again);
  });
  return true;
}

void Receives::feed(Time now) {
  while (!posted.empty() && !hungry.empty()) {
    const std::shared_ptr<Connection> first = hungry.front().lock();
    hungry.pop_front();
    if (first != nullptr && first->try_again(now)) return;  // else it has gone, or what waited was given up
  }
}

void Connection::land(const Shipment& message, Connection& from) {
  std::optional<Receive> receive;
  if (message->opcode != Opcode::write) {
    receive = std::move(receives_->posted.front());
    receives_->posted.pop_front();
  }
  const Device::Landed landed = device_.land(message->flight, message->remote, receive ? nic().receive : 0);
  landed_ = landed.written;
  later(landed.written, [message](Connection& self, Time now) {
    if (self.context_ == nullptr) return;
    self.move(message->local, message->source, message->remote, self.context_, message->total);
    self.shared_.schedule.wake(self.context_->rank(), now);
  });
  if (receive) {
    const bool imm = message->opcode == Opcode::write_imm;
    complete_receive(*receive, Status::success, imm ? Opcode::recv_imm : Opcode::recv, message->total, message->imm_data,
                     landed.written + nic().receive_completion);
  }
  from.complete_send(message, Status::success, std::max(landed.handled + flight(from), landed.written) + nic().completion);
}

void Connection::move(const Pieces& from, const Context* source, const Pieces& to, const Context* destination, std::int64_t bytes) const {
  if (!shared_.moves_bytes && bytes > kAlwaysMoved) return;
  if (source != nullptr && !source->memory().holds(from)) return;
  if (destination->memory().holds(to)) move_pieces(from, to);
}

// What comes behind a refused request is not run.
void Connection::refuse(const Shipment& message, Connection& from, Status theirs, Status ours) {
  const Time now = message->flight.arrivals.back() + nic().completion;
  LACUNA_RARELY("model: a request is refused by the other end");
  stopped_ = refused_ = true;
  if (ours != Status::success) {
    complete_receive(receives_->posted.front(), ours, Opcode::recv, 0, 0, now);
    receives_->posted.pop_front();
  }
  from.complete_send(message, theirs, now + flight(from));
  later(now, [opcode = ours == Status::success ? message->opcode : Opcode::recv, status = ours == Status::success ? theirs : ours](
                 Connection& self, Time time) { self.broken(opcode, status, time); });
}

void Connection::answer_read(const Shipment& message, Connection& from) {
  const Sge wanted{message->remote_addr, static_cast<std::uint32_t>(message->total), message->rkey};
  if (!context_->memory().resolve({&wanted, 1}, Access::remote_read, message->remote)) {
    stopped_ = refused_ = true;
    from.complete_send(message, Status::rem_access_err, message->ready + flight(from) + nic().completion);
    return broken(Opcode::read, Status::rem_access_err, message->ready);
  }
  message->source = context_;
  // It finds what the writes before it have written.
  message->flight = device_.send(std::max(message->ready, landed_), message->remote, false, from.device_);
  count(*message);
  from.later(message->flight.arrivals.front(), [message](Connection& self, Time) {
    if (self.context_ == nullptr) return self.complete_send(message, Status::wr_flush_err, message->flight.arrivals.back());
    const Device::Landed landed = self.device_.land(message->flight, message->local, 0);
    self.later(landed.written, [message](Connection& reader, Time) {
      if (reader.context_ != nullptr) reader.move(message->remote, message->source, message->local, reader.context_, message->total);
    });
    self.complete_send(message, Status::success, landed.written + self.nic().completion);
  });
}

// --- the end --------------------------------------------------------------------------------------------------------

void Connection::broken(Opcode opcode, Status status, Time now) {
  if (status == Status::retry_exc_err) return fail({base::Code::peer_lost, "the peer does not answer: it closed the connection"}, now);
  fail({base::Code::transfer, fmt::format("a {} on path wire completed with {}", opcode_name(opcode), status_name(status))}, now);
}

void Connection::fail(base::Error why, Time now) {
  if (fault_ || context_ == nullptr) return;
  fault_ = std::move(why);
  if (of_hub_) {  // whose receives are for other connections too
    receives_->failed.push_back(static_cast<int>(number_));
  } else {
    for (const Receive& receive : std::exchange(receives_->posted, {}))
      complete_receive(receive, Status::wr_flush_err, Opcode::recv, 0, 0, now);
  }
  pump(now);  // flushes what was not launched
  try_again(now);
  shared_.schedule.wake(context_->rank(), now);
}

void Connection::let_go() {
  const auto copied = [this](Message& message, Pieces& from) {
    if ((!shared_.moves_bytes && message.total > kAlwaysMoved) || message.source != context_ || !context_->memory().holds(from)) return;
    std::vector<std::byte> bytes(static_cast<std::size_t>(message.total));
    move_pieces(from, {{.at = bytes.data(), .length = message.total}});
    message.inline_bytes = std::move(bytes);
    from = {{.at = message.inline_bytes.data(), .length = message.total}};
    message.source = nullptr;
  };
  for (const Shipment& message : flying_) {
    if (message->launched && !message->done && message->opcode != Opcode::read) copied(*message, message->local);
  }
  const std::shared_ptr<Connection> peer = peer_.lock();
  if (peer == nullptr) return;
  for (const Shipment& message : peer->flying_) {
    if (message->launched && !message->done && message->opcode == Opcode::read) copied(*message, message->remote);
  }
}

void Connection::close() {
  context_->settle();
  let_go();
  const Time now = context_->clock();
  context_ = nullptr;
  try_again(now);
  if (const std::shared_ptr<Connection> peer = peer_.lock()) peer->try_again(now + flight(*peer));
  tell_peer(now);
}

// Behind everything that this end sent, and behind the completions of what the peer received of it.
void Connection::tell_peer(Time now) {
  if (!flying_.empty()) return;  // the last of these goes on here
  const std::shared_ptr<Connection> to = peer_.lock();
  if (to == nullptr) return;
  later(now + std::max<Time>(flight(*to), 1), [](Connection& self, Time there) {
    const std::shared_ptr<Connection> peer = self.peer_.lock();
    if (peer == nullptr) return;
    peer->later(std::max(there, peer->received_),
                [](Connection& left, Time time) { left.fail({base::Code::peer_lost, "the peer closed the connection"}, time); });
  });
}

}  // namespace lacuna::nic::model
