#include "lacuna/guide/sheet.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

namespace lacuna::guide {
namespace {

// The logarithm to base 2, piecewise linear: what lies between two sizes of a sheet is estimated anyway.
double log2_of(std::int64_t value) {
  const auto bits = static_cast<std::uint64_t>(std::max<std::int64_t>(value, 1));
  const auto whole = static_cast<int>(std::bit_width(bits)) - 1;
  return whole + static_cast<double>(bits) / static_cast<double>(std::uint64_t{1} << whole) - 1;
}

// Of the last that is not above the value, which lies between the first and the last.
std::size_t place_below(std::span<const std::int64_t> all, std::int64_t value) {
  return static_cast<std::size_t>(std::ranges::upper_bound(all, value) - all.begin()) - 1;
}

}  // namespace

Piece Piece::of(const layout::Layout& element, std::int64_t count) {
  const layout::Outline outline = layout::outline(element);
  return {.bytes = outline.bytes * count, .run = outline.bytes / std::max<std::int64_t>(outline.runs, 1), .listed = outline.listed > 0.5};
}

// The share of the longer run where a time is a call's, and so much for each run: so many bytes have 1 / run of them.
SheetPlace::Between SheetPlace::between_runs(std::span<const std::int64_t> runs, std::int64_t run) {
  if (run <= runs.front()) return {};
  if (run >= runs.back()) return {.at = runs.size() - 2, .share = 1};
  const std::size_t at = place_below(runs, run);
  const double low = 1.0 / static_cast<double>(runs[at]), high = 1.0 / static_cast<double>(runs[at + 1]);
  return {.at = at, .share = (low - 1.0 / static_cast<double>(run)) / (low - high)};
}

SheetPlace::Between SheetPlace::between_sizes(std::span<const std::int64_t> sizes, std::int64_t bytes) {
  if (bytes <= sizes.front()) return {};
  if (bytes >= sizes.back()) return {.at = sizes.size() - 2, .share = 1};
  const std::size_t at = place_below(sizes, bytes);
  const double from = log2_of(sizes[at]), beyond = log2_of(bytes) - from, distance = log2_of(sizes[at + 1]) - from;
  return {.at = at, .share = beyond / distance, .beyond = beyond, .distance = distance};
}

SheetPlace::SheetPlace(const Axes& axes, const Piece& piece)
    : columns_(axes.runs.size()),
      bytes_(between_sizes(axes.bytes, piece.bytes)),
      run_(between_runs(axes.runs, piece.run)),
      beyond_(piece.bytes > axes.bytes.back() ? log2_of(piece.bytes) - log2_of(axes.bytes.back()) : 0) {}

Sheet::Sheet(std::span<const double> ns) {
  std::ranges::transform(ns.first(std::min(ns.size(), kMostCells)), ns_.begin(), [](double each) { return static_cast<float>(each); });
}

// Where there is no cell, that of the longest run there is holds.
double Sheet::log_ns(const SheetPlace& place) const {
  const auto cell = [&](std::size_t bytes, std::size_t run) {
    while (run > 0 && ns_[bytes * place.columns_ + run] == 0) --run;
    return std::max(1.0, static_cast<double>(ns_[bytes * place.columns_ + run]));
  };
  const auto along_runs = [&](std::size_t bytes) {
    const double low = cell(bytes, place.run_.at);
    return std::log2(low + place.run_.share * (cell(bytes, place.run_.at + 1) - low));
  };
  const SheetPlace::Between& bytes = place.bytes_;
  const double low = along_runs(bytes.at), rise = along_runs(bytes.at + 1) - low;
  const bool before_step = bytes.share < 1 && bytes.distance < 1 && rise > bytes.distance;
  return low + (before_step ? bytes.beyond : bytes.share * rise) + place.beyond_;
}

}  // namespace lacuna::guide
