"""The picture of the families that a seed draws: times over that of memcpy, a line for each family, a mark for each
layout."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from lacuna.bench.copies.figures import OPERATIONS, by_element, by_family
from lacuna.bench.copies.rows import CopyRow
from lacuna.medians import geomean
from lacuna.report.palette import BY_HAND, LACUNA, other
from lacuna.report.style import INK, case_axis, in_style, ratio_axis

_TICKS = (0.1, 0.3, 1, 3, 10, 30, 100, 300, 1000)
_TITLES = {"pack": "pack", "unpack": "unpack", "transpack": "layout to layout"}
_MARKS = {"lacuna": ("o", LACUNA, 0.0), "NumPy": ("x", other(0), -0.2), "torch": ("+", other(2), 0.2)}
"""Of each contender the marker, the colour, and how far it is off its line, so that none hides another one."""


@in_style
def times_over_memcpy(rows: Sequence[CopyRow]) -> Figure | None:
    lines = _lines(rows)
    if not lines:
        return None
    drawn = Figure(figsize=(9.4, 1.4 + 0.3 * len(lines)), layout="constrained")
    panels = [op for op in OPERATIONS if any(r.operation == op for r in rows)]
    grid = drawn.subplots(1, len(panels), sharey=True, squeeze=False)[0]
    for axes, operation in zip(grid, panels, strict=True):
        found = [[r for r in some if r.operation == operation] for some in lines.values()]
        _panel(axes, found)
        axes.set_title(_TITLES[operation])
        axes.set_xlabel("time over memcpy's")
        case_axis(axes, [name.replace("_", " ") for name in lines])
    marks = [(m, 5, c, n) for n, (m, c, _) in _MARKS.items() if any(_over_memcpy(r, n) for r in rows)]
    marks += [("|", 7, BY_HAND, "by hand"), ("|", 11, INK, "lacuna, geometric mean")]
    keys = [Line2D([], [], linestyle="none", marker=m, markersize=s, color=c, label=n) for m, s, c, n in marks]
    drawn.legend(handles=keys, loc="outside upper center", ncols=len(keys))
    return drawn


def _lines(rows: Sequence[CopyRow]) -> dict[str, list[CopyRow]]:
    """Families, permutations by element."""
    found: dict[str, list[CopyRow]] = {}
    for family, own in by_family(rows).items():
        found |= by_element(family, own) if family == "permutation" else {family: own}
    return found


def _over_memcpy(row: CopyRow, name: str) -> float | None:
    """The time of a contender over memcpy's: what Lacuna's ratio to memcpy is more than Lacuna's ratio to it."""
    if name == "lacuna":
        return row.memcpy.ratio
    against = row.numpy if name == "NumPy" else row.torch
    return row.memcpy.ratio / against.ratio if against else None


def _panel(axes: Axes, lines: Sequence[Sequence[CopyRow]]) -> None:
    seen = [1.0]
    for y, rows in enumerate(lines):
        for row in rows:
            hand = row.memcpy.ratio / row.hand.ratio
            axes.plot([hand], [y], linestyle="none", marker="|", markersize=6, color=BY_HAND, zorder=2)
            seen.append(hand)
            for name, (marker, colour, off) in _MARKS.items():
                value = _over_memcpy(row, name)
                if value:
                    seen.append(value)
                    axes.plot(
                        [value], [y + off], linestyle="none", marker=marker, markersize=3.4, color=colour, alpha=0.75
                    )
        if rows:
            mean = geomean([r.memcpy.ratio for r in rows])
            axes.plot([mean], [y], linestyle="none", marker="|", markersize=11, color=INK, zorder=5)
    ratio_axis(axes, min(seen) / 1.3, max(seen) * 1.3, _TICKS)
