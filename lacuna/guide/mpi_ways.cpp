#include "lacuna/guide/mpi_ways.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "lacuna/guide/usual_thresholds.hpp"

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
constexpr bool waits_for_all(MpiUse use) {
  switch (use) {
    case MpiUse::alltoall:
    case MpiUse::alltoallv:
    case MpiUse::alltoallw:
    case MpiUse::allgather:
    case MpiUse::allgatherv:
    case MpiUse::neighbor: return true;
    default: return false;
  }
}
constexpr std::array<std::string_view, kMpiUses> kUses{"send",   "later",   "alltoall", "alltoallv", "alltoallw", "allgather", "allgatherv",
                                                       "gather", "gatherv", "scatter",  "scatterv",  "bcast",     "neighbor"};
constexpr std::array<std::string_view, kMpiLibraries> kLibraries{"open_mpi", "mpich", "mpich_4_0", "intel"};
constexpr std::array<std::string_view, kDistances> kDistanceNames{"near", "distant"};

template <class Enum, std::size_t N>
std::optional<Enum> named(const std::array<std::string_view, N>& names, std::string_view name) {
  const auto found = std::ranges::find(names, name);
  if (found == names.end()) return std::nullopt;
  return static_cast<Enum>(found - names.begin());
}

}  // namespace

std::string_view mpi_library_name(MpiLibrary library) { return kLibraries.at(static_cast<std::size_t>(library)); }
std::optional<MpiLibrary> mpi_library_from_name(std::string_view name) { return named<MpiLibrary>(kLibraries, name); }
std::string_view distance_name(Distance distance) { return kDistanceNames.at(static_cast<std::size_t>(distance)); }
std::optional<Distance> distance_from_name(std::string_view name) { return named<Distance>(kDistanceNames, name); }
std::string_view mpi_use_name(MpiUse use) { return kUses.at(static_cast<std::size_t>(use)); }
std::optional<MpiUse> mpi_use_from_name(std::string_view name) { return named<MpiUse>(kUses, name); }
std::string_view mpi_way_name(MpiWay way) { return kWays.at(static_cast<std::size_t>(way)).name; }
std::optional<MpiWay> mpi_way_from_name(std::string_view name) {
  const auto found = std::ranges::find(kWays, name, &WayEntry::name);
  if (found == kWays.end()) return std::nullopt;
  return static_cast<MpiWay>(found - kWays.begin());
}
bool mpi_way_serves(MpiWay way, MpiUse use) { return kWays.at(static_cast<std::size_t>(way)).serves(use); }

Distance distance_of(double line_ns, std::optional<Distance> before) {
  const double margin = !before ? 1 : *before == Distance::near ? usual::kLineMargin : 1 / usual::kLineMargin;
  return line_ns > usual::kDistantLine * margin ? Distance::distant : Distance::near;
}

MpiWay forced_mpi_way(std::optional<MpiWay> way, std::int64_t offered_from, MpiUse use, std::int64_t bytes) {
  const MpiWay forced = way ? *way : bytes >= offered_from ? MpiWay::offered : MpiWay::packed;
  return mpi_way_serves(forced, use) ? forced : MpiWay::host;
}

// Of listed runs in a collective nothing is measured: they differ from regular ones as they do in a message, within
// bounds, since a ratio of two measurements that are off is far off. Nor is anything of long runs, which MPIs move
// without a copy in all collectives but MPI_Alltoallw: those are left to them.
std::optional<double> MpiPrices::ns(MpiUse use, MpiWay way, const Piece& piece) const {
  if (!mpi_way_serves(way, use)) return std::nullopt;
  const bool without_copy = !is_message(use) && use != MpiUse::alltoallw && piece.run > kMpiRuns.back();
  if (way != MpiWay::host && without_copy) return std::nullopt;
  const auto& forms = sheets_.at(static_cast<std::size_t>(use));
  const auto at = static_cast<std::size_t>(way);
  const Sheet& regular = forms[0].at(at);
  const Sheet& listed = forms[1].at(at);
  if (!regular.measured()) return std::nullopt;
  const SheetPlace place(kMpiAxes, piece);
  if (!piece.listed) return std::exp2(regular.log_ns(place));
  if (listed.measured()) return std::exp2(listed.log_ns(place));
  const auto& sent = sheets_[static_cast<std::size_t>(MpiUse::send)];
  const double dearer = sent[1].at(at).measured() ? sent[1].at(at).log_ns(place) - sent[0].at(at).log_ns(place) : 0;
  constexpr double kMostDearer = 3;  // 8 times
  return std::exp2(regular.log_ns(place) + std::clamp(dearer, 0.0, kMostDearer));
}

