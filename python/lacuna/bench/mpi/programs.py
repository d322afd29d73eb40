"""The programs of `lacuna bench mpi`: collectives, mini-applications and messages between two hosts, each in runs with
and without Lacuna by turns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lacuna.bench.mpi.program_rows import ProgramRow, rows_from
from lacuna.mpi import mini_applications
from lacuna.mpi.applications import ApplicationError, MissingError, Program, by_turns
from lacuna.mpi.installations import MpiInstallation, MpiInstallationError
from lacuna.mpi.interposer import MpiError
from lacuna.mpi.launch import launch
from lacuna.mpi.mini_applications import Mini
from lacuna.mpi.two_hosts import Hosts

RANKS = (2, 4, 8)
"""Of the collectives."""

MANY, QUICK_MANY = (16, 64), (16,)
"""Ranks of the jobs of many, as `lacuna bench ranks` runs them."""

_RUN_SECONDS = 100.0
"""More ranks than CPUs take turns by the scheduler's clock in MPIs that never yield."""


@dataclass(frozen=True)
class Task:
    """A program with so many ranks."""

    program: Mini
    ranks: int
    inter_node: bool = False

    @property
    def name(self) -> str:
        return f"{self.program.name}, {self.ranks} ranks" + (", two hosts" if self.inter_node else "")


@dataclass(frozen=True)
class Effort:
    """How much a task gets."""

    pairs: int
    seconds: float
    """Of a case, in a run."""
    quick: bool


QUICK = Effort(pairs=2, seconds=0.03, quick=True)
FULL = Effort(pairs=5, seconds=0.1, quick=False)


def planned(*, inter_node: bool, pattern: str = "") -> list[Task]:
    """What there is to run whose name holds `pattern`; `inter_node`: between two hosts, too. What more ranks than CPUs
    make slow comes last: a budget may not reach it."""
    tasks = [Task(program, 2) for program in (*mini_applications.APPLICATIONS, mini_applications.COLLECTIVES)]
    if inter_node:
        tasks += [
            Task(program, 2, inter_node=True)
            for program in (mini_applications.PINGPONG, *mini_applications.APPLICATIONS, mini_applications.COLLECTIVES)
        ]
    tasks += [Task(program, 4) for program in mini_applications.APPLICATIONS]
    tasks += [Task(mini_applications.COLLECTIVES, ranks) for ranks in RANKS if ranks > 2]
    return [task for task in tasks if pattern.lower() in task.name.lower()]


def planned_many(ranks: Sequence[int], pattern: str = "") -> list[int]:
    """Those whose names hold `pattern`."""
    return [number for number in ranks if pattern.lower() in many_name(number)]


def many_name(ranks: int) -> str:
    return f"many ranks: {ranks}"


class Programs:
    """Compiles each program once for each MPI, and runs it. `hosts`: the two of the tasks between two hosts."""

    def __init__(self, folder: Path, hosts: Hosts | None) -> None:
        self._folder = folder
        self._hosts = hosts
        self._built: dict[tuple[Path, str, bool], Program] = {}

    def race(
        self, task: Task, mpi: str, installation: MpiInstallation, effort: Effort, going: Callable[[], bool]
    ) -> list[ProgramRow]:
        """Pairs of runs, the first of a pair by turns the one and the other. `going`: whether there is time for one
        more pair. Raises MissingError where the MPI cannot have it, ApplicationError where a byte was wrong."""
        try:
            program = self._program(task, installation)
            largest = task.program.quick if effort.quick or task.ranks > RANKS[0] else task.program.largest
            given = {"seconds": effort.seconds, "largest": largest}
            pairs: list[tuple[Sequence[dict[str, Any]], Sequence[dict[str, Any]]]] = []
            while len(pairs) < effort.pairs and (not pairs or going()):
                pairs.append(
                    by_turns(
                        lambda preload: program.run(given, ranks=task.ranks, preload=preload, seconds=_RUN_SECONDS),
                        len(pairs),
                    )
                )
            return rows_from(mpi, task.program.name, 2 if task.inter_node else 1, pairs)
        except (MpiInstallationError, MpiError) as e:
            raise MissingError(str(e)) from e
        except ValueError as e:
            raise ApplicationError(f"{task.name}: {e}") from e

    def _program(self, task: Task, installation: MpiInstallation) -> Program:
        key = (installation.mpicc, task.program.name, task.inter_node)
        if key not in self._built:
            started = launch(installation, self._hosts if task.inter_node else None)
            self._built[key] = mini_applications.build(installation, task.program, started, self._folder)
        return self._built[key]
