"""Runs `lacuna bench ranks`: many.c under each MPI, with more and more ranks, without Lacuna and with it by turns."""

from __future__ import annotations

import json
import os
import re
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

import lacuna
from lacuna.bench.race import cases_in_time
from lacuna.bench.ranks.rows import ManyRanks, RanksRun, row_of
from lacuna.bench.result import Mpi
from lacuna.mpi.demo import cpu
from lacuna.mpi.installations import MpiInstallation, MpiInstallationError
from lacuna.mpi.interposer import MpiError, abi_of, name_and_abi, preload_library, preloaded
from lacuna.mpi.launch import Launch, end_launcher, launch
from lacuna.worker.protocol import SchemaError, parsed, read

RANKS = (2, 4, 8, 16, 32, 64, 128)
QUICK_RANKS = (2, 8, 32)
_MEMORY = 2 << 30
"""Bytes of all ranks' blocks together: half of it is gaps, and each has as much to receive."""
_MOST_BLOCK, _LEAST_BLOCK = 256 << 10, 4 << 10
_SECONDS = 240.0
"""For one run. 128 ranks on two CPUs take about a minute."""


class RanksError(Exception):
    """A run failed; the text says how."""


def block_of(ranks: int) -> int:
    """Bytes of a block, so that all ranks' memory stays bounded: each has one to send to each, and one to receive."""
    block = _MEMORY // (4 * ranks * ranks)
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
            library = preload_library(abi_of(started.version))
            program = folder / f"many-{mpi.name}"
            line: list[str | Path] = [mpi.mpicc, "-O2", "-std=gnu11", source(), "-o", program]
            mpi.compile("many.c", line, RanksError)
        except (MpiInstallationError, MpiError, RanksError) as e:
            self.result.errors.append(f"{mpi.name} could not be measured: {e}")
            return []
        name = name_and_abi(started.version)[0]
        self.result.mpis.append(Mpi(name, mpi.name, started.version, started.transport, str(library)))
        return [_Job(name, program, started.of(ranks), library, ranks) for ranks in self.ranks]

    def _run(self, job: _Job) -> None:
        before = shared_kib()
        plain: list[ManyRanks] = []
        with_lacuna: list[ManyRanks] = []
        try:
            for _ in range(self.runs):
                plain.append(job.run(self.rounds, preload=False))
                with_lacuna.append(job.run(self.rounds, preload=True))
        except RanksError as e:
            self.result.errors.append(f"{job.name}: {e}")
            return
        self.result.rows.append(row_of(job.mpi, plain, with_lacuna, before))


@dataclass(frozen=True)
class _Job:
    mpi: str
    program: Path
    started: Launch
    library: Path
    ranks: int

    @property
    def name(self) -> str:
        return f"{self.mpi}: {self.ranks} ranks"

    def run(self, rounds: int, *, preload: bool) -> ManyRanks:
        """Raises RanksError."""
        front = ["env", f"LD_PRELOAD={preloaded(self.library, self.started.environment)['LD_PRELOAD']}"]
        line: list[str | Path] = [
            *self.started.line,
            *(front if preload else []),
            self.program,
            str(block_of(self.ranks)),
            str(rounds),
        ]
        process = subprocess.Popen(
            line,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=self.started.environment,
            process_group=0,
        )
        how = "with Lacuna" if preload else "without Lacuna"
        try:
            out, err = (said.decode(errors="replace") for said in process.communicate(timeout=_SECONDS))
        except subprocess.TimeoutExpired:
            raise RanksError(f"{how}: it took longer than {_SECONDS:.0f} s") from None
        finally:
            end_launcher(process, 5)
        found = [line for line in out.splitlines() if line.startswith("{")]
        if process.returncode != 0 or len(found) != 1:
            raise RanksError(f"{how}: it ended with {process.returncode}: {(err or out).strip()[-600:]}")
        try:
            many = read(ManyRanks, parsed(found[0].encode()), "run")
        except (SchemaError, json.JSONDecodeError) as e:
            raise RanksError(f"{how}: it said {found[0]!r}: {e}") from e
        if many.ranks != self.ranks:
            raise RanksError(f"{how}: it ran with {many.ranks} ranks")
        return many


def shared_kib() -> int:
    """What processes of this machine share now."""
    found = re.search(r"^Shmem:\s+(\d+) kB$", Path("/proc/meminfo").read_text(), re.MULTILINE)
    return int(found[1]) if found else 0


def source() -> Path:
    """many.c, which is installed with the package."""
    for folder in map(Path, lacuna.__path__):
        if (folder / "shim" / "many.c").is_file():
            return folder / "shim" / "many.c"
    raise MpiInstallationError("many.c is missing: this package was installed without it")
