"""A geometric mean; a median and its bootstrap interval, as guide::median_of computes it (lacuna/guide/measure.hpp has
the argument)."""

from __future__ import annotations

import math
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
    return math.exp(sum(map(math.log, values)) / len(values)) if values else math.nan


def median_of(values: Iterable[float]) -> Median:
    """Of one value at least."""
    ordered = sorted(values)
    n = len(ordered)
    value = (ordered[(n - 1) // 2] + ordered[n // 2]) / 2
    k = 1 if n < _FEWEST else _first_rank(n)
    return Median(value, ordered[k - 1], ordered[n - k])


@cache
def _first_rank(n: int) -> int:
    """The first k for which it is not rare that a resample's median is among the k smallest values."""
    low, high = 1, (n + 1) // 2
    while low < high:
        k = (low + high) // 2
        if _binomial_at_least(n, (n + 1) // 2, k / n) <= _TAIL:
            low = k + 1
        else:
            high = k
    return low


def _binomial_at_least(n: int, k: int, p: float) -> float:
    """That at least k of n throws succeed, each with probability p."""

    def chance(i: int) -> float:
        ways = math.lgamma(n + 1) - math.lgamma(i + 1) - math.lgamma(n - i + 1)
        return math.exp(ways + i * math.log(p) + (n - i) * math.log1p(-p))

    return 1.0 if p >= 1 else sum(chance(i) for i in range(k, n + 1))
