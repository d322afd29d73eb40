// Which way is best: the cost items of every method on every path at the profile's prices, and at the usual ones where
// the profile cannot tell.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <tuple>

#include "lacuna/guide/words.hpp"

namespace lacuna::guide {
namespace {

using method::CostItems;
using method::Method;
using method::Notify;
using method::Role;

constexpr std::array<std::string_view, 3> kObjectives{"latency", "bandwidth", "cpu"};

// Why a way cannot be. method::make() refuses the same.
enum class Refused : std::uint8_t { none, no_path, no_keys, src_out_of_reach, dst_out_of_reach, not_told, nobody_unpacks, too_many_keys };

std::int64_t most_parts(const layout::PairOutline& pair, const nic::Limits& limits) {
  const std::int64_t entries = std::max(1, limits.indirect.entries);
  const std::int64_t message = std::clamp<std::int64_t>(limits.max_message_bytes, 1, std::numeric_limits<std::int32_t>::max());
  return pair.src.runs / entries + pair.dst.runs / entries + 2 * (pair.bytes() / message) + 1;
}

Refused refusal_of(const Method& method, Notify notify, const nic::PathInfo& path, const nic::Limits& limits, const Placement& placement,
                   const layout::PairOutline& pair) {
  if (!path.available) return Refused::no_path;
  if (method.indirect_keys && limits.indirect.keys == 0) return Refused::no_keys;
  if (path.shared_only && method.exposes == method::Exposes::source && !placement.src_shared) return Refused::src_out_of_reach;
  if (path.shared_only && method.exposes == method::Exposes::destination && !placement.dst_shared) return Refused::dst_out_of_reach;
  // The passive end of a one-sided method holds all its keys at once. The stream is cut where a key of either side is
  // full, or a message.
  if (method.indirect_keys && method.one_sided() && most_parts(pair, limits) > limits.indirect.keys) return Refused::too_many_keys;
  if (!method.one_sided() || notify != Notify::none) return Refused::none;
  if (placement.told) return Refused::not_told;
  const bool lands = method.initiator == Role::sender && method.exposes == method::Exposes::nothing;
  const bool in_place = pair.dst.contiguous() && (!path.shared_only || placement.dst_shared);
  return lands && !in_place ? Refused::nobody_unpacks : Refused::none;
}

std::string text_of(Refused refusal, const nic::PathInfo& path, const PeerClass& peer) {
  const nic::Limits& limits = peer.limits();
  switch (refusal) {
    case Refused::none: return {};
    case Refused::no_path: return fmt::format("path {} is not available: {}", nic::path_name(path.path), path.note);
    case Refused::no_keys: return limits.indirect.refusal();
    case Refused::src_out_of_reach: return fmt::format("path {} does not reach the source; it {}", nic::path_name(path.path), path.note);
    case Refused::dst_out_of_reach:
      return fmt::format("path {} does not reach the destination; it {}", nic::path_name(path.path), path.note);
    case Refused::not_told: return "the other end is not told when it is over";
    case Refused::nobody_unpacks:
      return "without a notification the destination must be contiguous and reachable, since nobody would unpack";
    case Refused::too_many_keys:
      return fmt::format("it may need more indirect keys at once than the {} of up to {} entries that this NIC has", limits.indirect.keys,
                         limits.indirect.entries);
  }
  return {};
}

ExpectedCost expected_cost(const CostItems& cost_items, double factor = 1) {
  return {.latency_ns = factor * cost_items.latency_ns(),
          .cpu_ns = {cost_items.cpu_ns(Role::sender), cost_items.cpu_ns(Role::receiver)},
          .busiest_ns = cost_items.busiest_ns()};
}

CostItems cost_items_of(const Way& way, const layout::PairOutline& pair, const PeerClass& peer, const PeerClass::Route& route,
                        const Placement& placement, const method::Prices& prices) {
  CostItems cost_items(prices, route.info, pair, placement.cold, static_cast<double>(placement.uses));
  way.method->cost_items(cost_items, peer.limits());
  if (way.method->one_sided()) cost_items.notify(way.method->initiator, way.notify);
  return cost_items;
}

CostItems cost_items_of(const Way& way, const layout::PairOutline& pair, const PeerClass& peer, const PeerClass::Route& route,
                        const Placement& placement) {
  return cost_items_of(way, pair, peer, route, placement, route.prices);
}

// Errors are known of latencies alone.
bool has_hysteresis(const PeerClass& peer, const Placement& placement) {
  return peer.hysteresis() > 0 && placement.objective == Objective::latency;
}

// Calls visit(way, route) for every combination there is, possible or not.
template <class Visit>
void each_way(const PeerClass& peer, const Visit& visit) {
  for (const PeerClass::Route& route : peer.routes()) {
    for (const Method& method : method::methods()) {
      for (const Notify notify : method.notifies) visit(Way{&method, route.info.path, notify}, route);
    }
  }
}

bool forbidden(const Force& force, const Way& way) {
  return (force.method != nullptr && force.method != way.method) || (force.path && *force.path != way.path);
}

std::string force_text(const Force& force) {
  std::string text;
  if (force.method != nullptr) text += fmt::format("LACUNA_METHOD={} ", force.method->name);
  if (force.path) text += fmt::format("LACUNA_PATH={} ", nic::path_name(*force.path));
  if (!text.empty()) text.pop_back();
  return text;
}

constexpr std::size_t scramble(std::uint64_t a, std::uint64_t b, std::uint64_t c) {
  return static_cast<std::size_t>((a ^ (b << 21 | b >> 43) ^ (c * 0x9e3779b97f4a7c15)) * 0xbf58476d1ce4e5b9 >> 40);
}

// Why no method moves the pair.
std::string why_none(const Force& force, const layout::PairOutline& pair, const PeerClass& peer, const Placement& placement) {
  std::string why;
  each_way(peer, [&](const Way& way, const PeerClass::Route& route) {
    if (forbidden(force, way)) return;
    const Refused refusal = refusal_of(*way.method, way.notify, route.info, peer.limits(), placement, pair);
    const std::string reason = text_of(refusal, route.info, peer);
    if (!why.contains(reason))
      why += fmt::format("{}{} on path {}: {}", why.empty() ? "" : "; ", way.method->name, nic::path_name(way.path), reason);
  });
  const std::string forced = force_text(force);
  if (why.empty()) why = fmt::format("there is no path {} here", force.path ? nic::path_name(*force.path) : "at all");
  return forced.empty() ? fmt::format("no method can move this: {}", why) : fmt::format("{} is not possible here: {}", forced, why);
}

}  // namespace

std::string_view objective_name(Objective objective) { return kObjectives.at(static_cast<std::size_t>(objective)); }

std::optional<Objective> objective_from_name(std::string_view name) {
  const auto found = std::ranges::find(kObjectives, name);
  if (found == kObjectives.end()) return std::nullopt;
  return static_cast<Objective>(found - kObjectives.begin());
}

double ExpectedCost::merit(Objective objective) const {
  switch (objective) {
    case Objective::latency: return latency_ns;
    case Objective::bandwidth: return busiest_ns;
    case Objective::cpu: return cpu_ns[0] + cpu_ns[1];
  }
  return 0;
}

Result<Force> Force::from_environment() {
  Force force;
  if (const char* name = std::getenv("LACUNA_METHOD"); name != nullptr && *name != '\0') {
    const auto found = method::find(name);
    if (!found) return base::fail(base::Code::invalid_argument, fmt::format("LACUNA_METHOD: {}", found.error().message));
    force.method = *found;
  }
  if (const char* name = std::getenv("LACUNA_PATH"); name != nullptr && *name != '\0') {
    force.path = nic::path_from_name(name);
    if (!force.path)
      return base::fail(base::Code::invalid_argument,
                        fmt::format("LACUNA_PATH: no path \"{}\"; there are: mapped, slots, kernel, wire", name));
  }
  return force;
}

// --- a way, for the peer ---------------------------------------------------------------------------------------------

std::array<std::byte, Way::kBytes> Way::encode() const {
  const auto index = static_cast<std::size_t>(method - method::methods().data());
  return {static_cast<std::byte>(index), static_cast<std::byte>(path), static_cast<std::byte>(notify)};
}

Result<Way> Way::decode(std::span<const std::byte> wire) {
  const auto malformed = [](const std::string& what) { return base::fail(base::Code::malformed, "a peer's choice: " + what); };
  if (wire.size() != kBytes) return malformed(fmt::format("{} bytes instead of {}", wire.size(), kBytes));
  const auto index = std::to_integer<std::size_t>(wire[0]);
  const auto notify = std::to_integer<std::uint8_t>(wire[2]);
  if (index >= method::methods().size()) return malformed(fmt::format("method {} of {}", index, method::methods().size()));
  if (std::to_integer<std::uint8_t>(wire[1]) > static_cast<std::uint8_t>(nic::Path::wire)) return malformed("no such path");
  if (notify > static_cast<std::uint8_t>(Notify::flag)) return malformed("no such notification");
  const Way way{&method::methods()[index], static_cast<nic::Path>(wire[1]), static_cast<Notify>(notify)};
  if (std::ranges::find(way.method->notifies, way.notify) == way.method->notifies.end())
    return malformed(fmt::format("{} has no notification \"{}\"", way.method->name, method::notify_name(way.notify)));
  return way;
}

// --- choosing --------------------------------------------------------------------------------------------------------

Result<Choice> Guide::choose(const Layout& src, const Layout& dst, const PeerClass& peer, const Placement& placement) {
  const std::uint64_t bits = (placement.src_shared ? 1U : 0U) | (placement.dst_shared ? 2U : 0U) | (placement.cold ? 4U : 0U) |
                             (placement.told ? 8U : 0U) | static_cast<std::uint64_t>(placement.objective) << 4;
  const Key key{src.digest(), dst.digest(), peer.number() << 40 | std::uint64_t{std::bit_cast<std::uint32_t>(placement.uses)} << 8 | bits};
  Kept& kept = kept_[scramble(key.src.low, key.dst.low, key.rest) % kKept];
  if (kept.key == key) [[likely]]
    return kept.choice;
  const Choice choice = LACUNA_TRY(search(src, dst, peer, placement)).choice;
  kept = {key, choice};
  return choice;
}

Result<Choice> Guide::choose_beside(std::span<const Way> others, const Layout& src, const Layout& dst, const PeerClass& peer,
                                    const Placement& placement) const {
  return LACUNA_TRY(search(src, dst, peer, placement, others, false)).choice;
}

void Guide::learn(const PeerClass& peer, const Learned& learned) {
  peers_.at(peer.number() - 1).remember(learned);
  forget();
}

Result<Guide::Found> Guide::search(const Layout& src, const Layout& dst, const PeerClass& peer, const Placement& placement,
                                   std::span<const Way> others, bool hysteresis) const {
  LACUNA_TRY(layout::check_sizes(src, dst));
  const layout::PairOutline pair = layout::outline(src, dst);
  const PeerClass::Posterior posterior(peer, pair, placement.cold);
  // Calls visit(way, route, cost_items) for each way that can be.
  const auto each_way = [&](method::Prices PeerClass::Route::* prices, const auto& visit) {
    for (const PeerClass::Route& route : peer.routes()) {
      if (!route.info.available || (force_.path && *force_.path != route.info.path)) continue;
      for (const Method& method : method::methods()) {
        if (force_.method != nullptr && force_.method != &method) continue;
        // The cost items without the notification are the same for all of them.
        std::optional<CostItems> cost_items;
        for (const Notify notify : method.notifies) {
          if (refusal_of(method, notify, route.info, peer.limits(), placement, pair) != Refused::none) continue;
          if (!cost_items)
            method.cost_items(cost_items.emplace(route.*prices, route.info, pair, placement.cold, static_cast<double>(placement.uses)),
                              peer.limits());
          if (method.one_sided()) cost_items->notify(method.initiator, notify);
          const Way way{&method, route.info.path, notify};
          if (std::ranges::find(others, way) == others.end()) visit(way, route, *cost_items);
        }
      }
    }
  };
  std::optional<Way> usual;
  if (hysteresis && has_hysteresis(peer, placement)) {
    double least = std::numeric_limits<double>::infinity();
    each_way(&PeerClass::Route::usual, [&](const Way& way, const PeerClass::Route&, const CostItems& cost_items) {
      const double cost = expected_cost(cost_items).merit(placement.objective);
      if (usual && cost >= least) return;
      least = cost;
      usual = way;
    });
  }
  std::optional<Way> best;
  const PeerClass::Route* by = nullptr;
  double least = 0;
  each_way(&PeerClass::Route::prices, [&](const Way& way, const PeerClass::Route& route, const CostItems& cost_items) {
    ExpectedCost plan = expected_cost(cost_items);
    // Nothing brings it back.
    if (best && plan.merit(placement.objective) >= least * PeerClass::Posterior::kMost) return;
    plan.latency_ns *= posterior.factor(route, way);
    const double cost = plan.merit(placement.objective) * posterior.hysteresis(route, way, usual);
    if (best && cost >= least) return;
    least = cost;
    best = way;
    by = &route;
  });
  // Added up again: replacing a notification by another one rounds.
  if (best)
    return Found{
        {*best, expected_cost(cost_items_of(*best, pair, peer, *by, placement), posterior.factor(*by, *best) * peer.speed_factor())},
        usual};
  return base::fail(base::Code::unsupported, why_none(force_, pair, peer, placement));
}

ExpectedCost Guide::expect(const Way& way, const layout::PairOutline& pair, const PeerClass& peer, const Placement& placement) {
  return expect(way, pair, peer, placement, PeerClass::Posterior(peer, pair, placement.cold));
}

ExpectedCost Guide::expect(const Way& way, const layout::PairOutline& pair, const PeerClass& peer, const Placement& placement,
                           const PeerClass::Posterior& posterior) {
  for (const PeerClass::Route& route : peer.routes()) {
    if (route.info.path == way.path)
      return expected_cost(cost_items_of(way, pair, peer, route, placement), posterior.factor(route, way) * peer.speed_factor());
  }
  return {};
}

std::array<double, 2> Guide::cpu_ns(const Way& way, const layout::PairOutline& pair, const PeerClass& peer, const Placement& placement) {
  const PeerClass::Route* route = peer.route(way.path);
  if (route == nullptr) return {};
  const CostItems cost_items = cost_items_of(way, pair, peer, *route, placement);
  return {cost_items.cpu_ns(Role::sender), cost_items.cpu_ns(Role::receiver)};
}

// --- explaining ------------------------------------------------------------------------------------------------------

namespace {

// Layouts like these whose blocks are `longer` times as long, or of which there are `more` times as many.
layout::PairOutline scaled(layout::PairOutline pair, double longer, double more) {
  const auto times = [](std::int64_t value, double factor) { return static_cast<std::int64_t>(static_cast<double>(value) * factor); };
  for (layout::Outline* side : {&pair.src, &pair.dst}) {
    const bool contiguous = side->contiguous();
    side->bytes = std::max<std::int64_t>(1, times(side->bytes, longer * more));
    side->span = std::max(side->bytes, times(side->span, longer * more));
    side->stride = times(side->stride, longer);
    side->runs = contiguous ? 1 : std::max<std::int64_t>(2, times(side->runs, more));
  }
  pair.dst.bytes = pair.src.bytes;
  pair.src.count_units();
  pair.dst.count_units();
  pair.pieces = std::max(1.0, pair.pieces * more);
  pair.paired = std::max(1.0, pair.paired * more);
  return pair;
}

}  // namespace

Result<Explanation> Guide::explain(const Layout& src, const Layout& dst, const PeerClass& peer, const Placement& placement) const {
  const auto [chosen, usual] = LACUNA_TRY(search(src, dst, peer, placement));
  const layout::PairOutline pair = layout::outline(src, dst);
  const PeerClass::Posterior posterior(peer, pair, placement.cold);
  Explanation made{.candidates = {}, .usual = usual, .placement = placement, .profile = &peer.profile(), .pair = pair};
  each_way(peer, [&](const Way& way, const PeerClass::Route& route) {
    Candidate candidate{.way = way};
    const Refused refusal = refusal_of(*way.method, way.notify, route.info, peer.limits(), placement, pair);
    candidate.refusal = text_of(refusal, route.info, peer);
    if (candidate.refusal.empty() && forbidden(force_, way)) candidate.refusal = fmt::format("{} rules it out", force_text(force_));
    if (candidate.refusal.empty()) {
      const CostItems cost_items = cost_items_of(way, pair, peer, route, placement);
      candidate.factor = posterior.factor(route, way) * peer.speed_factor();
      candidate.plan = expected_cost(cost_items, candidate.factor);
      candidate.stages_ns = cost_items.stages_ns();
      for (double& ns : candidate.stages_ns) ns *= candidate.factor;
    }
    made.candidates.push_back(std::move(candidate));
  });
  const auto rank = [&, way = chosen.way](const Candidate& c) { return c.way == way ? 0 : c.refusal.empty() ? 1 : 2; };
  const auto order = [&](const Candidate& c) {  // of equals, and of those that cannot be, the table's
    const double cost = rank(c) == 1 ? c.plan.merit(placement.objective) : 0.0;
    return std::tuple(rank(c), cost, c.way.path, c.way.method - method::methods().data(), c.way.notify);
  };
  std::ranges::sort(made.candidates, {}, order);
  find_crossovers(made, peer);
  return made;
}

// Where each loser would win: with longer or shorter blocks, or with more or fewer of them; the nearer of the two. In
// steps of an eighth of an octave.
void Guide::find_crossovers(Explanation& explanation, const PeerClass& peer) {
  constexpr int kSteps = 64;
  constexpr double kPerOctave = 8;
  const auto winner_at = [&](double longer, double more) -> std::size_t {
    const layout::PairOutline pair = scaled(explanation.pair, longer, more);
    const Placement& placement = explanation.placement;
    const PeerClass::Posterior posterior(peer, pair, placement.cold);
    const auto cheapest = [&](const auto& cost_of) {  // of equals the first of the table, as search() has it
      std::size_t best = 0;
      std::tuple least{std::numeric_limits<double>::infinity(), std::size_t{0}};
      for (std::size_t i = 0; i < explanation.candidates.size(); ++i) {
        const Way& way = explanation.candidates[i].way;
        if (!explanation.candidates[i].refusal.empty()) continue;
        const PeerClass::Route& route = *peer.route(way.path);
        const std::tuple cost{cost_of(way, route), peer.index(route, way)};
        if (cost >= least) continue;
        least = cost;
        best = i;
      }
      return best;
    };
    std::optional<Way> usual;
    if (has_hysteresis(peer, placement)) {
      const std::size_t best = cheapest([&](const Way& way, const PeerClass::Route& route) {
        return expected_cost(cost_items_of(way, pair, peer, route, placement, route.usual)).merit(placement.objective);
      });
      usual = explanation.candidates[best].way;
    }
    return cheapest([&](const Way& way, const PeerClass::Route& route) {
      return expect(way, pair, peer, placement, posterior).merit(placement.objective) * posterior.hysteresis(route, way, usual);
    });
  };
  for (int step = 1; step <= kSteps; ++step) {
    const double factor = std::exp2(step / kPerOctave);
    for (const auto& [longer, more] : {std::pair{factor, 1.0}, {1 / factor, 1.0}, {1.0, factor}, {1.0, 1 / factor}}) {
      const layout::Outline& side = explanation.pair.src.runs >= explanation.pair.dst.runs ? explanation.pair.src : explanation.pair.dst;
      const double block = longer * static_cast<double>(side.bytes) / static_cast<double>(std::max<std::int64_t>(1, side.runs));
      const double count = more * static_cast<double>(side.runs);
      if (block < 1 || count < 1) continue;
      Candidate& winner = explanation.candidates[winner_at(longer, more)];
      if (!winner.crossover.empty() || &winner == &explanation.candidates.front()) continue;
      winner.crossover = longer != 1.0
                             ? fmt::format("would win {} {} blocks", longer > 1 ? "from" : "up to", bytes_text(block))
                             : fmt::format("would win {} {:.0f} block{}", more > 1 ? "from" : "up to", count, count < 1.5 ? "" : "s");
    }
  }
}

}  // namespace lacuna::guide
