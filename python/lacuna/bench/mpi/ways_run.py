"""`lacuna guide --mpi`: measures the ways of an MPI, and writes the file by which preloaded programs choose."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console

from lacuna import clock, units
from lacuna._core import mpi_profile_file
from lacuna.bench.progress import Meter
from lacuna.mpi import ways, ways_profile, ways_table
from lacuna.mpi.distance import Distance
from lacuna.mpi.installations import MpiInstallation
from lacuna.mpi.ways import Measured, WaysError, WrongBytesError
from lacuna.mpi.ways_profile import MpiProfile

SECONDS = 30.0
"""That a try takes."""
TRIES = 3
"""At most, where the CPUs move meanwhile."""
_MS, _QUICK_MS = 40.0, 5.0
"""About how long the ways of a use race at one size."""
_MOVED = "The CPUs moved: some sizes were measured between near CPUs, others between distant ones. Measuring again"


def run(
    console: Console,
    installation: MpiInstallation,
    command: str,
    hosts: tuple[str, str] | None,
    quick: bool,
    timeout: float | None,
    tries: int = TRIES,
) -> MpiProfile:
    """Measures, writes the profile, and shows it. `command`: that would do so again. `tries`: at most. Raises as
    ways.measure()."""
    milliseconds, silence = _QUICK_MS if quick else _MS, timeout or ways.SILENCE
    measured = _measure(console, installation, milliseconds, silence, tries)
    inter_node = ways_profile.kept_between_nodes(measured)
    if hosts:
        with _meter(console, len(ways.CHUNKED), f"sizes of {installation.name} between hosts") as told:
            _, times = ways.measure_nodes(installation, hosts, milliseconds, told, silence)
        inter_node = ways_profile.between_nodes(times)
        ways_profile.share_between_nodes(measured, inter_node)
    profile = ways_profile.of(measured, command, inter_node)
    file = profile.store()
    ways_table.show(console, installation.name, profile)
    for text in _said(measured, file):
        console.print(text, soft_wrap=True, markup=False)
    return profile


def _measure(
    console: Console, installation: MpiInstallation, milliseconds: float, silence: float, tries: int
) -> Measured:
    """The try in which most sizes were measured at one distance; others follow until all are, or there are so many. A
    later try that fails does not count. Raises WrongBytesError for every try, and WaysError where the first one
    fails."""

    def tried() -> Measured:
        with _meter(console, ways.SIZES, f"sizes of {installation.name}") as told:
            return ways.measure(installation, milliseconds, told, silence)

    kept = tried()
    if waited := _waited(kept):
        raise WaysError(
            f"{installation.name}: {waited}. Nothing was written; measure again when no other work is on this machine"
        )
    for _ in range(tries - 1):
        if kept.line_times.others == 0:
            break
        console.print(_MOVED, soft_wrap=True)
        try:
            again = tried()
        except WrongBytesError:
            raise
        except WaysError as e:
            failed = str(e)
        else:
            failed = _waited(again)
            if not failed and again.line_times.doubtful < kept.line_times.doubtful:
                kept = again
        if failed:
            console.print(f"That failed, and an earlier run holds: {failed}", soft_wrap=True, markup=False)
    return kept


def _waited(measured: Measured) -> str:
    """What says that ranks had to wait for CPUs; empty where they had not."""
    if measured.short_us <= ways.WAITED_US:
        return ""
    return f"a short message took {units.us_text(measured.short_us)} µs, so the ranks had to wait for CPUs"


def _said(measured: Measured, file: Path) -> Iterator[str]:
    """What the profile holds for, and what else there is to do."""
    lines = measured.line_times
    distance, other = lines.distance, lines.distance.other
    if lines.others:
        yield (
            f"{lines.others} of {len(lines.ns)} sizes were measured between {other} CPUs, since the CPUs moved. Their "
            "times may choose badly; another run may find the CPUs at rest"
        )
    place = "" if mpi_profile_file(measured.library, other) == str(file) else f" between ranks on {distance} CPUs"
    yield f"Lacuna chooses by {file} from now on in programs of {measured.library}{place}"
    if not ways_profile.holds(measured, other):
        cache = "with a common" if other is Distance.near else "without a common"
        yield (
            f"Between {other} CPUs it chooses by usual times. `taskset -c A,B lacuna guide --mpi MPICC` measures two "
            f"CPUs that you name, such as those of two cores {cache} last-level cache"
        )


@contextmanager
def _meter(console: Console, sizes: int, what: str) -> Iterator[ways.Progress]:
    ends = clock.now() + SECONDS
    with Meter(console, sizes, SECONDS, what) as meter:
        yield lambda done: meter.advance(done, sizes, ends - clock.now())
