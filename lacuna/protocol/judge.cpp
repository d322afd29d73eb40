// Whether a message between CPUs that share memory goes by a stream or by a method.
#include <algorithm>

#include "lacuna/protocol/communicator.hpp"

namespace lacuna::protocol {

// Null: memory is shared in a way that the guide knows nothing of.
const guide::Peer::Route* Ranks::mapped() const {
  const auto routes = kind_->routes();
  const auto found = std::ranges::find_if(routes, [](const auto& route) { return route.info.path == nic::Path::mapped; });
  return found != routes.end() ? &*found : nullptr;
}

double Ranks::stream_ns(const layout::PairOutline& pair) const {
  const guide::Peer::Route* route = mapped();
  if (route == nullptr) return 0;
  method::Bill bill(route->prices, route->info, pair);
  const std::int64_t chunk = chunk_of(pair.bytes());
  bill.window(static_cast<double>((pair.bytes() + chunk - 1) / chunk));
  return bill.latency_ns();
}

// Judged once for a pair of layouts. A method has to be announced and answered, which takes two messages more.
bool Ranks::streams(const Peer& peer, const Layout& src, const Layout& dst, const guide::Placement& placement) {
  if (!peer.channel->shares_memory() || options_.force.method != nullptr || options_.force.path) return false;
  const layout::Digest from = src.digest();
  const layout::Digest to = dst.digest();
  const bool shared = placement.src_shared && placement.dst_shared;
  Judged& judged = judged_[(from.low ^ to.high ^ (shared ? 1 : 0)) % kJudged];
  if (judged.known && judged.src == from && judged.dst == to && judged.shared == shared) return judged.streams;
  const layout::PairOutline pair = layout::outline(src, dst);
  const Result<guide::Choice> choice = guide_.choose(src, dst, *kind_, placement);
  const double answer = mapped() != nullptr ? 2 * mapped()->prices[static_cast<std::size_t>(method::Price::start)] : 0;
  const bool better = !choice || stream_ns(pair) <= choice->plan.latency_ns + answer;
  judged = {.src = from, .dst = to, .shared = shared, .streams = better, .known = true};
  return better;
}

}  // namespace lacuna::protocol
