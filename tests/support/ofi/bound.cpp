#include "tests/support/ofi/bound.hpp"

#include <array>
#include <cstddef>
#include <cstdio>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string_view>
#include <vector>

namespace lacuna::test::ofi {
namespace {

struct Registration {
  const std::byte* at;
  std::size_t bytes;
  std::uint64_t key;
  void* desc;
  fid* endpoint = nullptr;
  bool enabled = false;
};

// Of provider tcp, which has one table of each kind, and what of it is replaced.
struct Tables {
  const fi_ops_fabric* fabric = nullptr;
  const fi_ops_domain* domain = nullptr;
  const fi_ops_mr* mr = nullptr;
  const fi_ops_msg* msg = nullptr;
  const fi_ops_rma* rma = nullptr;
  const fi_ops* registration = nullptr;
  const fi_ops* endpoint = nullptr;
};
struct Replaced {
  fi_ops_fabric fabric;
  fi_ops_domain domain;
  fi_ops_mr mr;
  fi_ops_msg msg;
  fi_ops_rma rma;
  fi_ops registration;
  fi_ops endpoint;
};

std::mutex mutex;  // of all below: tests have two ends in one process
Tables real;
Replaced replaced;
std::map<const fid*, Registration> registrations;
std::set<const fid*> endpoints;

int wrong(const char* what) {
  std::fprintf(stderr, "registrations of an endpoint: %s\n", what);
  return -FI_EINVAL;
}

// Puts `table` in the place of an object's, which is the same for all objects of its kind.
template <class Ops, class Change>
void replace(Ops*& at, const Ops*& original, Ops& table, const Change& change) {
  const std::scoped_lock lock(mutex);
  if (original == nullptr) {
    original = at;
    table = *at;
    change(table);
  }
  at = &table;
}

// --- registrations ---------------------------------------------------------------------------------------------------

int bind_registration(fid* object, fid* endpoint, std::uint64_t /*flags*/) {
  const std::scoped_lock lock(mutex);
  Registration& own = registrations.at(object);
  if (own.endpoint != nullptr) return wrong("one is bound twice");
  if (!endpoints.contains(endpoint)) return wrong("one is bound to what is no endpoint");
  own.endpoint = endpoint;
  return 0;
}

// The same at both ends of a connection.
std::uint64_t connection_of(fid* endpoint) {
  auto* ep = reinterpret_cast<fid_ep*>(endpoint);
  std::array<std::array<char, 64>, 2> names{};
  std::array<std::size_t, 2> bytes{names[0].size(), names[1].size()};
  if (fi_getname(endpoint, names[0].data(), bytes.data()) != 0 || fi_getpeer(ep, names[1].data(), &bytes[1]) != 0) return 0;
  const std::hash<std::string_view> hash;
  return hash({names[0].data(), bytes[0]}) ^ hash({names[1].data(), bytes[1]});
}

int control_registration(fid* object, int command, void* argument) {
  if (command != FI_ENABLE) return real.registration->control(object, command, argument);
  const std::scoped_lock lock(mutex);
  Registration& own = registrations.at(object);
  if (own.endpoint == nullptr) return wrong("one is enabled before it is bound");
  auto* memory = reinterpret_cast<fid_mr*>(object);
  memory->key = own.key ^ connection_of(own.endpoint);
  memory->mem_desc = memory;
  own.enabled = true;
  return 0;
}

int close_registration(fid* object) {
  const std::scoped_lock lock(mutex);
  const Registration own = registrations.at(object);
  if (own.endpoint != nullptr && !endpoints.contains(own.endpoint)) wrong("one outlives its endpoint");
  registrations.erase(object);
  auto* memory = reinterpret_cast<fid_mr*>(object);
  memory->key = own.key;
  memory->mem_desc = own.desc;
  return real.registration->close(object);
}

int registers(fid* domain, const void* at, std::size_t bytes, std::uint64_t access, std::uint64_t offset, std::uint64_t key,
              std::uint64_t flags, fid_mr** made, void* context) {
  const int error = real.mr->reg(domain, at, bytes, access, offset, key, flags, made, context);
  if (error != 0) return error;
  replace((*made)->fid.ops, real.registration, replaced.registration, [](fi_ops& table) {
    table.close = &close_registration;
    table.bind = &bind_registration;
    table.control = &control_registration;
  });
  const std::scoped_lock lock(mutex);
  registrations[&(*made)->fid] = {static_cast<const std::byte*>(at), bytes, (*made)->key, (*made)->mem_desc};
  (*made)->key = FI_KEY_NOTAVAIL;
  (*made)->mem_desc = nullptr;
  return 0;
}

// --- posts -----------------------------------------------------------------------------------------------------------

// The provider's own descriptors of a list. Nothing: it reaches beyond what is registered for this endpoint.
std::optional<std::vector<void*>> descriptors(const fid_ep* endpoint, std::span<const iovec> list, void* const* tokens) {
  const std::scoped_lock lock(mutex);
  std::vector<void*> own(list.size());
  for (std::size_t i = 0; i < list.size(); ++i) {
    const auto found = tokens == nullptr ? registrations.end() : registrations.find(static_cast<const fid*>(tokens[i]));
    if (found == registrations.end() || !found->second.enabled || found->second.endpoint != &endpoint->fid) return std::nullopt;
    const Registration& region = found->second;
    const auto* from = static_cast<const std::byte*>(list[i].iov_base);
    if (from < region.at || from + list[i].iov_len > region.at + region.bytes) return std::nullopt;
    own[i] = region.desc;
  }
  return own;
}

// What the provider copies at once needs no registration.
template <class Message, class Post>
ssize_t post_checked(fid_ep* endpoint, Message message, std::uint64_t flags, const Post& post) {
  if ((flags & FI_INJECT) != 0) return post(message);
  std::optional<std::vector<void*>> own = descriptors(endpoint, {message.msg_iov, message.iov_count}, message.desc);
  if (!own) return wrong("a post reaches memory that is not registered for its endpoint");
  message.desc = own->data();
  return post(message);
}

ssize_t send(fid_ep* ep, const fi_msg* message, std::uint64_t flags) {
  return post_checked(ep, *message, flags, [&](const fi_msg& own) { return real.msg->sendmsg(ep, &own, flags); });
}

ssize_t receive(fid_ep* ep, const fi_msg* message, std::uint64_t flags) {
  return post_checked(ep, *message, flags, [&](const fi_msg& own) { return real.msg->recvmsg(ep, &own, flags); });
}

template <class Post>
ssize_t reach(fid_ep* ep, const fi_msg_rma* message, std::uint64_t flags, const Post& post) {
  fi_rma_iov target = *message->rma_iov;
  target.key ^= connection_of(&ep->fid);
  return post_checked(ep, *message, flags, [&](fi_msg_rma own) {
    own.rma_iov = &target;
    return post(own);
  });
}

ssize_t write(fid_ep* ep, const fi_msg_rma* message, std::uint64_t flags) {
  return reach(ep, message, flags, [&](const fi_msg_rma& own) { return real.rma->writemsg(ep, &own, flags); });
}

ssize_t read(fid_ep* ep, const fi_msg_rma* message, std::uint64_t flags) {
  return reach(ep, message, flags, [&](const fi_msg_rma& own) { return real.rma->readmsg(ep, &own, flags); });
}

// --- endpoints -------------------------------------------------------------------------------------------------------

int close_endpoint(fid* object) {
  {
    const std::scoped_lock lock(mutex);
    for (const auto& [memory, own] : registrations) {
      if (own.endpoint == object) wrong("an endpoint is closed before one of its own");
    }
    endpoints.erase(object);
  }
  return real.endpoint->close(object);
}

int make_endpoint(fid_domain* domain, fi_info* info, fid_ep** made, void* context) {
  if (const int error = real.domain->endpoint(domain, info, made, context); error != 0) return error;
  replace((*made)->fid.ops, real.endpoint, replaced.endpoint, [](fi_ops& table) { table.close = &close_endpoint; });
  replace((*made)->msg, real.msg, replaced.msg, [](fi_ops_msg& table) {
    table.sendmsg = &send;
    table.recvmsg = &receive;
  });
  replace((*made)->rma, real.rma, replaced.rma, [](fi_ops_rma& table) {
    table.writemsg = &write;
    table.readmsg = &read;
  });
  const std::scoped_lock lock(mutex);
  endpoints.insert(&(*made)->fid);
  return 0;
}

int make_domain(fid_fabric* fabric, fi_info* info, fid_domain** made, void* context) {
  if (const int error = real.fabric->domain(fabric, info, made, context); error != 0) return error;
  replace((*made)->mr, real.mr, replaced.mr, [](fi_ops_mr& table) { table.reg = &registers; });
  replace((*made)->ops, real.domain, replaced.domain, [](fi_ops_domain& table) { table.endpoint = &make_endpoint; });
  return 0;
}

}  // namespace

void bind_registrations(fid_fabric& fabric) {
  replace(fabric.ops, real.fabric, replaced.fabric, [](fi_ops_fabric& table) { table.domain = &make_domain; });
}

}  // namespace lacuna::test::ofi
