"""Where the time goes: what is hopeless in a cell is known from smaller ones, and close calls get a second look.

Cells are measured from cheap to expensive, so when a large one comes its smaller neighbours are known. A method that is
many times behind in all of them, and not catching up, is not tried; the guide says so. What time is left after the plan
goes to cells that were disturbed, and to those where the best two are close; and to a few others, so that every guide
shows how well it repeats itself.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean, geometric_mean

from lacuna.guide.contests import Contest, contest_of, told_methods
from lacuna.guide.noise_check import check_noise, disturbance
from lacuna.guide.plan import Cell
from lacuna.guide.run_record import LeftOut, Repeat, Run
from lacuna.worker.records import BY_HAND, Row, Subject

HOPELESS = 5.0
"""A method so many times behind in all smaller neighbours is not tried."""

_ALONE = 10.0
"""The same where only one neighbour, or no trend, is known."""

_STEP = 4
"""From one size or count of the grid to the next."""

_CLOSE = 1.12
"""The best two methods of a cell that are nearer than this get a second look."""

_SAMPLE = 0.15
"""Of the other cells so many, drawn by lot, for repeatability."""

Combo = tuple[str, str]


def neighbours(subject: Subject) -> list[Subject]:
    """The next smaller cells of a grid: a quarter of the block size, a quarter of the count."""
    if subject.experiment != "grid":
        return []
    payload = subject.payload_bytes // _STEP
    return [
        replace(subject, block_bytes=subject.block_bytes // _STEP, payload_bytes=payload),
        replace(subject, block_count=subject.block_count // _STEP, payload_bytes=payload),
    ]


@dataclass
class Pruning:
    """Learns how far behind each method and path is, and says where there is no hope."""

    _behind: dict[Subject, dict[Combo, float]] = field(default_factory=dict)

    def learn(self, subject: Subject, rows: Iterable[Row], left_out: Iterable[LeftOut] = ()) -> None:
        found = {(out.method, out.path): out.behind for out in left_out}
        all_rows = list(rows)
        best = min((row.latency_us for row in all_rows if not row.censored), default=0.0)
        for row in all_rows:
            combo = (row.method, row.path)
            times = row.behind or (row.latency_us / best if best else 1.0)
            found[combo] = min(found.get(combo, times), times)
        self._behind[subject] = found

    def leave_out(self, subject: Subject) -> tuple[LeftOut, ...]:
        near = [n for n in neighbours(subject) if n in self._behind]
        if not near:
            return ()
        combos = set.intersection(*(set(self._behind[n]) for n in near))
        guessed = {c: min(self._guess(c, n) for n in near) for c in combos - self._kept(near)}
        limit = HOPELESS if len(near) > 1 else _ALONE
        return tuple(
            LeftOut(method, path, round(self._least((method, path), near), 2))
            for (method, path), times in sorted(guessed.items())
            if times >= limit
        )

    def _least(self, combo: Combo, near: Sequence[Subject]) -> float:
        return min(self._behind[n][combo] for n in near)

    def _guess(self, combo: Combo, near: Subject) -> float:
        """How far behind in the next larger cell, if what happened up to this one goes on; never more than here."""
        here = self._behind[near][combo]
        before = [self._behind[n][combo] for n in neighbours(near) if combo in self._behind.get(n, {})]
        if not before:
            return here * HOPELESS / _ALONE
        return here * min(1.0, here / max(before)) ** 2

    def _kept(self, near: Sequence[Subject]) -> set[Combo]:
        """Hand packing and pack stay in at their best path, whatever they cost: others are told against them."""
        kept: set[Combo] = set()
        for group in (BY_HAND, ("pack",)):
            for n in near:
                times = {combo: b for combo, b in self._behind[n].items() if combo[0] in group}
                kept.update(sorted(times, key=lambda combo: times[combo])[:1])
        return kept


def worth_another_look(cells: Sequence[Cell], result: Run, number: int) -> list[Cell]:
    """Cells that were measured, the most urgent first: those without a quiet look; then, of the close ones, those with
    the fewest looks; among the second looks a sample of the others."""
    noise = check_noise(result.looks)
    if noise is None:
        return []
    by_subject = {cell.subject: cell for cell in cells if cell.verb == "measure"}
    looks = [look for look in result.looks if look.counts]
    quiet_looks = Counter(look.subject for look in looks if not disturbance(look, noise.usual))
    disturbed = [look.subject for look in looks if not quiet_looks[look.subject]]
    told = told_methods(result.rows)
    rows: dict[Subject, list[Row]] = {}
    for row in result.rows:
        rows.setdefault(row.subject, []).append(row)
    close: list[Subject] = []
    others: list[Subject] = []
    for subject, found in rows.items():
        (close if _close(contest_of(subject, found, told)) else others).append(subject)
    close.sort(key=lambda subject: quiet_looks[subject])
    lot = random.Random(len(rows))
    sample = [subject for subject in others if number == 2 and lot.random() < _SAMPLE]
    order = dict.fromkeys([*disturbed, *_alternating(close, sample)])
    return [by_subject[subject] for subject in order if subject in by_subject]


def _alternating(close: Sequence[Subject], sample: Sequence[Subject]) -> list[Subject]:
    """A sample of the clear cells among the close ones, so that both get some of whatever time there is."""
    each = max(1, len(close) // max(1, len(sample)))
    rest, mixed = list(sample), []
    for i, subject in enumerate(close):
        mixed.append(subject)
        if (i + 1) % each == 0 and rest:
            mixed.append(rest.pop(0))
    return mixed + rest


def _close(contest: Contest) -> bool:
    ranking = contest.ranking
    return len(ranking) > 1 and ranking[1].latency_us < _CLOSE * ranking[0].latency_us


def pooled(looks: Sequence[Sequence[Row]]) -> list[Row]:
    """The rows of a cell after several looks, of which the later ones left out what was far behind."""
    by_combo: dict[tuple[str, str, str], list[Row]] = {}
    for rows in looks:
        for row in rows:
            by_combo.setdefault((row.method, row.path, row.notify), []).append(row)
    return [_mean([r for r in rows if not r.censored] or rows[:1]) for rows in by_combo.values()]


def _mean(rows: Sequence[Row]) -> Row:
    """Geometric means: each look is one draw from all states that memory and machine may be in. The intervals are
    joined, for what lies between two looks is part of what is not known."""
    if len(rows) == 1:
        return rows[0]

    def known(name: str) -> list[float]:
        values = [getattr(row, name) for row in rows]
        return [v for v in values if v is not None]

    def mean(name: str) -> float | None:
        values = known(name)
        return geometric_mean(values) if len(values) == len(rows) else None

    def least(name: str) -> float | None:
        return min(known(name)) if len(known(name)) == len(rows) else None

    def most(name: str) -> float | None:
        return max(known(name)) if len(known(name)) == len(rows) else None

    return replace(
        rows[0],
        latency_us=geometric_mean(row.latency_us for row in rows),
        ci_low_us=least("ci_low_us"),
        ci_high_us=most("ci_high_us"),
        ci_level=least("ci_level"),
        cpu_send_us=fmean(row.cpu_send_us for row in rows),
        cpu_recv_us=fmean(row.cpu_recv_us for row in rows),
        copy_send_us=fmean(row.copy_send_us for row in rows),
        copy_recv_us=fmean(row.copy_recv_us for row in rows),
        samples=sum(row.samples for row in rows),
        visits=sum(row.visits for row in rows),
        behind=mean("behind"),
        behind_low=least("behind_low"),
        behind_high=most("behind_high"),
    )


def repeat_of(
    subject: Subject, first: Sequence[Row], second: Sequence[Row], told: set[tuple[str, str]]
) -> Repeat | None:
    """What two looks at one cell say of each other."""
    one, two = contest_of(subject, first, told), contest_of(subject, second, told)
    if one.best is None or two.best is None:
        return None
    again = next((r for r in two.ranking if (r.method, r.path) == (one.best.method, one.best.path)), None)
    if again is None:
        return None
    return Repeat(
        subject,
        f"{one.best.method}/{one.best.path}",
        f"{two.best.method}/{two.best.path}",
        again.latency_us / two.best.latency_us,
        one.best.latency_us,
        again.latency_us,
    )
