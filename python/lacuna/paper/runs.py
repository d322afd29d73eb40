"""Experiments of the documents on a modelled NIC: the same layouts and methods that `lacuna bench methods` measures."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from lacuna.bench.methods.experiments import Experiment
from lacuna.paper.profiles import Profile
from lacuna.paper.section import Line
from lacuna.paper.simulator import Parameters, Simulator, Trial

Row = dict[str, float]
PLAIN = "pack of one block"
"""The name of a reference: a message of one contiguous block."""


@dataclass
class Panel:
    """Rows over x, a line for each method."""

    group: str
    xs: list[int] = field(default_factory=list)
    lines: dict[str, dict[int, Row]] = field(default_factory=dict)

    def us(self, method: str, x: int, what: str = "latency_us") -> float:
        return self.lines[method][x][what]

    def curve(self, method: str, what: str = "latency_us") -> list[float]:
        return [self.lines[method][x][what] for x in self.xs]

    def both_ends(self, method: str, what: str) -> list[float]:
        """The sender's time and the receiver's together: of "cpu", or of "copy", which is a part of it."""
        return [row[f"{what}_send_us"] + row[f"{what}_recv_us"] for row in self.lines[method].values()]

    def drawn(self) -> list[Line]:
        """The latency of each method; a reference is dashed."""
        return [Line(m, self.xs, self.curve(m), dashed=m == PLAIN) for m in self.lines]

    def add(self, line: str, x: int, row: Row) -> None:
        if x not in self.xs:
            self.xs.append(x)
        self.lines.setdefault(line, {})[x] = row

    def best(self, x: int, methods: Iterable[str]) -> str:
        return min(methods, key=lambda m: self.us(m, x))

    def first(self, faster: str, slower: str) -> int | None:
        """The smallest x from which on `faster` stays below `slower`."""
        found = None
        for x in reversed(self.xs):
            if self.us(faster, x) >= self.us(slower, x):
                break
            found = x
        return found


def run(
    simulator: Simulator, profile: Profile, experiment: Experiment, overrides: Parameters | None = None
) -> dict[str, Panel]:
    """A panel for each group of points."""
    panels = {p.group: Panel(p.group) for p in experiment.points}
    if experiment.points[0].cell.verb == "keys":
        asked = [{"entries": p.x, "bytes": 4096} for p in experiment.points]
        for point, row in zip(experiment.points, simulator.set_up(profile.path, asked, overrides), strict=True):
            for name, member in (("create_key", "create_key_us"), ("bind_key", "bind_us")):
                panels[point.group].add(name, point.x, {"latency_us": row[member]})
        return panels
    trials = [(p, m) for p in experiment.points for m in p.cell.methods]
    rows = simulator.transfers(profile.path, [Trial(p.cell.spec, m) for p, m in trials], overrides)
    for (point, method), row in zip(trials, rows, strict=True):
        payload = float(point.cell.subject.payload_bytes)
        panels[point.group].add(point.reference or method, point.x, row | {"payload": payload})
    return panels


def sweep(
    simulator: Simulator, profile: Profile, layouts: Mapping[int, Mapping[str, object]], methods: Sequence[str]
) -> Panel:
    """Each layout, by its x, with each method."""
    panel = Panel("")
    trials = [(x, Trial(layout, m)) for x, layout in layouts.items() for m in methods]
    for (x, trial), row in zip(trials, simulator.transfers(profile.path, [t for _, t in trials]), strict=True):
        panel.add(trial.method, x, row)
    return panel
