"""Plans of made-up layouts, and a clock by which a made-up worker measures them."""

from __future__ import annotations

from dataclasses import dataclass, field

from fake_tables import CORPUS

from lacuna.guide.plan import Cell
from lacuna.guide.time_shares import Pacer
from lacuna.worker.records import Family, Size

FAMILIES = tuple(
    Family(name, tuple(Size(payload, dims, span, blocks) for payload, dims, span, blocks in sizes))
    for name, sizes in CORPUS
)


@dataclass
class Simulation:
    """A clock, and a worker whose set-up takes `fixed_ms` and `factor` times what the plan guesses."""

    factor: float = 1.0
    fixed_ms: float = 0.0
    enough_ms: float = float("inf")
    """The worker needs no more than this to reach max_samples."""
    now: float = 1000.0
    measured: list[tuple[Cell, float]] = field(default_factory=list)

    def run(self, cells: list[Cell], seconds: float) -> float:
        """Runs the plan and returns how many seconds it took."""
        started = self.now
        pacer = Pacer(cells, started + seconds, lambda: self.now)
        for cell in cells:
            if grant := pacer.grant():
                self.now += (self.fixed_ms + self.factor * cell.setup_ms + min(grant.budget_ms, self.enough_ms)) / 1e3
                self.measured.append((cell, grant.budget_ms))
                pacer.spent(cell)
        return self.now - started

    @property
    def required(self) -> int:
        return sum(cell.required for cell, _ in self.measured)


def required(cells: list[Cell]) -> int:
    return sum(cell.required for cell in cells)
