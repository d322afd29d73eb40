"""The picture of `lacuna bench scale`."""

from __future__ import annotations

from matplotlib.figure import Figure

from lacuna.paper.scale.rows import SCHEDULES, ScaleRun
from lacuna.report.palette import other
from lacuna.report.style import in_style
from lacuna.units import bytes_text

_MARKS = "osD"


@in_style
def by_ranks(run: ScaleRun) -> Figure | None:
    """A panel for each block size: times by ranks, the chosen schedule filled."""
    if not run.rows:
        return None
    blocks = sorted({row.bytes for row in run.rows})
    ranks = sorted({row.ranks for row in run.rows})
    figure = Figure(figsize=(2.4 * len(blocks) + 1.2, 3.4), layout="constrained")
    panels = figure.subplots(1, len(blocks), sharey=True, squeeze=False)[0]
    for axes, block in zip(panels, blocks, strict=True):
        for i, schedule in enumerate(SCHEDULES):
            rows = [row for row in run.rows if row.bytes == block and row.schedule == schedule]
            rows.sort(key=lambda row: row.ranks)
            axes.plot([row.ranks for row in rows], [row.us for row in rows], color=other(i), linewidth=1)
            for row in rows:
                face = other(i) if row.chosen else "white"
                above = 4 if row.chosen else 3  # where two schedules take as long
                axes.plot(
                    row.ranks, row.us, _MARKS[i], color=other(i), markerfacecolor=face, markersize=5, zorder=above
                )
            axes.plot([], [], _MARKS[i], color=other(i), label=schedule)
        axes.set_xscale("log", base=2)
        axes.set_yscale("log")
        axes.set_xticks(ranks[::2], [str(n) for n in ranks[::2]])
        axes.set_title(f"blocks of {bytes_text(block)}", fontsize="small")
        axes.set_xlabel("ranks")
    panels[0].set_ylabel("µs of virtual time")
    panels[0].legend(fontsize="small")
    return figure
