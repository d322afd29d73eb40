"""Times of the ways in which data travels in an MPI program, measured by tools/bench/mpi/ways.c under that MPI with
Lacuna preloaded.

Nothing is trusted: a program that does not start, dies, falls silent, or prints something else ends in a WaysError, and
no process of it stays behind."""

from __future__ import annotations

import contextlib
import math
import re
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from lacuna._core import Layout
from lacuna.mpi.distance import LineTimes
from lacuna.mpi.installations import MpiInstallation, shim_source
from lacuna.mpi.interposer import abi_of, preload_library, preloaded
from lacuna.mpi.launch import Launch, end_launcher, launch
from lacuna.mpi.two_hosts import Hosts
from lacuna.worker.json_lines import EndError, LineError, Lines
from lacuna.worker.protocol import SchemaError, parsed, read

BYTES = (256, 1024, 3072, 4096, 16384, 65536, 262144, 1048576)
RUNS = (8, 64, 512, 4096, 32768)
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

CONTIGUOUS = (65536, 262144, 1048576, 4194304, 16777216)
"""Bytes of messages without gaps."""
CHUNKED = (65536, 262144, 1048576, 4194304)
CHUNKED_RUN = 512
CHUNKS = (61440, 131072, 262144, 524288, 1048576)
"""Bytes of messages to another node, of their runs, and of the chunks in which they go there."""
PACKED = "packed"
SIZES = len(CELLS) + len(CONTIGUOUS)
"""Of measure()."""
MOST_RUNS = 1_000_000
"""Of a list that is measured."""
_LOOPS = re.compile(r"(?:at \d+: )?((?:\d+ x \+\d+ B \{ )*)(\d+) B(?: \})*")
"""A canonical form that is loops alone: 8 x +64 B { 8 B }."""

WAITED_US = 500.0
"""A message of 4 KiB takes less than a fifth of this by the slowest MPI, unless its ranks wait for CPUs."""
SILENCE = 60.0
"""Seconds for which a size may take. The slowest MPI takes about five."""
_WRONG_BYTES = 33
"""The program's exit status then; WRONG_BYTES of tools/bench/mpi/ways_uses.h. It says what was wrong, too, but MPICH's
launcher loses that at times."""
_START_SECONDS = 60.0
_END_SECONDS = 30.0
_LIBRARIES = (("Open MPI", "open_mpi"), ("Intel", "intel"), ("MPICH Version:\t4.0", "mpich_4_0"), ("", "mpich"))
"""By what MPI_Get_library_version says, as library_of_host() of lacuna/mpi/job/job.cpp has it."""

Sheets = dict[str, dict[str, dict[str, list[float]]]]
"""By use, form and way: nanoseconds by bytes, then runs; 0 where there is no such cell."""
Lists = dict[str, list[float]]
"""By way: nanoseconds by bytes."""
Found = dict[str, dict[str, dict[str, float]]]
"""Of one size: nanoseconds by use, form and way."""


class WaysError(Exception):
    """An MPI's ways could not be measured, or moved a wrong byte; the text says which."""


class WrongBytesError(WaysError):
    """A way moved a wrong byte, and the program ended."""


@dataclass(frozen=True)
class Measured:
    """What was measured of one MPI."""

    library_version: str
    """The first line of what it says of itself."""
    ns: Sheets
    contiguous: Lists = field(default_factory=dict)
    """Of messages without gaps, by CONTIGUOUS."""
    line_times: LineTimes = field(default_factory=LineTimes)

    @property
    def library(self) -> str:
        """guide::MpiLibrary."""
        return library_of(self.library_version)

    @property
    def short_us(self) -> float:
        """The longest that the MPI took for a message of 4 KiB or less, in microseconds."""
        last = (BYTES.index(4096) + 1) * len(RUNS)
        return max(self.ns["send"]["regular"]["host"][:last]) / 1e3


def library_of(version: str) -> str:
    """guide::MpiLibrary, by the first line of what an MPI says of itself."""
    return next(name for said, name in _LIBRARIES if said in version)


def library_of_launcher(name: str) -> str:
    """The same, by the name that interposer.name_and_abi() gives an MPI."""
    return next(
        library
        for said, library in (("Open MPI", "open_mpi"), ("Intel", "intel"), ("MPICH 4.0", "mpich_4_0"), ("", "mpich"))
        if name.startswith(said)
    )


