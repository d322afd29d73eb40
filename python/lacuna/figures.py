"""The pictures: heat maps of the best method, latency curves, DDTBench gains, CPU time.

Drawn with matplotlib's object interface, without pyplot, whose import would cost a second of a run of fifteen.
"""

from __future__ import annotations

import functools
import io
import math
import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import matplotlib as mpl
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch, Rectangle
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

from lacuna.analysis import Contest, Grid, family, interval
from lacuna.palette import ink, marker, readable_on, tint
from lacuna.schema import BASELINE, Row
from lacuna.units import bytes_text, gain_text

INK = "#1f2328"
RULE = "#d5d9de"
EMPTY = "#eceef0"
"""Text, thin lines and cells without a measurement. In the report the first two give way to the page's own colours,
so that figures read on light and on dark."""

P = ParamSpec("P")
Drawn = TypeVar("Drawn", bound=Figure | None)

_STYLE: dict[Any, Any] = {
    "font.family": "sans-serif",
    "font.size": 9,
    "axes.titlesize": 9.5,
    "axes.labelsize": 9,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "axes.linewidth": 0.7,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "text.color": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "xtick.labelsize": 8.5,
    "ytick.labelsize": 8.5,
    "grid.color": RULE,
    "grid.linewidth": 0.6,
    "legend.frameon": False,
    "legend.fontsize": 8.5,
    "svg.fonttype": "none",
    "svg.hashsalt": "lacuna",
}


def in_style(draw: Callable[P, Drawn]) -> Callable[P, Drawn]:
    """Draws in Lacuna's style and leaves matplotlib's settings alone."""

    @functools.wraps(draw)
    def drawn(*args: P.args, **kwargs: P.kwargs) -> Drawn:
        with mpl.rc_context(_STYLE):
            return draw(*args, **kwargs)

    return drawn


def svg(figure: Figure) -> str:
    """The figure as an SVG element for a page: it scales, and takes the page's colours for text and thin lines."""
    out = io.StringIO()
    with mpl.rc_context(_STYLE):
        figure.savefig(out, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    text = out.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    text = re.sub(r' id="[a-zA-Z0-9]+_\d+"', "", text)
    text = re.sub(r'(<svg[^>]*?) width="([\d.]+)pt" height="[\d.]+pt"', r'\1 style="width:\2pt"', text, count=1)
    return text.replace(INK, "currentColor").replace(RULE, "var(--rule)").replace(EMPTY, "var(--empty)")


def save_png(figure: Figure, path: Path) -> None:
    with mpl.rc_context(_STYLE):
        figure.savefig(path, dpi=180, facecolor="white")


def _methods(all_contests: Iterable[Contest], order: Sequence[str]) -> list[str]:
    """The methods that compete somewhere, in the guide's order."""
    seen = {row.method for contest in all_contests for row in contest.ranking}
    return [method for method in order if method in seen]


def _method_keys(methods: Iterable[str]) -> list[Artist]:
    return [Patch(facecolor=ink(method).paper, label=method) for method in methods]


# ---------------------------------------------------------------------------------------------------------------------
# Heat map


@in_style
def heat_map(grid: Grid, order: Sequence[str]) -> Figure:
    """The best method over block size and block count, with its name in the cell: readable without colour."""
    columns, rows = len(grid.counts), len(grid.blocks)
    width = 1.0 + 0.98 * columns
    figure = Figure(figsize=(width, 1.0 + 0.58 * rows), layout="constrained")
    axes = figure.add_subplot()
    _draw_heat_map(axes, grid, named=True)
    winners = {c.best.method for c in grid.cells.values() if c.best}
    keys = _method_keys(m for m in order if m in winners)
    figure.legend(handles=keys, loc="outside upper center", ncols=max(2, min(6, int(width / 1.4))), handlelength=1.1)
    return figure


def _draw_heat_map(axes: Axes, grid: Grid, *, named: bool) -> None:
    for y, block in enumerate(grid.blocks):
        for x, count in enumerate(grid.counts):
            contest = grid.cells.get((block, count))
            best = contest.best if contest else None
            colour = _strength(best.method, contest.gain(best)) if contest and best else EMPTY
            axes.add_patch(Rectangle((x - 0.48, y - 0.47), 0.96, 0.94, facecolor=colour, linewidth=0))
            if contest and best:
                _label_cell(axes, x, y, contest, best, readable_on(colour), named=named)
            elif contest and contest.censored:
                axes.text(x, y, "censored", ha="center", va="center", fontsize=7)
    axes.set_xlim(-0.5, len(grid.counts) - 0.5)
    axes.set_ylim(-0.5, len(grid.blocks) - 0.5)
    axes.set_xticks(range(len(grid.counts)), [f"{n:,}" for n in grid.counts])
    axes.set_yticks(range(len(grid.blocks)), [bytes_text(b) for b in grid.blocks])
    axes.set_xlabel("number of blocks (log scale)")
    axes.set_ylabel("block size (log scale)")
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)


