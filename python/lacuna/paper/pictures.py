"""The pictures of a section: the model's lines, and beside them the paper's points where it has numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from lacuna.paper.runs import PLAIN
from lacuna.paper.section import Line, Plot, Section
from lacuna.report.palette import ink
from lacuna.report.style import INK, in_style, log_axes, save_png
from lacuna.units import bytes_text

_COLUMNS = 3
_OTHERS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")
"""For lines that are no methods."""


@in_style
def draw(section: Section) -> Figure:
    """All plots of a section, one beside the other."""
    return _panels(section.plots, [p.title for p in section.plots], (3.7, 3.1))


@in_style
def _overview(title: str, plots: Sequence[Plot], titles: Sequence[str]) -> Figure:
    figure = _panels(plots, titles, (3.6, 2.9), columns=4, legend="outside lower center")
    figure.suptitle(title, fontsize=13, fontweight="bold", x=0.01, ha="left")
    return figure


def write_png(path: Path, title: str, sections: Sequence[Section]) -> bool:
    """In one picture all plots whose lines are methods, which share one legend. False if there are none."""
    pairs = [
        (plot, f"{s.id}{': ' if plot.title else ''}{plot.title}")
        for s in sections
        for plot in s.plots
        if all(_is_method(line.name) for line in plot.lines)
    ]
    if pairs:
        save_png(_overview(title, [p for p, _ in pairs], [t for _, t in pairs]), path)
    return bool(pairs)


def _panels(
    plots: Sequence[Plot],
    titles: Sequence[str],
    size: tuple[float, float],
    columns: int = _COLUMNS,
    legend: Literal["outside upper center", "outside lower center"] = "outside upper center",
) -> Figure:
    others = _others(plots)
    columns = min(columns, len(plots))
    rows = math.ceil(len(plots) / columns)
    width = max(6.2, size[0] * columns) if len(plots) == 1 else size[0] * columns
    figure = Figure(figsize=(width, size[1] * rows + 0.7), layout="constrained")
    grid = figure.subplots(rows, columns, squeeze=False)
    for axes, plot, title in zip(grid.flat, plots, titles, strict=False):
        _draw(axes, plot, others)
        axes.set_title(title)
    for axes in grid.flat[len(plots) :]:
        axes.set_visible(False)
    keys = _keys([line for plot in plots for line in plot.lines], others)
    figure.legend(handles=keys, loc=legend, ncols=max(2, int(width / 1.7)))
    return figure


def _is_method(name: str) -> bool:
    """A method, perhaps with a word behind a comma, or a message to compare it with."""
    return name == PLAIN or ink(name.split(",")[0]) != ink("")


def _others(plots: Sequence[Plot]) -> list[str]:
    """The names in a figure that are no methods, each of which has its colour in all panels."""
    return [n for n in dict.fromkeys(line.name for p in plots for line in p.lines) if not _is_method(n)]


def _colour(name: str, others: Sequence[str]) -> str:
    if name == PLAIN:
        return INK
    if _is_method(name):
        return ink(name.split(",")[0]).paper
    return _OTHERS[others.index(name) % len(_OTHERS)]


def _keys(lines: Sequence[Line], others: Sequence[str]) -> list[Artist]:
    keys: list[Artist] = []
    for line in {line.name: line for line in lines if not line.paper}.values():
        key = Line2D([], [], color=_colour(line.name, others), linewidth=2, label=line.name)
        key.set_linestyle("--" if line.dashed else "-")
        keys.append(key)
    if any(line.paper for line in lines):
        keys.append(Line2D([], [], color=INK, marker="o", markerfacecolor="none", linestyle="none", label="the paper"))
    return keys


def _draw(axes: Axes, plot: Plot, others: Sequence[str]) -> None:
    for line in plot.lines:
        colour = _colour(line.name, others)
        if line.paper:
            axes.plot(
                line.xs, line.ys, linestyle="none", marker="o", markersize=4.5, markerfacecolor="none", color=colour
            )
        else:
            axes.plot(line.xs, line.ys, color=colour, linewidth=1.5, linestyle="--" if line.dashed else "-")
    axes.set_xlabel(plot.x)
    axes.set_ylabel(plot.y)
    xs = sorted({x for line in plot.lines for x in line.xs})
    log_axes(axes, xs, lambda x: bytes_text(round(x)) if plot.bytes_on_x else f"{x:,g}")
