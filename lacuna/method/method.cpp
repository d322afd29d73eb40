// The table of methods, and what is checked for all of them.
#include "lacuna/method/method.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "lacuna/method/methods.hpp"
#include "lacuna/method/staging.hpp"

namespace lacuna::method {
namespace {

constexpr Notify kTwoSided[] = {Notify::none};
constexpr Notify kOneSided[] = {Notify::flag, Notify::none};

constexpr Method kMethods[] = {
    {"pack", "the CPU packs all, one send, the CPU unpacks all", kTwoSided, false, &pack_sender, &pack_receiver},
    {"pack_pipelined", "the CPU packs a chunk while others fly and are unpacked", kTwoSided, false, &pack_pipelined_sender,
     &pack_pipelined_receiver},
    {"gather_write", "the NIC gathers into writes to one contiguous place, the CPU unpacks", kOneSided, false, &gather_write_sender,
     &gather_write_receiver},
    {"multi_write", "one write for each piece, in place", kOneSided, true, &multi_write_sender, &multi_write_receiver},
    {"sgrs", "send gathers, receive scatters: lists on both sides", kTwoSided, true, &sgrs_sender, &sgrs_receiver},
};

Result<void> check(const Method& method, const Transfer& transfer) {
  if (transfer.src.size() != transfer.dst.size()) {
    return base::fail(base::Code::invalid_argument,
                      fmt::format("{}: the source layout holds {} bytes, the destination layout {}; they must hold the same", method.name,
                                  transfer.src.size(), transfer.dst.size()));
  }
  if (LACUNA_TRY(transfer.dst.overlaps())) {
    return base::fail(base::Code::invalid_argument,
                      fmt::format("{}: the destination layout names some bytes twice; what they would hold is undefined", method.name));
  }
  if (std::ranges::find(method.notifies, transfer.notify) == method.notifies.end()) {
    return base::fail(base::Code::invalid_argument,
                      fmt::format("{} has no notification \"{}\"", method.name, notify_name(transfer.notify)));
  }
  return {};
}

}  // namespace

std::string_view notify_name(Notify notify) { return notify == Notify::none ? "none" : "flag"; }

std::span<const Method> methods() { return kMethods; }

Result<const Method*> find(std::string_view name) {
  std::string names;
  for (const Method& method : kMethods) {
    if (method.name == name) return &method;
    names += fmt::format("{}{}", names.empty() ? "" : ", ", method.name);
  }
  return base::fail(base::Code::invalid_argument, fmt::format("no method \"{}\"; there are: {}", name, names));
}

Result<std::unique_ptr<Operation>> make(const Method& method, Role role, Endpoint& endpoint, const Transfer& transfer,
                                        const Memory& memory) {
  LACUNA_TRY(check(method, transfer));
  if (role == Role::sender) return method.sender(endpoint, transfer, memory);
  if (method.lands_in_place && !reachable(endpoint, *memory.region)) {
    return base::fail(base::Code::unsupported,
                      fmt::format("{}: path {} does not reach the destination; it {}", method.name, path_name(endpoint.qp().path()),
                                  endpoint.limits().path(endpoint.qp().path())->note));
  }
  return method.receiver(endpoint, transfer, memory);
}

}  // namespace lacuna::method
