"""A bench as terminal, page and pictures show it: the contests of each experiment, in their places."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lacuna.bench.methods.experiments import Axis, Experiment, MethodRun, Point
from lacuna.guide.contests import Contest, contests, overlap
from lacuna.units import us_text
from lacuna.worker.records import Row, Subject

_MOST_RUNS = 4
"""A line that would name more changes of the winner than this counts the wins instead."""


@dataclass(frozen=True)
class Spot:
    """One x of a panel: who competed there, and what stands beside it."""

    x: int
    contest: Contest
    references: dict[str, Contest]


@dataclass(frozen=True)
class Panel:
    """One group of an experiment, from small x to large."""

    group: str
    spots: tuple[Spot, ...]


@dataclass(frozen=True)
class View:
    experiment: Experiment
    panels: tuple[Panel, ...]
    """Only those with a measurement."""

    @property
    def methods(self) -> list[str]:
        """Those with a time or a censored one, in the experiment's order."""
        seen = {row.method for p in self.panels for s in p.spots for row in (*s.contest.ranking, *s.contest.censored)}
        return [m for m in self.experiment.methods if m in seen]

    @property
    def references(self) -> list[str]:
        return list(dict.fromkeys(name for p in self.panels for s in p.spots for name in s.references))

    def text(self, row: Row) -> str:
        if self.experiment.shows == "bandwidth":
            return f"{row.bandwidth_mbs:,.0f}"
        if self.experiment.shows == "split":
            return f"{us_text(row.latency_us)} ({us_text(copies_us(row))})"
        return us_text(row.latency_us)

    def wins(self, spot: Spot, row: Row) -> bool:
        return self.experiment.is_race and row is spot.contest.best

    def ties(self, spot: Spot, row: Row) -> bool:
        """The row cannot be told from the best."""
        best = spot.contest.best
        return self.experiment.is_race and best is not None and row is not best and overlap(row, best)

    @property
    def middle(self) -> Spot | None:
        """The cell that stands for the experiment where there is room for one only."""
        if not self.panels:
            return None
        spots = self.panels[len(self.panels) // 2].spots
        return spots[len(spots) // 2]


def copies_us(row: Row) -> float:
    """How long both CPUs packed and unpacked."""
    return row.copy_send_us + row.copy_recv_us


def views(bench: MethodRun) -> list[View]:
    """One for each experiment of which anything was measured."""
    found = {contest.subject: contest for contest in contests(bench)}
    all_views = [View(e, tuple(_panel(e, group, found) for group in e.groups)) for e in bench.experiments]
    full = [View(v.experiment, tuple(p for p in v.panels if p.spots)) for v in all_views]
    return [view for view in full if view.panels]


def _panel(experiment: Experiment, group: str, found: Mapping[Subject, Contest]) -> Panel:
    here = [p for p in experiment.points if p.group == group and p.cell.subject in found]

    def beside(point: Point) -> dict[str, Contest]:
        return {p.reference: found[p.cell.subject] for p in here if p.reference and p.x == point.x}

    competing = sorted((p for p in here if not p.reference), key=lambda p: p.x)
    return Panel(group, tuple(Spot(p.x, found[p.cell.subject], beside(p)) for p in competing))


def here(view: View) -> list[str]:
    """What was found, in the words in which findings are told: one line for each panel."""
    if not view.experiment.is_race:
        return []
    lines = [(panel.group, _order(panel.spots, view.experiment.axis)) for panel in view.panels]
    if len({text for _, text in lines}) == 1:
        return [lines[0][1]] if lines[0][1] else []
    return [f"{group}: {text}" if group else text for group, text in lines if text]


def _order(spots: Sequence[Spot], axis: Axis) -> str:
    """Who wins from where to where. A tie does not end a run."""
    runs: list[tuple[str, list[int]]] = []
    for spot in spots:
        best = spot.contest.best
        if best is None:
            continue
        held = spot.contest.best_of(runs[-1][0]) if runs else None
        if held and overlap(held, best):
            runs[-1][1].append(spot.x)
        else:
            runs.append((best.method, [spot.x]))
    if not runs:
        return ""
    if len(runs) == 1:
        return f"{runs[0][0]} is the fastest throughout"
    if len(runs) > _MOST_RUNS:
        wins = {m: sum(len(xs) for name, xs in runs if name == m) for m, _ in runs}
        ranked = sorted(wins.items(), key=lambda item: -item[1])
        return "no simple order: " + ", ".join(f"{m} is the fastest in {n}" for m, n in ranked) + f" of {len(spots)}"
    first, *_ = runs
    texts = [f"{first[0]} is the fastest up to {axis.words(first[1][-1])}"]
    texts += [f"{method} from {axis.words(xs[0])}" for method, xs in runs[1:]]
    return ", ".join(texts)
