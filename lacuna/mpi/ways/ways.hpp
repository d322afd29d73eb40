// ways: which way data with gaps takes between two ranks of this node: the guide's choice (lacuna/guide/mpi_ways.hpp),
// or what the user forces. It hides where the times come from.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>

#include "lacuna/guide/mpi_ways.hpp"
#include "lacuna/mpi/types/types.hpp"

namespace lacuna::mpi {

using Library = guide::MpiLibrary;
using guide::MpiUse;
using guide::MpiWay;

class Ways {
 public:
  /// Once the host has told which it is, and the first line of its version: reads the times, and what the environment
  /// forces (LACUNA_MPI_WAY, LACUNA_MPI_OFFER: at least `least` bytes). Wrong values are told on stderr, and force
  /// nothing. `warns`: so is a profile that does not hold.
  void find(Library library, std::string_view version, std::int64_t least, bool warns);

  /// The way of `count` elements. A caller that cannot go it takes the host's.
  [[nodiscard]] MpiWay choose(MpiUse use, const Type& type, Count count) const {
    const int forced = forced_.load(std::memory_order_relaxed);
    if (forced != kNone || offered_from_ > 0) return forced_way(forced, use, type.bytes(count));
    if (const std::optional<MpiWay> known = type.way(use, count)) return *known;
    return type.remember(use, count, prices_.choose(use, type.piece(count)));
  }
  /// Whether packing is better than the host's way, where nothing can be offered.
  [[nodiscard]] bool packs(MpiUse use, const Type& type, Count count) const {
    const int forced = forced_.load(std::memory_order_relaxed);
    if (forced != kNone || offered_from_ > 0) return forced != static_cast<int>(MpiWay::host);
    constexpr unsigned packed = 1U << static_cast<unsigned>(MpiWay::packed);
    return prices_.choose(use, type.piece(count), packed) == MpiWay::packed;
  }
  /// Whether the same was left to the host before, told at once; false where that is not known.
  [[nodiscard]] bool leaves(MpiUse use, const Type* seen, Count count) const {
    if (seen == nullptr || count < 0) return false;
    const int forced = forced_.load(std::memory_order_relaxed);
    if (forced != kNone || offered_from_ > 0)
      return !seen->contiguous(count) && forced_way(forced, use, seen->bytes(count)) == MpiWay::host;
    return seen->way(use, count) == MpiWay::host;
  }
  /// The best of the other ways, and its expected nanoseconds; nothing: there is none.
  [[nodiscard]] std::optional<std::pair<MpiWay, double>> best_beside(MpiUse use, MpiWay way, const Type& type, Count count) const;
  /// Expected nanoseconds; nothing: the way is none for that use.
  [[nodiscard]] std::optional<double> expected_ns(MpiUse use, MpiWay way, const Type& type, Count count) const {
    return prices_.ns(use, way, type.piece(count));
  }
  /// From now on all goes that way where it can; nothing: as chosen. For what measures.
  void force(std::optional<MpiWay> way) { forced_.store(way ? static_cast<int>(*way) : kNone, std::memory_order_relaxed); }

 private:
  static constexpr int kNone = -1;
  [[nodiscard]] MpiWay forced_way(int forced, MpiUse use, std::int64_t bytes) const;
  guide::MpiPrices prices_;
  std::atomic<int> forced_{kNone};
  std::int64_t offered_from_ = 0;  // 0: not forced
};

}  // namespace lacuna::mpi
