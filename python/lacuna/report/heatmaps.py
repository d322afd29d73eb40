"""The guide as heat maps, and the picture of the README."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

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
    width, height = (0.8 + 0.56 * columns, 1.3 + 0.42 * rows) if small else (1.0 + 0.98 * columns, 1.15 + 0.55 * rows)
    figure = Figure(figsize=(width, height), layout="constrained")
    _draw_heat_map(figure.add_subplot(), grid, named=not small)
    winners = {c.best.method for c in grid.cells.values() if c.best}
    keys = method_keys(m for m in order if m in winners)
    across = 3 if small else max(2, min(6, int(width / 1.4)))
    figure.legend(handles=keys, loc="outside upper center", ncols=across, handlelength=1.1)
    return figure


def _places(grid: Grid) -> Iterator[tuple[int, int, tuple[int, int]]]:
    """Where each cell is drawn, and its block size and count."""
    for y, block in enumerate(grid.blocks):
        for x, count in enumerate(grid.counts):
            yield x, y, (block, count)


def _fill(axes: Axes, x: int, y: int, colour: str) -> None:
    axes.add_patch(Rectangle((x - 0.48, y - 0.47), 0.96, 0.94, facecolor=colour, linewidth=0))


def _write(axes: Axes, x: float, y: float, words: str, size: float, **more: Any) -> None:
    axes.text(x, y, words, ha="center", va="center", fontsize=size, **more)


def _draw_heat_map(axes: Axes, grid: Grid, *, named: bool) -> None:
    for x, y, cell in _places(grid):
        contest = grid.cells.get(cell)
        best = contest.best if contest else None
        colour = _strength(best.method, contest.gain(best)) if contest and best else EMPTY
        _fill(axes, x, y, colour)
        if contest and best:
            _label_cell(axes, x, y, contest, best, readable_on(colour), named=named)
        elif contest and contest.censored:
            _write(axes, x, y, "censored", 7)
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
    at = {(x, y): grid.cells.get(cell) for x, y, cell in _places(grid)}
    for (x, y), here in at.items():
        for dx, dy in ((1, 0), (0, 1)):
            there = at.get((x + dx, y + dy))
            if here and there and here.best and there.best and here.best.method != there.best.method:
                ends = ((x + 0.5, x + dx - 0.5), (y + dy - 0.5, y + 0.5))
                style, width = (":", 1.0) if here.tied or there.tied else ("-", 1.8)
                axes.plot(*ends, color=INK, linewidth=width, linestyle=style, zorder=4)


def _strength(method: str, gain: float | None) -> str:
    """The method's colour, pale where it gains nothing and full where it gains fourfold or more."""
    part = min(1.0, max(0.0, math.log(gain or 1.0, 4)))
    return tint(ink(method).paper, 0.45 + 0.55 * part)


def _label_cell(axes: Axes, x: int, y: int, contest: Contest, best: Row, colour: str, *, named: bool) -> None:
    gain = contest.gain(best)
    number = (gain_text(gain) if gain else "") + (" ~" if contest.tied else "")
    small = f"{best.method}\n{best.path}" if named else best.path
    _write(axes, x, y + (0.16 if named else 0.22), small, 7.2, color=colour, linespacing=1.05)
    _write(axes, x, y - (0.29 if named else 0.2), number, 9, fontweight="bold", color=colour)


@in_style
def ratio_map(grid: Grid, ratios: Mapping[tuple[int, int], tuple[float, bool]]) -> Figure:
    """The best time of one guide over that of another; what is more than the noise in bold, the rest pale."""
    columns, rows = len(grid.counts), len(grid.blocks)
    figure = Figure(figsize=(0.8 + 0.56 * columns, 0.8 + 0.36 * rows), layout="constrained")
    axes = figure.add_subplot()
    for x, y, cell in _places(grid):
        ratio, differs = ratios.get(cell, (1.0, False))
        strength = 0.15 + 0.6 * min(1.0, abs(math.log(ratio, 2)))
        colour = tint("#d55e00" if ratio > 1 else "#0072b2", strength) if differs else EMPTY
        _fill(axes, x, y, colour)
        if cell in ratios:
            shade = readable_on(colour) if differs else INK
            _write(axes, x, y, f"{ratio:.2f}", 8, fontweight="bold" if differs else "normal", color=shade)
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
