#include "lacuna/guide/mpi_ways.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

namespace lacuna::guide {
namespace {

// The table. A way is a line here, and sheets of its times.
struct WayEntry {
  std::string_view name;
  bool (*serves)(MpiUse);
};
constexpr bool is_message(MpiUse use) { return use == MpiUse::send || use == MpiUse::later; }
constexpr std::array<WayEntry, kMpiWays> kWays{{
    {"host", [](MpiUse) { return true; }},
    {"packed", [](MpiUse use) { return use != MpiUse::alltoallw; }},
    {"offered", [](MpiUse) { return true; }},
}};
constexpr std::array<std::string_view, kMpiUses> kUses{"send",      "later",  "alltoall", "alltoallv", "alltoallw",
                                                       "allgather", "gather", "scatter",  "bcast",     "neighbor"};
constexpr std::array<std::string_view, kMpiLibraries> kLibraries{"open_mpi", "mpich", "mpich_4_0", "intel"};

template <class Enum, std::size_t N>
std::optional<Enum> named(const std::array<std::string_view, N>& names, std::string_view name) {
  const auto found = std::ranges::find(names, name);
  if (found == names.end()) return std::nullopt;
  return static_cast<Enum>(found - names.begin());
}

// The logarithm to base 2, piecewise linear: what lies between two columns of a sheet is estimated anyway.
double log2_of(std::int64_t value) {
  const auto bits = static_cast<std::uint64_t>(std::max<std::int64_t>(value, 1));
  const auto whole = static_cast<int>(std::bit_width(bits)) - 1;
  return whole + static_cast<double>(bits) / static_cast<double>(std::uint64_t{1} << whole) - 1;
}

// Where a value lies among some: between the one at `at` and the next.
struct Between {
  std::size_t at = 0;
  double share = 0;  // of the next one
};

// The share of the longer run where a time is a call's, and so much for each run: so many bytes have 1 / run of them.
Between between_runs(std::int64_t run) {
  if (run <= kMpiRuns.front()) return {};
  if (run >= kMpiRuns.back()) return {.at = kMpiRuns.size() - 2, .share = 1};
  const auto next = std::ranges::upper_bound(kMpiRuns, run);
  const auto at = static_cast<std::size_t>(next - kMpiRuns.begin()) - 1;
  const double low = 1.0 / static_cast<double>(kMpiRuns[at]), high = 1.0 / static_cast<double>(kMpiRuns[at + 1]);
  return {.at = at, .share = (low - 1.0 / static_cast<double>(run)) / (low - high)};
}

template <std::size_t N>
Between between(const std::array<std::int64_t, N>& all, std::int64_t value) {
  if (value <= all.front()) return {};
  if (value >= all.back()) return {.at = N - 2, .share = 1};
  const auto next = std::ranges::upper_bound(all, value);
  const auto at = static_cast<std::size_t>(next - all.begin()) - 1;
  const double from = log2_of(all[at]);
  return {.at = at, .share = (log2_of(value) - from) / (log2_of(all[at + 1]) - from)};
}

// There is no cell of a run of more than half the bytes: that of the longest run there is holds.
double cell(const MpiSheet& sheet, std::size_t bytes, std::size_t run) {
  while (run > 0 && sheet[bytes * kMpiRuns.size() + run] == 0) --run;
  return std::max(1.0, static_cast<double>(sheet[bytes * kMpiRuns.size() + run]));
}

struct Place {
  Between bytes, run;
  double beyond = 0;  // log2 of the times that a piece is larger than any that was measured
};
Place place_of(const MpiPiece& piece) {
  return {.bytes = between(kMpiBytes, piece.bytes),
          .run = between_runs(piece.run),
          .beyond = piece.bytes > kMpiBytes.back() ? log2_of(piece.bytes) - log2_of(kMpiBytes.back()) : 0};
}

double log_ns(const MpiSheet& sheet, const Place& place) {
  const auto along_runs = [&](std::size_t bytes) {
    const double low = cell(sheet, bytes, place.run.at);
    return std::log2(low + place.run.share * (cell(sheet, bytes, place.run.at + 1) - low));
  };
  const double low = along_runs(place.bytes.at);
  return low + place.bytes.share * (along_runs(place.bytes.at + 1) - low) + place.beyond;
}

bool is_measured(const MpiSheet& sheet) { return sheet[0] > 0; }

}  // namespace

std::string_view mpi_library_name(MpiLibrary library) { return kLibraries.at(static_cast<std::size_t>(library)); }
std::optional<MpiLibrary> mpi_library_from_name(std::string_view name) { return named<MpiLibrary>(kLibraries, name); }
std::string_view mpi_use_name(MpiUse use) { return kUses.at(static_cast<std::size_t>(use)); }
std::string_view mpi_way_name(MpiWay way) { return kWays.at(static_cast<std::size_t>(way)).name; }
std::optional<MpiWay> mpi_way_from_name(std::string_view name) {
  const auto found = std::ranges::find(kWays, name, &WayEntry::name);
  if (found == kWays.end()) return std::nullopt;
  return static_cast<MpiWay>(found - kWays.begin());
}
bool mpi_way_serves(MpiWay way, MpiUse use) { return kWays.at(static_cast<std::size_t>(way)).serves(use); }

MpiPiece MpiPiece::of(const layout::Layout& element, std::int64_t count) {
  const layout::Outline outline = layout::outline(element);
  return {.bytes = outline.bytes * count, .run = outline.bytes / std::max<std::int64_t>(outline.runs, 1), .listed = outline.listed > 0.5};
}

// Of listed runs in a collective nothing is measured: they differ from regular ones as they do in a message, within
// bounds, since a ratio of two measurements that are off is far off. Nor is anything of long runs, which MPIs move
// without a copy in all collectives but MPI_Alltoallw: those are left to them.
std::optional<double> MpiPrices::ns(MpiUse use, MpiWay way, const MpiPiece& piece) const {
  if (!mpi_way_serves(way, use)) return std::nullopt;
  const bool without_copy = !is_message(use) && use != MpiUse::alltoallw && piece.run > kMpiRuns.back();
  if (way != MpiWay::host && without_copy) return std::nullopt;
  const auto& forms = sheets_.at(static_cast<std::size_t>(use));
  const auto at = static_cast<std::size_t>(way);
  const MpiSheet& regular = forms[0].at(at);
  const MpiSheet& listed = forms[1].at(at);
  if (!is_measured(regular)) return std::nullopt;
  const Place place = place_of(piece);
  if (!piece.listed) return std::exp2(log_ns(regular, place));
  if (is_measured(listed)) return std::exp2(log_ns(listed, place));
  const auto& sent = sheets_[static_cast<std::size_t>(MpiUse::send)];
  const double dearer = is_measured(sent[1].at(at)) ? log_ns(sent[1].at(at), place) - log_ns(sent[0].at(at), place) : 0;
  constexpr double kMostDearer = 3;  // 8 times
  return std::exp2(log_ns(regular, place) + std::clamp(dearer, 0.0, kMostDearer));
}

MpiWay MpiPrices::choose(MpiUse use, const MpiPiece& piece, unsigned ways) const {
  if (piece.bytes < kMpiBytes.front()) return MpiWay::host;  // not measured; a call costs more than the bytes
  auto best = MpiWay::host;
  const bool elsewhere = machine_.empty() && !is_message(use);
  double least = ns(use, MpiWay::host, piece).value_or(0) * (elsewhere ? kUsualGain : kGain);
  for (const MpiWay way : {MpiWay::packed, MpiWay::offered}) {
    if ((ways >> static_cast<unsigned>(way) & 1U) == 0) continue;
    const std::optional<double> expected = ns(use, way, piece);
    if (!expected || *expected >= least) continue;
    least = *expected;
    best = way;
  }
  return best;
}

}  // namespace lacuna::guide
