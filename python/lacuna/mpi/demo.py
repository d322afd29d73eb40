"""What `lacuna mpi demo` measures: a halo exchange by an MPI's datatypes, in runs with and without Lacuna by turns.

The program is examples/mini/halo.c, compiled by the MPI's own mpicc. Without a compiler, as where a package brought the
MPI, examples/mini/halo.py does the same: Python is there, and a compiled program for each ABI of MPI would be one more
thing to build for every platform."""

from __future__ import annotations

import math
import os
import platform
import re
import statistics
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import combinations, count
from pathlib import Path
from typing import Any

from lacuna import clock
from lacuna.medians import geomean
from lacuna.mpi import mini_applications
from lacuna.mpi.applications import ApplicationError, LateError, Program, by_turns, sources
from lacuna.mpi.installations import MpiInstallation, MpiInstallationError, find
from lacuna.mpi.interposer import find_mpirun, name_and_abi, preload_library
from lacuna.mpi.launch import Launch, launch

SCHEMA = 1
PAIRS = 3
"""Runs with Lacuna, and as many without."""

SIZE_SECONDS = 0.08
"""Of each size, in a run."""
LARGEST = 2048
WAITED_US = 500.0
"""An exchange of 32 KiB on one node takes less than a tenth of this, unless a rank waits until another program, or
another rank, leaves it a CPU: a slice of the scheduler's is some milliseconds."""
_OWN_SECONDS = 0.5
"""What the command takes before and after."""
_LAUNCHERS = ("mpirun", "mpiexec")


class Verdict(StrEnum):
    """What the runs say, whichever of them is left out."""

    GAINS = "gains"
    LOSES = "loses"
    UNCLEAR = "unclear"


@dataclass(frozen=True)
class Size:
    """One exchange. Times are in microseconds: the least of the medians of runs."""

    case: str
    sent_bytes: int
    """By a rank, at most."""
    hand_us: float | None
    """Packed by hand, without Lacuna."""
    plain_us: float
    """By the MPI's datatypes."""
    preloaded_us: float
    """By datatypes, with Lacuna preloaded."""
    ratio: float
    """preloaded_us over plain_us."""


@dataclass(frozen=True)
class Demonstration:
    """What was measured, and of what."""

    schema: int
    mpi: str
    launcher: str
    transport: str
    library: str
    program: str
    not_compiled: str
    """What the compiler said, where the program is Python's."""
    ranks: int
    cpus: int
    machine: str
    pairs: int
    sizes: tuple[Size, ...]
    ratio: float
    """The geometric mean of those of the sizes."""
    ratio_low: float
    """The least of those of the pairs."""
    ratio_high: float
    verdict: Verdict

    @property
    def slowest_us(self) -> float:
        return slowest_of(self.sizes)


Lines = Sequence[Mapping[str, Any]]
"""What a run prints, a line for each size."""


def find_installation(wanted: str | None) -> MpiInstallation:
    """By its mpicc or its launcher; without either, the MPI whose launcher find_mpirun() finds. The mpicc of an MPI
    that was installed without is only a name. Raises MpiError and MpiInstallationError."""
    if wanted and not Path(wanted).name.startswith(_LAUNCHERS):
        return replace(find([wanted])[0], name="MPI")
    launcher = find_mpirun(wanted).absolute()
    name = launcher.name
    for usual in (*_LAUNCHERS, ".hydra"):
        name = name.removeprefix(usual)
    return MpiInstallation("MPI", launcher.with_name(f"mpicc{name}"))


def measure(
    installation: MpiInstallation, ranks: int, budget: float, told: Callable[[int, float], None]
) -> Demonstration:
    """Pairs of runs, the first of a pair by turns the one and the other, as many as there is time for. `told`: of the
    runs that are done, and of the seconds left. Raises ApplicationError where a byte was wrong or no pair ended in
    time, and MpiError or MpiInstallationError where the MPI cannot be used."""
    deadline = clock.now() + budget - _OWN_SECONDS
    started = launch(installation)
    mpi, abi = name_and_abi(started.version)
    library = preload_library(abi)
    with tempfile.TemporaryDirectory(prefix="lacuna-") as folder:
        program, given, not_compiled = _program(installation, started, abi, Path(folder))
        given |= {"seconds": SIZE_SECONDS, "largest": LARGEST}

        done = count()

        def run(preload: bool) -> Lines:
            left = deadline - clock.now()
            told(next(done), left)
            return program.run(given, ranks=ranks, preload=preload, seconds=max(1.0, left))

        pairs = _run_pairs(run, deadline)
    sizes = compare(pairs)
    ratio, low, high = ratio_of(pairs)
    return Demonstration(
        schema=SCHEMA,
        mpi=mpi,
        launcher=started.line[0],
        transport=started.transport,
        library=str(library),
        program=str(program.path if not_compiled else sources() / "examples" / "mini" / "halo.c"),
        not_compiled=not_compiled,
        ranks=ranks,
        cpus=len(os.sched_getaffinity(0)),
        machine=cpu(),
        pairs=len(pairs),
        sizes=sizes,
        ratio=ratio,
        ratio_low=low,
        ratio_high=high,
        verdict=judge(slowest_of(sizes), low, high),
    )


