"""Runs `lacuna bench messages`: a job of each MPI, case by case in all of them."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import typer
from rich.console import Console

from lacuna.bench.messages.rows import Messages, rows_from
from lacuna.bench.race import chosen_cases, race_in_time, start_all
from lacuna.mpi.installations import MpiInstallation
from lacuna.mpi.job import Job
from lacuna.mpi.launch import launch
from lacuna.worker.process import find_executable

_SILENCE = 120.0
"""Seconds: 64 MiB take a hundredth of one, and a slow datatype a few."""

QUICK_SECONDS = 55.0
SECONDS = 900.0


def find_bench() -> Path:
    """The executable: `LACUNA_MESSAGE_BENCH` if set, otherwise the one installed in the package."""
    return find_executable("lacuna-message-bench", "LACUNA_MESSAGE_BENCH")


class MessageBench(Job):
    """One running job of two ranks, connected through an MPI and through Lacuna."""

    def __init__(self, mpi: MpiInstallation, folder: Path, silence: float) -> None:
        """Compiles the shim into `folder` and starts the job. `silence`: seconds after which it is given up.

        Raises MpiInstallationError where this MPI cannot be used, and WorkerError where the job did not start.
        """
        bench = find_bench()
        started = launch(mpi)
        self.transport = started.transport
        bootstrap = f"bench-{secrets.token_hex(8)}"
        super().__init__(mpi.name, started, [bench, mpi.shim(folder), "SOCKET", bootstrap], folder, silence)


_QUICK = {"milliseconds": 100.0, "fewest": 9}
_FULL = {"milliseconds": 600.0, "fewest": 21}
"""What one case in one job gets, in the words of the request."""


@dataclass(frozen=True)
class MessageRace:
    """What is asked for, and where it goes."""

    result: Messages
    quick: bool
    only: str
    forced: bool
    mpis: Sequence[MpiInstallation]
    deadline: float

    def __call__(self, console: Console) -> None:
        result = self.result
        with ExitStack() as stack:
            jobs = start_all(stack, result, self.mpis, lambda mpi, folder: MessageBench(mpi, folder, _SILENCE))
            if not jobs:
                return
            cases = next(iter(jobs.values())).hello["cases"]
            chosen = chosen_cases(cases, quick=self.quick, pattern=self.only)
            if not chosen:
                raise typer.BadParameter(f"no case's name holds {self.only!r}", param_hint="--only")
            planned = [(str(cases[case]["name"]), partial(self._ask, case)) for case in chosen]
            race_in_time(console, result, jobs, planned, self.deadline, "cases")

    def _ask(self, case: int, mpi: str, job: MessageBench) -> None:
        answer = job.ask(measure=case, forced=self.forced, **(_QUICK if self.quick else _FULL))
        self.result.rows += rows_from(answer, mpi)
        self.result.left_out += [f"{mpi}: {answer['case']}: {refused}" for refused in answer["refused"]]
