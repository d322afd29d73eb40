#include "lacuna/mpi/ways/ways.hpp"

#include <cstdio>
#include <cstdlib>

#include "lacuna/mpi/host/environment.hpp"

namespace lacuna::mpi {

void Ways::find(Library library, std::string_view version, std::int64_t least, bool warns) {
  prices_ = guide::MpiPrices::find(library, version);
  if (warns && !prices_.warning().empty()) base::log(base::Level::warn, prices_.warning());
  offered_from_ = number_of_environment("LACUNA_MPI_OFFER", 0, "bytes", least);
  const char* said = std::getenv("LACUNA_MPI_WAY");
  if (said == nullptr || *said == '\0') return;
  const std::optional<MpiWay> way = guide::mpi_way_from_name(said);
  if (!way) std::fprintf(stderr, "lacuna: LACUNA_MPI_WAY is '%s'; it may be host, packed or offered. Forcing nothing\n", said);
  force(way);
}

std::optional<std::pair<MpiWay, double>> Ways::best_beside(MpiUse use, MpiWay way, const Type& type, Count count) const {
  std::optional<std::pair<MpiWay, double>> best;
  for (const MpiWay other : {MpiWay::host, MpiWay::packed, MpiWay::offered}) {
    const std::optional<double> ns = other != way ? expected_ns(use, other, type, count) : std::nullopt;
    if (ns && (!best || *ns < best->second)) best = {other, *ns};
  }
  return best;
}

// LACUNA_MPI_OFFER leaves nothing to the host: what is shorter is packed.
MpiWay Ways::forced_way(int forced, MpiUse use, std::int64_t bytes) const {
  auto way = forced != kNone ? static_cast<MpiWay>(forced) : bytes >= offered_from_ ? MpiWay::offered : MpiWay::packed;
  if (way == MpiWay::offered && !guide::mpi_way_serves(way, use)) way = MpiWay::packed;
  return guide::mpi_way_serves(way, use) ? way : MpiWay::host;
}

}  // namespace lacuna::mpi
