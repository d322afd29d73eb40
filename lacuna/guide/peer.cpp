// peers: what each way to reach them is expected to take. Cost items at a profile's prices, times biases, times what
// was measured or learned nearby.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "lacuna/guide/guide.hpp"

namespace lacuna::guide {
namespace {

constexpr std::size_t kNotifies = 3;

}  // namespace

PeerClass::PeerClass(nic::Limits limits, Profile profile, double message_us, std::uint64_t number)
    : limits_(std::move(limits)), profile_(std::move(profile)), number_(number) {
  const Profile::Class* measured = profile_.of(message_us);
  const double usual_us = message_us > 0 || measured == nullptr ? message_us : measured->message_us;
  for (const nic::PathInfo& info : limits_.paths) {
    const Profile::Path* path = measured != nullptr ? measured->path(info.path) : nullptr;
    const method::Prices& usual = usual_prices(info.path, usual_us, info.mover);
    if (path == nullptr) routes_.push_back({info, usual, usual, {}});
    if (path == nullptr) continue;
    routes_.push_back({info, path->prices, usual, path->biases});
    hysteresis_ = std::max(hysteresis_, hysteresis_of(path->error_median));
  }
  if (measured == nullptr && !profile_.classes.empty())
    profile_.warnings.push_back(
        fmt::format("peers to which a message of 16 KiB takes {:.1f} us were not measured: the usual prices hold", message_us));
  nearby_ = Nearby(routes_.size() * method::methods().size() * kNotifies);
  if (measured != nullptr) message_us_ = measured->message_us;
  if (measured != nullptr) remember(*measured);  // at the speed of the class, as the profile has them
  speed_factor_ = Profile::speed_factor(message_us, message_us_);
  for (const Learned& learned : profile_.learned) {
    if (Profile::same_class(learned.message_us, message_us_)) remember(learned);  // `lacuna guide` ran since
  }
}

const PeerClass::Route* PeerClass::route(nic::Path path) const {
  const auto found = std::ranges::find(routes_, path, [](const Route& r) { return r.info.path; });
  return found != routes_.end() ? &*found : nullptr;
}

std::size_t PeerClass::index(const Route& route, const Way& way) const {
  const auto method = static_cast<std::size_t>(way.method - method::methods().data());
  const auto place = static_cast<std::size_t>(&route - routes_.data());
  return (place * method::methods().size() + method) * kNotifies + static_cast<std::size_t>(way.notify);
}

void PeerClass::remember(const Profile::Class& measured) {
  Nearby nearby = nearby_;  // while it is filled, beliefs are of biases alone
  for (const Profile::Class::MeasuredPair& seen : measured.seen) {
    const Posterior by_biases(*this, seen.pair, seen.cold);
    std::vector<float> gaps(routes_.size() * method::methods().size() * kNotifies, std::numeric_limits<float>::quiet_NaN());
    for (std::size_t i = 0; i < measured.ways.size(); ++i) {
      const Way& way = measured.ways[i];
      const Route* of = route(way.path);
      if (seen.us[i] <= 0 || of == nullptr) continue;
      const ExpectedCost plan = Guide::expect(way, seen.pair, *this, {.cold = seen.cold}, by_biases);
      gaps[index(*of, way)] = static_cast<float>(std::log(1e3 * seen.us[i] / plan.latency_ns));
    }
    nearby.add(seen.pair, seen.cold, gaps);
  }
  nearby_ = std::move(nearby);
}

// The first keeps the gap that it is believed to have; the second's follows.
void PeerClass::remember(const Learned& learned) {
  const Route* const first = route(learned.first.path);
  const Route* const second = route(learned.second.path);
  if (first == nullptr || second == nullptr) return;
  const Posterior now(*this, learned.pair, learned.cold);
  const auto expected_ns = [&](const Way& way) { return Guide::expect(way, learned.pair, *this, {.cold = learned.cold}, now).latency_ns; };
  const auto mean_of = [&](const Route& of, const Way& way) { return now.means_.gaps.at(index(of, way)); };
  std::vector<float> gaps(routes_.size() * method::methods().size() * kNotifies, std::numeric_limits<float>::quiet_NaN());
  const float gap = mean_of(*first, learned.first);
  const double off = learned.log_ratio + std::log(expected_ns(learned.first) / expected_ns(learned.second));
  gaps[index(*first, learned.first)] = gap;
  gaps[index(*second, learned.second)] = mean_of(*second, learned.second) + static_cast<float>(off);
  nearby_.add(learned.pair, learned.cold, gaps, true);
}

PeerClass::Posterior::Posterior(const PeerClass& peer, const layout::PairOutline& pair, bool cold)
    : peer_(peer), features_(bias_features(pair, cold)), means_(peer.nearby_.means(pair, cold)) {}

double PeerClass::Posterior::factor(const Route& route, const Way& way) const {
  const auto method = static_cast<std::size_t>(way.method - method::methods().data());
  const double bias = route.biases.empty() ? 1 : bias_factor(route.biases[method].at(static_cast<std::size_t>(way.notify)), features_);
  const float mean = means_.gaps.at(peer_.index(route, way));
  return mean == 0 ? bias : bias * std::exp(static_cast<double>(mean));
}

double PeerClass::Posterior::hysteresis(const Route& route, const Way& way, const std::optional<Way>& usual) const {
  if (!usual || way == *usual) return 1;
  return 1 + peer_.hysteresis_ / (1 + static_cast<double>(means_.weights.at(peer_.index(route, way))));
}

}  // namespace lacuna::guide
