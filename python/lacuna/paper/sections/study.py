"""An experiment of the documents on the modelled NIC, with what judges it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from lacuna.bench.methods.experiments import EXPERIMENTS, Experiment
from lacuna.paper import profiles, runs, table4
from lacuna.paper.runs import Panel
from lacuna.paper.section import FindingLabel, Line, Plot, Section
from lacuna.paper.simulator import Simulator
from lacuna.units import bytes_text

Panels = dict[str, Panel]
Judge = Callable[[Section, Panels, Simulator], None]
"""Adds findings to a section."""

_PAPER_NAMES = {ours: name for name, ours in table4.METHODS.items()}
LATENCY = "one-way latency (µs)"
BANDWIDTH = "bandwidth (GB/s)"
SPLIT = "time, and of pack its parts (µs)"


@dataclass(frozen=True)
class Study:
    """An experiment of the documents with its platform and its judge."""

    id: str
    profile: str
    judge: Judge
    label: FindingLabel
    shows: tuple[str, ...] = (LATENCY,)
    """A plot for each: what is on the y axis."""
    conditions: str = ""
    """Instead of the experiment's."""
    shown_as: str = ""
    """The title, where the experiment is another study's."""
    repeats: str = ""
    """That study's id."""

    @property
    def experiment(self) -> Experiment:
        return next(e for e in EXPERIMENTS if e.id == (self.repeats or self.id))

    @property
    def title(self) -> str:
        return self.shown_as or self.experiment.title


def section(study: Study, simulator: Simulator) -> Section:
    experiment = study.experiment
    panels = runs.run(simulator, profiles.load(study.profile), experiment)
    conditions = study.conditions or experiment.conditions.replace(_MACHINE_NOTE, "")
    made = Section(study.id, study.title, conditions, study.profile, study.label)
    for shows in study.shows:
        made.plots += [_plot(shows, experiment, panel) for panel in panels.values()]
    study.judge(made, panels, simulator)
    return made


_MACHINE_NOTE = (
    ". The documents' gap was their last-level cache; here the same blocks are used again and again, and stay in the "
    "caches"
)


def _plot(shows: str, experiment: Experiment, panel: Panel) -> Plot:
    def pairs(method: str) -> Iterator[tuple[float, float]]:
        return zip(panel.curve(method, "payload"), panel.curve(method), strict=True)

    lines = panel.drawn()
    if shows == BANDWIDTH:
        lines = [Line(m, panel.xs, [payload / latency / 1e3 for payload, latency in pairs(m)]) for m in panel.lines]
    elif shows == SPLIT:
        copies = panel.both_ends("pack", "copy")
        rest = [latency - c for latency, c in zip(panel.curve("pack"), copies, strict=True)]
        lines.append(Line("copies of pack", panel.xs, copies, dashed=True))
        lines.append(Line("the rest of pack", panel.xs, rest, dashed=True))
    else:
        lines += _paper_lines(panel)
    return Plot(panel.group, experiment.axis.name, shows, lines, bytes_on_x=experiment.axis.unit == "bytes")


def _paper_lines(panel: Panel) -> list[Line]:
    """Rows of Table 4, where the experiment's panel is one of its block sizes."""
    sizes = {f"blocks of {bytes_text(b)}": b for b in {c.block_bytes for c in table4.cells()}}
    size = sizes.get(panel.group)
    rows = {m: [c for c in table4.cells() if (c.block_bytes, c.method) == (size, p)] for m, p in _PAPER_NAMES.items()}
    return [
        Line(m, [c.blocks for c in cells], [c.paper_us for c in cells], paper=True)
        for m, cells in rows.items()
        if cells and m in panel.lines
    ]


def only_panel(panels: Panels) -> Panel:
    return next(iter(panels.values()))


def from_on(x: int | None, text: Callable[[int], str] = bytes_text) -> str:
    return f"from {text(x)} on" if x is not None else "nowhere"
