#include "lacuna/protocol/choice/cut.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <optional>

namespace lacuna::protocol {
namespace {

using method::Role;

constexpr std::array<std::string_view, 5> kNames{"automatic", "copy", "leave_pinned", "pipeline", "leave_pinned_pipeline"};

Cut whole(std::int64_t bytes) { return {.bytes = bytes, .part = bytes}; }

// The first part of an end whose memory is not registered is copied, and where it cannot be registered, all are.
Cut in_parts(std::int64_t bytes, std::int64_t part, const CutSide (&sides)[2]) {
  Cut cut{.bytes = bytes, .part = std::min(part, bytes)};
  for (std::size_t role = 0; role < 2; ++role) {
    if (!sides[role].registered) cut.copied[role] = 1;
    if (!sides[role].fits) cut.copied[role] = cut.count();
  }
  return cut;
}

Cut all_copied(std::int64_t bytes, std::int64_t part) {
  Cut cut{.bytes = bytes, .part = std::min(part, bytes)};
  cut.copied[0] = cut.copied[1] = cut.count();
  return cut;
}

struct Costs {
  double registering;    // of what is not registered yet
  double first, steady;  // after that: of the first message, which binds keys, and of those that follow
  double in_parts, copied;
};

// As the drawing in cut.hpp: what the stages of the first part take one after another, and for the rest the slowest
// stage.
std::optional<Costs> costs(const Layout& src, const Layout& dst, const CutSide (&sides)[2], std::int64_t part, guide::Guide& guide,
                           const guide::PeerClass& peer, const guide::Placement& placement) {
  const auto at_once = guide.choose(src, dst, peer, placement);
  guide::Placement again = placement;
  again.uses = 0;
  const auto steady = guide.choose(src, dst, peer, again);
  const auto first = Layout::bytes(std::min(part, src.size()));
  if (!at_once || !steady || !first) return std::nullopt;
  guide::Placement staged = placement;
  staged.src_shared = staged.dst_shared = true;
  const auto one = guide.choose(*first, *first, peer, staged);
  const auto pack = method::find("pack");
  if (!one || !pack) return std::nullopt;
  // What the CPUs do for a packed message is packing and unpacking, and a few requests; on paths where they move the
  // bytes, that too.
  const auto [packing, unpacking] = guide::Guide::cpu_ns({.method = *pack, .path = at_once->way.path}, outline(src, dst), peer, staged);
  const double share = static_cast<double>(first->size()) / static_cast<double>(src.size());
  const double wire = one->plan.busiest_ns / share;
  const auto left = [&](Role role) {
    const CutSide& side = sides[static_cast<std::size_t>(role)];
    return side.registered ? 0.0 : side.register_ns;
  };
  const double registering = left(Role::sender) + left(Role::receiver);
  const double start = one->plan.latency_ns + share * (packing + unpacking);
  return Costs{
      .registering = registering,
      .first = at_once->plan.latency_ns,
      .steady = std::min(at_once->plan.latency_ns, steady->plan.latency_ns),
      // One part flies while the next is registered, first by the receiver, which tells the sender so.
      .in_parts = start + (1 - share) * std::max({registering, wire, at_once->plan.busiest_ns}),
      .copied = start + (1 - share) * std::max({packing, unpacking, wire}),
  };
}

}  // namespace

std::string_view registering_name(Registering registering) { return kNames.at(static_cast<std::size_t>(registering)); }

Result<Registering> registering_from_name(std::string_view name) {
  const auto found = std::ranges::find(kNames, name);
  if (found == kNames.end())
    return base::fail(base::Code::invalid_argument,
                      fmt::format("registering: no way \"{}\"; there are: {}", name, fmt::join(kNames, ", ")));
  return static_cast<Registering>(found - kNames.begin());
}

Cut choose_cut(Registering wanted, const Layout& src, const Layout& dst, const CutSide (&sides)[2], std::int64_t part, guide::Guide& guide,
               const guide::PeerClass& peer, const guide::Placement& placement, double saved_ns) {
  const std::int64_t bytes = src.size();
  part = std::max(part, bytes / kMostParts + 1);
  const bool there = sides[0].registered && sides[1].registered;
  if (!sides[0].fits || !sides[1].fits) return wanted == Registering::copy ? all_copied(bytes, part) : in_parts(bytes, part, sides);
  switch (wanted) {
    case Registering::copy: return all_copied(bytes, part);
    case Registering::leave_pinned: return whole(bytes);
    case Registering::pipeline: return in_parts(bytes, part, sides);
    case Registering::leave_pinned_pipeline: return there ? whole(bytes) : in_parts(bytes, part, sides);
    case Registering::automatic: break;
  }
  const auto cost = there ? std::nullopt : costs(src, dst, sides, part, guide, peer, placement);
  if (!cost) return whole(bytes);
  const double otherwise = std::min(cost->in_parts, cost->copied);
  if (cost->registering + cost->first <= saved_ns + otherwise) return whole(bytes);
  Cut cut = cost->copied <= cost->in_parts ? all_copied(bytes, part) : in_parts(bytes, part, sides);
  cut.saves_ns = std::max(0.0, otherwise - cost->steady);
  return cut;
}

std::string describe(const Cut& cut) {
  const std::string parts = cut.count() == 1 ? "at once" : fmt::format("in {} parts of {} bytes", cut.count(), cut.part);
  const auto end = [&](Role role, std::string_view name) {
    const std::uint32_t copied = cut.copied[static_cast<std::size_t>(role)];
    const std::string what = copied == 0             ? "registers all"
                             : copied >= cut.count() ? "copies all"
                                                     : fmt::format("copies {} and registers the others", copied);
    return fmt::format("the {} {}", name, what);
  };
  return fmt::format("{}: {}, {}", parts, end(Role::sender, "sender"), end(Role::receiver, "receiver"));
}

}  // namespace lacuna::protocol
