"""Two guides side by side: two machines, two versions, or two runs of one, and which differences are more than noise.

Within a run a row's interval says how well its time is known there. From run to run more changes: where memory lies,
which processors a virtual machine has, who else is busy. A run that looked at some cells twice knows how much
(`Repeat`), and a difference counts only if it is larger than that and the intervals do not meet.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import exp, log, sqrt
from statistics import geometric_mean, quantiles

from lacuna.guide.contests import SHAPE_TEXT, Combo, Contest, contests, interval
from lacuna.guide.noise_check import alike, check_noise, states
from lacuna.guide.run_record import Guide, Repeat
from lacuna.worker.records import Row, Subject

CLOSE = 1.05
"""Two methods this near are as good as one another: a guide may name either."""

LEAST_NOISE = 1.05
"""From run to run nothing is repeated better than this, whatever a few second looks say."""

_FEWEST_REPEATS = 5


def repeats_within(repeats: Sequence[Repeat]) -> float:
    """The factor within which nine of ten second looks found the same time again."""
    if len(repeats) < _FEWEST_REPEATS:
        return LEAST_NOISE
    changes = [abs(log(r.second_us / r.first_us)) for r in repeats]
    return max(LEAST_NOISE, exp(quantiles(changes, n=10)[-1]))


@dataclass(frozen=True)
class Pair:
    """One cell of both guides."""

    a: Contest
    b: Contest
    noise: float

    @property
    def subject(self) -> Subject:
        return self.a.subject

    @property
    def bests(self) -> tuple[Row, Row]:
        assert self.a.best
        assert self.b.best
        return self.a.best, self.b.best

    @property
    def agree(self) -> bool:
        one, two = self.bests
        return _combo(one) == _combo(two)

    @property
    def _behind(self) -> tuple[float, float] | None:
        """How much B's best is behind in A, and A's best in B. None if a guide has no time for the other's best."""
        one, two = self.bests
        here, there = _find(self.a, _combo(two)), _find(self.b, _combo(one))
        return (here.latency_us / one.latency_us, there.latency_us / two.latency_us) if here and there else None

    @property
    def apart(self) -> float | None:
        """How much one guide's best is behind the other's, in the guide where that is more; 1 if they agree."""
        return max(self._behind) if self._behind else None

    @property
    def pooled_apart(self) -> float | None:
        """The same from both guides together: the geometric mean of what either says."""
        if self._behind is None:
            return None
        in_a, in_b = self._behind
        return sqrt(max(in_a / in_b, in_b / in_a))

    @property
    def ratio(self) -> float:
        """The second guide's best time over the first's."""
        one, two = self.bests
        return two.latency_us / one.latency_us

    @property
    def differs(self) -> bool:
        """The two best times differ by more than the noise."""
        return differ(*self.bests, self.noise)


def differ(a: Row, b: Row, noise: float) -> bool:
    """Whether two rows of different runs differ by more than the noise."""
    (a_low, a_high), (b_low, b_high) = interval(a), interval(b)
    apart = max(b.latency_us / a.latency_us, a.latency_us / b.latency_us)
    return apart > noise and (a_low > b_high or b_low > a_high)


def _combo(row: Row) -> Combo:
    return row.method, row.path


def _find(contest: Contest, combo: Combo) -> Row | None:
    return next((row for row in contest.ranking if _combo(row) == combo), None)


@dataclass(frozen=True)
class Change:
    """Some times of the second guide over those of the first."""

    name: str
    cells: int
    ratio: float
    """The geometric mean."""
    faster: int
    slower: int
    """In so many cells beyond the noise."""

    @classmethod
    def of(cls, name: str, found: Sequence[tuple[Row, Row]], noise: float) -> Change:
        ratios = [b.latency_us / a.latency_us for a, b in found]
        beyond = [ratio for ratio, rows in zip(ratios, found, strict=True) if differ(*rows, noise)]
        faster = sum(ratio < 1 for ratio in beyond)
        return cls(name, len(found), geometric_mean(ratios), faster, sum(ratio > 1 for ratio in beyond))


