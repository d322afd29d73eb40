"""Tables of ways: which is the best for which use, by run length and bytes (`lacuna guide --mpi`), and what a preloaded
program would do with some data (`lacuna explain`)."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from lacuna._core import Layout, mpi_profile_file, mpi_ways
from lacuna.mpi.distance import Distance, cpus_text
from lacuna.mpi.ways import BYTES, CELLS, RUNS, SERVING, Given
from lacuna.mpi.ways_profile import GAIN, MpiProfile
from lacuna.units import bytes_text, us_text

LEAST_OFFERED = 254
"""The least value of LACUNA_MPI_OFFER: one more than Descriptor::kBytes of lacuna/mpi/process/descriptor.hpp."""

USES = {
    "send": "MPI_Send",
    "later": "MPI_Isend",
    "alltoall": "MPI_Alltoall",
    "alltoallv": "MPI_Alltoallv",
    "alltoallw": "MPI_Alltoallw",
    "allgather": "MPI_Allgather",
    "allgatherv": "MPI_Allgatherv",
    "gather": "MPI_Gather",
    "gatherv": "MPI_Gatherv",
    "scatter": "MPI_Scatter",
    "scatterv": "MPI_Scatterv",
    "bcast": "MPI_Bcast",
    "neighbor": "MPI_Neighbor_alltoall",
}
_MEANING = (
    "M: the MPI's own datatypes. P: packed by Lacuna, moved by the MPI. S: moved by Lacuna through shared memory. The "
    "number is the way's time over that of the MPI's own datatypes. Runs in a list have gaps of different lengths."
)


NAMES = {"open_mpi": "Open MPI", "mpich": "MPICH", "mpich_4_0": "MPICH 4.0", "intel": "Intel MPI"}
_WAYS = {"host": "the MPI's own", "packed": "packed by Lacuna", "offered": "through shared memory"}


def best(times: Mapping[str, float]) -> tuple[str, float]:
    """The way that is chosen by these times, and its time over that of the MPI's own."""
    ratios = {way: ns / times["host"] for way, ns in times.items()}
    way = min(ratios, key=ratios.__getitem__)
    return (way, ratios[way]) if ratios[way] < GAIN else ("host", 1.0)


def show(console: Console, name: str, profile: MpiProfile) -> None:
    """The table, and what it means."""
    console.print(Text(f"{name}: {profile.library_version}", style="bold"), soft_wrap=True)
    console.print(profile.machine, soft_wrap=True, markup=False)
    title = cpus_text(profile.distance, profile.line_ns)
    console.print(Text(title[0].upper() + title[1:], style="bold"), soft_wrap=True)
    table = Table(box=None, padding=(0, 2, 0, 0))
    table.add_column("use")
    table.add_column("runs of", justify="right")
    for size in BYTES:
        table.add_column(bytes_text(size))
    for row in _rows(profile):
        table.add_row(*row)
    console.print(table)
    console.print(Text(_MEANING, style="dim"))
    console.print(_without_gaps(profile.thresholds["contiguous"]), soft_wrap=True)
    if between := profile.thresholds.get("inter_node"):
        console.print(_between_nodes(between), soft_wrap=True)


def _without_gaps(of: Mapping[str, Any]) -> str:
    if of["from"] is None:
        return "Messages without gaps: the MPI's own way, at every size"
    return f"Messages without gaps: through shared memory from {bytes_text(of['from'])} on"


def _between_nodes(of: Mapping[str, Any]) -> str:
    if of["from"] is None:
        return "Messages with gaps to another host: packed as a whole, at every size"
    return (
        f"Messages with gaps to another host: from {bytes_text(of['from'])} on in chunks of {bytes_text(of['chunk'])}"
    )


def _rows(profile: MpiProfile) -> Iterator[list[str]]:
    for (use, form), ways in SERVING.items():
        sheets = profile.ns[use][form]
        name = USES[use] + (", listed" if form == "listed" else "")
        for number, run in enumerate(RUNS):
            row = [name if number == 0 else "", bytes_text(run)]
            for i, size in enumerate(BYTES):
                at = i * len(RUNS) + number
                row.append(_text({way: sheets[way][at] for way in ways}) if (size, run) in CELLS else "")
            yield row


def _text(times: Mapping[str, float]) -> str:
    way, ratio = best(times)
    letter = {"host": "M", "packed": "P", "offered": "S"}[way]
    return letter if way == "host" else f"{letter} {ratio:.2f}"


def measured_here() -> list[str]:
    """The MPIs whose ways were measured on this machine, between near CPUs or distant ones."""
    return [library for library in NAMES if any(_measured(library, distance) for distance in Distance)]


def _measured(library: str, distance: Distance) -> bool:
    return Path(mpi_profile_file(library, distance)).is_file()


