"""The picture of `lacuna bench device`: for each layout the share of its limit that each contender reaches."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from lacuna.bench.device.rows import COPIES, LARGE, DeviceRow, DeviceRun
from lacuna.report.palette import LACUNA
from lacuna.report.style import INK, RULE, case_axis, in_style
from lacuna.units import shortened

_CONTENDERS = {
    "lacuna": ("Lacuna", LACUNA, "o"),
    "torch": ("torch", "#d55e00", "D"),
    "cupy": ("CuPy", "#e69f00", "s"),
    "copies": ("the copy engine: 2D, 3D, batch", "#009e73", "^"),
    "element": ("a thread for each element", "#9a9a9a", "|"),
}
_ROW_INCHES = 0.165
_LONGEST_NAME = 38


@in_style
def shares(bench: DeviceRun) -> Figure | None:
    """A panel for each half of the groups, a line for each layout."""
    rows = [row for row in bench.rows if row.payload >= LARGE]
    if not rows:
        return None
    rows.sort(key=lambda row: bench.groups().index(row.group))
    middle = (len(rows) + 1) // 2
    halves = [rows[:middle], rows[middle:]] if len(rows) > 20 else [rows]
    drawn = Figure(figsize=(6.2 * len(halves), 1.4 + _ROW_INCHES * middle), layout="constrained")
    for axes, half in zip(drawn.subplots(1, len(halves), squeeze=False)[0], halves, strict=True):
        _panel(axes, half)
        axes.set_xlabel(f"share of the limit, {bench.machine.get('model', '')}")
    keys = [Line2D([], [], color=c, marker=m, linestyle="", label=text) for text, c, m in _CONTENDERS.values()]
    drawn.legend(handles=keys, loc="outside upper center", ncols=5)
    return drawn


def _panel(axes: Axes, rows: Sequence[DeviceRow]) -> None:
    for y, row in enumerate(rows):
        for contender, (_, color, marker) in reversed(_CONTENDERS.items()):
            names = COPIES if contender == "copies" else (contender,)
            times = [row.us[name] for name in names if name in row.us]
            if times:
                share = row.share * row.ours / min(times)
                above = 5 if contender == "lacuna" else 3
                axes.plot([share], [y], marker=marker, color=color, markersize=4.5, linestyle="", zorder=above)
        if y and row.group != rows[y - 1].group:
            axes.axhline(y - 0.5, color=RULE, linewidth=0.8)
    axes.axvline(1, color=INK, linewidth=0.8)
    axes.set_xlim(0, 1.15)
    case_axis(axes, [shortened(f"{row.group}: {row.name}", _LONGEST_NAME) for row in rows])
