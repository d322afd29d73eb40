"""Times of the ways in which data with gaps travels in an MPI program, measured by tools/bench/mpi/ways.c under that
MPI with Lacuna preloaded.

Nothing is trusted: a program that does not start, dies, falls silent, or prints something else ends in a WaysError, and
no process of it stays behind."""

from __future__ import annotations

import contextlib
import math
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from lacuna.mpi.installations import MpiInstallation, shim_source
from lacuna.mpi.interposer import abi_of, preload_library, preloaded
from lacuna.mpi.launch import Launch, end_launcher, launch
from lacuna.worker.json_lines import EndError, LineError, Lines
from lacuna.worker.protocol import SchemaError, parsed, read

BYTES = (256, 1024, 3072, 4096, 16384, 65536, 262144, 1048576)
RUNS = (8, 64, 512, 4096)
"""kMpiBytes and kMpiRuns of lacuna/guide/mpi_ways.hpp."""
WAYS = ("host", "packed", "offered")
_COLLECTIVES = (
    "alltoall",
    "alltoallv",
    "alltoallw",
    "allgather",
    "allgatherv",
    "gather",
    "gatherv",
    "scatter",
    "scatterv",
    "bcast",
    "neighbor",
)
SERVING = {
    **{(use, form): WAYS for use in ("send", "later") for form in ("regular", "listed")},
    **{(use, "regular"): ("host", "offered") if use == "alltoallw" else WAYS for use in _COLLECTIVES},
}
"""Which ways serve which use, for runs at regular or listed places; as mpi_way_serves() there has it."""
CELLS = tuple((size, run) for size in BYTES for run in RUNS if 2 * run <= size)
"""Bytes of a message or a block, and of a run of it."""

WAITED_US = 500.0
"""A message of 4 KiB takes less than a fifth of this by the slowest MPI, unless its ranks wait for CPUs."""
SILENCE = 60.0
"""Seconds for which a size may take. The slowest MPI takes about five."""
_START_SECONDS = 60.0
_END_SECONDS = 30.0
_LIBRARIES = (("Open MPI", "open_mpi"), ("Intel", "intel"), ("MPICH Version:\t4.0", "mpich_4_0"), ("", "mpich"))
"""By what MPI_Get_library_version says, as library_of_host() of lacuna/mpi/job/job.cpp has it."""

Sheets = dict[str, dict[str, dict[str, list[float]]]]
"""By use, form and way: nanoseconds by bytes, then runs; 0 where there is no such cell."""


class WaysError(Exception):
    """An MPI's ways could not be measured, or moved a wrong byte; the text says which."""


@dataclass(frozen=True)
class Measured:
    """What was measured of one MPI."""

    library_version: str
    """The first line of what it says of itself."""
    ns: Sheets

    @property
    def library(self) -> str:
        """guide::MpiLibrary."""
        return next(name for said, name in _LIBRARIES if said in self.library_version)

    @property
    def short_us(self) -> float:
        """The longest that the MPI took for a message of 4 KiB or less, in microseconds."""
        last = (BYTES.index(4096) + 1) * len(RUNS)
        return max(self.ns["send"]["regular"]["host"][:last]) / 1e3


@dataclass(frozen=True)
class _Cell:
    """A line of the program's."""

    bytes: int
    run: int
    ns: dict[str, dict[str, dict[str, float]]]


Progress = Callable[[int], None]
"""Told how many sizes are done."""


def measure(installation: MpiInstallation, milliseconds: float, told: Progress, silence: float = SILENCE) -> Measured:
    """Times each way for each use at each size, for so many milliseconds each use.

    Raises WaysError; MpiInstallationError and MpiError where the MPI cannot be used, or there is no library to
    preload."""
    started = launch(installation)
    library = preload_library(abi_of(started.version))
    with tempfile.TemporaryDirectory(prefix="lacuna-") as folder:
        program = _compile(installation, Path(folder))
        line: list[str | Path] = [
            *started.line,
            "env",  # the program's alone: the launchers are programs too
            f"LD_PRELOAD={preloaded(library, started.environment)['LD_PRELOAD']}",
            "LACUNA_MPI_DECODE=1",  # the first use of a type is like all others
            program,
            f"{milliseconds:g}",
            *(",".join(map(str, sizes)) for sizes in (BYTES, RUNS)),
        ]
        return _run(f"ways under {installation.name}", line, started, told, silence)


