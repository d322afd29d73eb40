// The table of methods, and what is checked for all of them.
#include "lacuna/method/method.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "lacuna/method/staging.hpp"

namespace lacuna::method {
// The table, in the order in which people read it: a line here, a file that defines it, a test. Nothing else knows the
// methods.
#define LACUNA_METHODS(X) \
  X(kPack)                \
  X(kPackPipelined)       \
  X(kPackWrite)           \
  X(kGatherWrite)         \
  X(kScatterRead)         \
  X(kLinkedWrite)         \
  X(kMultiWrite)          \
  X(kSgrs)                \
  X(kUmrSend)             \
  X(kUmrWrite)            \
  X(kUmrRead)             \
  X(kUmrChunked)

#define LACUNA_DECLARE(name) extern const Method name;
LACUNA_METHODS(LACUNA_DECLARE)

namespace {

constexpr std::array<std::string_view, 3> kNotifies{"none", "imm", "flag"};

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

std::string_view notify_name(Notify notify) { return kNotifies.at(static_cast<std::size_t>(notify)); }

std::optional<Notify> notify_from_name(std::string_view name) {
  const auto found = std::ranges::find(kNotifies, name);
  if (found == kNotifies.end()) return std::nullopt;
  return static_cast<Notify>(found - kNotifies.begin());
}

std::span<const Method> methods() {
#define LACUNA_ENTRY(name) name,
  static const Method all[] = {LACUNA_METHODS(LACUNA_ENTRY)};
  return all;
}

Result<const Method*> find(std::string_view name) {
  std::string names;
  for (const Method& method : methods()) {
    if (method.name == name) return &method;
    names += fmt::format("{}{}", names.empty() ? "" : ", ", method.name);
  }
  return base::fail(base::Code::invalid_argument, fmt::format("no method \"{}\"; there are: {}", name, names));
}

Result<std::unique_ptr<Operation>> make(const Method& method, Role role, Endpoint& endpoint, const Transfer& transfer,
                                        const Memory& memory) {
  LACUNA_TRY(check(method, transfer));
  if (method.indirect_keys && endpoint.limits().indirect.keys == 0)
    return base::fail(base::Code::unsupported, fmt::format("{}: {}", method.name, endpoint.limits().indirect.refusal()));
  const Exposes own = role == Role::sender ? Exposes::source : Exposes::destination;
  if (method.exposes == own && !reachable(endpoint, *memory.region)) {
    return base::fail(base::Code::unsupported,
                      fmt::format("{}: path {} does not reach the {}; it {}", method.name, path_name(endpoint.qp().path()),
                                  role == Role::sender ? "source" : "destination", endpoint.limits().path(endpoint.qp().path())->note));
  }
  Result<std::unique_ptr<Operation>> made = method.make(role, endpoint, transfer, memory);
  if (!made) return base::fail(made.error().code, fmt::format("{}: {}", method.name, made.error().message));
  return made;
}

// --- what ends tell one another -------------------------------------------------------------------------------------

std::vector<std::byte> Target::encode() const {
  std::vector<std::byte> wire((parts.size() + 1) * sizeof(Part));
  const auto put = [&](std::size_t i, const Part& part) {
    std::memcpy(wire.data() + i * sizeof(Part), &part.addr, sizeof part.addr);
    std::memcpy(wire.data() + i * sizeof(Part) + sizeof part.addr, &part.rkey, sizeof part.rkey);
  };
  put(0, flag);
  for (std::size_t i = 0; i < parts.size(); ++i) put(i + 1, parts[i]);
  return wire;
}

Result<Target> Target::decode(std::span<const std::byte> wire) {
  if (wire.empty() || wire.size() % sizeof(Part) != 0)
    return base::fail(base::Code::malformed, fmt::format("a target of {} bytes; it is made of parts of {}", wire.size(), sizeof(Part)));
  Target target;
  target.parts.resize(wire.size() / sizeof(Part) - 1);
  const auto get = [&](std::size_t i, Part& part) {
    std::memcpy(&part.addr, wire.data() + i * sizeof(Part), sizeof part.addr);
    std::memcpy(&part.rkey, wire.data() + i * sizeof(Part) + sizeof part.addr, sizeof part.rkey);
  };
  get(0, target.flag);
  for (std::size_t i = 0; i < target.parts.size(); ++i) get(i + 1, target.parts[i]);
  return target;
}

}  // namespace lacuna::method
