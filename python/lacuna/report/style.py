"""How all pictures look, and what they are made of.

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
from matplotlib.patches import Patch
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

from lacuna.guide.contests import Contest, interval
from lacuna.report.palette import ink, marker
from lacuna.worker.records import Row

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


def competing(all_contests: Iterable[Contest], order: Sequence[str]) -> list[str]:
    """The methods that compete somewhere, in the guide's order."""
    seen = {row.method for contest in all_contests for row in contest.ranking}
    return [method for method in order if method in seen]


def method_keys(methods: Iterable[str]) -> list[Artist]:
    return [Patch(facecolor=ink(method).paper, label=method) for method in methods]


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


def log_axes(axes: Axes, xs: Sequence[float], text: Callable[[float], str], ticks: int = 5) -> None:
    """Makes both axes logarithmic, once the lines are drawn. `xs`: of which as many as there are `ticks` are named."""
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_xticks(xs[:: max(1, math.ceil((len(xs) - 1) / (ticks - 1)))])
    axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: text(x)))
    low, high = axes.get_ylim()
    if high / low < 4:  # so that a nearly flat line looks flat, and has ticks
        middle = math.sqrt(low * high)
        axes.set_ylim(middle / 2, middle * 2)
    axes.yaxis.set_major_locator(LogLocator(subs=(1.0,) if high / low > 300 else (1.0, 2.0, 5.0), numticks=12))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda y, _: f"{y:,.10g}"))
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_minor_locator(NullLocator())
    axes.grid(visible=True)


def case_axis(axes: Axes, names: Sequence[str], size: float | None = None) -> None:
    """A line for each name, from top to bottom."""
    axes.set_yticks(range(len(names)), list(names), fontsize=size)
    axes.set_ylim(len(names) - 0.4, -0.6)
    axes.tick_params(axis="y", length=0)
    axes.grid(axis="x")
    axes.set_axisbelow(True)


def ratio_axis(axes: Axes, low: float, high: float, ticks: Sequence[float], unit: str = "") -> None:
    """Ratios from left to right, with a line at 1; of the ticks those that fit."""
    axes.axvline(1, color=INK, linewidth=1, zorder=4)
    axes.set_xscale("log")
    axes.set_xlim(low, high)
    shown = [tick for tick in ticks if low <= tick <= high]
    axes.set_xticks(shown, [f"{tick:g}{unit}" for tick in shown])
    axes.xaxis.set_minor_locator(NullLocator())


def path_keys(paths: Iterable[str]) -> list[Artist]:
    return [Line2D([], [], color=INK, marker=marker(p), markersize=5, linestyle="none", label=f"on {p}") for p in paths]


def method_lines(methods: Iterable[str]) -> list[Artist]:
    return [Line2D([], [], color=ink(m).paper, linewidth=2.2, label=m) for m in methods]
