"""What a bench finds: its rows, with what they were measured on, and what is not there and why."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol, TypeVar

from lacuna.medians import Median, geomean, median_of
from lacuna.worker.protocol import written
from lacuna.worker.result import Result


@dataclass(frozen=True)
class Mpi:
    """An MPI that was measured."""

    name: str
    """That of rows and summary."""
    called: str
    """That of --mpi."""
    version: str
    transport: str = ""
    preload: str = ""
    """The library that was loaded before it."""


@dataclass
class BenchResult(Result):
    """A run of a bench. Its JSON has the members by name, and before them the schema's number and the summary."""

    machine: dict[str, Any] = field(default_factory=dict)
    instruction_set: str = ""
    compiler: str = ""
    mpis: list[Mpi] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    interrupted: bool = False

    schema: ClassVar[int] = 1
    """Goes up where a member goes, or means something else."""

    @property
    def place(self) -> str:
        """The CPU, or the device, that was measured."""
        return str(self.machine.get("cpu", "this machine"))

    @property
    def is_empty(self) -> bool:
        """There is nothing to show or to write."""
        return False

    def summary(self) -> dict[str, Any]:
        """Figures by name. What was not measured is missing."""
        return {}

    def measured_on(self, hello: Mapping[str, Any]) -> None:
        """`hello`: what a bench says of the machine and of itself."""
        self.machine = dict(hello["machine"])
        self.instruction_set, self.compiler = str(hello["instruction_set"]), str(hello["compiler"])

    def to_json(self) -> str:
        return written({"schema": self.schema, "summary": self.summary(), **vars(self)}) + "\n"


# --- figures of a summary ---------------------------------------------------------------------------------------------


class Case(Protocol):
    @property
    def case(self) -> str: ...


CaseRow = TypeVar("CaseRow", bound=Case)


def geomean_of(name: str, ratios: Sequence[float]) -> dict[str, float]:
    return {name: geomean(ratios)} if ratios else {}


def worst_of(name: str, rows: Sequence[CaseRow], figure: Callable[[CaseRow], float]) -> dict[str, Any]:
    """The largest figure, and whose it is."""
    if not rows:
        return {}
    worst = max(rows, key=figure)
    return {name: figure(worst), f"{name}_case": worst.case}


def ratio_of(ours: Iterable[float], theirs: Iterable[float]) -> Median:
    """Of times by round."""
    return median_of(a / b for a, b in zip(ours, theirs, strict=True))


def ratios_of(ours: Sequence[float], hand: Sequence[float], host: Sequence[float]) -> dict[str, Any]:
    """The members of a row that are ratios over packing by hand and over the MPI's own datatypes, with intervals."""
    found = {"ratio_vs_hand": ratio_of(ours, hand), "ratio_vs_host": ratio_of(ours, host)}
    return {
        f"{name}{end}": value
        for name, ratio in found.items()
        for end, value in (("", ratio.value), ("_low", ratio.low), ("_high", ratio.high))
    }