def _strength(method: str, gain: float | None) -> str:
    """The method's colour, pale where it gains nothing and full where it gains fourfold or more."""
    part = min(1.0, max(0.0, math.log(gain or 1.0, 4)))
    return tint(ink(method).paper, 0.45 + 0.55 * part)


def _label_cell(axes: Axes, x: int, y: int, contest: Contest, best: Row, colour: str, *, named: bool) -> None:
    gain = contest.gain(best)
    number = (gain_text(gain) if gain else "") + (" ~" if contest.tied else "")
    small = f"{best.method}\n{best.path}" if named else best.path
    axes.text(
        x,
        y + (0.16 if named else 0.22),
        small,
        ha="center",
        va="center",
        fontsize=7.2,
        color=colour,
        linespacing=1.05,
    )
    axes.text(
        x,
        y - (0.29 if named else 0.2),
        number,
        ha="center",
        va="center",
        fontsize=9,
        fontweight="bold",
        color=colour,
    )


# ---------------------------------------------------------------------------------------------------------------------
# Latency curves


@in_style
def latency_curves(grid: Grid, order: Sequence[str]) -> Figure | None:
    """Latency over block size for some counts, and over count for some block sizes; None if there is no curve."""
    across = [(n, [(b, grid.cells.get((b, n))) for b in grid.blocks]) for n in _spread(grid.counts)]
    along = [(b, [(n, grid.cells.get((b, n))) for n in grid.counts]) for b in _spread(grid.blocks)]
    if len(grid.blocks) < 3 or len(grid.counts) < 3:
        return None
    figure = Figure(figsize=(10, 6.4), layout="constrained")
    upper, lower = figure.subplots(2, max(len(across), len(along)), sharey=True, squeeze=False)
    methods = _methods(grid.cells.values(), order)
    for axes, (count, points) in zip(upper, across, strict=False):
        _draw_curves(axes, points, methods)
        axes.set_title(f"{count:,} block{'s' if count > 1 else ''}")
        axes.set_xlabel("block size")
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: bytes_text(int(value))))
    for axes, (block, points) in zip(lower, along, strict=False):
        _draw_curves(axes, points, methods)
        axes.set_title(f"blocks of {bytes_text(block)}")
        axes.set_xlabel("number of blocks")
    for axes in (*upper[len(across) :], *lower[len(along) :]):
        axes.set_visible(False)
    for axes in (upper[0], lower[0]):
        axes.set_ylabel("one-way latency (µs)")
    paths = sorted({row.path for c in grid.cells.values() for m in methods if (row := c.best_of(m))})
    figure.legend(handles=method_lines(methods), loc="outside upper left", ncols=6)
    figure.legend(handles=path_keys(paths), loc="outside upper right", ncols=4)
    return figure


