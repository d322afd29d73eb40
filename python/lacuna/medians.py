"""A geometric mean; a median and its bootstrap interval, as guide::median_of computes it (lacuna/guide/measure.hpp has
the argument)."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache

_TAIL = 0.025
_FEWEST = 6
"""Values that an interval of 95 % needs; below, it is the whole range."""


@dataclass(frozen=True)
class Median:
    value: float
    low: float
    high: float


def geomean(values: Sequence[float]) -> float:
    """Not a number of none."""
    return statistics.geometric_mean(values) if values else math.nan


def median_of(values: Iterable[float]) -> Median:
    """Of one value at least."""
    ordered = sorted(values)
    n = len(ordered)
    k = 1 if n < _FEWEST else _first_rank(n)
    return Median(statistics.median(ordered), ordered[k - 1], ordered[n - k])


@cache
def _first_rank(n: int) -> int:
    """The first k for which it is not rare that a resample's median is among the k smallest values."""
    from scipy.special import bdtrc  # a quarter of a second, which commands that measure nothing need not spend

    middle = (n + 1) // 2
    return next(k for k in range(1, middle + 1) if k == middle or bdtrc(middle - 1, n, k / n) > _TAIL)
