// The C API's messages.
#include <cstring>
#include <memory>

#include "lacuna/c/connection.hpp"

using lacuna::base::Code;
using lacuna::c::check;
using lacuna::c::either;
using lacuna::c::failed;
using lacuna::c::guarded;
using lacuna::c::value_or;
using lacuna::protocol::Communicator;
using lacuna::protocol::Request;
using lacuna::protocol::Status;

namespace {

Request* request_of(lacuna_request* request) { return reinterpret_cast<Request*>(request); }
lacuna_request* handle_of(Request* request) { return reinterpret_cast<lacuna_request*>(request); }

lacuna_status tell(const lacuna::base::Result<Status>& ended, lacuna_message* message) {
  if (!ended) return failed(ended.error());
  if (message != nullptr) *message = {ended->source, ended->tag, ended->bytes};
  return LACUNA_OK;
}

lacuna_status hand_out(lacuna::base::Result<Request*> begun, lacuna_request** request) {
  if (!begun) return failed(begun.error());
  *request = handle_of(*begun);
  return LACUNA_OK;
}

lacuna::protocol::Exposed value_of(const lacuna_exposed& exposed) { return {exposed.rank, exposed.number, exposed.bytes}; }

}  // namespace

lacuna_status lacuna_connect(const char* address, int size, int rank, const char* secret, const lacuna_connect_options* options,
                             lacuna_comm** comm) {
  return guarded(LACUNA_GIVEN(address, comm), [&] {
    namespace library = lacuna::protocol;
    const lacuna_connect_options given = options != nullptr ? *options : lacuna_connect_options{};
    library::Options wanted;
    if (given.eager_bytes > 0) wanted.eager_bytes = given.eager_bytes;
    if (given.unexpected_bytes > 0) wanted.unexpected_bytes = given.unexpected_bytes;
    wanted.progress_thread = given.progress_thread != 0;
    auto all = library::Options::from_environment(wanted);
    if (!all) return failed(all.error());
    if (given.registering != nullptr && *given.registering != '\0') {
      const auto named = library::registering_from_name(given.registering);
      if (!named) return failed(named.error());
      all->registering = *named;
    }
    if (given.learning != nullptr && *given.learning != '\0') {
      const auto learn = lacuna::guide::LearnOptions::from_text(given.learning);
      if (!learn) return failed(learn.error());
      all->learn = *learn;
    }
    auto made = std::make_unique<lacuna_comm>();
    library::BootstrapOptions bootstrap{.address = address, .size = size, .rank = rank, .secret = secret != nullptr ? secret : ""};
    const lacuna::base::Wipe wipe(bootstrap.secret);
    if (given.timeout_s > 0) bootstrap.timeout_s = given.timeout_s;
    auto met = library::meet(bootstrap, given.nic != nullptr ? given.nic : "");
    if (!met) return failed(met.error());
    made->context = std::move(met->context);
    auto ranks = Communicator::create(*made->context, std::string(made->context->nic_name()), std::move(met->group), *all);
    if (!ranks) return failed(ranks.error());
    made->ranks = std::move(*ranks);
    *comm = made.release();
    return LACUNA_OK;
  });
}

void lacuna_comm_free(lacuna_comm* comm) {
  if (comm == nullptr) return;
  comm->ranks.reset();
  delete comm;
}

int lacuna_comm_rank(const lacuna_comm* comm) {
  return value_or(LACUNA_GIVEN(comm), -1, [&] { return comm->ranks->rank(); });
}
int lacuna_comm_size(const lacuna_comm* comm) {
  return value_or(LACUNA_GIVEN(comm), 0, [&] { return comm->ranks->size(); });
}

lacuna_status lacuna_send(lacuna_comm* comm, const void* base, const lacuna_layout* layout, int dest, int tag) {
  return guarded(LACUNA_GIVEN(comm, layout), [&] {
    const auto sent = comm->ranks->send(base, layout->value, dest, tag);
    return sent ? LACUNA_OK : failed(sent.error());
  });
}

