"""Shares the time among the cells, and never spends more than there is.

Every cell costs its set-up, which cannot be shortened, and the time it is given to measure. The set-up is guessed by
the plan and corrected by what earlier cells really took. Each cell gets a floor; what is left above all floors is
shared by weight. So a worker that is slower than thought first loses the slack, then the optional cells, then measures
the required cells more briefly; a faster one hands its gains to the cells that follow, which are the large ones.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import fmean, linear_regression

from lacuna.guide.plan import Cell

_FLOOR_ROUNDS = 3
"""A cell gets time for this many transfers by every method, if there is time at all: fewer give no interval."""

_FLOOR_MS = 40.0
"""With 15 ms two runs were more than 5 % apart in 17 of 278 cells, with 40 ms in 6 of 293, though in a quieter hour. A
cell whose order is clear ends sooner."""

_CEILING_MS = 1500.0
"""More than this helps no cell; without it all that the small cells leave would go to the last and largest."""

_LEAST_MS = 2.0

_HOPELESS = 20.0
"""A method is hopeless if one transfer takes this many times what a transfer should, and its share too."""

_CENSOR_SHARE = 0.125
_CENSOR_LEAST_MS = 10.0
"""Below this a transfer is never censored: a busy hypervisor can steal as much from one that is healthy."""


@dataclass(frozen=True)
class Grant:
    """What one cell may spend."""

    budget_ms: float
    censor_ms: float


class SetupModel:
    """Predicts a cell's set-up from the plan's guess: seen = fixed + factor * guess.

    Fitted by least squares on relative errors, so that cells of 2 ms and of 2 s count alike. Two made-up cells that
    took exactly what was guessed stand at the start, so the fit is defined from the first cell on.
    """

    def __init__(self) -> None:
        self._points: list[tuple[float, float]] = [(0.001, 1.0), (1.0, 1.0)]  # 1 / guess, seen / guess
        self._fixed = 0.0
        self._factor = 1.0

    def predict(self, guess_ms: float) -> float:
        return self._fixed + self._factor * guess_ms

    def learn(self, guess_ms: float, seen_ms: float) -> None:
        self._points.append((1 / guess_ms, seen_ms / guess_ms))
        x, y = zip(*self._points, strict=True)
        self._fixed = max(0.0, linear_regression(x, y).slope)
        self._factor = max(0.0, fmean(y) - self._fixed * fmean(x))


class Pacer:
    """Hands out the time until `deadline` on `clock`, cell by cell in the order of the plan."""

    def __init__(self, cells: Sequence[Cell], deadline: float, clock: Callable[[], float]) -> None:
        self._later = list(cells)
        self._deadline = deadline
        self.kept = 0.0
        """Seconds at the end that are wanted for something else: only cells that must be measured may use them."""
        self._clock = clock
        self._setup = SetupModel()
        self._started = 0.0
        self._granted_ms = 0.0

    @property
    def left_seconds(self) -> float:
        return max(0.0, self._deadline - self._clock())

    def grant(self, reduced: Cell | None = None) -> Grant | None:
        """The share of the next cell, or None if it has to be left out. `reduced`: that cell, with less to measure
        than was planned. Call `spent` once a cell was measured."""
        planned = self._later.pop(0)
        cell = reduced or planned
        self._started = self._clock()
        all_left = self.left_seconds * 1e3
        left = max(0.0, all_left - self.kept * 1e3)
        setup, floor = self._setup.predict(cell.setup_ms), _floor_ms(cell)
        promised = sum(self._needs_ms(c) for c in self._later if c.required)
        own = setup + floor
        if all_left < setup + _LEAST_MS or (not cell.required and left < own + promised):
            return None
        slack = left - own - sum(self._needs_ms(c) for c in self._later)
        if slack >= 0:
            share = slack * _weight(cell) / (_weight(cell) + sum(map(_weight, self._later)))
            self._granted_ms = min(floor + share, _CEILING_MS)
        else:
            # There is too little for all. The optional cells will be left out; do the required ones still fit?
            self._granted_ms = max(
                _LEAST_MS, floor * min(1.0, (all_left if cell.required else left) / (own + promised))
            )
        return Grant(
            self._granted_ms, max(_CENSOR_LEAST_MS, _CENSOR_SHARE * self._granted_ms, _HOPELESS * cell.transfer_ms)
        )

    def spent(self, cell: Cell) -> None:
        """Learns from the time since the grant how long set-up really takes."""
        took_ms = (self._clock() - self._started) * 1e3
        if took_ms > self._granted_ms:
            seen = took_ms - self._granted_ms
        else:
            # The worker had samples enough before its time was up; set-up took at most all of the time.
            seen = min(took_ms, self._setup.predict(cell.setup_ms))
        self._setup.learn(cell.setup_ms, seen)

    def _needs_ms(self, cell: Cell) -> float:
        return self._setup.predict(cell.setup_ms) + _floor_ms(cell)


def _weight(cell: Cell) -> float:
    """Large messages get more time, but not in proportion: they vary less from one transfer to the next."""
    return 1 + math.sqrt(cell.round_ms)


def _floor_ms(cell: Cell) -> float:
    return min(max(_FLOOR_MS, _FLOOR_ROUNDS * cell.visit_transfers * cell.round_ms), _CEILING_MS)
