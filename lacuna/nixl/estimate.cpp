#include "lacuna/nixl/estimate.hpp"

#include <algorithm>

namespace lacuna::nixl {
namespace {

// Where nothing was measured: usual prices are of another machine, and may be wrong by as much again.
constexpr double kUsualMargin = 1;
// Of measured sheets of messages: their cells are medians of a machine that was quiet (docs/design/measuring.md).
constexpr double kSheetMargin = 0.25;
// A put or a get begins in the peer's CPU, whose thread sleeps at least so long after a pause (agent.cpp).
constexpr double kPeerSleepsNs = 50'000;

constexpr guide::Placement kOrdinary{.src_shared = false, .dst_shared = false, .uses = 1};
constexpr guide::Placement kUntold{.src_shared = false, .dst_shared = false, .told = false};

bool shares_memory(const nic::Context& context) {
  const nic::PathInfo* mapped = context.limits().path(nic::Path::mapped);
  return mapped != nullptr && mapped->available;
}

Estimate& operator+=(Estimate& sum, const Estimate& more) {
  sum.ns += more.ns;
  sum.margin_ns += more.margin_ns;
  return sum;
}

}  // namespace

Estimator::Estimator(const nic::Context& context, std::optional<nic::Path> direct)
    : direct_(direct),
      shares_memory_(shares_memory(context)),
      peer_(guide_.add(context.limits(), guide::find_profile(std::string(context.nic_name())))) {}

double Estimator::margin(nic::Path path) const {
  const guide::Profile::Class* measured = peer_.profile().of(0);
  const guide::Profile::Path* found = measured == nullptr ? nullptr : measured->path(path);
  return found != nullptr && found->rows > 0 ? found->error_p90 : kUsualMargin;
}

// The way of a message is chosen by the sender's layout; the side with more runs takes the longer.
Estimate Estimator::by_message(const Layout& src, const Layout& dst) const {
  const auto& measured = peer_.profile().messages;
  const guide::MessagePrices& prices = measured ? *measured : guide::MessagePrices::usual();
  const guide::Piece sent = guide::Piece::of(src, 1), came = guide::Piece::of(dst, 1);
  const guide::MessageWay way = prices.choose({.piece = sent, .copies = true});
  const double ns = std::max(prices.ns(way, sent), prices.ns(way, came));
  return {.ns = ns, .margin_ns = ns * (prices.measured() ? kSheetMargin : kUsualMargin)};
}

Result<Estimate> Estimator::by_access(const Layout& src, const Layout& dst) {
  if (shares_memory_) return by_message(src, dst);
  const guide::Choice choice = LACUNA_TRY(guide_.choose(src, dst, peer_, kOrdinary));
  return Estimate{.ns = choice.plan.latency_ns, .margin_ns = choice.plan.latency_ns * margin(choice.way.path)};
}

Result<Estimate> Estimator::alone(const Layout& src, const Layout& dst) const {
  const guide::Way way{
      .method = LACUNA_TRY(method::find("multi_write")), .path = direct_.value_or(nic::Path::wire), .notify = method::Notify::none};
  const double ns = guide::Guide::expect(way, layout::outline(src, dst), peer_, kUntold).latency_ns;
  return Estimate{.ns = ns, .margin_ns = ns * margin(way.path)};
}

Result<void> Estimator::decide(Part& part, bool puts, bool possible) {
  part.direct = false;
  if (!possible || !direct_) return {};
  const Layout& src = puts ? part.ours : part.theirs;
  const Layout& dst = puts ? part.theirs : part.ours;
  part.direct = LACUNA_TRY(alone(src, dst)).ns <= LACUNA_TRY(by_access(src, dst)).ns + kPeerSleepsNs;
  return {};
}

Result<Estimate> Estimator::of(const std::vector<Part>& parts, bool puts) {
  Estimate sum;
  for (const Part& part : parts) {
    const Layout& src = puts ? part.ours : part.theirs;
    const Layout& dst = puts ? part.theirs : part.ours;
    sum += LACUNA_TRY(part.direct ? alone(src, dst) : by_access(src, dst));
  }
  return sum;
}

}  // namespace lacuna::nixl
