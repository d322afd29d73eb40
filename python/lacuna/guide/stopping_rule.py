"""Where the time goes: what is hopeless in a cell is known from smaller ones, and close calls get a second look.

Cells are measured from cheap to expensive, so when a large one comes its smaller neighbours are known. A method that is
many times behind in all of them, and not catching up, is not tried; the guide says so. What time is left after the plan
goes to cells that were disturbed, and to those where the best two are close; and to a few others, so that every guide
shows how well it repeats itself.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from statistics import fmean, geometric_mean
from typing import Any

from lacuna.guide.contests import Combo, Contest, contest_of, contests
from lacuna.guide.noise_check import check_noise, disturbance
from lacuna.guide.plan import Cell
from lacuna.guide.run_record import LeftOut, Repeat, Run
from lacuna.worker.grouping import grouped
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

_JOINED: dict[str, Callable[[Sequence[Any]], Any]] = {
    **dict.fromkeys(("latency_us", "behind"), geometric_mean),
    **dict.fromkeys(("ci_low_us", "ci_level", "behind_low"), min),
    **dict.fromkeys(("ci_high_us", "behind_high"), max),
    **dict.fromkeys(("cpu_send_us", "cpu_recv_us", "copy_send_us", "copy_recv_us"), fmean),
    **dict.fromkeys(("samples", "visits"), sum),
}
"""How several looks become one row: geometric means, since each look is one draw from all states that memory and
machine may be in; joined intervals, since what lies between two looks is part of what is not known."""


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
            LeftOut(*combo, round(min(self._behind[n][combo] for n in near), 2))
            for combo, times in sorted(guessed.items())
            if times >= limit
        )

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
    found = contests(result)
    close = [contest.subject for contest in found if _close(contest)]
    others = [contest.subject for contest in found if not _close(contest)]
    close.sort(key=lambda subject: quiet_looks[subject])
    lot = random.Random(len(found))
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
    by_way = grouped(chain.from_iterable(looks), lambda row: row.way)
    return [_mean([r for r in rows if not r.censored] or rows[:1]) for rows in by_way.values()]


def _mean(rows: Sequence[Row]) -> Row:
    """A member that one of the rows lacks is not known of all of them."""
    if len(rows) == 1:
        return rows[0]
    members = {name: [getattr(row, name) for row in rows] for name in _JOINED}
    joined: dict[str, Any] = {
        name: None if None in values else _JOINED[name](values) for name, values in members.items()
    }
    return replace(rows[0], **joined)


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
