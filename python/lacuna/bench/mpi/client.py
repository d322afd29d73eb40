"""The clients of `lacuna-mpi-bench`: of one MPI two jobs, one as it is and one with Lacuna preloaded, that race."""

from __future__ import annotations

import random
import time
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from lacuna.bench.mpi.rows import AUTOMATIC, JUDGED, Contender, Side
from lacuna.mpi.installations import MpiInstallation
from lacuna.mpi.interposer import abi_of, preload_library, preloaded
from lacuna.mpi.job import Job
from lacuna.mpi.launch import launch
from lacuna.worker.json_lines import RowError
from lacuna.worker.process import WorkerError, find_executable

_LIBRARIES = "liblacuna_mpi_"
_SIDES = {False: "plain", True: "preloaded"}
_ALWAYS, _NEVER = 254, 1 << 40
"""Bytes: no message that is as short as its descriptor, of 253, is offered."""
FORCED = {
    AUTOMATIC: {},
    "off": {"LACUNA_MPI": "off"},
    "host": {"LACUNA_MPI_WAY": "host"},
    "packed": {"LACUNA_MPI_OFFER": f"{_NEVER}"},
    "mapped": {"LACUNA_MPI_OFFER": f"{_ALWAYS}", "LACUNA_PATH": "mapped"},
    "kernel": {"LACUNA_MPI_OFFER": f"{_ALWAYS}", "LACUNA_PATH": "kernel"},
}
"""What the preloaded library can be told to do with every message with gaps: leave it to the MPI, or pack it and have
the MPI send it, or move it through shared memory, or copy it directly. And what it does by itself, in a job like
theirs, where nothing else uses the memory."""


@dataclass(frozen=True)
class Effort:
    """What a race gets."""

    milliseconds: float
    """Rounds begin until so much time is over."""
    fewest: int
    """Rounds at least."""
    most: int = 301


@dataclass(frozen=True)
class Raced:
    samples: dict[Contender, list[float]]
    """Microseconds of a message, by round."""
    refused: list[str]
    """What an MPI cannot send: "preloaded: mpi_ddt: MPI refused a constructor"."""


def find_bench() -> Path:
    """The executable: `LACUNA_MPI_BENCH` if set, otherwise the one installed in the package."""
    return find_executable("lacuna-mpi-bench", "LACUNA_MPI_BENCH")


class MpiBench:
    """The jobs of an MPI, two and with `forced` seven, which sleep but for the one that is asked; a context manager."""

    def __init__(self, installation: MpiInstallation, folder: Path, silence: float, *, forced: bool = False) -> None:
        """Compiles the shim into `folder` and starts them. `silence`: seconds after which a job is given up. `forced`:
        starts one more for each of FORCED, of which the datatypes race alone.

        Raises MpiInstallationError where this MPI cannot be used, MpiError where there is no library to preload, and
        WorkerError where a job did not start or did not load it.
        """
        bench = find_bench()
        started = launch(installation)
        self.transport = started.transport
        self.library = preload_library(abi_of(started.version))
        program: list[str | Path] = [bench, installation.shim(folder), "SOCKET"]
        front = {"LD_PRELOAD": preloaded(self.library, started.environment)["LD_PRELOAD"]}
        self._jobs: dict[Side, Job] = {}
        with ExitStack() as starting:
            for side in (*_SIDES, *(FORCED if forced else ())):
                name = f"{installation.name} {_text(side)}"
                variables = front | FORCED[side] if isinstance(side, str) else front
                job = Job(name, started, program, folder, silence, variables if side else None)
                self._jobs[side] = starting.enter_context(job)
                _check(name, str(job.hello["send_in"]), self.library if side else None)
            self._stack = starting.pop_all()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: Any) -> None:
        self._stack.__exit__(*error)

    def close(self) -> None:
        """Ends both jobs; then there is nothing left to do at the end."""
        self._stack.close()

    @property
    def hello(self) -> dict[str, Any]:
        """What the plain job's rank 0 said of itself."""
        return self._jobs[False].hello

    def race(self, case: int, effort: Effort) -> Raced:
        """Rounds in which every contender of all jobs has a turn, in another order each time: so that whatever the
        machine does meets all alike. What arrives is verified before the first round and after the last.

        Raises RowError where wrong bytes arrived or the case cannot be opened, WorkerError where a job is gone."""
        try:
            raced = self._race(case, effort)
        except RowError:
            with suppress(RowError):
                self._close_case()
            raise
        self._close_case()
        return raced

    def _close_case(self) -> None:
        for side in self._jobs:
            self._ask(side, close=True)

    def _race(self, case: int, effort: Effort) -> Raced:
        contenders: dict[Contender, int] = {}
        refused: list[str] = []
        for side in self._jobs:
            opened = self._ask(side, open=case)
            for i, name in enumerate(map(str, opened["contenders"])):
                if not isinstance(side, str) or name == JUDGED:
                    contenders[side, name] = i
            if not isinstance(side, str):
                refused += [f"{_text(side)}: {reason}" for reason in opened["refused"]]
        for (side, _), i in contenders.items():
            self._ask(side, verify=i)
        for side in self._jobs:
            self._ask(side, pace=True)
        samples: dict[Contender, list[float]] = {contender: [] for contender in contenders}
        chance = random.Random(1)
        order = list(contenders)
        start = time.monotonic()
        for done in range(1, effort.most + 1):
            chance.shuffle(order)
            for contender in order:
                answer = self._ask(contender[0], batch=contenders[contender])
                samples[contender].append(float(answer["us"]))
            if done >= effort.fewest and time.monotonic() - start > effort.milliseconds / 1e3:
                break
        for (side, _), i in contenders.items():
            self._ask(side, verify=i)
        return Raced(samples, refused)

    def commits(self, times: int, turns: int, blocks: int) -> dict[bool, list[float]]:
        """Microseconds of MPI_Type_commit, `times` in each job, the same types in both; they take turns too."""
        found: dict[bool, list[float]] = {side: [] for side in _SIDES}
        for turn in range(turns):
            for side in sorted(_SIDES, reverse=turn % 2 == 1):
                answer = self._ask(side, commit=times // turns, blocks=blocks, seed=turn)
                found[side] += map(float, answer["us"])
        return found

    def _ask(self, side: Side, **command: Any) -> dict[str, Any]:
        try:
            return self._jobs[side].ask(**command)
        except RowError as e:
            raise RowError(f"{_text(side)}: {e}") from e
        except WorkerError:
            self.close()  # without one of them there is nothing to race
            raise


def _text(side: Side) -> str:
    return side if isinstance(side, str) else _SIDES[side]


def _check(name: str, send_in: str, library: Path | None) -> None:
    """A library that the loader did not take is a line on standard error for it, and nothing for us to see but this."""
    if library is None and _LIBRARIES in send_in:
        raise WorkerError(f"{name}: MPI_Send is in {send_in}; LD_PRELOAD names it already")
    if library is not None and Path(send_in).name != library.name:
        raise WorkerError(f"{name}: {library} was not loaded: MPI_Send is in {send_in}")
