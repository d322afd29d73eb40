"""`lacuna guide --mpi`: measures the ways of an MPI, and writes the file by which preloaded programs choose."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console

from lacuna import clock, units
from lacuna.bench.progress import Meter
from lacuna.mpi import ways, ways_profile, ways_table
from lacuna.mpi.installations import MpiInstallation
from lacuna.mpi.ways import WaysError
from lacuna.mpi.ways_profile import MpiProfile

SECONDS = 30.0
"""That it takes."""
_MS, _QUICK_MS = 40.0, 5.0
"""About how long the ways of a use race at one size."""


def run(
    console: Console,
    installation: MpiInstallation,
    command: str,
    hosts: tuple[str, str] | None,
    quick: bool,
    timeout: float | None,
) -> MpiProfile:
    """Measures, writes the profile, and shows it. `command`: that would do so again. Raises as ways.measure()."""
    milliseconds, silence = _QUICK_MS if quick else _MS, timeout or ways.SILENCE
    with _meter(console, ways.SIZES, f"sizes of {installation.name}") as told:
        measured = ways.measure(installation, milliseconds, told, silence)
    if measured.short_us > ways.WAITED_US:
        raise WaysError(
            f"{installation.name}: a short message took {units.us_text(measured.short_us)} µs, so the ranks had to "
            "wait for CPUs. Nothing was written; measure again when no other work is on this machine"
        )
    inter_node = ways_profile.kept_between_nodes(measured)
    if hosts:
        with _meter(console, len(ways.CHUNKED), f"sizes of {installation.name} between hosts") as told:
            _, times = ways.measure_nodes(installation, hosts, milliseconds, told, silence)
        inter_node = ways_profile.between_nodes(times)
    profile = ways_profile.of(measured, command, inter_node)
    file = profile.store()
    ways_table.show(console, installation.name, profile)
    console.print(f"Lacuna chooses by {file} from now on in programs of {measured.library}", soft_wrap=True)
    return profile


@contextmanager
def _meter(console: Console, sizes: int, what: str) -> Iterator[ways.Progress]:
    ends = clock.now() + SECONDS
    with Meter(console, sizes, SECONDS, what) as meter:
        yield lambda done: meter.advance(done, sizes, ends - clock.now())
