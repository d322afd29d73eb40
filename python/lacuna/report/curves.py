"""Latency and bandwidth as curves, in the order of the papers' figures; and the machine's state over
time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter

from lacuna.guide.contests import Contest, Grid
from lacuna.guide.noise_check import NoiseVerdict
from lacuna.guide.run_record import Look
from lacuna.report.palette import ink
from lacuna.report.style import INK, competing, draw_curve, in_style, log_axes, method_lines, path_keys
from lacuna.units import bytes_text
from lacuna.worker.records import BASELINE, Row

BY_HAND_COLOUR = INK


@dataclass(frozen=True)
class Panel:
    """Contests over a block size or a number of blocks."""

    title: str
    over: str
    points: tuple[tuple[int, Contest], ...]


def over_blocks(grid: Grid, count: int, least: int = 0, most: int = 1 << 62) -> Panel:
    """The cells of one count from one block size to another."""
    points = tuple((b, grid.cells[b, count]) for b in grid.blocks if least <= b <= most and (b, count) in grid.cells)
    return Panel(f"{count:,} block{'s' * (count != 1)}, {grid.cache}", "block size", points)


def over_counts(grid: Grid, block: int) -> Panel:
    points = tuple((n, grid.cells[block, n]) for n in grid.counts if (block, n) in grid.cells)
    return Panel(f"blocks of {bytes_text(block)}, {grid.cache}", "number of blocks", points)


@in_style
def sweep(panels: Sequence[Panel], order: Sequence[str], *, bandwidth: bool = False) -> Figure | None:
    """A panel beside the other on one scale; None without a curve."""
    drawn = [p for p in panels if len(p.points) > 1]
    if not drawn:
        return None
    every = [contest for p in drawn for _, contest in p.points]
    methods = competing(every, order)
    figure = Figure(figsize=(10, 4.0), layout="constrained")
    all_axes = figure.subplots(1, len(drawn), sharey=True, squeeze=False)[0]
    for axes, panel in zip(all_axes, drawn, strict=True):
        _draw(axes, panel, methods, bandwidth=bandwidth)
    all_axes[0].set_ylabel("bandwidth (MB/s)" if bandwidth else "one-way latency (µs)")
    rows = [row for c in every for m in methods if (row := c.best_of(m))]
    by_hand = Line2D([], [], color=BY_HAND_COLOUR, linestyle=":", label=BASELINE)
    keys = [*method_lines(methods), by_hand, *path_keys(sorted({row.path for row in rows}))]
    figure.legend(handles=keys, loc="outside lower center", ncols=7)
    return figure


def _draw(axes: Axes, panel: Panel, methods: Sequence[str], *, bandwidth: bool) -> None:
    def shown(row: Row, latency_us: float) -> float:
        return row.subject.payload_bytes / latency_us if bandwidth else latency_us

    by_hand = [(x, c.by_hand) for x, c in panel.points if c.by_hand]
    draw_curve(axes, by_hand, BY_HAND_COLOUR, shown, ":")
    for method in methods:
        found = [(x, row) for x, contest in panel.points if (row := contest.best_of(method))]
        draw_curve(axes, found, ink(method).paper, shown)
    xs = [x for x, _ in panel.points]
    size = panel.over == "block size"
    log_axes(axes, xs, lambda x: bytes_text(int(x)) if size else f"{int(x):,}", ticks=6)
    axes.set_xlim(xs[0] / 1.6, xs[-1] * 1.6)
    axes.set_title(panel.title)
    axes.set_xlabel(panel.over if not size else "block size (bytes)")


@in_style
def timeline(looks: Sequence[Look], noise: NoiseVerdict) -> Figure:
    """The probes of every look over the time of the run; disturbed looks stand out."""
    figure = Figure(figsize=(10, 3.6), layout="constrained")
    upper, lower = figure.subplots(2, 1, sharex=True)
    odd = set(noise.disturbed)
    for wanted, colour, label in ((False, "#56b4e9", "quiet"), (True, "#d55e00", "disturbed")):
        some = [look for i, look in enumerate(looks) if (i in odd) == wanted]
        at = [look.at_seconds for look in some]
        message = [median(p.message_us for p in look.conditions.probes) for look in some]
        upper.plot(at, message, ".", color=colour, label=label, markersize=4)
        for side, sign in (("sender", "."), ("receiver", "+")):
            arithmetic = [median(getattr(p, f"{side}_us") for p in look.conditions.probes) for look in some]
            lower.plot(at, arithmetic, sign, color=colour, markersize=4, label=f"{side}" if not wanted else None)
    upper.axhline(noise.usual.message_us, color=INK, linewidth=0.7)
    lower.axhline(noise.usual.sender_us, color=INK, linewidth=0.7)
    upper.set_yscale("log")
    for set_formatter in (upper.yaxis.set_major_formatter, upper.yaxis.set_minor_formatter):
        set_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    lower.set_xlabel("time since the start of the run (s)")
    for axes, label in ((upper, "16 KiB message,\none way (µs)"), (lower, "arithmetic of\none core (µs)")):
        axes.set_ylabel(label)
        axes.legend(loc="upper right", ncols=2, frameon=True)
    return figure
