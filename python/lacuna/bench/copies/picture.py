"""The picture of `lacuna bench copy`: for each layout the bandwidth of every contender, against the limit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

from lacuna.bench.copies.figures import by_family
from lacuna.bench.copies.rows import Copies, CopyRow
from lacuna.report.palette import BY_HAND, LACUNA, other
from lacuna.report.style import INK, RULE, case_axis, in_style
from lacuna.units import shortened

_ROW_INCHES = 0.185
_LONGEST_NAME = 34


def selection(rows: Sequence[CopyRow]) -> list[CopyRow]:
    """Of each kind of layout the one with most bytes: what fits into one picture."""
    kept = {max((row.bytes, row.case) for row in own)[1] for own in by_family(rows).values()}
    return [row for row in rows if row.case in kept]


@in_style
def bandwidth(copies: Copies, rows: Sequence[CopyRow]) -> Figure | None:
    """GB/s of payload, a line for each layout, a panel for each operation and cache state."""
    panels = [(op, cache) for op in ("pack", "unpack") for cache in ("warm", "cold")]
    panels = [p for p in panels if any((r.operation, r.cache) == p for r in rows)]
    cases = list(dict.fromkeys(r.case for r in rows if r.operation in ("pack", "unpack")))
    if not panels or not cases:
        return None
    height = 1.3 + _ROW_INCHES * len(cases)
    drawn = Figure(figsize=(3.1 + 2.15 * len(panels), height), layout="constrained")
    grid = drawn.subplots(1, len(panels), sharey=True, squeeze=False)[0]
    for axes, panel in zip(grid, panels, strict=True):
        _panel(axes, {cases.index(r.case): r for r in rows if (r.operation, r.cache) == panel}, copies)
        axes.set_title(", ".join(panel))
        axes.set_xlabel("GB/s of payload")
        case_axis(axes, [shortened(case, _LONGEST_NAME) for case in cases])
    drawn.legend(handles=_keys(copies), loc="outside upper center", ncols=4 + len(copies.mpis))
    return drawn


def _panel(axes: Axes, rows: Mapping[int, CopyRow], copies: Copies) -> None:
    """`rows`: by the line that each has."""
    axes.set_xscale("log")
    axes.xaxis.set_major_locator(LogLocator(numticks=6))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.xaxis.set_minor_locator(NullLocator())
    for y, row in rows.items():
        ours = row.bytes / row.lacuna_ns
        limit, hand = ours * row.limit.ratio, ours * row.hand.ratio
        axes.plot([hand, ours], [y, y], color=RULE, linewidth=2.2, zorder=1)
        axes.plot([limit], [y], linestyle="none", marker="|", markersize=9, markeredgewidth=1.4, color=INK, zorder=2)
        axes.plot([hand], [y], linestyle="none", marker="o", markersize=4, color=BY_HAND, zorder=3)
        for mpi in row.mpi:
            colour = other([m.name for m in copies.mpis].index(mpi.name))
            axes.plot([ours * mpi.ratio], [y], linestyle="none", marker="x", markersize=3.8, color=colour, zorder=3)
        axes.plot([ours], [y], linestyle="none", marker="o", markersize=5, color=LACUNA, zorder=4)


def _keys(copies: Copies) -> list[Artist]:
    def key(marker: str, colour: str, label: str) -> Line2D:
        return Line2D([], [], linestyle="none", marker=marker, color=colour, markersize=5.5, label=label)

    mpis = [key("x", other(i), name) for i, name in enumerate(m.name for m in copies.mpis)]
    return [key("o", LACUNA, "lacuna"), key("o", BY_HAND, "by hand"), key("|", INK, "limit"), *mpis]
