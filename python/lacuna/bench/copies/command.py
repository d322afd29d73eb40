"""Runs `lacuna bench copy`: the bench, and one of each MPI, which race against Lacuna on the same rows."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import typer
from rich.console import Console

from lacuna import clock
from lacuna.bench.copies.arrays_race import ArraysRace
from lacuna.bench.copies.drawn import DrawnCase
from lacuna.bench.copies.families import drawn
from lacuna.bench.copies.figures import OPERATIONS
from lacuna.bench.copies.rows import CACHES, Copies, against, row_from, special_from
from lacuna.bench.race import ask_each, cases_in_time, start_all
from lacuna.mpi.installations import MpiInstallation
from lacuna.worker.grouping import grouped
from lacuna.worker.json_lines import RowError
from lacuna.worker.process import BenchProcess, find_executable

_SILENCE = 120.0
"""Seconds: the largest row with the slowest MPI takes a few."""

_MILLISECONDS = 30.0
_QUICK_MILLISECONDS = 10.0

DRAWN_ROWS = 10
QUICK_DRAWN_ROWS = 4
"""Layouts of each family, unless --rows says."""

Cell = tuple[int, str, str]
"""A case by its index, an operation and a cache state."""
DrawnCell = tuple[DrawnCase, str, str]


def find_bench() -> Path:
    """The executable: `LACUNA_COPY_BENCH` if set, otherwise the one installed in the package."""
    return find_executable("lacuna-copy-bench", "LACUNA_COPY_BENCH")


class CopyBench(BenchProcess):
    """One running bench, of an MPI if there is a shim."""

    transport = ""

    def __init__(self, silence: float, shim: Path | None = None, environment: dict[str, str] | None = None) -> None:
        line: list[str | Path] = [find_bench()]
        super().__init__(line + (["--mpi", shim] if shim else []), silence, environment)


@dataclass
class CopyRace:
    """What is asked for, and where it goes. Rows that do not fit the time are listed; a wrong byte is an error and the
    run goes on."""

    result: Copies
    quick: bool
    only: str
    seed: int
    drawn_rows: int
    mpis: Sequence[MpiInstallation]
    deadline: float
    others: dict[str, CopyBench] = field(default_factory=dict)

    def __call__(self, console: Console) -> None:
        with ExitStack() as stack:
            bench = stack.enter_context(CopyBench(_SILENCE))
            chosen = planned(bench.hello, quick=self.quick, pattern=self.only)
            families = drawn(self.seed, self.drawn_rows, self.only)
            if not chosen and not families:
                raise typer.BadParameter(f"no layout's name holds {self.only!r}", param_hint="--only")
            self.others = start_all(
                stack,
                self.result,
                self.mpis,
                lambda mpi, folder: CopyBench(_SILENCE, mpi.shim(folder), mpi.environment()),
            )
            self.result.measured_on(bench.hello)
            cells = [(case, operation, cache) for case in chosen for operation in OPERATIONS for cache in CACHES]

            def name(cell: Cell) -> str:
                return ", ".join((str(bench.hello["cases"][cell[0]]["name"]), *cell[1:]))

            for cell in cases_in_time(console, self.result, cells, name, self.deadline, "rows"):
                self._race(bench, cell, name(cell))
            if chosen:
                self._race_specials(bench, chosen)
            self._race_drawn(console, bench, families)

    def _race_drawn(self, console: Console, bench: CopyBench, families: Sequence[DrawnCase]) -> None:
        """Layouts from the seed, in the bench and, where they stay in the caches as they are, from Python."""
        cells = [
            (case, operation, cache) for case in families for operation in case.operations for cache in case.caches
        ]
        arrays = ArraysRace()
        self.result.seed, self.result.arrays = self.seed, arrays.versions

        def name(cell: DrawnCell) -> str:
            return ", ".join((cell[0].name, *cell[1:]))

        for case, operation, cache in cases_in_time(
            console, self.result, cells, name, self.deadline, f"rows of seed {self.seed}"
        ):
            pace = {"operation": operation, "cache": cache, "milliseconds": self._milliseconds}
            try:
                row = bench.ask(drawn=case.described(operation), **pace)
                others = arrays.measure(case, operation, self._milliseconds) if cache == "warm" else {}
                self.result.rows.append(row_from(row, element=case.element, **others))
            except RowError as e:
                self.result.errors.append(str(e))

    @property
    def _milliseconds(self) -> float:
        return _QUICK_MILLISECONDS if self.quick else _MILLISECONDS

    def _race(self, bench: CopyBench, cell: Cell, name: str) -> None:
        case, operation, cache = cell
        ask = {"measure": case, "operation": operation, "cache": cache, "milliseconds": self._milliseconds}
        try:
            row = row_from(bench.ask(**ask))
        except RowError as e:
            self.result.errors.append(str(e))
            return

        def beside(mpi: str, other: CopyBench) -> None:
            row.mpi.append(against(other.ask(**ask)["contenders"][1], mpi))

        ask_each(self.result, self.others, name, beside)
        self.result.rows.append(row)

    def _race_specials(self, bench: CopyBench, chosen: Sequence[int]) -> None:
        """Equal typemaps, fragments and calls."""
        if clock.now() > self.deadline:
            self.result.left_out.append("equal typemaps, fragments and calls")
            return
        result, longer = self.result, {"milliseconds": 3 * self._milliseconds}
        try:
            for operation in ("pack", "unpack"):
                for i, _ in enumerate(bench.hello["equivalents"]):
                    result.equal_typemaps.append(special_from(bench.ask(equivalent=i, operation=operation, **longer)))
                for case in chosen[:: max(1, len(chosen) // 12)]:
                    result.fragments.append(special_from(bench.ask(fragments=case, operation=operation, **longer)))
            for contender in bench.ask(calls=True, **longer)["contenders"]:
                result.calls[str(contender["name"]).replace(" ", "_")] = float(contender["ns"])
        except RowError as e:
            result.errors.append(str(e))


def planned(hello: dict[str, Any], *, quick: bool, pattern: str = "") -> list[int]:
    """The cases that the bench offers, all of them or a sixth of them spread over all kinds."""
    names = [case["name"] for case in hello["cases"]]
    chosen = [i for i, name in enumerate(names) if pattern.lower() in name.lower()]
    if not quick or pattern:
        return chosen
    kinds = grouped(chosen, lambda i: hello["cases"][i]["kind"])
    return sorted(i for members in kinds.values() for i in members[::6])
