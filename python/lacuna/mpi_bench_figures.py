"""The picture of `lacuna bench mpi`: what datatypes take, with Lacuna and without, over packing by hand."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import NullLocator

from lacuna.mpi_bench_rows import MpiRow, MpiRun
from lacuna.style import INK, RULE, in_style

_PLAIN = "#d55e00"
_PRELOADED = "#0072b2"
_ROW_INCHES = 0.145
_TICKS = (0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 200)
_FEWER_TICKS = (0.01, 0.1, 1, 10, 100)
_WIDE = 60
"""Times the low end of an axis, from which on the ticks would run into one another."""


@in_style
def ratios(run: MpiRun) -> Figure | None:
    """A panel of each MPI with a line of each case: left of 1 the datatype is faster than the loops."""
    rows = [r for r in run.rows if r.method == "mpi_ddt"]
    if not rows:
        return None
    families = list(dict.fromkeys(r.family for r in rows))
    sizes = {r.case: (families.index(r.family), r.payload_bytes) for r in rows}
    cases = sorted(sizes, key=lambda case: sizes[case])
    names = [mpi.name for mpi in run.mpis if any(r.mpi == mpi.name for r in rows)]
    height = 1.2 + max(6, len(cases)) * _ROW_INCHES
    drawn = Figure(figsize=(1.9 + 2.4 * len(names), height), layout="constrained")
    panels = drawn.subplots(1, len(names), squeeze=False, sharey=True)[0]
    for axes, name in zip(panels, names, strict=True):
        _panel(axes, [r for r in rows if r.mpi == name], cases)
        axes.set_title(name)
    drawn.supxlabel("time of the datatype over that of packing by hand without Lacuna", fontsize=9)
    keys = [_key(_PLAIN, "the MPI's own"), _key(_PRELOADED, "with Lacuna preloaded")]
    drawn.legend(handles=keys, loc="outside upper center", ncols=2)
    return drawn


def _panel(axes: Axes, rows: Sequence[MpiRow], cases: Sequence[str]) -> None:
    for row in rows:
        y = cases.index(row.case)
        colour = _PRELOADED if row.preloaded else _PLAIN
        axes.plot([row.ratio_vs_hand_low, row.ratio_vs_hand_high], [y, y], color=colour, linewidth=1.4, zorder=3)
        axes.plot(row.ratio_vs_hand, y, marker="o", markersize=3.6, color=colour, zorder=4)
    for case in cases:  # the way from one to the other
        ends = [r.ratio_vs_hand for r in rows if r.case == case]
        axes.plot(ends, [cases.index(case)] * len(ends), color=RULE, linewidth=0.8, zorder=1)
    axes.axvline(1, color=INK, linewidth=1, zorder=2)
    axes.set_xscale("log")
    # By the medians: on a machine that is not quiet some intervals are so long that nothing else could be told apart.
    low = min(0.5, *(r.ratio_vs_hand for r in rows)) / 1.5
    high = max(2.0, *(r.ratio_vs_hand for r in rows)) * 1.5
    axes.set_xlim(low, high)
    ticks = [t for t in (_TICKS if high < _WIDE * low else _FEWER_TICKS) if low <= t <= high]
    axes.set_xticks(ticks, [f"{t:g}" for t in ticks])
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_yticks(range(len(cases)), list(cases), fontsize=7)
    axes.set_ylim(len(cases) - 0.4, -0.6)
    axes.tick_params(axis="y", length=0)
    axes.grid(axis="x")
    axes.set_axisbelow(True)


def _key(colour: str, label: str) -> Line2D:
    return Line2D([], [], color=colour, marker="o", markersize=3.6, linewidth=1.4, label=label)
