"""How far the CPUs of two ranks are from one another, by what it takes to read a line of the cache that the other CPU
has written. The best ways depend on that."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from statistics import median_low

from lacuna._core import distance_of


class Distance(StrEnum):
    """guide::Distance."""

    near = "near"
    distant = "distant"

    @property
    def other(self) -> Distance:
        return Distance.distant if self is Distance.near else Distance.near


@dataclass(frozen=True)
class LineTimes:
    """What a line took, at each size that was measured."""

    ns: tuple[float, ...] = ()
    """0: that is not known."""

    @property
    def line_ns(self) -> float:
        """The median; 0: no line was timed."""
        return median_low(self._known or [0.0])

    @property
    def distance(self) -> Distance:
        """That of most sizes; near, if it is not known of any."""
        return Distance(distance_of(self.line_ns))

    @property
    def others(self) -> int:
        """Sizes that were measured at the other distance: the machine moved the CPUs meanwhile. A line that is not
        clearly beyond the bound says nothing of that."""
        return sum(distance_of(ns, self.distance) != self.distance for ns in self._known)

    @property
    def doubtful(self) -> int:
        """The others, and sizes of which no line is known."""
        return self.others + len(self.ns) - len(self._known)

    @property
    def _known(self) -> list[float]:
        return [ns for ns in self.ns if ns > 0]


def cpus_text(distance: Distance, line_ns: float) -> str:
    """In words: "between near CPUs (a line takes 20 ns)"."""
    line = f"a line takes {line_ns:.0f} ns" if line_ns > 0 else "the time of a line is not known"
    return f"between {distance} CPUs ({line})"