lacuna_status lacuna_recv(lacuna_comm* comm, void* base, const lacuna_layout* layout, int source, int tag, lacuna_message* message) {
  return guarded(LACUNA_GIVEN(comm, layout), [&] { return tell(comm->ranks->recv(base, layout->value, source, tag), message); });
}

lacuna_status lacuna_isend(lacuna_comm* comm, const void* base, const lacuna_layout* layout, int dest, int tag, lacuna_request** request) {
  return guarded(LACUNA_GIVEN(comm, layout, request),
                 [&] { return hand_out(comm->ranks->isend(base, layout->value, dest, tag), request); });
}

lacuna_status lacuna_irecv(lacuna_comm* comm, void* base, const lacuna_layout* layout, int source, int tag, lacuna_request** request) {
  return guarded(LACUNA_GIVEN(comm, layout, request),
                 [&] { return hand_out(comm->ranks->irecv(base, layout->value, source, tag), request); });
}

lacuna_status lacuna_wait(lacuna_comm* comm, lacuna_request** request, lacuna_message* message) {
  return guarded(LACUNA_GIVEN(comm, request), [&] {
    if (*request == nullptr) return LACUNA_OK;
    return tell(comm->ranks->wait(request_of(std::exchange(*request, nullptr))), message);
  });
}

lacuna_status lacuna_test(lacuna_comm* comm, lacuna_request** request, int* done, lacuna_message* message) {
  return guarded(LACUNA_GIVEN(comm, request, done), [&] {
    *done = 1;
    if (*request == nullptr) return LACUNA_OK;
    const auto ended = comm->ranks->test(request_of(*request));
    *done = ended ? 1 : 0;
    if (!ended) return LACUNA_OK;
    *request = nullptr;
    return tell(*ended, message);
  });
}

lacuna_status lacuna_wait_any(lacuna_comm* comm, int count, lacuna_request** requests, int* index, lacuna_message* message) {
  return guarded(either(LACUNA_GIVEN(comm, index), LACUNA_LISTS(count, requests)), [&] {
    if (count < 0) return failed({Code::invalid_argument, "a negative number of requests"});
    const auto found = comm->ranks->wait_any({reinterpret_cast<Request* const*>(requests), static_cast<std::size_t>(count)});
    if (!found) return failed(found.error());
    *index = static_cast<int>(*found);
    return lacuna_wait(comm, &requests[*found], message);
  });
}

lacuna_status lacuna_wait_all(lacuna_comm* comm, int count, lacuna_request** requests, lacuna_message* messages) {
  const lacuna::c::Missing missing = either(LACUNA_GIVEN(comm), LACUNA_LISTS(count, requests));
  lacuna_status first = check(missing);
  if (first != LACUNA_OK) return first;
  std::string text;
  for (int i = 0; i < count; ++i) {
    const lacuna_status ended = lacuna_wait(comm, &requests[i], messages != nullptr ? &messages[i] : nullptr);
    if (ended == LACUNA_OK || first != LACUNA_OK) continue;
    first = ended;
    text = lacuna_error_message();
  }
  if (first != LACUNA_OK) lacuna::c::remember(std::move(text));
  return first;
}

lacuna_status lacuna_cancel(lacuna_comm* comm, lacuna_request** request, int* cancelled) {
  return guarded(LACUNA_GIVEN(comm, request, cancelled), [&] {
    *cancelled = 0;
    if (*request == nullptr) return LACUNA_OK;
    *cancelled = comm->ranks->cancel(request_of(*request)) ? 1 : 0;
    if (*cancelled == 1) *request = nullptr;
    return LACUNA_OK;
  });
}

lacuna_status lacuna_probe(lacuna_comm* comm, int source, int tag, int* found, lacuna_message* message) {
  return guarded(LACUNA_GIVEN(comm, found), [&] {
    const auto probed = comm->ranks->probe(source, tag);
    if (!probed) return failed(probed.error());
    *found = probed->has_value() ? 1 : 0;
    return *found == 1 ? tell(**probed, message) : LACUNA_OK;
  });
}

int lacuna_progress(lacuna_comm* comm) {
  return value_or(LACUNA_GIVEN(comm), 0, [&] { return comm->ranks->progress() ? 1 : 0; });
}

