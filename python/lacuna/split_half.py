"""Judging by what did not choose: of measurements in rounds one half picks a way, and the other half times it, so that
a way that was lucky once is not the one to reach."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import sqrt
from typing import TypeVar

from lacuna.medians import median_of

Key = TypeVar("Key")


def halves_of(times: Sequence[float]) -> tuple[float, float]:
    """Medians of every other round, from the first and from the second on."""
    return median_of(times[0::2]).value, median_of(times[1::2] or times).value


def fastest(ways: Iterable[Key], halves: Mapping[Key, tuple[float, float]]) -> tuple[Key, Key]:
    """By the first half, and by the second."""
    ways = list(ways)
    return min(ways, key=lambda way: halves[way][0]), min(ways, key=lambda way: halves[way][1])


def judged(picked: tuple[Key, Key], halves: Mapping[Key, tuple[float, float]]) -> tuple[float, float]:
    """Of what the first and the second half have picked, the times in the second and in the first."""
    return halves[picked[0]][1], halves[picked[1]][0]


def regret(picked: tuple[Key, Key], best: tuple[Key, Key], halves: Mapping[Key, tuple[float, float]]) -> float:
    """How many times as long the one takes as the other."""
    ours, theirs = judged(picked, halves), judged(best, halves)
    return sqrt(ours[0] / theirs[0] * (ours[1] / theirs[1]))