@dataclass(frozen=True)
class _Cell:
    """A line of the program's."""

    bytes: int
    run: int
    ns: Found
    line_ns: float
    """That reading a line of the other rank took; 0: that is not known."""


@dataclass(frozen=True)
class _Found:
    """What the program said."""

    version: str
    sizes: list[_Cell]

    @property
    def ns(self) -> list[Found]:
        return [cell.ns for cell in self.sizes]

    @property
    def line_times(self) -> LineTimes:
        return LineTimes(tuple(cell.line_ns for cell in self.sizes))


@dataclass(frozen=True)
class _Asked:
    """A line that has to come: a size, and which ways it has to have."""

    bytes: int
    run: int
    ways: Mapping[tuple[str, str], Sequence[str]]
    """By use and form."""


Progress = Callable[[int], None]
"""Told how many sizes are done."""


def measure(installation: MpiInstallation, milliseconds: float, told: Progress, silence: float = SILENCE) -> Measured:
    """Times each way for each use at each size, for so many milliseconds each use, between two ranks of a node.

    Raises WaysError; MpiInstallationError and MpiError where the MPI cannot be used, or there is no library to
    preload."""
    contiguous = ("host", "offered")
    asked = [
        *(_Asked(size, run, SERVING) for size, run in CELLS),
        *(_Asked(size, 0, {("contiguous", "regular"): contiguous}) for size in CONTIGUOUS),
    ]
    sizes = ("node", *(",".join(map(str, sizes)) for sizes in (BYTES, RUNS, CONTIGUOUS)))
    found = _measure(installation, milliseconds, sizes, asked, told, silence)
    ns: Sheets = {use: {} for use, _ in SERVING}
    for (use, form), ways in SERVING.items():
        ns[use][form] = {way: [0.0] * (len(BYTES) * len(RUNS)) for way in ways}
        for (size, run), times in zip(CELLS, found.ns, strict=False):
            for way in ways:
                ns[use][form][way][BYTES.index(size) * len(RUNS) + RUNS.index(run)] = times[use][form][way]
    plain = [times["contiguous"]["regular"] for times in found.ns[len(CELLS) :]]
    return Measured(found.version, ns, {way: [times[way] for times in plain] for way in contiguous}, found.line_times)


def measure_nodes(
    installation: MpiInstallation,
    hosts: Hosts | tuple[str, str],
    milliseconds: float,
    told: Progress,
    silence: float = SILENCE,
) -> tuple[str, Lists]:
    """What the MPI says of itself, and by CHUNKED the times of messages between these two hosts: packed as a whole, and
    in chunks of each length. Raises as measure() does."""
    ways = [PACKED, *(f"chunked {chunk}" for chunk in CHUNKS)]
    asked = [_Asked(size, CHUNKED_RUN, {("send", form): ways for form in ("regular", "listed")}) for size in CHUNKED]
    sizes = ("nodes", ",".join(map(str, CHUNKED)), str(CHUNKED_RUN), ",".join(map(str, CHUNKS)))
    found = _measure(installation, milliseconds, sizes, asked, told, silence, hosts)
    return found.version, {way: [times["send"]["regular"][way] for times in found.ns] for way in ways}


@dataclass(frozen=True)
class Given:
    """What was measured of one datatype."""

    library_version: str
    ns: Found
    line_times: LineTimes


def measure_given(installation: MpiInstallation, layout: Layout, milliseconds: float) -> Given:
    """Nanoseconds of every use of a datatype of that layout, between two ranks of a node: of nested
    MPI_Type_create_hvector where its canonical form is loops, else of MPI_Type_create_hindexed. Raises as measure()
    does, and ValueError for a layout of more than a million runs."""
    ways = {(use, form): ways for (use, form), ways in SERVING.items() if form == "regular"}
    with tempfile.NamedTemporaryFile("w", prefix="lacuna-", suffix=".type") as file:
        file.write(_type_text(layout))
        file.flush()
        asked = [_Asked(0, 0, ways)]
        found = _measure(installation, milliseconds, ("given", file.name), asked, lambda _: None, SILENCE)
    return Given(found.version, found.ns[0], found.line_times)


