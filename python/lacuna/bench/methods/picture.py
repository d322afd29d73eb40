"""The pictures of a bench: one for each experiment, and all of them as small multiples."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from pathlib import Path

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from lacuna.bench.methods.places import Panel, View, copies_us
from lacuna.report.palette import ink
from lacuna.report.style import INK, draw_curve, in_style, log_axes, method_lines, path_keys, save_png
from lacuna.worker.records import Row

_COPY_STYLE = (0, (1, 1.4))
_REFERENCE_COLOUR = INK
_COLUMNS = 4
"""Panels beside one another in the picture of all experiments."""


@in_style
def experiment(view: View) -> Figure:
    """Time or bandwidth over x, a panel for each group."""
    count = len(view.panels)
    columns = count if count <= 3 else 2
    rows = math.ceil(count / columns)
    size = {1: (6.6, 3.9), 2: (9.4, 3.9), 3: (10.4, 3.7)}.get(count, (9.4, 3.2 * rows + 0.5))
    figure = Figure(figsize=size, layout="constrained")
    grid = figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False)
    for axes, panel in zip(grid.flat, view.panels, strict=False):
        _draw(axes, view, panel, ticks=6)
        axes.set_title(panel.group)
    for axes in grid[:, 0]:
        axes.set_ylabel(_y_label(view))
    for axes in grid[-1, :]:
        axes.set_xlabel(view.experiment.axis.name)
    for axes in grid.flat[count:]:
        axes.set_visible(False)
    keys = [*method_lines(view.methods), *_style_keys([view]), *path_keys(_paths([view]))]
    figure.legend(handles=keys, loc="outside upper center", ncols=max(2, int(size[0] / 1.65)))
    return figure


@in_style
def _small_multiples(title: str, found: Sequence[View]) -> Figure:
    panels = [(view, panel) for view in found for panel in view.panels]
    columns = min(_COLUMNS, len(panels))
    rows = math.ceil(len(panels) / columns)
    figure = Figure(figsize=(max(6.5, 3.15 * columns), 2.9 * rows + 1.1), layout="constrained")
    grid = figure.subplots(rows, columns, squeeze=False)
    for axes, (view, panel) in zip(grid.flat, panels, strict=False):
        _draw(axes, view, panel, ticks=4)
        group = f", {panel.group}" if panel.group else ""
        axes.set_title(view.experiment.title, loc="left", fontsize=7.6)
        name = f"{view.experiment.id}{group}"
        axes.annotate(
            name, (0, 1), (0, 19), "axes fraction", textcoords="offset points", fontsize=9.5, fontweight="bold"
        )
        axes.set_xlabel(view.experiment.axis.name, fontsize=8)
        axes.set_ylabel(_y_label(view), fontsize=8)
    for axes in grid.flat[len(panels) :]:
        axes.set_visible(False)
    methods = list(dict.fromkeys(m for view in found for m in view.methods))
    keys = [*method_lines(methods), *_style_keys(found), *path_keys(_paths(found))]
    figure.legend(handles=keys, loc="outside lower center", ncols=max(2, int(figure.get_figwidth() / 1.75)))
    figure.suptitle(title, fontsize=13, fontweight="bold", x=0.01, ha="left")
    return figure


def write_png(path: Path, title: str, found: Sequence[View]) -> None:
    """All experiments in one picture."""
    save_png(_small_multiples(title, found), path)


def _y_label(view: View) -> str:
    return "bandwidth (GB/s)" if view.experiment.shows == "bandwidth" else "one-way latency (µs)"


def _paths(found: Iterable[View]) -> list[str]:
    rows = (row for v in found for p in v.panels for s in p.spots for m in v.methods if (row := s.contest.best_of(m)))
    return sorted({row.path for row in rows})


def _style_keys(found: Sequence[View]) -> list[Artist]:
    keys: list[Artist] = [
        Line2D([], [], color=_REFERENCE_COLOUR, linewidth=1.5, linestyle="--", label=name)
        for name in dict.fromkeys(name for view in found for name in view.references)
    ]
    if any(view.experiment.shows == "split" for view in found):
        keys.append(Line2D([], [], color=INK, linewidth=1.5, linestyle=_COPY_STYLE, label="of which copies"))
    return keys


def _draw(axes: Axes, view: View, panel: Panel, *, ticks: int) -> None:
    def shown(row: Row, latency_us: float) -> float:
        return row.subject.payload_bytes / latency_us / 1e3 if view.experiment.shows == "bandwidth" else latency_us

    for method in view.methods:
        found = [(s.x, row) for s in panel.spots if (row := s.contest.best_of(method))]
        draw_curve(axes, found, ink(method).paper, shown)
        _draw_copies(axes, view, found, ink(method).paper)
    for name in view.references:
        contests = [(s.x, s.references[name].best) for s in panel.spots if name in s.references]
        found = [(x, row) for x, row in contests if row]
        draw_curve(axes, found, _REFERENCE_COLOUR, shown, "--")
    xs = [s.x for s in panel.spots]
    log_axes(axes, xs, lambda x: view.experiment.axis.text(round(x)), ticks)
    axes.set_xlim(xs[0] / 1.4, xs[-1] * 1.4)


def _draw_copies(axes: Axes, view: View, found: Sequence[tuple[int, Row]], colour: str) -> None:
    copies = [(x, copies_us(row)) for x, row in found if copies_us(row) > 0]
    if view.experiment.shows == "split" and copies:
        axes.plot(*zip(*copies, strict=True), color=colour, linewidth=1.5, linestyle=_COPY_STYLE)
