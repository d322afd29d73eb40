"""How contenders are measured: started once each, asked case by case while there is time, close to one another so that
they see the same machine. What cannot be measured is told, and the others go on."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from itertools import zip_longest
from pathlib import Path
from typing import Any, Protocol, TypeVar

from rich.console import Console

from lacuna import clock
from lacuna.bench.progress import Meter
from lacuna.bench.result import BenchResult, Mpi
from lacuna.mpi.applications import ApplicationError, MissingError
from lacuna.mpi.installations import MpiInstallation, MpiInstallationError
from lacuna.mpi.interposer import MpiError
from lacuna.worker.grouping import grouped
from lacuna.worker.json_lines import RowError
from lacuna.worker.process import WorkerError

QUICK_PAYLOAD = 1 << 20

K = TypeVar("K")
C = TypeVar("C")


class Contender(Protocol):
    """A bench of one MPI that runs; a context manager. `hello` is what it said of itself."""

    transport: str

    @property
    def hello(self) -> dict[str, Any]: ...
    def close(self) -> None: ...
    def __enter__(self) -> Any: ...
    def __exit__(self, *error: Any) -> None: ...


Runs = TypeVar("Runs", bound=Contender)


def start_all(
    stack: ExitStack,
    result: BenchResult,
    installations: Sequence[MpiInstallation],
    start: Callable[[MpiInstallation, Path], Runs],
    name_of: Callable[[str, str], str] = lambda _, called: called,
) -> dict[str, Runs]:
    """A contender of each MPI, by its name in the result; `start` gets a folder that lasts as long as the stack. They
    sleep but for the one that is asked. `name_of`: of the version and of what --mpi calls it."""
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="lacuna-")))
    found: dict[str, Runs] = {}
    for installation in installations:
        called = installation.name
        try:
            contender = stack.enter_context(start(installation, folder))
        except (MpiInstallationError, MpiError, WorkerError) as e:
            result.errors.append(f"{called} could not be measured: {e}")
            continue
        version = " ".join(str(contender.hello["mpi"]).split())
        name = name_of(version, called)
        name = called if name in found else name
        found[name] = contender
        result.measured_on(contender.hello)
        preload = str(getattr(contender, "library", ""))
        result.mpis.append(Mpi(name, called, version, contender.transport, preload))
    return found


def cases_in_time(
    console: Console, result: BenchResult, cases: Sequence[K], name: Callable[[K], str], deadline: float, what: str
) -> Iterator[K]:
    """The cases for which there is time until `deadline` on the clock of budgets; the others are left out by name."""
    if not cases:
        return
    with Meter(console, len(cases), deadline - clock.now(), what) as meter:
        for done, case in enumerate(cases):
            meter.advance(done, len(cases), deadline - clock.now())
            if clock.now() > deadline:
                result.left_out.append(name(case))
            else:
                yield case
        meter.advance(len(cases), len(cases), deadline - clock.now())


def ask_each(result: BenchResult, contenders: dict[str, C], case: str, ask: Callable[[str, C], None]) -> None:
    """Asks all contenders about one case. One that is gone does not come back."""
    for name, contender in list(contenders.items()):
        try:
            ask(name, contender)
        except MissingError as e:
            result.left_out.append(f"{name}: {case}: {e}")
        except (RowError, ApplicationError, WorkerError) as e:
            result.errors.append(f"{name}: {case}: {e}")
            if isinstance(e, WorkerError):
                del contenders[name]


def race_in_time(
    console: Console,
    result: BenchResult,
    contenders: dict[str, C],
    cases: Sequence[tuple[str, Callable[[str, C], None]]],
    deadline: float,
    what: str,
) -> None:
    """All contenders in each case for which there is time. A case is its name, and what asks one of them about it."""
    for name, ask in cases_in_time(console, result, cases, lambda case: case[0], deadline, what):
        ask_each(result, contenders, name, ask)


def chosen_cases(cases: Sequence[Mapping[str, Any]], *, quick: bool, pattern: str = "") -> list[int]:
    """Cases by their index: contiguous ones, then one of each family, then the next of each; so that a run that is cut
    short has seen every family. Quick: of each family the largest of QUICK_PAYLOAD at most, and the smallest."""
    named = (i for i, case in enumerate(cases) if pattern.lower() in f"{case['suite']} {case['name']}".lower())
    families = grouped(named, lambda i: (cases[i]["suite"], cases[i]["family"]))
    chosen: list[int] = []
    later: list[list[int]] = []
    for (suite, _), members in families.items():
        if suite == "contiguous":
            chosen += members
            continue
        members.sort(key=lambda i: -int(cases[i]["payload_bytes"]))
        if quick and not pattern:
            small = [i for i in members if int(cases[i]["payload_bytes"]) <= QUICK_PAYLOAD] or members[-1:]
            members = list(dict.fromkeys([small[0], small[-1]]))
        later.append(members)
    return chosen + [i for turn in zip_longest(*later) for i in turn if i is not None]