constexpr std::array kAllMpiWays{MpiWay::host, MpiWay::packed, MpiWay::offered};
static_assert(kAllMpiWays.size() == kMpiWays);
constexpr bool holds(unsigned ways, MpiWay way) { return (ways >> static_cast<unsigned>(way) & 1U) != 0; }

double MpiPrices::gain_of(MpiUse use, MpiWay way, const Piece& piece) const {
  const bool long_and_alike = way == MpiWay::packed && is_message(use) && piece.bytes >= kPackedAlike;
  return machine_.empty() && !long_and_alike ? kUsualGain : kGain;
}

MpiWay MpiPrices::expect_best(MpiUse use, const Piece& piece, unsigned ways) const {
  auto best = MpiWay::host;
  const double host = ns(use, MpiWay::host, piece).value_or(0);
  double least = std::numeric_limits<double>::infinity();
  for (const MpiWay way : {MpiWay::packed, MpiWay::offered}) {
    if (!holds(ways, way)) continue;
    std::optional<double> expected = ns(use, way, piece);
    // Between distant CPUs every way's lines come from elsewhere.
    const bool short_window = way == MpiWay::offered && is_message(use) && piece.bytes <= usual::kEagerBytes && distance_ == Distance::near;
    if (expected && short_window) *expected /= usual::kWindowGain;
    if (expected && way == MpiWay::offered && shares_cpus_ && waits_for_all(use)) *expected *= kSharedCpus;
    if (!expected || *expected >= std::min(least, host * gain_of(use, way, piece))) continue;
    least = *expected;
    best = way;
  }
  return best;
}

MpiWay MpiPrices::choose(MpiUse use, const Piece& piece, unsigned ways) const {
  if (piece.bytes < kLeastBytes) return MpiWay::host;
  MpiWay best = expect_best(use, piece, ways);
  for (std::size_t changes = 0; !learned_.empty() && changes < kMpiWays; ++changes) {
    const auto faster = std::ranges::find_if(kAllMpiWays, [&](MpiWay way) {
      return way != best && (way == MpiWay::host || holds(ways, way)) && mpi_way_serves(way, use) && is_faster(use, piece, way, best);
    });
    if (faster == kAllMpiWays.end()) break;
    best = *faster;
  }
  return best;
}

std::optional<MpiWay> MpiPrices::best_beside(std::span<const MpiWay> others, MpiUse use, const Piece& piece, unsigned ways) const {
  std::optional<MpiWay> best;
  double least = 0;
  for (const MpiWay way : kAllMpiWays) {
    if (!holds(ways, way) || std::ranges::find(others, way) != others.end()) continue;
    const std::optional<double> expected = ns(use, way, piece);
    if (!expected || (best && *expected >= least)) continue;
    best = way;
    least = *expected;
  }
  return best;
}

// Of the nearest piece that was compared, if it is as good as the same.
bool MpiPrices::is_faster(MpiUse use, const Piece& piece, MpiWay way, MpiWay than) const {
  const double near = std::log(usual::kSamePiece);
  double nearest = 2 * near, log_ratio = 0;
  const auto apart = [](std::int64_t a, std::int64_t b) { return std::abs(std::log(static_cast<double>(a) / static_cast<double>(b))); };
  for (const MpiLearned& one : learned_) {
    const bool straight = one.first == than && one.second == way, turned = one.first == way && one.second == than;
    if (one.use != use || one.piece.listed != piece.listed || (!straight && !turned)) continue;
    const double bytes = apart(one.piece.bytes, piece.bytes), runs = apart(one.piece.run, piece.run);
    if (std::max(bytes, runs) > near || bytes + runs >= nearest) continue;
    nearest = bytes + runs;
    log_ratio = straight ? one.log_ratio : -one.log_ratio;
  }
  return log_ratio < 0;
}

void MpiPrices::learn(const MpiLearned& learned) {
  std::erase_if(learned_, [&](const MpiLearned& old) { return old.same(learned); });
  learned_.push_back(learned);
}

bool MpiLearned::same(const MpiLearned& other) const {
  return version == other.version && distance == other.distance && use == other.use && piece == other.piece &&
         ((first == other.first && second == other.second) || (first == other.second && second == other.first));
}

}  // namespace lacuna::guide