def _spread(values: Sequence[int], most: int = 4) -> list[int]:
    """At most so many values, evenly over the whole range, both ends included."""
    if len(values) <= most:
        return list(values)
    return [values[round(i * (len(values) - 1) / (most - 1))] for i in range(most)]


def draw_curve(
    axes: Axes,
    found: Sequence[tuple[int, Row]],
    colour: str,
    shown: Callable[[Row, float], float] = lambda _, latency_us: latency_us,
    style: str = "-",
) -> None:
    """One method's line over x, its intervals as a band, and for each point the marker of the path. `shown` turns a
    latency of a row into what is drawn."""
    if not found:
        return
    xs = [x for x, _ in found]
    bands = [[shown(row, limit) for limit in interval(row)] for _, row in found]
    axes.fill_between(xs, [min(b) for b in bands], [max(b) for b in bands], color=colour, alpha=0.28, linewidth=0)
    axes.plot(xs, [shown(row, row.latency_us) for _, row in found], color=colour, linewidth=1.5, linestyle=style)
    for path in {row.path for _, row in found}:
        at = [(x, shown(row, row.latency_us)) for x, row in found if row.path == path]
        axes.plot(*zip(*at, strict=True), linestyle="none", marker=marker(path), markersize=4.2, color=colour)


def path_keys(paths: Iterable[str]) -> list[Artist]:
    return [Line2D([], [], color=INK, marker=marker(p), markersize=5, linestyle="none", label=f"on {p}") for p in paths]


def method_lines(methods: Iterable[str]) -> list[Artist]:
    return [Line2D([], [], color=ink(m).paper, linewidth=2.2, label=m) for m in methods]


def _draw_curves(axes: Axes, points: Sequence[tuple[int, Contest | None]], methods: Sequence[str]) -> None:
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    for method in methods:
        found = [(x, row) for x, contest in points if contest and (row := contest.best_of(method))]
        draw_curve(axes, found, ink(method).paper)
    xs = [x for x, _ in points]
    axes.set_xlim(xs[0] / 1.6, xs[-1] * 1.6)
    axes.set_xticks(xs[1::2] if len(xs) > 4 else xs)
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{int(value):,}"))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_locator(LogLocator(numticks=12))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.10g}"))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.grid(visible=True)


# ---------------------------------------------------------------------------------------------------------------------
# DDTBench


@in_style
def ddtbench_gains(layouts: Sequence[Contest], order: Sequence[str]) -> Figure | None:
    """For each layout how many times faster or slower than the baseline every method is, the best as a bar."""
    if not layouts:
        return None
    figure = Figure(figsize=(9.4, 1.3 + 0.25 * len(layouts)), layout="constrained")
    axes = figure.add_subplot()
    names = [f"{c.subject.layout}   {bytes_text(c.subject.payload_bytes)}" for c in layouts]
    _draw_gains(axes, layouts, names, order)
    keys: list[Artist] = _method_keys(_methods(layouts, order))
    keys.append(Line2D([], [], color=INK, linewidth=1, label=BASELINE))
    figure.legend(handles=keys, loc="outside upper center", ncols=6, handlelength=1.1)
    return figure


