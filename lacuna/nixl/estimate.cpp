#include "lacuna/nixl/estimate.hpp"

#include <algorithm>

namespace lacuna::nixl {
namespace {

// Where nothing was measured: usual prices are of another machine, and may be wrong by as much again.
constexpr double kUsualMargin = 1;
// Of measured sheets of messages: their cells are medians of a machine that was quiet (docs/design/measuring.md).
constexpr double kSheetMargin = 0.25;

bool shares_memory(const nic::Context& context) {
  const nic::PathInfo* mapped = context.limits().path(nic::Path::mapped);
  return mapped != nullptr && mapped->available;
}

Estimate by_messages(const guide::Profile& profile, const std::vector<Part>& parts, bool puts) {
  const guide::MessagePrices& prices = profile.messages ? *profile.messages : guide::MessagePrices::usual();
  Estimate sum;
  for (const Part& part : parts) {
    // The way is chosen by the sender's layout; the side with more runs takes the longer
    const guide::Piece sent = guide::Piece::of(puts ? part.ours : part.theirs, 1);
    const guide::Piece came = guide::Piece::of(puts ? part.theirs : part.ours, 1);
    const guide::MessageWay way = prices.choose({.piece = sent, .copies = true});
    sum.ns += std::max(prices.ns(way, sent), prices.ns(way, came));
  }
  sum.margin_ns = sum.ns * (prices.measured() ? kSheetMargin : kUsualMargin);
  return sum;
}

}  // namespace

Result<Estimate> estimate(const nic::Context& context, const guide::Profile& profile, const std::vector<Part>& parts, bool puts) {
  if (shares_memory(context)) return by_messages(profile, parts, puts);
  guide::Guide guide;
  const guide::PeerClass& peer = guide.add(context.limits(), profile);
  Estimate sum;
  for (const Part& part : parts) {
    const Layout& src = puts ? part.ours : part.theirs;
    const Layout& dst = puts ? part.theirs : part.ours;
    const guide::Choice choice = LACUNA_TRY(guide.choose(src, dst, peer, {.src_shared = false, .dst_shared = false, .uses = 1}));
    const auto* found = profile.of(0);
    const guide::Profile::Path* path = found == nullptr ? nullptr : found->path(choice.way.path);
    const bool measured = path != nullptr && path->rows > 0;
    sum.ns += choice.plan.latency_ns;
    sum.margin_ns += choice.plan.latency_ns * (measured ? path->error_p90 : kUsualMargin);
  }
  return sum;
}

}  // namespace lacuna::nixl
