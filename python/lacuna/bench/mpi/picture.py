"""The picture of `lacuna bench mpi`: what datatypes take, with Lacuna and without, over packing by hand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from lacuna.bench.mpi.rows import MpiRun
from lacuna.report.palette import LACUNA, other
from lacuna.report.style import RULE, case_axis, in_style, ratio_axis

_PLAIN = other(0)
_PRELOADED = LACUNA
_ROW_INCHES = 0.145
_TICKS = (0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 200)
_FEWER_TICKS = (0.01, 0.1, 1, 10, 100)
_WIDE = 60
"""Times the low end of an axis, from which on the ticks would run into one another."""


@dataclass(frozen=True)
class _Dot:
    """A time over that of packing by hand."""

    mpi: str
    line: str
    preloaded: bool
    ratio: float
    low: float
    high: float


@in_style
def ratios(run: MpiRun) -> Figure | None:
    """A panel of each MPI with a line of each case: left of 1 the datatype is faster than the loops."""
    rows = [r for r in run.rows if r.method == "mpi_ddt"]
    families = list(dict.fromkeys(r.family for r in rows))
    rows.sort(key=lambda r: (families.index(r.family), r.payload_bytes))
    return _drawn(
        run,
        [_Dot(r.mpi, r.case, r.preloaded, r.ratio_vs_hand, r.ratio_vs_hand_low, r.ratio_vs_hand_high) for r in rows],
    )


@in_style
def programs(run: MpiRun) -> Figure | None:
    """The same of programs: of the MPI's own datatypes, and of the preloaded ones."""
    dots = []
    for r in run.programs:
        where = f"{r.ranks} ranks" + ", two hosts" * (r.hosts > 1)
        line, own = f"{r.case}, {where}", r.host_us / r.hand_us
        dots.append(_Dot(r.mpi, line, False, own, own, own))
        dots.append(_Dot(r.mpi, line, True, r.ratio_vs_hand, r.ratio_vs_hand_low, r.ratio_vs_hand_high))
    return _drawn(run, dots)


def _drawn(run: MpiRun, dots: Sequence[_Dot]) -> Figure | None:
    if not dots:
        return None
    lines = list(dict.fromkeys(dot.line for dot in dots))
    names = [mpi.name for mpi in run.mpis if any(dot.mpi == mpi.name for dot in dots)]
    height = 1.2 + max(6, len(lines)) * _ROW_INCHES
    drawn = Figure(figsize=(1.9 + 2.4 * len(names), height), layout="constrained")
    panels = drawn.subplots(1, len(names), squeeze=False, sharey=True)[0]
    for axes, name in zip(panels, names, strict=True):
        _panel(axes, [dot for dot in dots if dot.mpi == name], lines)
        axes.set_title(name)
    drawn.supxlabel("time of the datatype over that of packing by hand without Lacuna", fontsize=9)
    keys = [_key(_PLAIN, "the MPI's own"), _key(_PRELOADED, "with Lacuna preloaded")]
    drawn.legend(handles=keys, loc="outside upper center", ncols=2)
    return drawn


def _panel(axes: Axes, dots: Sequence[_Dot], lines: Sequence[str]) -> None:
    for dot in dots:
        y = lines.index(dot.line)
        colour = _PRELOADED if dot.preloaded else _PLAIN
        axes.plot([dot.low, dot.high], [y, y], color=colour, linewidth=1.4, zorder=3)
        axes.plot(dot.ratio, y, marker="o", markersize=3.6, color=colour, zorder=4)
    for line in lines:  # the way from one to the other
        ends = [dot.ratio for dot in dots if dot.line == line]
        axes.plot(ends, [lines.index(line)] * len(ends), color=RULE, linewidth=0.8, zorder=1)
    # By the medians: on a machine that is not quiet some intervals are so long that nothing else could be told apart.
    low = min(0.5, *(dot.ratio for dot in dots)) / 1.5
    high = max(2.0, *(dot.ratio for dot in dots)) * 1.5
    ratio_axis(axes, low, high, _TICKS if high < _WIDE * low else _FEWER_TICKS)
    case_axis(axes, lines, 7)


def _key(colour: str, label: str) -> Line2D:
    return Line2D([], [], color=colour, marker="o", markersize=3.6, linewidth=1.4, label=label)
