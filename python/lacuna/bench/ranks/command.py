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
from lacuna.bench.ranks.rows import ManyRanks, RanksRun, row_of
from lacuna.bench.result import Mpi
from lacuna.mpi.applications import ApplicationError, Program, by_turns
from lacuna.mpi.demo import cpu
from lacuna.mpi.installations import MpiInstallation, MpiInstallationError, shim_source
from lacuna.mpi.interposer import MpiError, abi_of, name_and_abi, preload_library
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

    def _jobs(self, mpi: MpiInstallation, folder: Path) -> list[_Job]:
        try:
            started = launch(mpi)
            built = folder / f"many-{mpi.name}"
            source = shim_source("many.c")
            mpi.compile(source.name, [mpi.mpicc, "-O2", "-std=gnu11", source, "-o", built, "-ldl"], ApplicationError)
            name = name_and_abi(started.version)[0]
            preload = str(preload_library(abi_of(started.version)))
        except (MpiInstallationError, MpiError, ApplicationError) as e:
            self.result.errors.append(f"{mpi.name} could not be measured: {e}")
            return []
        self.result.mpis.append(Mpi(name, mpi.name, started.version, started.transport, preload))
        return [_Job(name, Program(mpi, "many", built, started), ranks) for ranks in self.ranks]

    def _run(self, job: _Job) -> None:
        before = shared_kib()
        runs: dict[bool, list[ManyRanks]] = {False: [], True: []}
        try:
            for turn in range(self.runs):
                for preload, run in zip((False, True), by_turns(partial(job.run, self.rounds), turn), strict=True):
                    runs[preload].append(run)
        except (ApplicationError, MpiError) as e:
            self.result.errors.append(f"{job.name}: {e}")
            return
        self.result.rows.append(row_of(job.mpi, runs[False], runs[True], before))


@dataclass(frozen=True)
class _Job:
    mpi: str
    program: Program
    ranks: int

    @property
    def name(self) -> str:
        return f"{self.mpi}: {self.ranks} ranks"

    def run(self, rounds: int, preload: bool) -> ManyRanks:
        """Raises ApplicationError where it did not end, or found a wrong byte; MpiError."""
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
