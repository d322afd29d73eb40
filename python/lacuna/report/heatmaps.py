"""The guide as heat maps, and the picture of the README."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from lacuna.guide.contests import Contest, Grid, family
from lacuna.report.bar_charts import draw_gains
from lacuna.report.palette import ink, readable_on, tint
from lacuna.report.style import EMPTY, INK, competing, in_style, method_keys
from lacuna.units import bytes_text, gain_text
from lacuna.worker.records import BASELINE, Row


@in_style
def heat_map(grid: Grid, order: Sequence[str], *, small: bool = False) -> Figure:
    """The best method over block size and block count, with its name in the cell: readable without colour. `small`: as
    large as two beside one another may be; only the path is in the cell."""
    columns, rows = len(grid.counts), len(grid.blocks)
    if small:
        figure = Figure(figsize=(0.8 + 0.56 * columns, 1.3 + 0.42 * rows), layout="constrained")
        _draw_heat_map(figure.add_subplot(), grid, named=False)
        winners = {c.best.method for c in grid.cells.values() if c.best}
        keys = method_keys(m for m in order if m in winners)
        figure.legend(handles=keys, loc="outside upper center", ncols=3, handlelength=1.1)
        return figure
    width = 1.0 + 0.98 * columns
    figure = Figure(figsize=(width, 1.15 + 0.55 * rows), layout="constrained")
    axes = figure.add_subplot()
    _draw_heat_map(axes, grid, named=True)
    winners = {c.best.method for c in grid.cells.values() if c.best}
    keys = method_keys(m for m in order if m in winners)
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
    _draw_crossovers(axes, grid)
    _label_axes(axes, grid)


def _label_axes(axes: Axes, grid: Grid) -> None:
    axes.set_xlim(-0.5, len(grid.counts) - 0.5)
    axes.set_ylim(-0.5, len(grid.blocks) - 0.5)
    axes.set_xticks(range(len(grid.counts)), [f"{n:,}" for n in grid.counts])
    axes.set_yticks(range(len(grid.blocks)), [bytes_text(b) for b in grid.blocks])
    axes.set_xlabel("number of blocks (log scale)")
    axes.set_ylabel("block size (log scale)")
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)


def _draw_crossovers(axes: Axes, grid: Grid) -> None:
    """A line between two neighbouring cells whose best methods differ; dotted where either cell's best two cannot be
    told apart, so that the line could as well lie one cell further."""
    for y, block in enumerate(grid.blocks):
        for x, count in enumerate(grid.counts):
            here = grid.cells.get((block, count))
            right = grid.cells.get((block, grid.counts[x + 1])) if x + 1 < len(grid.counts) else None
            above = grid.cells.get((grid.blocks[y + 1], count)) if y + 1 < len(grid.blocks) else None
            for there, ends in (
                (right, ((x + 0.5, x + 0.5), (y - 0.5, y + 0.5))),
                (above, ((x - 0.5, x + 0.5), (y + 0.5, y + 0.5))),
            ):
                if here and there and here.best and there.best and here.best.method != there.best.method:
                    sure = not (here.tied or there.tied)
                    axes.plot(
                        *ends, color=INK, linewidth=1.8 if sure else 1.0, linestyle="-" if sure else ":", zorder=4
                    )


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


@in_style
def ratio_map(grid: Grid, ratios: Mapping[tuple[int, int], tuple[float, bool]]) -> Figure:
    """The best time of one guide over that of another; what is more than the noise in bold, the rest pale."""
    columns, rows = len(grid.counts), len(grid.blocks)
    figure = Figure(figsize=(0.8 + 0.56 * columns, 0.8 + 0.36 * rows), layout="constrained")
    axes = figure.add_subplot()
    for y, block in enumerate(grid.blocks):
        for x, count in enumerate(grid.counts):
            ratio, differs = ratios.get((block, count), (1.0, False))
            known = (block, count) in ratios
            strength = min(1.0, abs(math.log(ratio, 2))) if differs else 0.0
            colour = tint("#d55e00" if ratio > 1 else "#0072b2", 0.15 + 0.6 * strength) if differs else EMPTY
            axes.add_patch(Rectangle((x - 0.48, y - 0.47), 0.96, 0.94, facecolor=colour, linewidth=0))
            if known:
                weight = "bold" if differs else "normal"
                shade = readable_on(colour) if differs else INK
                axes.text(x, y, f"{ratio:.2f}", ha="center", va="center", fontsize=8, fontweight=weight, color=shade)
    _label_axes(axes, grid)
    return figure


@in_style
def summary(title: str, grid: Grid, layouts: Sequence[Contest], order: Sequence[str]) -> Figure:
    """The heat map of one grid beside one layout of each DDTBench family."""
    figure = Figure(figsize=(11, 6.2), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=(1.35, 1))
    _draw_heat_map(left, grid, named=False)
    left.set_title(f"{grid.title.capitalize()}: fastest method and gain over {BASELINE}", loc="left")
    draw_gains(right, layouts, [family(c) for c in layouts], order)
    right.set_title("Layouts of applications (DDTBench, one size of each)", loc="left")
    shown = competing((*grid.cells.values(), *layouts), order)
    figure.legend(handles=method_keys(shown), loc="outside lower center", ncols=6)
    figure.suptitle(title, fontsize=13, fontweight="bold", x=0.01, ha="left")
    return figure
