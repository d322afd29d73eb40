"""Runs `lacuna bench ranks`: many.c under each MPI, with more and more ranks, without Lacuna and with it by turns."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from rich.console import Console

from lacuna.bench.race import cases_in_time
from lacuna.bench.ranks.rows import ManyRanks, RanksRow, RanksRun, row_of
from lacuna.bench.result import Mpi
from lacuna.mpi.applications import ApplicationError, Program, by_turns
from lacuna.mpi.demo import cpu
from lacuna.mpi.installations import MpiInstallation, MpiInstallationError, shim_source
from lacuna.mpi.interposer import MpiError, name_and_abi, preload_library
from lacuna.mpi.launch import launch
from lacuna.worker.protocol import SchemaError, read

RANKS = (2, 4, 8, 16, 32, 64, 128)
QUICK_RANKS = (2, 8, 32)
_MEMORY = 4 << 30
"""Bytes of all ranks' memory to receive: half of it is gaps."""
_MOST_BLOCK, _LEAST_BLOCK = 256 << 10, 4 << 10
_SECONDS = 240.0
"""For one run. 128 ranks on two CPUs take about a minute."""


def block_of(ranks: int) -> int:
    """Bytes of a block, so that all ranks' memory stays bounded: each has one to receive from each."""
    block = _MEMORY // (2 * ranks * ranks)
    return max(_LEAST_BLOCK, min(_MOST_BLOCK, 1 << (block.bit_length() - 1)))


@dataclass(frozen=True)
class RanksRace:
    """What is asked for, and where it goes."""

    result: RanksRun
    ranks: Sequence[int]
    runs: int
    rounds: int
    mpis: Sequence[MpiInstallation]
    deadline: float

    def __call__(self, console: Console) -> None:
        self.result.machine = {"cpu": cpu(), "cpus": len(os.sched_getaffinity(0))}
        with tempfile.TemporaryDirectory(prefix="lacuna-") as folder:
            jobs = [job for mpi in self.mpis for job in self._jobs(mpi, Path(folder))]
            for job in cases_in_time(console, self.result, jobs, lambda job: job.name, self.deadline, "jobs"):
                self._run(job)

    def _jobs(self, mpi: MpiInstallation, folder: Path) -> list[RanksJob]:
        try:
            program = built(mpi, folder)
            name, abi = name_and_abi(program.started.version)
            preload = str(preload_library(abi))
        except (MpiInstallationError, MpiError, ApplicationError) as e:
            self.result.errors.append(f"{mpi.name} could not be measured: {e}")
            return []
        self.result.mpis.append(Mpi(name, mpi.name, program.started.version, program.started.transport, preload))
        return [RanksJob(name, program, ranks) for ranks in self.ranks]

    def _run(self, job: RanksJob) -> None:
        try:
            self.result.rows.append(job.race(self.runs, self.rounds))
        except (ApplicationError, MpiError) as e:
            self.result.errors.append(f"{job.name}: {e}")


def built(mpi: MpiInstallation, folder: Path) -> Program:
    """many.c under this MPI, compiled into `folder` where it is not there yet. Raises MpiInstallationError,
    ApplicationError."""
    file = folder / f"many-{mpi.name}"
    if not file.exists():
        source = shim_source("many.c")
        mpi.compile(source.name, [mpi.mpicc, "-O2", "-std=gnu11", source, "-o", file, "-ldl"], ApplicationError)
    return Program(mpi, "many", file, launch(mpi))


@dataclass(frozen=True)
class RanksJob:
    """A job of so many ranks, which runs without Lacuna and with it."""

    mpi: str
    program: Program
    ranks: int

    @property
    def name(self) -> str:
        return f"{self.mpi}: {self.ranks} ranks"

    def race(self, runs: int, rounds: int) -> RanksRow:
        """So many runs of each kind, by turns. Raises ApplicationError where one did not end, or found a wrong byte;
        MpiError."""
        before = shared_kib()
        found: dict[bool, list[ManyRanks]] = {False: [], True: []}
        for turn in range(runs):
            for preload, run in zip((False, True), by_turns(partial(self.run, rounds), turn), strict=True):
                found[preload].append(run)
        return row_of(self.mpi, found[False], found[True], before)

    def run(self, rounds: int, preload: bool) -> ManyRanks:
        """One run; as race()."""
        given = {"bytes": block_of(self.ranks), "rounds": rounds}
        lines = self.program.run(given, ranks=self.ranks, preload=preload, seconds=_SECONDS)
        try:
            many = read(ManyRanks, lines[0], "run")
        except SchemaError as e:
            raise ApplicationError(f"it said {lines[0]}: {e}") from e
        if len(lines) != 1 or many.ranks != self.ranks:
            raise ApplicationError(f"it said {lines}, not one line of {self.ranks} ranks")
        return many


def shared_kib() -> int:
    """What processes of this machine share now."""
    found = re.search(r"^Shmem:\s+(\d+) kB$", Path("/proc/meminfo").read_text(), re.MULTILINE)
    return int(found[1]) if found else 0
