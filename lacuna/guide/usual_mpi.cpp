// Times of an MPI's ways on machines that have no profile: the sheets of usual_mpi/*/LIBRARY.inc, each of which
// `lacuna guide --mpi` measured on the machine that its first lines name (scripts/usual_ways.py writes them).
#include "lacuna/guide/mpi_ways.hpp"

namespace lacuna::guide {
namespace {

using Ns = std::array<double, kMpiAxes.size()>;

template <class TakeSheet>
void zen4_sheets(MpiLibrary library, const TakeSheet& sheet) {
  switch (library) {
    case MpiLibrary::open_mpi:
#include "lacuna/guide/usual_mpi/zen4/open_mpi.inc"
      break;
    case MpiLibrary::mpich:
#include "lacuna/guide/usual_mpi/zen4/mpich.inc"
      break;
    case MpiLibrary::mpich_4_0:
#include "lacuna/guide/usual_mpi/zen4/mpich_4_0.inc"
      break;
    case MpiLibrary::intel:
#include "lacuna/guide/usual_mpi/zen4/intel.inc"
      break;
  }
}

template <class TakeSheet>
void zen5_sheets(MpiLibrary library, const TakeSheet& sheet) {
  switch (library) {
    case MpiLibrary::open_mpi:
#include "lacuna/guide/usual_mpi/zen5/open_mpi.inc"
      break;
    case MpiLibrary::mpich:
#include "lacuna/guide/usual_mpi/zen5/mpich.inc"
      break;
    case MpiLibrary::mpich_4_0: zen4_sheets(library, sheet); break;  // not measured on a Zen 5
    case MpiLibrary::intel:
#include "lacuna/guide/usual_mpi/zen5/intel.inc"
      break;
  }
}

// Of distant CPUs.
template <class TakeSheet>
void distant_sheets(MpiLibrary library, const TakeSheet& sheet) {
  switch (library) {
    case MpiLibrary::open_mpi:
#include "lacuna/guide/usual_mpi/zen5_distant/open_mpi.inc"
      break;
    case MpiLibrary::mpich:
#include "lacuna/guide/usual_mpi/zen5_distant/mpich.inc"
      break;
    case MpiLibrary::mpich_4_0: zen4_sheets(library, sheet); break;  // not measured between distant CPUs
    case MpiLibrary::intel:
#include "lacuna/guide/usual_mpi/zen5_distant/intel.inc"
      break;
  }
}

}  // namespace

UsualCpu usual_cpu(const base::CpuKind& kind) {
  constexpr unsigned kZen5 = 26;
  return kind.amd && kind.family >= kZen5 ? UsualCpu::zen5 : UsualCpu::zen4;
}

MpiPrices MpiPrices::make_usual(MpiLibrary library, Distance distance, UsualCpu cpu) {
  MpiPrices made;
  made.distance_ = distance;
  made.thresholds_ = usual_thresholds(library);
  const auto sheet = [&](MpiUse use, bool listed, MpiWay way, const Ns& ns) {
    made.sheets_.at(static_cast<std::size_t>(use)).at(listed ? 1 : 0).at(static_cast<std::size_t>(way)) = Sheet(ns);
  };
  if (distance == Distance::distant) {
    distant_sheets(library, sheet);
  } else if (cpu == UsualCpu::zen5) {
    zen5_sheets(library, sheet);
  } else {
    zen4_sheets(library, sheet);
  }
  return made;
}

const MpiPrices& MpiPrices::usual(MpiLibrary library, Distance distance, UsualCpu cpu) {
  using All = std::array<MpiPrices, kMpiLibraries>;
  const auto make_all = [](Distance of, UsualCpu each) {
    return All{make_usual(MpiLibrary::open_mpi, of, each), make_usual(MpiLibrary::mpich, of, each),
               make_usual(MpiLibrary::mpich_4_0, of, each), make_usual(MpiLibrary::intel, of, each)};
  };
  const auto number = static_cast<std::size_t>(library);
  if (distance == Distance::distant) {  // of a Zen 5, for all CPUs
    static const All distant = make_all(Distance::distant, UsualCpu::zen5);
    return distant.at(number);
  }
  if (cpu == UsualCpu::zen5) {
    static const All zen5 = make_all(Distance::near, UsualCpu::zen5);
    return zen5.at(number);
  }
  static const All zen4 = make_all(Distance::near, UsualCpu::zen4);
  return zen4.at(number);
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
