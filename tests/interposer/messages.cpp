// The fake's messages: for each rank, the receives that were posted and the messages that have come, both in order.
#include <algorithm>
#include <cstring>

#include "tests/interposer/world.hpp"

namespace lacuna::test::fake {

using mpi::kAnySource;
using mpi::kAnyTag;
using mpi::kErrCount;
using mpi::kErrTruncate;
using mpi::kErrType;
using mpi::kProcNull;
using mpi::kSuccess;

void put_bytes(Status& status, std::int64_t bytes) { std::memcpy(status.internal, &bytes, sizeof bytes); }
Status empty_status() { return {.source = kAnySource, .tag = kAnyTag, .error = kSuccess, .internal = {}}; }

namespace {

using Kind = RequestObject::Kind;

void finish(RequestObject& request) {
  request.over = true;
  request.looks = me->world->options.slow == 0 ? 0 : static_cast<int>(me->random.below(3));
  me->world->changed.notify_all();
}

void deliver(RequestObject& receive, Mail& mail) {
  const std::vector<std::byte> bytes =
      mail.from == nullptr ? std::move(mail.data) : packed(mail.from->base, mail.from->count, *mail.from->map);
  const std::int64_t room = receive.count * receive.map->size;
  receive.status = {.source = mail.source, .tag = mail.tag, .error = kSuccess, .internal = {}};
  put_bytes(receive.status, std::min(room, mail.size));
  receive.error = mail.lost ? kErrProcFailed : mail.size > room ? kErrTruncate : kSuccess;
  if (mail.lost) return finish(receive);
  unpack(std::span(bytes).first(static_cast<std::size_t>(std::min(room, mail.size))), receive.base, receive.count, *receive.map);
  finish(receive);
  if (mail.from != nullptr) finish(*mail.from);
}

bool is_dead(int rank) { return rank >= 0 && me->world->ranks[static_cast<std::size_t>(rank)]->dead; }

bool fits(const RequestObject& receive, const Mail& mail) {
  return receive.context == mail.context && (receive.peer == kAnySource || receive.peer == mail.source) &&
         (receive.tag == kAnyTag || receive.tag == mail.tag);
}

void send(const Held& request) {
  const CommObject* comm = find(request->comm);
  if (comm == nullptr) return;
  const std::int64_t bytes = request->count * request->map->size;
  Mail mail{
      .context = request->context, .source = request->me, .tag = request->tag, .size = bytes, .data = {}, .from = {}, .sender = me->number};
  if (is_dead(request->there)) return fail(*request);
  const bool later = request->synchronous || (!request->buffered && bytes > me->world->options.eager);
  if (later) {
    mail.from = request;
  } else {
    mail.data = packed(request->base, request->count, *request->map);
    finish(*request);
  }
  Rank& to = *me->world->ranks.at(static_cast<std::size_t>(comm->group.at(static_cast<std::size_t>(request->peer))));
  const auto found = std::ranges::find_if(to.posted, [&](const Held& receive) { return fits(*receive, mail); });
  if (found == to.posted.end()) {
    to.unexpected.push_back(std::move(mail));
    me->world->changed.notify_all();
    return;
  }
  const Held receive = *found;
  to.posted.erase(found);
  deliver(*receive, mail);
}

void receive(const Held& request) {
  if (request->matched != 0) {
    const auto found = me->matched.find(reinterpret_cast<Message>(request->matched));
    deliver(*request, found->second);
    me->matched.erase(found);
    return;
  }
  const auto found = std::ranges::find_if(me->unexpected, [&](const Mail& mail) { return fits(*request, mail); });
  if (found == me->unexpected.end()) {
    if (is_dead(request->there)) return fail(*request);
    me->posted.push_back(request);
    return;
  }
  deliver(*request, *found);
  me->unexpected.erase(found);
}

struct Arguments {
  const void* base;
  Count count;
  Datatype type;
  int peer, tag;
  Comm comm;
};

// What is wrong with a message's arguments.
int wrong_with(const Arguments& of, bool receives) {
  if (of.count < 0) return kErrCount;
  if (map_of(of.type) == nullptr || !is_committed(of.type)) return kErrType;
  if (of.tag < 0 && !(receives && of.tag == kAnyTag)) return kErrTag;
  const Lock lock = enter();
  const CommObject* comm = find(of.comm);
  if (comm == nullptr) return kErrComm;
  const bool known =
      (of.peer >= 0 && std::cmp_less(of.peer, comm->group.size())) || of.peer == kProcNull || (receives && of.peer == kAnySource);
  return known ? kSuccess : kErrRank;
}

Held make(Kind kind, const Arguments& of, bool synchronous, bool buffered) {
  auto made = std::make_shared<RequestObject>();
  const CommObject& comm = *find(of.comm);
  made->kind = kind;
  made->base = static_cast<std::byte*>(const_cast<void*>(of.base));
  made->count = of.count;
  made->map = map_of(of.type);
  made->peer = of.peer;
  made->tag = of.tag;
  made->comm = of.comm;
  made->there = in_world(comm, of.peer);
  made->context = comm.context;
  made->me = comm.rank;
  made->synchronous = synchronous;
  made->buffered = buffered;
  made->status = empty_status();
  return made;
}

int begin(Kind kind, const Arguments& of, Request* request, bool synchronous = false, bool buffered = false, bool starts = true) {
  if (const int wrong = wrong_with(of, kind == Kind::receive); wrong != kSuccess) return raise(of.comm, wrong);
  const Lock lock = enter();
  const Held made = make(kind, of, synchronous, buffered);
  made->persistent = !starts;
  made->active = starts;
  *request = add(made);
  if (starts) go(made);
  return kSuccess;
}

int now(Kind kind, const Arguments& of, Status* status, bool synchronous = false, bool buffered = false) {
  Request request{};
  const int wrong = begin(kind, of, &request, synchronous, buffered);
  return wrong != kSuccess ? wrong : calls::Wait(&request, status);
}

// What a probe sees; null: nothing yet.
Mail* probed(int source, int tag, const CommObject& comm) {
  RequestObject wanted;
  wanted.context = comm.context;
  wanted.peer = source;
  wanted.tag = tag;
  const auto found = std::ranges::find_if(me->unexpected, [&](const Mail& mail) { return fits(wanted, mail); });
  return found == me->unexpected.end() ? nullptr : &*found;
}

void tell(Status* status, const Mail& mail) {
  if (status == mpi::ignored()) return;
  status->source = mail.source;
  status->tag = mail.tag;
  put_bytes(*status, mail.size);
}

int probe(bool waits, int source, int tag, Comm comm, int* flag, Message* message, Status* status) {
  Lock lock = enter();
  const CommObject* object = find(comm);
  if (object == nullptr) return kErrComm;
  *flag = 1;
  if (source == kProcNull) {
    if (status != mpi::ignored()) *status = {.source = kProcNull, .tag = kAnyTag, .error = kSuccess, .internal = {}};
    if (message != nullptr) *message = reinterpret_cast<Message>(mpi::kMessageNoProc);
    return kSuccess;
  }
  Mail* mail = probed(source, tag, *object);
  const auto in_vain = [&] { return mail == nullptr && (source == kAnySource ? has_dead(*object) : is_dead(in_world(*object, source))); };
  while (mail == nullptr && waits && !in_vain()) {
    me->world->changed.wait(lock);
    mail = probed(source, tag, *object);
  }
  *flag = mail != nullptr ? 1 : 0;
  if (in_vain()) {
    lock.unlock();
    return raise(comm, kErrProcFailed);
  }
  if (mail == nullptr) {
    looked_in_vain(lock);
    return kSuccess;
  }
  tell(status, *mail);
  if (message == nullptr) return kSuccess;
  *message = reinterpret_cast<Message>(0x1000 + ++me->messages);
  const auto at = std::ranges::find_if(me->unexpected, [&](const Mail& each) { return &each == mail; });
  me->matched.emplace(*message, std::move(*at));
  me->unexpected.erase(at);
  return kSuccess;
}

int receive_matched(void* base, int count, Datatype type, Message* message, Request* request) {
  const Lock lock = enter();
  auto made = std::make_shared<RequestObject>();
  made->kind = Kind::receive;
  made->base = static_cast<std::byte*>(base);
  made->count = count;
  made->map = map_of(type);
  made->comm = reinterpret_cast<Comm>(mpi::kCommWorld);
  made->status = {.source = kProcNull, .tag = kAnyTag, .error = kSuccess, .internal = {}};
  *request = add(made);
  if (*message == reinterpret_cast<Message>(mpi::kMessageNoProc)) {
    finish(*made);
  } else if (!me->matched.contains(*message)) {
    complain("a matched message that is none");
    finish(*made);
  } else {
    made->matched = reinterpret_cast<std::uintptr_t>(*message);
    receive(made);
  }
  *message = reinterpret_cast<Message>(mpi::kMessageNull);
  return kSuccess;
}

}  // namespace

void fail(RequestObject& request) {
  request.error = kErrProcFailed;
  finish(request);
}

int in_world(const CommObject& comm, int rank) { return rank < 0 ? -1 : comm.group.at(static_cast<std::size_t>(rank)); }
bool has_dead(const CommObject& comm) { return std::ranges::any_of(comm.group, is_dead); }

// Those of communicators that have a dead rank.
static void fail_collectives(Rank& rank) {
  for (const auto& [handle, request] : rank.requests) {
    const auto comm = rank.comms.find(request->comm);
    if (request->start == nullptr || comm == rank.comms.end() || !has_dead(*comm->second)) continue;
    for (const Held& part : request->parts) {
      if (!part->over) fail(*part);
    }
  }
}

void die() {
  const Lock lock = enter();
  me->dead = true;
  for (const std::unique_ptr<Rank>& rank : me->world->ranks) {
    const auto loses = [](Mail& mail) {
      if (mail.sender != me->number || mail.from == nullptr) return;
      mail.from = nullptr;
      mail.lost = true;
    };
    std::ranges::for_each(rank->unexpected, loses);
    for (auto& [handle, mail] : rank->matched) loses(mail);
    fail_collectives(*rank);
    std::erase_if(rank->posted, [](const Held& receive) {
      if (!receive->over && receive->there == me->number) fail(*receive);
      return receive->over;
    });
  }
  for (Mail& mail : me->unexpected) {
    if (mail.from != nullptr) fail(*mail.from);
  }
  for (auto& [handle, mail] : me->matched) {
    if (mail.from != nullptr) fail(*mail.from);
  }
  me->unexpected.clear();
  me->matched.clear();
  me->world->changed.notify_all();
}

Request add(Held request) {
  const auto handle = reinterpret_cast<Request>(request.get());
  me->requests[handle] = std::move(request);
  return handle;
}

void go(const Held& request) {
  request->active = true;
  request->over = request->cancelled = false;
  request->error = kSuccess;
  request->status = empty_status();
  if (request->kind == Kind::group) {
    request->start(*request);
  } else if (request->peer == kProcNull) {
    request->status.source = kProcNull;
    finish(*request);
  } else if (request->kind == Kind::send) {
    send(request);
  } else {
    receive(request);
  }
}

namespace calls {

#define SENDS(name, later, init, synchronous, buffered)                                                    \
  int name(const void* base, int count, Datatype type, int dest, int tag, Comm comm) {                     \
    return now(Kind::send, {base, count, type, dest, tag, comm}, mpi::ignored(), synchronous, buffered);   \
  }                                                                                                        \
  int later(const void* base, int count, Datatype type, int dest, int tag, Comm comm, Request* request) {  \
    return begin(Kind::send, {base, count, type, dest, tag, comm}, request, synchronous, buffered);        \
  }                                                                                                        \
  int init(const void* base, int count, Datatype type, int dest, int tag, Comm comm, Request* request) {   \
    return begin(Kind::send, {base, count, type, dest, tag, comm}, request, synchronous, buffered, false); \
  }
SENDS(Send, Isend, Send_init, false, false)
SENDS(Ssend, Issend, Ssend_init, true, false)
SENDS(Rsend, Irsend, Rsend_init, false, false)
SENDS(Bsend, Ibsend, Bsend_init, false, true)
#undef SENDS

int Recv(void* base, int count, Datatype type, int source, int tag, Comm comm, Status* status) {
  return now(Kind::receive, {base, count, type, source, tag, comm}, status);
}
int Irecv(void* base, int count, Datatype type, int source, int tag, Comm comm, Request* request) {
  return begin(Kind::receive, {base, count, type, source, tag, comm}, request);
}
int Recv_init(void* base, int count, Datatype type, int source, int tag, Comm comm, Request* request) {
  return begin(Kind::receive, {base, count, type, source, tag, comm}, request, false, false, false);
}

int Sendrecv(const void* out, int out_count, Datatype out_type, int dest, int out_tag, void* in, int in_count, Datatype in_type, int source,
             int in_tag, Comm comm, Status* status) {
  Request request{};
  if (const int wrong = Isend(out, out_count, out_type, dest, out_tag, comm, &request); wrong != kSuccess) return wrong;
  const int received = Recv(in, in_count, in_type, source, in_tag, comm, status);
  const int sent = Wait(&request, mpi::ignored());
  return received != kSuccess ? received : sent;
}
int Sendrecv_replace(void* base, int count, Datatype type, int dest, int out_tag, int source, int in_tag, Comm comm, Status* status) {
  const std::vector<std::byte> bytes = packed(base, count, *map_of(type));
  return Sendrecv(bytes.data(), static_cast<int>(bytes.size()), byte_type(), dest, out_tag, base, count, type, source, in_tag, comm,
                  status);
}
int begin_pair(const Arguments& out, const Arguments& in, bool copied, Request* request) {
  for (const auto& [of, receives] : {std::pair{out, false}, {in, true}}) {
    if (const int wrong = wrong_with(of, receives); wrong != kSuccess) return raise(of.comm, wrong);
  }
  const Lock lock = enter();
  auto made = std::make_shared<RequestObject>();
  made->kind = Kind::group;
  made->comm = in.comm;
  made->parts = {make(Kind::receive, in, false, false), make(Kind::send, out, false, copied)};
  made->status = empty_status();
  go(made->parts[1]);
  go(made->parts[0]);
  *request = add(made);
  return kSuccess;
}
int Isendrecv_replace(void* base, int count, Datatype type, int dest, int out_tag, int source, int in_tag, Comm comm, Request* request) {
  return begin_pair({base, count, type, dest, out_tag, comm}, {base, count, type, source, in_tag, comm}, true, request);
}
int Isendrecv(const void* out, int out_count, Datatype out_type, int dest, int out_tag, void* in, int in_count, Datatype in_type,
              int source, int in_tag, Comm comm, Request* request) {
  return begin_pair({out, out_count, out_type, dest, out_tag, comm}, {in, in_count, in_type, source, in_tag, comm}, false, request);
}

int Probe(int source, int tag, Comm comm, Status* status) {
  int flag = 0;
  return probe(true, source, tag, comm, &flag, nullptr, status);
}
int Iprobe(int source, int tag, Comm comm, int* flag, Status* status) { return probe(false, source, tag, comm, flag, nullptr, status); }
int Mprobe(int source, int tag, Comm comm, Message* message, Status* status) {
  int flag = 0;
  return probe(true, source, tag, comm, &flag, message, status);
}
int Improbe(int source, int tag, Comm comm, int* flag, Message* message, Status* status) {
  return probe(false, source, tag, comm, flag, message, status);
}
int Mrecv(void* base, int count, Datatype type, Message* message, Status* status) {
  Request request{};
  receive_matched(base, count, type, message, &request);
  return Wait(&request, status);
}
int Imrecv(void* base, int count, Datatype type, Message* message, Request* request) {
  return receive_matched(base, count, type, message, request);
}

}  // namespace calls
}  // namespace lacuna::test::fake
