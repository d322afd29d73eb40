#include "lacuna/protocol/choice/message_ways.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>

namespace lacuna::protocol {

guide::MessageCase MessageWays::case_of(const Layout& layout, Situation situation) const {
  return {.piece = guide::Piece::of(layout, 1),
          .eager_bytes = options_.eager_bytes,
          .offered = situation.offered,
          .left_behind = situation.left_behind,
          .copies = situation.copies,
          .by_method = options_.force.method != nullptr || options_.force.path};
}

MessageWays::Chosen MessageWays::find(const Layout& layout, Situation situation) const {
  const guide::MessageCase what = case_of(layout, situation);
  Chosen chosen{.way = prices_.choose(what), .stream = prices_.stream(what.piece)};
  if (guide::is_stream(chosen.way)) chosen.stream = chosen.way;
  if (!options_.way || !guide::message_way_refusal(*options_.way, what, true).empty()) return chosen;
  chosen.way = *options_.way;
  if (guide::is_stream(chosen.way)) chosen.stream = chosen.way;
  chosen.forced = true;
  return chosen;
}

void MessageWays::forget() {
  kept_.fill({});
  const std::int64_t always = std::max(prices_.eager_up_to(), guide::kMessageBytes.front() - 1);
  least_ = options_.way ? 1 : std::min(always, options_.eager_bytes) + 1;
}

std::string MessageWays::explain(const Layout& layout, Situation situation) const {
  const guide::MessageCase what = case_of(layout, situation);
  const Chosen chosen = find(layout, situation);
  std::string text = fmt::format("{}: {}", message_way_name(chosen.way), message_way_summary(chosen.way));
  auto out = std::back_inserter(text);
  if (chosen.forced) {
    text += ", as is forced";
  } else if (options_.way) {
    fmt::format_to(out, "; {} is forced, but cannot be ({})", message_way_name(*options_.way),
                   guide::message_way_refusal(*options_.way, what, true));
  }
  fmt::format_to(out, ".\nBy {} times:\n", prices_.measured() ? "measured" : "usual");
  for (std::size_t i = 0; i < guide::kMessageWays; ++i) {
    const auto way = static_cast<MessageWay>(i);
    const std::string_view refusal = guide::message_way_refusal(way, what, chosen.forced && way == chosen.way);
    if (refusal.empty() && !std::isfinite(prices_.ns(way, what.piece))) {
      fmt::format_to(out, "  {:<10} {:>13}  {}\n", message_way_name(way), "not measured", message_way_summary(way));
    } else if (refusal.empty()) {
      fmt::format_to(out, "  {:<10} {:>10.2f} us  {}\n", message_way_name(way), prices_.ns(way, what.piece) / 1e3,
                     message_way_summary(way));
    } else {
      fmt::format_to(out, "  {:<10} {:>13}  {}\n", message_way_name(way), "cannot be", refusal);
    }
  }
  return text;
}

}  // namespace lacuna::protocol
