"""Experiments of the documents on a modelled NIC: the same layouts and methods that `lacuna bench methods` measures."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from lacuna.bench.methods.experiments import Experiment, Point
from lacuna.paper.profiles import Profile
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
    asked = [(p, m) for p in experiment.points for m in p.cell.methods]
    if experiment.points[0].cell.verb == "keys":
        return _keys(simulator, profile, experiment, overrides)
    rows = simulator.transfers(profile.path, [Trial(p.cell.spec, m) for p, m in asked], overrides)
    panels: dict[str, Panel] = {}
    for (point, method), row in zip(asked, rows, strict=True):
        _add(panels, point, point.reference or method, row | {"payload": float(point.cell.subject.payload_bytes)})
    return panels


def _keys(
    simulator: Simulator, profile: Profile, experiment: Experiment, overrides: Parameters | None
) -> dict[str, Panel]:
    rows = simulator.set_up(profile.path, [{"entries": p.x, "bytes": 4096} for p in experiment.points], overrides)
    panels: dict[str, Panel] = {}
    for point, row in zip(experiment.points, rows, strict=True):
        for name, member in (("create_key", "create_key_us"), ("bind_key", "bind_us")):
            _add(panels, point, name, {"latency_us": row[member]})
    return panels


def _add(panels: dict[str, Panel], point: Point, line: str, row: Row) -> None:
    panel = panels.setdefault(point.group, Panel(point.group))
    if point.x not in panel.xs:
        panel.xs.append(point.x)
    panel.lines.setdefault(line, {})[point.x] = row
