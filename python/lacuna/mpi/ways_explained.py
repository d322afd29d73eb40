"""What a preloaded MPI program would do with some data, and what each other way is expected to take."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from lacuna._core import Layout, mpi_profile_file, mpi_ways
from lacuna.mpi.ways_table import USES
from lacuna.units import us_text

NAMES = {"open_mpi": "Open MPI", "mpich": "MPICH", "mpich_4_0": "MPICH 4.0", "intel": "Intel MPI"}
_WAYS = {"host": "the MPI's own", "packed": "packed by Lacuna", "offered": "through shared memory"}


def measured_here() -> list[str]:
    """The MPIs whose ways were measured on this machine."""
    return [library for library in NAMES if Path(mpi_profile_file(library)).is_file()]


def expected(layout: Layout, libraries: list[str]) -> dict[str, Any]:
    """By MPI: {"file", "warning", "uses": {"send": {"chosen", "ns": {way: nanoseconds}}}}. `file` is empty for usual
    times."""
    return {library: mpi_ways(layout, library) for library in libraries}


def show(console: Console, found: dict[str, Any]) -> None:
    """A table of each MPI: a line of each use, the chosen way marked, microseconds of the others beside it."""
    for library, of in found.items():
        origin = "as measured here" if of["file"] else "by usual times: `lacuna guide --mpi MPICC` measures them"
        console.print()
        console.print(
            Text(f"In a program of {NAMES[library]}, two ranks of a node, preloaded ({origin})", style="bold")
        )
        if of["warning"]:
            console.print(Text(of["warning"]), soft_wrap=True)
        table = Table(box=None, padding=(0, 2, 0, 0))
        table.add_column("use")
        table.add_column("chosen")
        for way in _WAYS.values():
            table.add_column(f"{way}, µs", justify="right")
        for use, of_use in of["uses"].items():
            times = [us_text(of_use["ns"][way] / 1e3) if way in of_use["ns"] else "-" for way in _WAYS]
            table.add_row(USES[use], _WAYS[of_use["chosen"]], *times)
        console.print(table)
