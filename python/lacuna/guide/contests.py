"""From rows to answers: which method is best for each cell, by how much, and whether one may say so.

A combination is a method on a path with a notification. Methods compete in full: the receiver has to learn that the
data arrived. So a one-sided method measured without notification does not compete if the experiment also measured it
with one; what a notification costs is told apart. Censored rows never compete.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median

from lacuna.guide.run_record import Run
from lacuna.worker.grouping import grouped
from lacuna.worker.records import BY_HAND, Cache, Method, Row, Shape, Subject

_NO_INTERVAL = 0.10
"""A row without a confidence interval (too few samples) is taken to be known to this fraction."""

Combo = tuple[str, str]
"""Method and path."""


def interval(row: Row) -> tuple[float, float]:
    """The confidence interval of the latency, or a stand-in for a row that has none."""
    if row.ci_low_us is None or row.ci_high_us is None:
        return row.latency_us * (1 - _NO_INTERVAL), row.latency_us * (1 + _NO_INTERVAL)
    return row.ci_low_us, row.ci_high_us


def overlap(a: Row, b: Row) -> bool:
    """Whether two rows of a cell cannot be told apart. They are compared by how far they were behind the best, round by
    round, where that is known: a disturbance that hits both does not blur it."""
    one, two = _behind(a), _behind(b)
    (a_low, a_high), (b_low, b_high) = (one, two) if one and two else (interval(a), interval(b))
    return a_low <= b_high and b_low <= a_high


def _behind(row: Row) -> tuple[float, float] | None:
    return None if row.behind_low is None or row.behind_high is None else (row.behind_low, row.behind_high)


@dataclass(frozen=True)
class Contest:
    """All that was measured for one cell."""

    subject: Subject
    ranking: tuple[Row, ...]
    """The competing rows, best first: one for each method and path, with its cheapest notification."""
    censored: tuple[Row, ...]
    by_hand: Row | None = None
    """Hand packing: the faster of the two loops, at its best path."""

    @property
    def best(self) -> Row | None:
        return self.ranking[0] if self.ranking else None

    @property
    def tied(self) -> bool:
        """The best two cannot be told apart."""
        return len(self.ranking) > 1 and overlap(self.ranking[0], self.ranking[1])

    def best_of(self, method: str) -> Row | None:
        """The method at its best path."""
        return next((row for row in self.ranking if row.method == method), None)

    def gain(self, row: Row | None) -> float | None:
        """How many times faster than hand packing; None if that has no time."""
        return self.by_hand.latency_us / row.latency_us if self.by_hand and row else None


def contests(guide: Run) -> list[Contest]:
    """One contest for each cell, in the order of measurement."""
    told = told_methods(guide.rows)
    cells = grouped(guide.rows, lambda row: row.subject)
    return [contest_of(subject, rows, told) for subject, rows in cells.items()]


def told_methods(rows: Iterable[Row]) -> set[tuple[str, str]]:
    """Experiments with their one-sided methods that were measured with a notification."""
    return {(row.subject.experiment, row.method) for row in rows if row.notify != "none"}


def is_told(row: Row, told: set[tuple[str, str]]) -> bool:
    """Whether the receiver learned that the transfer was over, by a message or a notification."""
    return not (row.notify == "none" and (row.subject.experiment, row.method) in told)


def contest_of(subject: Subject, rows: Sequence[Row], told: set[tuple[str, str]]) -> Contest:
    best: dict[Combo, Row] = {}
    for row in sorted(rows, key=lambda r: r.latency_us):
        if not row.censored and is_told(row, told):
            best.setdefault((row.method, row.path), row)
    ranking = tuple(row for row in best.values() if row.method not in BY_HAND)
    by_hand = next((row for row in best.values() if row.method in BY_HAND), None)
    return Contest(subject, ranking, tuple(r for r in rows if r.censored), by_hand)


@dataclass(frozen=True)
class Grid:
    """The grid cells of one shape and cache state."""

    shape: Shape
    cache: Cache
    cells: dict[tuple[int, int], Contest]
    """By block size and block count."""

    @property
    def blocks(self) -> list[int]:
        return sorted({b for b, _ in self.cells})

    @property
    def counts(self) -> list[int]:
        return sorted({n for _, n in self.cells})

    @property
    def title(self) -> str:
        return f"{SHAPE_TEXT[self.shape]}, {self.cache} caches"


SHAPE_TEXT: dict[Shape, str] = {
    "symmetric": "same layout on both sides",
    "sender_finer": "sender has 4× the blocks of a quarter the size",
    "sender_coarser": "sender has half the blocks of twice the size",
}


def grids(all_contests: Iterable[Contest]) -> list[Grid]:
    """The grid contests by shape and cache state; warm before cold, shapes in the order of the plan."""
    order = list(SHAPE_TEXT)
    of_grids = (c for c in all_contests if c.subject.experiment == "grid")
    found = grouped(of_grids, lambda c: (c.subject.cache, c.subject.shape))
    keys = sorted(found, key=lambda key: (key[0] != "warm", order.index(key[1])))
    cells = {key: {(c.subject.block_bytes, c.subject.block_count): c for c in found[key]} for key in keys}
    return [Grid(shape, cache, cells[cache, shape]) for cache, shape in keys]


def ddtbench(all_contests: Iterable[Contest]) -> list[Contest]:
    """The DDTBench contests by family, small payloads first."""
    return sorted(
        (c for c in all_contests if c.subject.experiment == "ddtbench"),
        key=lambda c: (family(c), c.subject.payload_bytes),
    )


def ai_transfers(all_contests: Iterable[Contest]) -> list[Contest]:
    """The transfers of AI systems, in the order of measurement."""
    return [c for c in all_contests if c.subject.experiment == "ai"]


def family(contest: Contest) -> str:
    """The DDTBench family of a contest: its layout's name without the dimensions."""
    return contest.subject.layout.split(" ", 1)[0]


