// What is expected of the ways of messages between ranks that share memory, for Python.
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <cmath>

#include "core.hpp"
#include "lacuna/guide/guide.hpp"
#include "lacuna/guide/message_ways.hpp"

namespace lacuna::python {
namespace {

using guide::MessageWay;

std::vector<std::int64_t> list_of(std::span<const std::int64_t> axis) { return {axis.begin(), axis.end()}; }

nb::dict axes_of(const guide::Axes& axes) {
  nb::dict found;
  found["bytes"] = list_of(axes.bytes);
  found["runs"] = list_of(axes.runs);
  return found;
}

template <class Visit>
void each_way(const Visit& visit) {
  for (std::size_t i = 0; i < guide::kMessageWays; ++i) visit(static_cast<MessageWay>(i));
}

// What a communicator with the usual options would do. As protocol's MessageWays has it, a forced way that cannot be is
// left.
nb::dict ways_of(const layout::Layout& layout, const std::string& nic) {
  const nic::Limits limits = value_or_raise(guide::limits_of(nic));
  const auto can = [&](nic::Path path) { return limits.path(path) != nullptr && limits.path(path)->available; };
  nb::dict found;
  if (guide::simulated_platform(nic) || !can(nic::Path::mapped)) return found;
  const guide::Profile profile = guide::find_profile(nic);
  const guide::MessagePrices& prices = profile.messages ? *profile.messages : guide::MessagePrices::usual();
  const guide::Force force = value_or_raise(guide::Force::from_environment());
  const std::optional<MessageWay> forced = value_or_raise(guide::message_way_of_environment());
  const guide::MessageCase what{
      .piece = guide::Piece::of(layout, 1), .copies = can(nic::Path::kernel), .by_method = force.method != nullptr || force.path};
  const bool obeys = forced && guide::message_way_refusal(*forced, what, true).empty();
  nb::dict ways;
  each_way([&](MessageWay way) {
    nb::dict one;
    one["summary"] = guide::message_way_summary(way);
    const std::string_view refusal = guide::message_way_refusal(way, what, obeys && way == *forced);
    if (const double ns = prices.ns(way, what.piece); !refusal.empty()) {
      one["refused"] = refusal;
    } else if (std::isfinite(ns)) {
      one["us"] = ns / 1e3;
    } else {
      one["refused"] = "was not measured";
    }
    ways[nb::cast(guide::message_way_name(way))] = one;
  });
  found["file"] = profile.messages ? profile.file : std::string();
  found["chosen"] = guide::message_way_name(obeys ? *forced : prices.choose(what));
  found["forced"] = forced ? nb::cast(guide::message_way_name(*forced)) : nb::none();
  found["ways"] = ways;
  return found;
}

}  // namespace

void bind_message_ways(nb::module_& m) {
  m.def(
      "message_axes",
      [] {
        nb::dict found;
        each_way([&](MessageWay way) { found[nb::cast(guide::message_way_name(way))] = axes_of(guide::message_axes(way)); });
        return found;
      },
      "Where the times of each way of messages are measured: {way: {bytes, runs}}.");
  m.def("message_ways", &ways_of, "layout"_a, "nic"_a = "local",
        "How a message of that layout goes to a rank that shares memory: {file, chosen, forced, ways: {way: {summary, us or refused}}}; "
        "`file` is empty for usual times. Empty where ranks share no memory by that NIC.");
}

}  // namespace lacuna::python
