// What is expected of the ways of an MPI's data with gaps, for Python.
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>

#include "core.hpp"
#include "lacuna/guide/mpi_ways.hpp"

namespace lacuna::python {
namespace {

guide::MpiLibrary library_of(const std::string& name) {
  const auto library = guide::mpi_library_from_name(name);
  if (!library) throw nb::value_error(("no MPI \"" + name + "\"; there are open_mpi, mpich, mpich_4_0 and intel").c_str());
  return *library;
}

guide::Distance distance_of(const std::string& name) {
  const auto distance = guide::distance_from_name(name);
  if (!distance) throw nb::value_error(("no distance \"" + name + "\"; there are near and distant").c_str());
  return *distance;
}

// What the environment of the program forces.
struct Forced {
  std::optional<guide::MpiWay> way;
  std::int64_t offered_from = 0;  // 0: not forced
};

// By use: what is chosen, and nanoseconds by way.
nb::dict uses_of(const guide::MpiPrices& prices, const guide::Piece& piece, const Forced& forced, bool crowded) {
  nb::dict uses;
  for (std::size_t use = 0; use < guide::kMpiUses; ++use) {
    const auto of = static_cast<guide::MpiUse>(use);
    // As way_of() in send_plan.cpp
    const guide::MpiUse in = crowded && of == guide::MpiUse::send ? guide::MpiUse::later : of;
    nb::dict ns;
    for (std::size_t way = 0; way < guide::kMpiWays; ++way) {
      if (const auto expected = prices.ns(in, static_cast<guide::MpiWay>(way), piece))
        ns[nb::cast(guide::mpi_way_name(static_cast<guide::MpiWay>(way)))] = *expected;
    }
    nb::dict found;
    const bool forces = forced.way || forced.offered_from > 0;
    found["chosen"] = nb::cast(
        guide::mpi_way_name(forces ? guide::forced_mpi_way(forced.way, forced.offered_from, in, piece.bytes) : prices.choose(in, piece)));
    found["ns"] = ns;
    uses[nb::cast(guide::mpi_use_name(of))] = found;
  }
  return uses;
}

}  // namespace

void bind_mpi_ways(nb::module_& m) {
  m.def(
      "mpi_profile_file",
      [](const std::string& library, const std::string& distance) {
        return guide::MpiPrices::file_of(library_of(library), distance_of(distance));
      },
      "library"_a, "distance"_a = "near", "Where the times of an MPI's ways between near or distant CPUs are, or would be.");
  m.def(
      "distance_of",
      [](double line_ns, const std::string& before) {
        const auto was = before.empty() ? std::nullopt : std::optional(distance_of(before));
        return std::string(guide::distance_name(guide::distance_of(line_ns, was)));
      },
      "line_ns"_a, "before"_a = "",
      "'near' or 'distant', by the nanoseconds that a CPU takes to read a line which another CPU has written. `before`: what "
      "it was until now. That stays unless the time is clearly beyond the bound.");
  m.def(
      "check_mpi_profile",
      [](const std::string& file, const std::string& library) {
        static_cast<void>(value_or_raise(guide::MpiPrices::read(file, library_of(library))));
      },
      "file"_a, "library"_a, "Raises ValueError where the file is no such profile.");
  m.def(
      "mpi_ways",
      [](const layout::Layout& layout, const std::string& library, const std::string& way, std::int64_t offered_from, bool crowded,
         const std::string& distance) {
        const Forced forced{.way = guide::mpi_way_from_name(way), .offered_from = offered_from};
        if (!way.empty() && !forced.way) throw nb::value_error(("no way \"" + way + "\"; there are host, packed and offered").c_str());
        guide::MpiPrices prices = guide::MpiPrices::find(library_of(library), distance_of(distance));
        if (crowded) prices.share_cpus();
        nb::dict found;
        found["file"] = prices.file();
        found["warning"] = prices.warning();
        found["uses"] = uses_of(prices, guide::Piece::of(layout, 1), forced, crowded);
        return found;
      },
      "layout"_a, "library"_a, "way"_a = "", "offered_from"_a = 0, "crowded"_a = false, "distance"_a = "near",
      "What a preloaded program of that MPI does with such data, by use: {file, warning, uses: {send: {chosen, ns: {way: "
      "nanoseconds}}}}. `way`, `offered_from`: forced, as LACUNA_MPI_WAY and LACUNA_MPI_OFFER (bytes) do; empty and 0: not. "
      "`crowded`: of a job with more ranks than CPUs, whose MPI_Send goes as its MPI_Isend. `distance`: of the CPUs, near or "
      "distant.");
}

}  // namespace lacuna::python
