"""Runs `lacuna bench mpi`: the two jobs of each MPI, case by case in all of them, then programs."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import typer
from rich.console import Console

from lacuna import clock
from lacuna.bench.mpi import programs, random_types
from lacuna.bench.mpi.client import Effort, MpiBench
from lacuna.bench.mpi.programs import Programs, Task, many_name
from lacuna.bench.mpi.random_types import RandomTypes
from lacuna.bench.mpi.rows import COMMIT, LATENCY, MpiRun, cost_of, forced_from, name_of, rows_from
from lacuna.bench.race import chosen_cases, race_in_time, start_all
from lacuna.bench.ranks.command import RanksJob, built
from lacuna.mpi.applications import MissingError
from lacuna.mpi.installations import MpiInstallation, MpiInstallationError
from lacuna.mpi.interposer import MpiError
from lacuna.mpi.two_hosts import HostsError
from lacuna.mpi.two_hosts import two_hosts as two_hosts_here

_SILENCE = 120.0
"""Seconds: a batch takes a second at most, but an MPI's datatype may be slow in ways that were never seen."""

QUICK_SECONDS = 300.0
SECONDS = 2400.0
_SHARE = 0.5
"""Of the time, what messages may take where programs come after them."""

_PLACES = ("LACUNA_MPI_LIB_DIR", "LACUNA_MPI_BENCH")

_COMMITS = 200
_COMMIT_TURNS = 4
_COMMIT_BLOCKS = 1000
_COMMIT_NAME = f"commit of {_COMMIT_BLOCKS} blocks"


_QUICK, _FULL = Effort(100, 9), Effort(600, 21)
_QUICK_MANY, _FULL_MANY = (1, 3), (3, 5)
"""Runs of each kind of a job of many ranks, and rounds of each exchange."""
QUICK_RANDOM, FULL_RANDOM = 5.0, 40.0
"""Milliseconds of each exchange of a random type."""
_QUICK_LATENCY, _FULL_LATENCY = Effort(0, 300), Effort(0, 600, 600)
"""Of the 8 bytes: nanoseconds are asked for, so there are more rounds."""


def variables() -> dict[str, str]:
    """Those that change what the preloaded library does, by name; not those that say where something is."""
    return {k: v for k, v in os.environ.items() if k.startswith("LACUNA_MPI") and k not in _PLACES}


@dataclass(frozen=True)
class MpiRace:
    """What is asked for, and where it goes."""

    result: MpiRun
    quick: bool
    only: str
    forced: bool
    tasks: Sequence[Task]
    many: Sequence[int]
    """Ranks of jobs."""
    random: Sequence[RandomTypes]
    mpis: Sequence[MpiInstallation]
    deadline: float

    def __call__(self, console: Console) -> None:
        self._messages(console)
        with ExitStack() as stack:
            folder = Path(stack.enter_context(TemporaryDirectory(prefix="lacuna-")))
            hosts = None
            if any(task.inter_node for task in self.tasks):
                try:
                    hosts = stack.enter_context(two_hosts_here())
                except HostsError as e:
                    self.result.errors.append(f"two hosts: {e}")
            self._programs(
                console, [t for t in self.tasks if hosts or not t.inter_node], Programs(folder, hosts), folder
            )

    @property
    def _others(self) -> bool:
        return bool(self.tasks or self.random or self.many)

    def _messages(self, console: Console) -> None:
        result = self.result
        with ExitStack() as stack:
            benches = start_all(
                stack,
                result,
                self.mpis,
                lambda mpi, folder: MpiBench(mpi, folder, _SILENCE, forced=self.forced),
                name_of,
            )
            if not benches:
                return
            cases = next(iter(benches.values())).hello["cases"]
            planned: list[tuple[str, Callable[[str, MpiBench], None]]] = [
                (str(cases[i]["name"]), partial(self._race, i, cases[i]))
                for i in chosen_cases(cases, quick=self.quick, pattern=self.only)
            ]
            if self.only.lower() in _COMMIT_NAME:
                planned.insert(0, (_COMMIT_NAME, self._commit))
            if not planned and not self._others:
                raise typer.BadParameter(f"no case's name holds {self.only!r}", param_hint="--only")
            ends = clock.now() + (self.deadline - clock.now()) * (_SHARE if self._others else 1)
            race_in_time(console, result, benches, planned, ends, "cases")

    def _race(self, case: int, of: Mapping[str, Any], mpi: str, bench: MpiBench) -> None:
        small = of["suite"] == "contiguous"
        quick, full = (_QUICK_LATENCY, _FULL_LATENCY) if small else (_QUICK, _FULL)
        raced = bench.race(case, quick if self.quick else full)
        if small:
            plain, preloaded = (raced.samples[side, "reference"] for side in (False, True))
            self.result.costs.append(cost_of(mpi, LATENCY, plain, preloaded))
        else:
            self.result.rows += rows_from(of, mpi, raced.samples)
            self.result.forced += forced_from(of, mpi, raced.samples)
        self.result.left_out += [f"{mpi}: {of['name']}: {refused}" for refused in raced.refused]

    def _commit(self, mpi: str, bench: MpiBench) -> None:
        times = bench.commits(_COMMITS, _COMMIT_TURNS, _COMMIT_BLOCKS)
        self.result.costs.append(cost_of(mpi, COMMIT, times[False], times[True]))

    def _programs(self, console: Console, tasks: Sequence[Task], runner: Programs, folder: Path) -> None:
        names = {mpi.called: mpi.name for mpi in self.result.mpis}
        mpis = {names[mpi.name]: mpi for mpi in self.mpis if mpi.name in names}
        effort = programs.QUICK if self.quick else programs.FULL

        def going() -> bool:
            return clock.now() < self.deadline

        def run(task: Task, name: str, mpi: MpiInstallation) -> None:
            if going():
                self.result.programs += runner.race(task, name, mpi, effort, going)
            else:
                self.result.left_out.append(f"{name}: {task.name}")

        def run_random(job: RandomTypes, name: str, mpi: MpiInstallation) -> None:
            if going():
                self.result.random += random_types.race(job, name, mpi, folder)
            else:
                self.result.left_out.append(f"{name}: {job.name}")

        def run_many(ranks: int, name: str, mpi: MpiInstallation) -> None:
            if not going():
                self.result.left_out.append(f"{name}: {many_name(ranks)}")
                return
            try:
                job = RanksJob(name, built(mpi, folder), ranks)
                self.result.ranks.append(job.race(*(_QUICK_MANY if self.quick else _FULL_MANY)))
            except (MpiInstallationError, MpiError) as e:
                raise MissingError(str(e)) from e

        if mpis:
            planned = [(job.name, partial(run_random, job)) for job in self.random]
            planned += [(task.name, partial(run, task)) for task in tasks]
            planned += [(many_name(ranks), partial(run_many, ranks)) for ranks in self.many]
            race_in_time(console, self.result, mpis, planned, self.deadline, "programs")
