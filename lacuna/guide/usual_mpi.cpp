// Times of an MPI's ways on machines that have no profile: the sheets of usual_mpi/LIBRARY.inc, each of which
// `lacuna guide --mpi` measured on the machine that its first lines name (scripts/usual_ways.py writes them).
#include "lacuna/guide/mpi_ways.hpp"

namespace lacuna::guide {

MpiPrices MpiPrices::make_usual(MpiLibrary library) {
  MpiPrices made;
  made.thresholds_ = usual_thresholds(library);
  const auto sheet = [&](MpiUse use, bool listed, MpiWay way, const std::array<double, kMpiAxes.size()>& ns) {
    made.sheets_.at(static_cast<std::size_t>(use)).at(listed ? 1 : 0).at(static_cast<std::size_t>(way)) = Sheet(ns);
  };
  switch (library) {
    case MpiLibrary::open_mpi:
#include "lacuna/guide/usual_mpi/open_mpi.inc"
      break;
    case MpiLibrary::mpich:
#include "lacuna/guide/usual_mpi/mpich.inc"
      break;
    case MpiLibrary::mpich_4_0:
#include "lacuna/guide/usual_mpi/mpich_4_0.inc"
      break;
    case MpiLibrary::intel:
#include "lacuna/guide/usual_mpi/intel.inc"
      break;
  }
  return made;
}

const MpiPrices& MpiPrices::usual(MpiLibrary library) {
  static const std::array<MpiPrices, kMpiLibraries> all{make_usual(MpiLibrary::open_mpi), make_usual(MpiLibrary::mpich),
                                                        make_usual(MpiLibrary::mpich_4_0), make_usual(MpiLibrary::intel)};
  return all.at(static_cast<std::size_t>(library));
}

// Over TCP: chunks that need no answer before they are sent, which Open MPI and MPICH do with up to 64 KiB. With Intel
// MPI every message costs more, and with MPICH 4.0, whose wire is UCX, more still (docs/notes/mpi.md has the figures).
MpiThresholds usual_thresholds(MpiLibrary library) {
  switch (library) {
    case MpiLibrary::open_mpi:
    case MpiLibrary::mpich: break;
    case MpiLibrary::mpich_4_0: return {.inter_node = 2 << 20, .chunk = 512 << 10};
    case MpiLibrary::intel:
      // Its own way through shared memory is faster: 4 MiB and 16 MiB took 1.08 and 1.20 of its time by Lacuna's, two
      // CPUs of an EPYC (tests/mpi/cost/cost.py). Other MPIs take 3 to 4 times as long as Lacuna.
      return {.contiguous = MpiThresholds::kNever, .inter_node = 512 << 10, .chunk = 256 << 10};
  }
  return {};
}

}  // namespace lacuna::guide
