#include "lacuna/guide/message_ways.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <ranges>
#include <utility>

namespace lacuna::guide {
namespace {

std::string_view eager_refusal(const MessageCase& what, bool /*forced*/) {
  if (what.offered) return "an offered message has no channel";
  if (what.piece.bytes > what.eager_bytes) return "longer than what may be eager (eager_bytes)";
  return {};
}

// Of offers a forced path decides only between streams and direct copies (offer/offer.cpp).
std::string_view stream_refusal(const MessageCase& what, bool /*forced*/) {
  if (what.piece.bytes == 0) return "no bytes";
  if (what.by_method && !what.offered) return "a method or a path is forced";
  return {};
}

// Part of a window, over and over: what is left behind has to fit.
std::string_view narrow_refusal(const MessageCase& what, bool /*forced*/) {
  if (what.left_behind && std::cmp_greater(what.piece.bytes, usual::kNarrowBytes))
    return "longer than the part of a window, and left behind";
  return stream_refusal(what, false);
}

std::string_view direct_refusal(const MessageCase& what, bool forced) {
  if (!what.copies) return "this system lets no process copy into another one's memory";
  if (what.left_behind) return "its sender does not wait for the receiver";
  if (!forced && what.piece.bytes < usual::kDirectBytes) return "too short: it does not gain";
  if (!forced && what.piece.run < usual::kDirectRun) return "runs too short: each costs the kernel as much as some KiB";
  return stream_refusal(what, forced);
}

std::string_view rendezvous_refusal(const MessageCase& what, bool /*forced*/) {
  if (what.offered) return "an offered message is announced by another library";
  if (what.piece.bytes == 0) return "no bytes";
  return {};
}

// The table. A way is a line here, its sheets, and a case where protocol starts ways (message/sends.cpp).
struct MessageWayEntry {
  std::string_view name, summary;
  std::string_view (*refusal)(const MessageCase&, bool);
};
constexpr std::array<MessageWayEntry, kMessageWays> kMessageTable{{
    {"eager", "packed into the channel, unpacked out of it", eager_refusal},
    {"wide", "streamed through windows in turn", stream_refusal},
    {"narrow", "streamed through a part of one window", narrow_refusal},
    {"passed", "streamed, stores pass the caches by", stream_refusal},
    {"direct", "copied once, by both CPUs", direct_refusal},
    {"rendezvous", "announced, then by the best method", rendezvous_refusal},
}};

constexpr std::array kAllMessageWays{MessageWay::eager,  MessageWay::wide,   MessageWay::narrow,
                                     MessageWay::passed, MessageWay::direct, MessageWay::rendezvous};

}  // namespace

std::string_view message_way_name(MessageWay way) { return kMessageTable.at(static_cast<std::size_t>(way)).name; }
std::string_view message_way_summary(MessageWay way) { return kMessageTable.at(static_cast<std::size_t>(way)).summary; }
std::string_view message_way_refusal(MessageWay way, const MessageCase& what, bool forced) {
  return kMessageTable.at(static_cast<std::size_t>(way)).refusal(what, forced);
}

base::Result<MessageWay> message_way_from_name(std::string_view name) {
  const auto found = std::ranges::find(kMessageTable, name, &MessageWayEntry::name);
  if (found == kMessageTable.end())
    return base::fail(base::Code::invalid_argument,
                      fmt::format("no way of a message is called \"{}\"; there are: {}", name,
                                  fmt::join(kMessageTable | std::views::transform(&MessageWayEntry::name), ", ")));
  return static_cast<MessageWay>(found - kMessageTable.begin());
}

base::Result<std::optional<MessageWay>> message_way_of_environment() {
  const char* const name = std::getenv("LACUNA_WAY");
  if (name == nullptr || *name == '\0') return std::nullopt;
  const base::Result<MessageWay> way = message_way_from_name(name);
  if (!way) return base::fail(way.error().code, fmt::format("LACUNA_WAY: {}", way.error().message));
  return *way;
}

Axes message_axes(MessageWay way) {
  const std::span<const std::int64_t> bytes(kMessageBytes), runs(kMessageRuns);
  if (way == MessageWay::eager) return {.bytes = bytes.first(kEagerSizes), .runs = runs};
  if (way == MessageWay::direct) return {.bytes = bytes.subspan(kFirstDirectSize), .runs = runs.subspan(kFirstDirectRun)};
  return {.bytes = bytes, .runs = runs};
}

double MessagePrices::ns(MessageWay way, const Piece& piece) const {
  const Sheet& sheet = sheets_[piece.listed ? 1 : 0].at(static_cast<std::size_t>(way));
  if (!sheet.measured()) return std::numeric_limits<double>::infinity();
  return std::exp2(sheet.log_ns(SheetPlace(message_axes(way), piece)));
}

MessageWay MessagePrices::choose(const MessageCase& what) const {
  if (!what.offered && what.piece.bytes < std::min(kMessageBytes.front(), what.eager_bytes + 1)) return MessageWay::eager;
  auto best = MessageWay::wide;
  double least = 0;
  for (const MessageWay way : kAllMessageWays) {
    if (!message_way_refusal(way, what).empty()) continue;
    const double expected = ns(way, what.piece);
    const double gain = way == MessageWay::wide ? usual::kWindowGain : kGain;
    if (least > 0 && expected >= gain * least) continue;
    least = expected;
    best = way;
  }
  return best;
}

// Times between cells are between theirs, so what is less at all cells of two sizes is less between them.
std::int64_t MessagePrices::eager_up_to() const {
  std::int64_t found = 0;
  const Axes axes = message_axes(MessageWay::eager);
  for (const std::int64_t bytes : axes.bytes) {
    for (const std::int64_t run : axes.runs) {
      for (const bool listed : {false, true}) {
        const MessageCase what{.piece = {.bytes = bytes, .run = run, .listed = listed}, .eager_bytes = bytes, .copies = true};
        if (choose(what) != MessageWay::eager) return found;
      }
    }
    found = bytes;
  }
  return found;
}

MessageWay MessagePrices::stream(const Piece& piece) const {
  return choose({.piece = piece, .eager_bytes = -1, .offered = true, .left_behind = false, .copies = false});
}

}  // namespace lacuna::guide
