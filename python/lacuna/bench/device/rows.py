"""What `lacuna bench device` measures: the rows of lacuna-device-bench, and of the array libraries beside them."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

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
class DeviceBench:
    """A run. `other`: rows of other kinds (faces, processes, host), as the bench says them."""

    version: str
    created: str
    card: dict[str, Any] = field(default_factory=dict)
    rows: list[DeviceRow] = field(default_factory=list)
    other: list[dict[str, Any]] = field(default_factory=list)
    planned: int = 0
    left_out: int = 0
    interrupted: bool = False

    @property
    def errors(self) -> list[str]:
        wrong = [row.name for row in self.rows if not row.verified]
        wrong += [kind for said in self.other for kind, what in said.items() if what.get("verified") is False]
        return [f"{name}: wrong bytes" for name in wrong]

    def take(self, line: str) -> bool:
        """A line of the bench. True if it ends a row. Raises ValueError if it is none of its lines."""
        said = json.loads(line)
        if not isinstance(said, dict) or len(said) != 1:
            raise ValueError(f"no line of lacuna-device-bench: {line[:80]}")
        ((kind, what),) = said.items()
        if kind == "hello":
            self.card = what
            self.planned = int(what.get("rows", 0))
        elif kind == "row":
            self.rows.append(
                DeviceRow(
                    what["group"], what["name"], what["payload"], what["share"], what["verified"], dict(what["us"])
                )
            )
        elif kind == "end":
            self.left_out = int(what["left_out"])
        else:
            self.other.append(said)
        return bool(kind != "hello" and kind != "end")

    def add_arrays(self, lines: Iterable[str]) -> None:
        """What torch and CuPy took for rows of these names."""
        by_name = {row.name: row for row in self.rows}
        for line in lines:
            said = json.loads(line)
            if said["name"] in by_name:
                by_name[said["name"]].us.update(said["us"])

    def groups(self) -> list[str]:
        return list(dict.fromkeys(row.group for row in self.rows))

    def to_json(self) -> str:
        document = {
            "version": self.version,
            "created": self.created,
            "card": self.card,
            "interrupted": self.interrupted,
            "left_out": self.left_out,
            "rows": [vars(row) for row in self.rows],
            "other": self.other,
        }
        return json.dumps(document, indent=1)


def geometric_mean(values: Sequence[float]) -> float:
    """Of positive numbers; NaN of none."""
    return math.exp(sum(map(math.log, values)) / len(values)) if values else math.nan


@dataclass(frozen=True)
class Summary:
    """Of the rows of a group that are large."""

    group: str
    rows: int
    share: float
    worst: float
    over_best: float
    worst_over_best: float


def summaries(bench: DeviceBench) -> list[Summary]:
    """A line for each group, and one for all."""
    lines = []
    for group in [*bench.groups(), "all"]:
        rows = [row for row in bench.rows if row.payload >= LARGE and group in (row.group, "all")]
        if not rows:
            continue
        shares = [row.share for row in rows]
        over = [x for row in rows if (x := row.over_best) is not None]
        worst = max(over, default=math.nan)
        lines.append(Summary(group, len(rows), geometric_mean(shares), min(shares), geometric_mean(over), worst))
    return lines
