"""What `lacuna bench scale` finds: a row for each number of ranks, block size and schedule."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from lacuna.bench.result import BenchResult
from lacuna.worker.grouping import grouped

SCHEDULES = ("at_once", "pairwise", "forward")


@dataclass(frozen=True)
class ScaleRow:
    """One exchange among all ranks, the second of a world."""

    ranks: int
    nodes: int
    bytes: int
    """Of a block; each rank sends one to each."""
    schedule: str
    us: float
    """Virtual, from the first rank's start to the last one's end."""
    expected_us: float
    """By the prices that the choice has."""
    chosen: bool
    """Whether the choice takes this schedule."""
    messages: int
    """That all NICs sent,"""
    message_bytes: int
    """and theirs."""
    not_ready: int
    """Of them, those that found no receive when they came first."""
    connections: int
    """Of a rank, at most; the same of the bytes that follow."""
    registered: int
    allocated: int
    wall_s: float
    """What simulating both exchanges took on this machine."""


@dataclass(frozen=True)
class ScaleCell:
    """The rows of a number of ranks and a block size."""

    rows: list[ScaleRow]

    @property
    def best(self) -> ScaleRow:
        return min(self.rows, key=lambda row: row.us)

    @property
    def chosen(self) -> ScaleRow | None:
        """None: what would be chosen was not measured."""
        return next((row for row in self.rows if row.chosen), None)

    @property
    def regret(self) -> float | None:
        """The chosen schedule's time over the best one's, less 1."""
        return None if self.chosen is None else self.chosen.us / self.best.us - 1


@dataclass
class ScaleRun(BenchResult):
    """A run of the bench."""

    profile: str = ""
    rows: list[ScaleRow] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)
    """What makes no sense at its size, and why."""

    @property
    def place(self) -> str:
        return f"NIC model:{self.profile}"

    @property
    def is_empty(self) -> bool:
        return not self.rows

    @property
    def cells(self) -> list[ScaleCell]:
        """By block size, then by ranks."""
        found = grouped(self.rows, lambda row: (row.bytes, row.ranks))
        return [ScaleCell(found[key]) for key in sorted(found)]

    def summary(self) -> dict[str, Any]:
        if not self.rows:
            return {}
        regrets = [cell.regret for cell in self.cells if cell.regret is not None]
        most = max(row.ranks for row in self.rows)
        return {
            "ranks_most": most,
            "wall_s_of_most": sum(row.wall_s for row in self.rows if row.ranks == most),
            "regret_worst": max(regrets, default=0.0),
            "regret_mean": sum(regrets) / len(regrets) if regrets else 0.0,
            "registered_of_rank_most": max(row.registered for row in self.rows),
            "allocated_of_rank_most": max(row.allocated for row in self.rows),
        }