def _type_text(layout: Layout) -> str:
    """As ways_piece.h reads it; the lowest byte is at 0."""
    if layout.run_count > MOST_RUNS:
        raise ValueError(f"a layout of {layout.run_count:,} runs; datatypes of at most {MOST_RUNS:,} are measured")
    if loops := _LOOPS.fullmatch(layout.describe()):
        levels = re.findall(r"(\d+) x \+(\d+) B", loops[1])
        return " ".join(("loops", str(len(levels)), *(number for level in levels for number in level), loops[2]))
    low = layout.true_lower_bound
    runs = (f"{offset - low} {length}" for offset, length in layout.runs(MOST_RUNS))
    return " ".join(("list", str(layout.run_count), *runs))


def _measure(
    installation: MpiInstallation,
    milliseconds: float,
    what: Sequence[str],
    asked: Sequence[_Asked],
    told: Progress,
    silence: float,
    hosts: Hosts | tuple[str, str] | None = None,
) -> _Found:
    """Runs the program."""
    started = launch(installation, hosts)
    library = preload_library(abi_of(started.version))
    # Other hosts have this folder, too, or none.
    with tempfile.TemporaryDirectory(prefix="lacuna-", dir=Path.cwd() if isinstance(hosts, tuple) else None) as folder:
        program = _compile(installation, Path(folder))
        line: list[str | Path] = [
            *started.line,
            "env",  # the program's alone: the launchers are programs too
            f"LD_PRELOAD={preloaded(library, started.environment)['LD_PRELOAD']}",
            "LACUNA_MPI_DECODE=1",  # the first use of a type is like all others
            program,
            f"{milliseconds:g}",
            *what,
        ]
        return _run(f"ways under {installation.name}", line, started, asked, told, silence)


def _compile(installation: MpiInstallation, folder: Path) -> Path:
    built = folder / "ways"
    line: list[str | Path] = [installation.mpicc, "-O2", "-std=gnu11", shim_source("ways.c"), "-o", built, "-ldl"]
    installation.compile("ways.c", line, WaysError)
    return built


def _run(
    title: str,
    line: Sequence[str | Path],
    started: Launch,
    asked: Sequence[_Asked],
    told: Progress,
    silence: float,
) -> _Found:
    # What the user has set for programs, LACUNA_MPI_OFFER for one, would decide instead of the program here.
    kept = {name: value for name, value in started.environment.items() if not name.startswith("LACUNA_")}
    with tempfile.TemporaryFile("w+", errors="replace") as errors:
        process = subprocess.Popen(
            line, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors, env=kept, process_group=0
        )
        assert process.stdout is not None
        try:
            measured = _read(_lines(process.stdout.fileno(), silence), asked, told)
            _end(process)
        except EndError as e:  # the launcher tells how
            with contextlib.suppress(LineError):
                _end(process)
            if process.returncode == _WRONG_BYTES:
                raise WrongBytesError(f"{title}: a way moved wrong bytes{_said(errors)}") from e
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


def _read(lines: Iterator[dict[str, Any]], asked: Sequence[_Asked], told: Progress) -> _Found:
    """Raises LineError where a line does not come, or is not the one that has to come."""
    head = next(lines)
    version = head.get("version")
    if not isinstance(version, str) or not version or head.get("cells") != len(asked):
        raise LineError(f"began with {head}")
    found: list[_Cell] = []
    for wanted in asked:
        told(len(found))
        try:
            cell = read(_Cell, next(lines), "cell")
        except SchemaError as e:
            raise LineError(f"sent another line than a size's: {e}") from e
        if wanted.bytes and (cell.bytes, cell.run) != (wanted.bytes, wanted.run):
            raise LineError(
                f"measured {cell.bytes} bytes in runs of {cell.run}, not {wanted.bytes} in runs of {wanted.run}"
            )
        _check(cell, wanted)
        found.append(cell)
    if next(lines) != {"ends": len(asked)}:
        raise LineError("did not end after the last size")
    told(len(asked))
    return _Found(version, found)


def _check(cell: _Cell, wanted: _Asked) -> None:
    for (use, form), ways in wanted.ways.items():
        found = cell.ns.get(use, {}).get(form, {})
        for way in ways:
            if not 0 < found.get(way, math.nan) < math.inf:
                raise LineError(f"has no time of {use}, {form}, {way} for {cell.bytes} bytes in runs of {cell.run}")
    if not 0 <= cell.line_ns < math.inf:
        raise LineError(f"has no time of a line for {cell.bytes} bytes in runs of {cell.run}")
