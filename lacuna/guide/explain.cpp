// The same words for C, C++ and Python: a layout, and why one way was chosen.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "lacuna/guide/words.hpp"

namespace lacuna::guide {
namespace {

constexpr std::int64_t kMostRuns = 1'000'000;  // so many are looked at for their lengths
constexpr int kBar = 40;

// Of a number's text: separators for thousands.
std::string with_commas(std::string text) {
  const auto first = static_cast<std::ptrdiff_t>(text.starts_with('-') ? 1 : 0);
  for (auto at = static_cast<std::ptrdiff_t>(std::min(text.find('.'), text.size())) - 3; at > first; at -= 3)
    text.insert(static_cast<std::size_t>(at), 1, ',');
  return text;
}

std::string with_commas(std::int64_t value) { return with_commas(fmt::format("{}", value)); }

std::string exact_bytes(std::int64_t value) {
  return value < 1024 ? fmt::format("{} B", with_commas(value))
                      : fmt::format("{} B ({})", with_commas(value), bytes_text(static_cast<double>(value)));
}

void append_row(std::string& text, std::string_view label, std::string_view lines) {
  while (!lines.empty()) {
    const std::size_t end = std::min(lines.find('\n'), lines.size());
    text += fmt::format("  {:<12}  {}\n", label, lines.substr(0, end));
    lines.remove_prefix(std::min(end + 1, lines.size()));
    label = {};
  }
}

std::string histogram_of(const Layout& layout) {
  std::array<std::int64_t, 64> classes{};
  layout::Cursor cursor(layout);
  for (std::int64_t i = 0; i < kMostRuns && !cursor.done(); ++i) {
    const auto length = static_cast<std::uint64_t>(cursor.next_run(layout::kMaxBytes).length);
    ++classes.at(static_cast<std::size_t>(std::bit_width(length) - 1));
  }
  std::string text = layout.run_count() > kMostRuns ? fmt::format("of the first {} runs:\n", with_commas(kMostRuns)) : "";
  text += fmt::format("{:>8}  {:>8}  {:>9}\n", "from", "below", "runs");
  const std::int64_t most = std::ranges::max(classes);
  std::size_t from = 0;
  std::size_t end = classes.size();
  while (classes.at(from) == 0) ++from;
  while (classes.at(end - 1) == 0) --end;
  for (std::size_t i = from; i < end; ++i) {
    const std::int64_t runs = classes.at(i);
    const auto bar = std::max<std::int64_t>(runs > 0 ? 1 : 0, std::llround(static_cast<double>(kBar * runs) / static_cast<double>(most)));
    std::string line = fmt::format("{:>8}  {:>8}  {:>9}  {}", bytes_text(std::exp2(i)), bytes_text(std::exp2(i + 1)), with_commas(runs),
                                   std::string(static_cast<std::size_t>(bar), '#'));
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

}  // namespace

std::string bytes_text(double bytes) {
  constexpr std::array<std::string_view, 5> units{"B", "KiB", "MiB", "GiB", "TiB"};
  std::size_t unit = 0;
  while (bytes >= 1023.5 && unit + 1 < units.size()) {
    bytes /= 1024;
    ++unit;
  }
  if (unit == 0) return fmt::format("{:.0f} B", bytes);
  // Three digits, without zeros that say nothing.
  std::string text = fmt::format("{:.{}f}", bytes, bytes < 10 ? 2 : bytes < 100 ? 1 : 0);
  if (text.contains('.')) text.erase(text.find_last_not_of('0') + 1);
  if (text.ends_with('.')) text.pop_back();
  return fmt::format("{} {}", text, units.at(unit));
}

std::string describe(const Layout& layout) {
  std::string text;
  append_row(text, "bytes", exact_bytes(layout.size()));
  std::string runs = with_commas(layout.run_count());
  if (layout.run_count() > 0)
    runs += fmt::format(", {} B on average",
                        with_commas(fmt::format("{:.1f}", static_cast<double>(layout.size()) / static_cast<double>(layout.run_count()))));
  append_row(text, "runs", runs);
  append_row(text, "extent", fmt::format("{} from {}", exact_bytes(layout.extent()), with_commas(layout.lower_bound())));
  append_row(text, "true extent", fmt::format("{} from {}", exact_bytes(layout.true_extent()), with_commas(layout.true_lower_bound())));
  append_row(text, "form", layout.describe());
  append_row(text, "instructions", copy::instruction_set());
  const std::string kernels = copy::describe_kernels(layout);
  append_row(text, "plan", kernels.empty() ? "nothing to copy" : kernels);
  if (layout.run_count() > 0) append_row(text, "run lengths", histogram_of(layout));
  return text;
}

// --- why -------------------------------------------------------------------------------------------------------------

namespace {

std::string us_text(double ns) {
  const double us = ns / 1e3;
  return fmt::format("{:.{}f}", us, us < 9.995 ? 2 : us < 99.95 ? 1 : 0);
}

std::string way_text(const Way& way) {
  return way.method->one_sided() ? fmt::format("{}, {}", way.method->name, method::notify_name(way.notify)) : std::string(way.method->name);
}

// By how much it is expected to be better than what is chosen, as a fraction; a rounding is nothing.
double gain(const Candidate& other, const Candidate& chosen, Objective objective) {
  const double less = 1 - other.plan.merit(objective) / chosen.plan.merit(objective);
  return less > 1e-9 ? less : 0;
}

// What costs the loser most beyond the winner: the stage that it lost by.
std::string lost_by(const Candidate& loser, const Candidate& winner, Objective objective) {
  if (const double less = gain(loser, winner, objective); less > 0)
    return fmt::format("{:.1f}% less, within the profile's error", 100 * less);
  std::size_t worst = 0;
  for (std::size_t i = 0; i < method::kStages; ++i) {
    if (loser.stages_ns[i] - winner.stages_ns[i] > loser.stages_ns[worst] - winner.stages_ns[worst]) worst = i;
  }
  const double more = loser.stages_ns[worst] - winner.stages_ns[worst];
  if (more < 5) return "as good";  // ns: less than what is shown
  return fmt::format("{} takes {} us more", method::stage_name(static_cast<method::Stage>(worst)), us_text(more));
}

std::string merit_text(const Candidate& candidate, Objective objective) {
  switch (objective) {
    case Objective::latency: break;
    case Objective::bandwidth: return fmt::format("; its busiest part {} us", us_text(candidate.plan.busiest_ns));
    case Objective::cpu: return fmt::format("; CPU {} us", us_text(candidate.plan.cpu_ns[0] + candidate.plan.cpu_ns[1]));
  }
  return {};
}

std::string origin_of(const Profile& profile) {
  std::string text = profile.file.empty() ? "the usual ones: nothing was measured here"
                                          : fmt::format("measured {} on {} ({})", profile.created, profile.machine, profile.file);
  if (!profile.learned.empty()) text += fmt::format("; corrected by {} comparisons that programs made", profile.learned.size());
  return text;
}

}  // namespace

namespace {

// Those that cannot be, by reason: there are many ways and few reasons.
void append_refusals(std::string& text, const Explanation& explanation) {
  std::vector<std::string> reasons;
  for (const Candidate& candidate : explanation.candidates) {
    if (!candidate.refusal.empty() && std::ranges::find(reasons, candidate.refusal) == reasons.end()) reasons.push_back(candidate.refusal);
  }
  if (!reasons.empty()) text += "\nNot possible:\n";
  for (const std::string& reason : reasons) {
    std::vector<std::string> ways;
    for (const Candidate& candidate : explanation.candidates) {
      const std::string name = fmt::format("{} on {}", way_text(candidate.way), nic::path_name(candidate.way.path));
      if (candidate.refusal == reason) ways.push_back(name);
    }
    text += fmt::format("  {}:\n    {}\n", reason, fmt::join(ways, "; "));
  }
}

}  // namespace

std::string describe(const Explanation& explanation) {
  const Candidate& best = explanation.candidates.front();
  const layout::PairOutline& pair = explanation.pair;
  std::string text = fmt::format("Chosen: {} on path {}: {} us expected{}", way_text(best.way), nic::path_name(best.way.path),
                                 us_text(best.plan.latency_ns), merit_text(best, explanation.placement.objective));
  if (best.measured_us > 0) text += fmt::format(", {} us measured", us_text(best.measured_us * 1e3));
  text += fmt::format("\n  {} to {} runs, {:.0f} pieces that are contiguous on both sides; least {}\n", with_commas(pair.src.runs),
                      with_commas(pair.dst.runs), pair.pieces, objective_name(explanation.placement.objective));
  const auto seems_better = [&](const Candidate& c) { return c.refusal.empty() && gain(c, best, explanation.placement.objective) > 0; };
  if (std::ranges::any_of(explanation.candidates, seems_better))
    text += best.way == explanation.usual ? "  kept as what is usually best: too little is known here of what seems to take less\n"
                                          : "  kept as better known than what seems to take less\n";
  text += fmt::format("  prices: {}\n", origin_of(*explanation.profile));
  for (const std::string& warning : explanation.profile->warnings) text += fmt::format("  warning: {}\n", warning);

  const bool measured = std::ranges::any_of(explanation.candidates, [](const Candidate& c) { return c.measured_us > 0; });
  text += fmt::format("\n{:<22} {:<7} {:>9}", "us", "path", "expected");
  if (measured) text += fmt::format(" {:>9}", "measured");
  for (std::size_t i = 0; i < method::kStages; ++i) text += fmt::format(" {:>9}", method::stage_name(static_cast<method::Stage>(i)));
  text += "\n";
  for (const Candidate& candidate : explanation.candidates) {
    if (!candidate.refusal.empty()) continue;
    text +=
        fmt::format("{:<22} {:<7} {:>9}", way_text(candidate.way), nic::path_name(candidate.way.path), us_text(candidate.plan.latency_ns));
    if (measured) text += fmt::format(" {:>9}", candidate.measured_us > 0 ? us_text(candidate.measured_us * 1e3) : "-");
    for (const double ns : candidate.stages_ns) text += fmt::format(" {:>9}", ns > 0 ? us_text(ns) : "-");
    std::string why = &candidate == &best ? "" : lost_by(candidate, best, explanation.placement.objective);
    if (!candidate.crossover.empty()) why += fmt::format("{}{}", why.empty() ? "" : "; ", candidate.crossover);
    if (!why.empty()) text += "  " + why;
    text += "\n";
  }
  append_refusals(text, explanation);
  return text;
}

}  // namespace lacuna::guide