def _draw_gains(axes: Axes, layouts: Sequence[Contest], names: Sequence[str], order: Sequence[str]) -> None:
    methods = [m for m in _methods(layouts, order) ]
    gains = {(i, m): c.gain(c.best_of(m)) for i, c in enumerate(layouts) for m in methods}
    shown = [gain for gain in gains.values() if gain] + [1.0]
    low, high = max(0.1, min(shown) / 1.15), max(shown) * 1.15
    axes.set_xscale("log")
    axes.axvline(1.0, color=INK, linewidth=1, zorder=1)
    for i, contest in enumerate(layouts):
        best = contest.best
        for method in methods:
            gain = gains[i, method]
            if gain:
                axes.plot(
                    max(gain, low), i, "o", markersize=5.5, color=ink(method).paper, markeredgecolor="white", zorder=3
                )
        gain = contest.gain(best)
        if best and gain:
            axes.barh(i, gain - 1, left=1, height=0.62, color=tint(ink(best.method).paper, 0.55), zorder=2)
            text = f"{gain_text(gain)}{' ~' if contest.tied else ''}  {best.path}"
            axes.annotate(text, (gain, i), (6, 0), textcoords="offset points", va="center", fontsize=8)
    axes.set_yticks(range(len(layouts)), names)
    axes.set_ylim(len(layouts) - 0.4, -0.6)
    axes.set_xlim(low, high * (high / low) ** 0.22)
    ticks = [t for t in (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100) if low <= t <= high]
    axes.set_xticks(ticks, [f"{t:g}×" for t in ticks])
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xlabel(f"times faster than {BASELINE} at its best path (log scale)")
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
    axes.grid(visible=True, axis="x")
    axes.set_axisbelow(True)


# ---------------------------------------------------------------------------------------------------------------------
# CPU time


@in_style
def cpu_time(grid: Grid, order: Sequence[str]) -> Figure | None:
    """CPU time that both sides spend on one transfer, for a small, a middle and a large block; None without data."""
    count = grid.counts[len(grid.counts) // 2]
    column = [c for b in grid.blocks if (c := grid.cells.get((b, count))) and c.ranking]
    chosen = [column[i] for i in sorted({0, len(column) // 2, len(column) - 1})] if column else []
    if not chosen:
        return None
    methods = _methods(chosen, order)
    figure = Figure(figsize=(10, 1.5 + 0.3 * len(methods)), layout="constrained")
    panels = figure.subplots(1, len(chosen), sharey=True, squeeze=False)[0]
    for axes, contest in zip(panels, chosen, strict=True):
        for y, method in enumerate(methods):
            if row := contest.best_of(method):
                axes.barh(y, row.cpu_send_us, height=0.6, color=ink(method).paper)
                axes.barh(y, row.cpu_recv_us, left=row.cpu_send_us, height=0.6, color=ink(method).paper, alpha=0.45)
                axes.plot(row.latency_us, y, "|", color=INK, markersize=13, markeredgewidth=1.6)
        axes.set_title(f"{count:,} × {bytes_text(contest.subject.block_bytes)}")
        axes.set_xlabel("time of one transfer (µs)")
        axes.set_xlim(left=0)
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.10g}"))
        axes.grid(visible=True, axis="x")
        axes.set_axisbelow(True)
    panels[0].set_yticks(range(len(methods)), methods)
    panels[0].invert_yaxis()
    keys: list[Artist] = [
        Patch(facecolor=INK, alpha=0.75, label="CPU time of the sender"),
        Patch(facecolor=INK, alpha=0.35, label="CPU time of the receiver"),
        Line2D([], [], color=INK, marker="|", markersize=11, markeredgewidth=1.6, linestyle="none", label="latency"),
    ]
    figure.legend(handles=keys, loc="outside upper center", ncols=3)
    return figure


# ---------------------------------------------------------------------------------------------------------------------
# The picture of the README


@in_style
def summary(title: str, grid: Grid, layouts: Sequence[Contest], order: Sequence[str]) -> Figure:
    """The heat map of one grid beside one layout of each DDTBench family."""
    figure = Figure(figsize=(11, 6.2), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=(1.35, 1))
    _draw_heat_map(left, grid, named=False)
    left.set_title(f"{grid.title.capitalize()}: fastest method and gain over {BASELINE}", loc="left")
    _draw_gains(right, layouts, [family(c) for c in layouts], order)
    right.set_title("Layouts of applications (DDTBench, one size of each)", loc="left")
    shown = _methods((*grid.cells.values(), *layouts), order)
    figure.legend(handles=_method_keys(shown), loc="outside lower center", ncols=6)
    figure.suptitle(title, fontsize=13, fontweight="bold", x=0.01, ha="left")
    return figure
