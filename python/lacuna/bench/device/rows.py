"""What `lacuna bench device` measures: the rows of lacuna-device-bench, and of the array libraries beside them."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, ClassVar

from lacuna.bench.result import BenchResult
from lacuna.medians import geomean
from lacuna.worker.protocol import SchemaError, member, parsed, read

LARGE = 16_000_000
"""Bytes of payload from which on a row counts: below, starting a kernel takes as long as the copy."""

COPIES = ("2D", "3D", "batch")
"""The copy engine's ways: cuMemcpy2DAsync, cuMemcpy3DAsync, cuMemcpyBatchAsync."""


@dataclass
class DeviceRow:
    """One layout into another. Times in microseconds, `share` of the limit."""

    group: str
    name: str
    payload: int
    share: float
    verified: bool
    us: dict[str, float]

    @property
    def ours(self) -> float:
        return self.us["lacuna"]

    @property
    def over_best(self) -> float | None:
        """Our time over that of the best of the copy engine, torch and CuPy; None where none of them can."""
        others = [t for name, t in self.us.items() if name not in ("lacuna", "contiguous", "element")]
        return self.ours / min(others) if others else None


@dataclass
class DeviceRun(BenchResult):
    """A run. `other`: rows of other kinds (faces, processes, host), as the bench says them."""

    rows: list[DeviceRow] = field(default_factory=list)
    other: list[dict[str, Any]] = field(default_factory=list)

    schema: ClassVar[int] = 2
    """1 had `version` instead of `lacuna_version`, `card` instead of `machine`, and a number as `left_out`."""

    @property
    def place(self) -> str:
        card = self.machine
        return f"{card.get('device', '')}: {card.get('model', '')}, CUDA {card.get('driver', '') or 'none'}"

    @property
    def is_empty(self) -> bool:
        return not self.rows and not self.other

    def take(self, said: dict[str, Any]) -> int:
        """A line of the bench. Returns how many rows end with it, or how many the bench plans where it says that.
        Raises SchemaError if it is none of its lines."""
        if len(said) != 1:
            raise SchemaError("a line of lacuna-device-bench has one member")
        ((kind, value),) = said.items()
        what = read(dict[str, Any], value, kind)
        if kind == "hello":
            self.machine = what
            return int(what.get("rows", 0))
        if kind == "end":
            if left_out := member(what, "left_out", kind):
                self.left_out.append(f"{left_out} rows: the budget was used up")
            return 0
        if kind == "row":
            self.rows.append(read(DeviceRow, what, kind))
        else:
            self.other.append(said)
        if what.get("verified") is False:
            self.errors.append(f"{what.get('name', kind)}: wrong bytes")
        return 1

    def add_arrays(self, lines: Iterable[str]) -> None:
        """What torch and CuPy took for rows of these names."""
        by_name = {row.name: row for row in self.rows}
        for line in lines:
            said = parsed(line)
            if said["name"] in by_name:
                by_name[said["name"]].us.update(said["us"])

    def groups(self) -> list[str]:
        return list(dict.fromkeys(row.group for row in self.rows))

    def summary(self) -> dict[str, Any]:
        """Of each group, and of all: what of its rows are large."""
        return {one.group: one for one in summaries(self)}


@dataclass(frozen=True)
class Summary:
    """Of the rows of a group that are large."""

    group: str
    rows: int
    share: float
    worst: float
    over_best: float
    worst_over_best: float


def summaries(bench: DeviceRun) -> list[Summary]:
    """A line for each group, and one for all."""
    lines = []
    for group in [*bench.groups(), "all"]:
        rows = [row for row in bench.rows if row.payload >= LARGE and group in (row.group, "all")]
        if not rows:
            continue
        shares = [row.share for row in rows]
        over = [x for row in rows if (x := row.over_best) is not None]
        worst = max(over, default=math.nan)
        lines.append(Summary(group, len(rows), geomean(shares), min(shares), geomean(over), worst))
    return lines