def _compile(installation: MpiInstallation, folder: Path) -> Path:
    built = folder / "ways"
    line: list[str | Path] = [installation.mpicc, "-O2", "-std=gnu11", shim_source("ways.c"), "-o", built, "-ldl"]
    installation.compile("ways.c", line, WaysError)
    return built


def _run(title: str, line: Sequence[str | Path], started: Launch, told: Progress, silence: float) -> Measured:
    # What the user has set for programs, LACUNA_MPI_OFFER for one, would decide instead of the program here.
    kept = {name: value for name, value in started.environment.items() if not name.startswith("LACUNA_")}
    with tempfile.TemporaryFile("w+", errors="replace") as errors:
        process = subprocess.Popen(
            line, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors, env=kept, process_group=0
        )
        assert process.stdout is not None
        try:
            measured = _read(_lines(process.stdout.fileno(), silence), told)
            _end(process)
        except EndError as e:  # the launcher tells how
            with contextlib.suppress(LineError):
                _end(process)
            raise WaysError(f"{title}: it ended before the last size{_said(errors)}") from e
        except LineError as e:
            end_launcher(process, 5)
            raise WaysError(f"{title}: it {e}{_said(errors)}") from e
        finally:
            end_launcher(process, 5)
            process.stdout.close()
    return measured


def _end(process: subprocess.Popen[bytes]) -> None:
    """Waits for it. Raises LineError where it does not end, or not well."""
    try:
        status = process.wait(_END_SECONDS)
    except subprocess.TimeoutExpired as e:
        raise LineError("did not end after its last line") from e
    if status != 0:
        raise LineError(f"ended with {status} after its last line")


def _said(errors: IO[str]) -> str:
    errors.seek(0)
    said = errors.read().strip()[-800:]
    return f": {said}" if said else ""


def _lines(source: int, silence: float) -> Iterator[dict[str, Any]]:
    """What the program prints; launchers may say something between its lines."""
    lines = Lines(source)
    deadline = time.monotonic() + _START_SECONDS
    while True:
        line = lines.read(deadline)
        if line.startswith(b"{"):
            try:
                yield parsed(line)
            except SchemaError as e:
                raise LineError(f"sent what is no JSON object: {line[:80]!r}") from e
            deadline = time.monotonic() + silence


def _read(lines: Iterator[dict[str, Any]], told: Progress) -> Measured:
    """Raises LineError where a line does not come, or is not the one that has to come."""
    head = next(lines)
    version = head.get("version")
    if not isinstance(version, str) or not version or head.get("cells") != len(CELLS):
        raise LineError(f"began with {head}")
    ns: Sheets = {use: {} for use, _ in SERVING}
    for (use, form), ways in SERVING.items():
        ns[use][form] = {way: [0.0] * (len(BYTES) * len(RUNS)) for way in ways}
    for done, (size, run) in enumerate(CELLS):
        told(done)
        try:
            cell = read(_Cell, next(lines), "cell")
        except SchemaError as e:
            raise LineError(f"sent another line than a size's: {e}") from e
        if (cell.bytes, cell.run) != (size, run):
            raise LineError(f"measured {cell.bytes} bytes in runs of {cell.run}, not {size} in runs of {run}")
        _enter(cell, ns)
    if next(lines) != {"ends": len(CELLS)}:
        raise LineError("did not end after the last size")
    told(len(CELLS))
    return Measured(version, ns)


def _enter(cell: _Cell, ns: Mapping[str, Mapping[str, Mapping[str, list[float]]]]) -> None:
    place = BYTES.index(cell.bytes) * len(RUNS) + RUNS.index(cell.run)
    for (use, form), ways in SERVING.items():
        found = cell.ns.get(use, {}).get(form, {})
        for way in ways:
            time_ns = found.get(way, math.nan)
            if not 0 < time_ns < math.inf:
                raise LineError(f"has no time of {use}, {form}, {way} for {cell.bytes} bytes in runs of {cell.run}")
            ns[use][form][way][place] = time_ns