lacuna_status lacuna_register_memory(lacuna_comm* comm, void* base, int64_t bytes, uint32_t* number) {
  return guarded(LACUNA_GIVEN(comm, number), [&] {
    const auto held = comm->ranks->register_memory(base, bytes);
    if (!held) return failed(held.error());
    *number = *held;
    return LACUNA_OK;
  });
}

lacuna_status lacuna_deregister_memory(lacuna_comm* comm, uint32_t number) {
  return guarded(LACUNA_GIVEN(comm), [&] {
    const auto gone = comm->ranks->deregister_memory(number);
    return gone ? LACUNA_OK : failed(gone.error());
  });
}

lacuna_status lacuna_expose(lacuna_comm* comm, void* base, int64_t bytes, lacuna_exposed* exposed) {
  return guarded(LACUNA_GIVEN(comm, exposed), [&] {
    const auto made = comm->ranks->expose(base, bytes);
    if (!made) return failed(made.error());
    *exposed = {made->rank, made->number, made->bytes};
    return LACUNA_OK;
  });
}

lacuna_status lacuna_withdraw(lacuna_comm* comm, const lacuna_exposed* exposed) {
  return guarded(LACUNA_GIVEN(comm, exposed), [&] {
    const auto gone = comm->ranks->withdraw(value_of(*exposed));
    return gone ? LACUNA_OK : failed(gone.error());
  });
}

lacuna_status lacuna_iput(lacuna_comm* comm, const void* base, const lacuna_layout* src, const lacuna_exposed* to, int64_t offset,
                          const lacuna_layout* dst, lacuna_request** request) {
  return guarded(LACUNA_GIVEN(comm, src, to, dst, request),
                 [&] { return hand_out(comm->ranks->put(base, src->value, value_of(*to), offset, dst->value), request); });
}

lacuna_status lacuna_iget(lacuna_comm* comm, void* base, const lacuna_layout* dst, const lacuna_exposed* from, int64_t offset,
                          const lacuna_layout* src, lacuna_request** request) {
  return guarded(LACUNA_GIVEN(comm, dst, from, src, request),
                 [&] { return hand_out(comm->ranks->get(base, dst->value, value_of(*from), offset, src->value), request); });
}

lacuna_status lacuna_put(lacuna_comm* comm, const void* base, const lacuna_layout* src, const lacuna_exposed* to, int64_t offset,
                         const lacuna_layout* dst) {
  if (const lacuna_status given = check(LACUNA_GIVEN(comm, src, to, dst)); given != LACUNA_OK) return given;
  lacuna_request* request = nullptr;
  const lacuna_status begun = lacuna_iput(comm, base, src, to, offset, dst, &request);
  return begun != LACUNA_OK ? begun : lacuna_wait(comm, &request, nullptr);
}

lacuna_status lacuna_get(lacuna_comm* comm, void* base, const lacuna_layout* dst, const lacuna_exposed* from, int64_t offset,
                         const lacuna_layout* src) {
  if (const lacuna_status given = check(LACUNA_GIVEN(comm, dst, from, src)); given != LACUNA_OK) return given;
  lacuna_request* request = nullptr;
  const lacuna_status begun = lacuna_iget(comm, base, dst, from, offset, src, &request);
  return begun != LACUNA_OK ? begun : lacuna_wait(comm, &request, nullptr);
}

size_t lacuna_comm_statistics(const lacuna_comm* comm, char* text, size_t size) {
  return value_or(LACUNA_GIVEN(comm), std::size_t{0},
                  [&] { return lacuna::c::write_text(comm->ranks->statistics().describe(), text, size); });
}

lacuna_status lacuna_comm_explain(lacuna_comm* comm, const lacuna_layout* src, const lacuna_layout* dst, int dest, char* text, size_t size,
                                  size_t* needed) {
  return guarded(LACUNA_GIVEN(comm, src, dst, needed), [&] {
    const auto why = comm->ranks->explain(src->value, dst->value, dest);
    if (!why) return failed(why.error());
    *needed = lacuna::c::write_text(*why, text, size);
    return LACUNA_OK;
  });
}