def one_of_each_family(layouts: Sequence[Contest]) -> list[Contest]:
    """The middle size of each family."""
    return [sizes[(len(sizes) - 1) // 2] for sizes in grouped(layouts, family).values()]


def method_order(guide: Run) -> list[str]:
    """The methods that have a row, in the worker's order."""
    seen = {row.method for row in guide.rows}
    listed = [m.name for m in guide.methods if m.name in seen]
    return [name for name in listed + sorted(seen - set(listed)) if name not in BY_HAND]


@dataclass(frozen=True)
class Censored:
    """A combination that was given up after one transfer, in some cells."""

    method: str
    path: str
    cells: int
    fastest_us: float
    slowest_us: float


def censored(guide: Run) -> list[Censored]:
    groups = grouped((row for row in guide.rows if row.censored), lambda row: (row.method, row.path))
    found = []
    for (method, path), rows in sorted(groups.items()):
        times = [row.latency_us for row in rows]
        found.append(Censored(method, path, len({row.subject for row in rows}), min(times), max(times)))
    return found


@dataclass(frozen=True)
class NotTried:
    """A combination that was known to be hopeless, in some cells."""

    method: str
    path: str
    cells: int
    behind: float
    """The least of what it was behind in smaller cells."""


def left_out_of_large(guide: Run) -> list[NotTried]:
    every = (out for look in guide.looks if look.number == 1 for out in look.left_out)
    groups = grouped(every, lambda out: (out.method, out.path))
    return [NotTried(m, p, len(outs), min(out.behind for out in outs)) for (m, p), outs in sorted(groups.items())]


@dataclass(frozen=True)
class NotifyCost:
    """What telling the receiver adds to a one-sided method, in the median over the cells that have both."""

    method: str
    path: str
    notify: str
    extra_us: float
    cells: int


def notify_costs(rows: Iterable[Row], methods: Sequence[Method]) -> list[NotifyCost]:
    one_sided = {m.name for m in methods if m.one_sided}
    timed = (row for row in rows if row.method in one_sided and not row.censored)
    costs = []
    for (method, path), own in grouped(timed, lambda row: (row.method, row.path)).items():
        cells = [{row.notify: row.latency_us for row in cell} for cell in grouped(own, lambda r: r.subject).values()]
        for notify in sorted({n for cell in cells for n in cell} - {"none"}):
            extra = [cell[notify] - cell["none"] for cell in cells if notify in cell and "none" in cell]
            if extra:
                costs.append(NotifyCost(method, path, notify, median(extra), len(extra)))
    return costs