def _run_pairs(run: Callable[[bool], Lines], deadline: float) -> list[tuple[Lines, Lines]]:
    """A plain run and a preloaded one each. Raises LateError where there is none."""
    pairs: list[tuple[Lines, Lines]] = []
    took = 0.0
    while len(pairs) < PAIRS and (not pairs or clock.now() + took < deadline):
        begin = clock.now()
        try:
            pairs.append(by_turns(run, len(pairs)))
        except LateError:
            if pairs:
                break
            raise
        took = clock.now() - begin
    return pairs


def compare(pairs: Sequence[tuple[Lines, Lines]]) -> tuple[Size, ...]:
    """Raises ApplicationError where runs are not alike."""
    cases = [[(line["case"], line["bytes"]) for line in side] for pair in pairs for side in pair]
    if any(one != cases[0] for one in cases):
        raise ApplicationError("runs of the halo exchange do not print the same sizes")
    plain, preloaded = ([pair[side] for pair in pairs] for side in (0, 1))
    sizes = []
    for i, (case, sent) in enumerate(cases[0]):
        by_hand = _least(plain, i, "hand_us") if plain[0][i]["hand_us"] else None
        theirs, ours = (_least(runs, i, "datatype_us") for runs in (plain, preloaded))
        sizes.append(Size(case, sent, by_hand, theirs, ours, ours / theirs))
    return tuple(sizes)


def ratio_of(pairs: Sequence[tuple[Lines, Lines]]) -> tuple[float, float, float]:
    """The geometric mean of the sizes' ratios; and what it is at least and at most without any one of the plain and
    any one of the preloaded runs. Of a single pair the two are not known: 0 and infinity."""

    def mean(pairs: Sequence[tuple[Lines, Lines]]) -> float:
        return geomean([size.ratio for size in compare(pairs)])

    if len(pairs) < 2:
        return mean(pairs), 0, math.inf
    plain, preloaded = zip(*pairs, strict=True)
    fewer = len(pairs) - 1
    parts = [
        mean(list(zip(some, others, strict=True)))
        for some in combinations(plain, fewer)
        for others in combinations(preloaded, fewer)
    ]
    return mean(pairs), min(parts), max(parts)


def slowest_of(sizes: Sequence[Size]) -> float:
    """By datatypes, in microseconds."""
    return max(us for size in sizes for us in (size.plain_us, size.preloaded_us))


def judge(slowest: float, low: float, high: float) -> Verdict:
    """A gain or a loss that hangs on a single run is none; nor is one of ranks that waited for a CPU."""
    if slowest > WAITED_US or low <= 1 <= high:
        return Verdict.UNCLEAR
    return Verdict.GAINS if high < 1 else Verdict.LOSES


def _least(runs: Sequence[Lines], size: int, key: str) -> float:
    """Of the medians of runs: what else a machine does can only make one longer."""
    return min(statistics.median(map(float, run[size][key])) for run in runs)


def _program(
    installation: MpiInstallation, started: Launch, abi: str, folder: Path
) -> tuple[Program, dict[str, object], str]:
    """The compiled one if it can be had; its arguments, and why it is the other one."""
    try:
        return mini_applications.build(installation, mini_applications.HALO, started, folder), {}, ""
    except (ApplicationError, MpiInstallationError) as e:
        script = sources() / "examples" / "mini" / "halo.py"
        made = Program(installation, "halo", script, started, (sys.executable, "-P"))
        return made, {"library": installation.library(abi)}, str(e)


def cpu() -> str:
    """The name of this machine's CPU."""
    said = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text())
    return said[1] if said else f"{platform.machine()} CPU"
