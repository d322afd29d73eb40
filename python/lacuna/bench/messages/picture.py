"""The picture of `lacuna bench messages`: ratios of contiguous messages by their size, and of each family's to loops by
hand."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from lacuna.bench.messages.rows import MessageRow, Messages
from lacuna.report.palette import other
from lacuna.report.style import INK, case_axis, in_style, ratio_axis
from lacuna.worker.grouping import grouped

_BAR = 0.8
"""Of the room of a group, what its bars take."""
_BAR_INCHES = 0.085


@in_style
def ratios(messages: Messages) -> Figure | None:
    """Bars from 1: to the left Lacuna is faster. One of each MPI in every group, with its interval."""
    contiguous = messages.rows_of("contiguous", "mpi_contiguous")
    hand = _largest([r for r in messages.rows if r.competitor == "hand"])
    datatype = _largest([r for r in messages.rows if r.competitor == "mpi_datatype"])
    panels = [
        (contiguous, "contiguous", [r.case for r in contiguous]),
        (hand, "largest of each family, against loops by hand", [r.family for r in hand]),
        (datatype, "the same, against the MPI's datatype", [r.family for r in datatype]),
    ]
    shown = [(rows, title, list(dict.fromkeys(groups))) for rows, title, groups in panels if rows]
    if not shown:
        return None
    names = [mpi.name for mpi in messages.mpis]
    most = max(len(groups) for _, _, groups in shown)
    height = 1.5 + most * max(0.22, _BAR_INCHES * (len(names) + 1))
    drawn = Figure(figsize=(1.2 + 3.7 * len(shown), height), layout="constrained")
    for axes, (rows, title, groups) in zip(drawn.subplots(1, len(shown), squeeze=False)[0], shown, strict=True):
        _panel(axes, rows, groups, names)
        axes.set_title(title)
    keys = [Patch(facecolor=other(i), label=name) for i, name in enumerate(names)]
    drawn.legend(handles=keys, loc="outside upper center", ncols=len(keys))
    return drawn


def _largest(rows: Sequence[MessageRow]) -> list[MessageRow]:
    """Of each family the case of most bytes."""
    families = grouped(rows, lambda row: row.family)
    largest = {name: max((row.payload_bytes, row.case) for row in own)[1] for name, own in families.items()}
    return [row for row in rows if largest[row.family] == row.case]


def _panel(axes: Axes, rows: Sequence[MessageRow], groups: Sequence[str], names: Sequence[str]) -> None:
    thick = _BAR / len(names)
    for row in rows:
        mpi = names.index(row.mpi)
        y = groups.index(row.case if row.suite == "contiguous" else row.family) - _BAR / 2 + thick * (mpi + 0.5)
        axes.barh(y, row.ratio - 1, left=1, height=thick, color=other(mpi), zorder=2)
        axes.plot([row.ratio_low, row.ratio_high], [y, y], color=INK, linewidth=0.8, zorder=3)
    low = min(0.5, *(r.ratio_low for r in rows)) / 1.1
    high = max(2.0, *(r.ratio_high for r in rows)) * 1.1
    ratio_axis(axes, low, high, (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100))
    axes.set_xlabel("Lacuna's time over it")
    case_axis(axes, groups)