@dataclass(frozen=True)
class Comparison:
    a: Guide
    b: Guide
    pairs: tuple[Pair, ...]
    noise: float
    odd: int = 0
    """Cells left out because the machine was in different states while the two runs measured them."""

    @property
    def disagreeing(self) -> list[Pair]:
        """Cells for which the guides name different methods or paths, the farthest apart first."""
        return sorted((p for p in self.pairs if not p.agree), key=lambda p: -(p.apart or 1e9))

    @property
    def beyond_close(self) -> list[Pair]:
        """Of these, where the two are not as good as one another."""
        return [p for p in self.disagreeing if (p.pooled_apart or 1e9) > CLOSE]

    @property
    def changed(self) -> list[Pair]:
        """Cells whose best times differ by more than the noise, the largest change first."""
        return sorted((p for p in self.pairs if p.differs), key=lambda p: -abs(log(p.ratio)))

    @property
    def warnings(self) -> list[str]:
        found = []
        one, two = check_noise(self.a.looks), check_noise(self.b.looks)
        if one and two and not alike(one.usual, two.usual) and not self.odd:
            found.append(
                f"A fixed message between the two processes took {one.usual.message_us:.1f} µs in A and "
                f"{two.usual.message_us:.1f} µs in B: two machines, or one in another state. The times of all cells "
                "differ for that reason alone."
            )
        if self.a.nic.name != self.b.nic.name:
            found.append(f"A was measured on NIC {self.a.nic.name}, B on {self.b.nic.name}.")
        if self.odd:
            found.append(
                f"{self.odd} cells are left out: the machine was in another state in one of the runs, and they "
                "would compare the states."
            )
        for name, guide in (("A", self.a), ("B", self.b)):
            if guide.interrupted:
                found.append(f"{name} was interrupted and has fewer cells.")
        return found

    def by_group(self) -> list[Change]:
        """The best times, by kind of cell."""
        return self._changes((group_name(pair.subject), pair.bests) for pair in self.pairs)

    def by_method(self) -> list[Change]:
        """All times of each method on each path that both guides have."""
        both = ((row, _find(pair.b, _combo(row))) for pair in self.pairs for row in pair.a.ranking)
        found = self._changes((f"{a.method} / {a.path}", (a, b)) for a, b in both if b)
        return sorted(found, key=lambda change: change.name)

    def _changes(self, named: Iterable[tuple[str, tuple[Row, Row]]]) -> list[Change]:
        groups: dict[str, list[tuple[Row, Row]]] = defaultdict(list)
        for name, rows in named:
            groups[name].append(rows)
        return [Change.of(name, rows, self.noise) for name, rows in groups.items()]

    def to_json(self) -> dict[str, object]:
        return {
            "noise": round(self.noise, 4),
            "cells": len(self.pairs),
            "cells_in_another_state": self.odd,
            "agree": len(self.pairs) - len(self.disagreeing),
            "disagree": [_pair_json(p) for p in self.disagreeing],
            "disagree_beyond_close": len(self.beyond_close),
            "changed": [_pair_json(p) for p in self.changed],
            "groups": [vars(c) for c in self.by_group()],
            "methods": [vars(c) for c in self.by_method()],
            "warnings": self.warnings,
        }


def group_name(subject: Subject) -> str:
    if subject.experiment == "grid":
        return f"{SHAPE_TEXT[subject.shape]}, {subject.cache}"
    return {"ddtbench": "DDTBench", "ai": "AI transfers"}.get(subject.experiment, subject.experiment)


def _pair_json(pair: Pair) -> dict[str, object]:
    one, two = pair.bests
    return {
        **vars(pair.subject),
        "a": "/".join(_combo(one)),
        "b": "/".join(_combo(two)),
        "a_us": one.latency_us,
        "b_us": two.latency_us,
        "ratio": round(pair.ratio, 4),
        "apart": pair.apart and round(pair.apart, 4),
        "pooled_apart": pair.pooled_apart and round(pair.pooled_apart, 4),
    }


def compare(a: Guide, b: Guide) -> Comparison:
    noise = max(repeats_within(a.repeats), repeats_within(b.repeats))
    there = {c.subject: c for c in contests(b) if c.best}
    pairs = tuple(Pair(c, there[c.subject], noise) for c in contests(a) if c.best and c.subject in there)
    like = _in_like_states(a, b, pairs)
    return Comparison(a, b, like, noise, len(pairs) - len(like))


def _in_like_states(a: Guide, b: Guide, pairs: tuple[Pair, ...]) -> tuple[Pair, ...]:
    """Of one machine, only the cells that both runs measured in one state of it, if there are any: the others would
    compare the states. Two machines are compared as they are."""
    if a.machine != b.machine:
        return pairs
    one, two = states(a.looks), states(b.looks)
    like = tuple(
        p
        for p in pairs
        if p.subject in one and p.subject in two and all(alike(x, y) for x in one[p.subject] for y in two[p.subject])
    )
    return like or pairs