def _distance(library: str, wanted: Distance | None, crowded: bool) -> Distance:
    """Near, but where only distant CPUs were measured. Ranks that share CPUs count as near."""
    if wanted:
        return wanted
    if crowded:
        return Distance.near
    only_distant = _measured(library, Distance.distant) and not _measured(library, Distance.near)
    return Distance.distant if only_distant else Distance.near


def expected(layout: Layout, libraries: list[str], ranks: int, distance: Distance | None = None) -> dict[str, Any]:
    """By MPI: {"file", "warning", "distance", "forced", "crowded", "uses": {"send": {"chosen", "ns": {way:
    nanoseconds}}}}. `file` is empty for usual times. "forced" names the variable of the environment that chooses, if
    one does. "crowded": so many ranks share CPUs of this machine. Without a `distance` that of LACUNA_MPI_DISTANCE is
    meant, else near for a crowded job, else one that was measured.

    Raises ValueError where a variable's value is none."""
    way, offered = os.environ.get("LACUNA_MPI_WAY", ""), os.environ.get("LACUNA_MPI_OFFER", "")
    said = os.environ.get("LACUNA_MPI_DISTANCE", "")
    if said not in ("", *Distance):
        raise ValueError(f"LACUNA_MPI_DISTANCE is {said!r}; it may be {' or '.join(Distance)}")
    if way not in ("", *_WAYS):
        raise ValueError(f"LACUNA_MPI_WAY is {way!r}; it may be {', '.join(_WAYS)}")
    if offered and not (offered.isdecimal() and int(offered) >= LEAST_OFFERED):
        raise ValueError(f"LACUNA_MPI_OFFER is {offered!r}; it may be {LEAST_OFFERED} bytes or more")
    forced = "LACUNA_MPI_WAY" if way else "LACUNA_MPI_OFFER" if offered else ""
    crowded = ranks > len(os.sched_getaffinity(0))
    wanted = distance or (Distance(said) if said else None)
    found = {}
    for library in libraries:
        apart = _distance(library, wanted, crowded)
        of = mpi_ways(layout, library, way, int(offered or 0), crowded, apart)
        found[library] = {**of, "distance": apart, "forced": forced, "crowded": crowded}
    return found


def enter_measured(of: dict[str, Any], given: Given) -> None:
    """Into an MPI of expected(): what it says of itself, how far the CPUs were, and what was measured."""
    of["measured_of"] = given.library_version
    of["measured_distance"], of["measured_line_ns"] = given.line_times.distance, given.line_times.line_ns
    for use, forms in given.ns.items():
        of["uses"][use]["measured_ns"] = dict(forms["regular"])


def show_expected(console: Console, found: dict[str, Any], ranks: int) -> None:
    """A table of each MPI: a line of each use, the chosen way marked, microseconds of the others beside it."""
    for library, of in found.items():
        origin = "as measured here" if of["file"] else "by usual times: `lacuna guide --mpi MPICC` measures them"
        job = f"{'two' if ranks == 2 else ranks} ranks of a node"
        console.print()
        place = f"{job}, preloaded, between {of['distance']} CPUs"
        console.print(Text(f"In a program of {NAMES[library]}, {place} ({origin})", style="bold"), soft_wrap=True)
        if of["warning"]:
            console.print(Text(of["warning"]), soft_wrap=True)
        if of["crowded"]:
            console.print("They share CPUs: an MPI_Send goes as an MPI_Isend, and blocks that all ranks wait for are")
            console.print("offered only where that is expected to take two thirds of the best other way.")
        measured = "measured_of" in of
        if measured:
            where = cpus_text(of["measured_distance"], of["measured_line_ns"])
            console.print(Text(f"Measured with {of['measured_of']}, two ranks {where}; in brackets"), soft_wrap=True)
            if of["measured_line_ns"] and of["measured_distance"] != of["distance"]:
                console.print(f"--distance {of['measured_distance']} shows what is expected between such CPUs")
        table = Table(box=None, padding=(0, 2, 0, 0))
        table.add_column("use")
        table.add_column(f"forced by {of['forced']}" if of["forced"] else "chosen")
        for way in _WAYS.values():
            table.add_column(f"{way}, µs", justify="right")
        for use, of_use in of["uses"].items():
            times = [_expected_and_measured(of_use, way) for way in _WAYS]
            table.add_row(USES[use], _WAYS[of_use["chosen"]], *times)
        console.print(table)
        if ranks != 2 or measured:
            console.print(Text("Times are of two ranks, each with a CPU", style="dim"))


def _expected_and_measured(of_use: Mapping[str, Any], way: str) -> str:
    shown = us_text(of_use["ns"][way] / 1e3) if way in of_use["ns"] else "-"
    if way in of_use.get("measured_ns", {}):
        shown += f" ({us_text(of_use['measured_ns'][way] / 1e3)})"
    return shown
