"""The picture of `lacuna bench ranks`."""

from __future__ import annotations

from matplotlib.figure import Figure

from lacuna.bench.ranks.rows import RanksRun
from lacuna.report.palette import other
from lacuna.report.style import in_style

_FIGURES = {"init_s": "MPI_Init", "alltoallw_s": "MPI_Alltoallw", "isend_s": "MPI_Isend"}
_MARKS = "osD^v"


@in_style
def by_ranks(run: RanksRun) -> Figure | None:
    """Left: times with Lacuna over those without. Right: MiB that a rank shares."""
    if not run.rows:
        return None
    figure = Figure(figsize=(9, 3.6), layout="constrained")
    times, memory = figure.subplots(1, 2)
    ranks = sorted({row.ranks for row in run.rows})
    for m, mpi in enumerate(dict.fromkeys(row.mpi for row in run.rows)):
        rows = sorted((row for row in run.rows if row.mpi == mpi), key=lambda row: row.ranks)
        at = [row.ranks for row in rows]
        for i, (name, label) in enumerate(_FIGURES.items()):
            line = [row.ratio(name) for row in rows]
            times.plot(at, line, marker=_MARKS[m % len(_MARKS)], color=other(i), label=f"{label}, {mpi}")
        memory.plot(at, [row.shared_mib_of_rank for row in rows], marker=_MARKS[m % len(_MARKS)], label=mpi)
    times.axhline(1, color="0.6", linewidth=0.8)
    times.set_ylabel("time with Lacuna / without")
    memory.set_ylabel("MiB that a rank shares")
    memory.set_ylim(bottom=0)
    for axes in (times, memory):
        axes.set_xscale("log", base=2)
        axes.set_xticks(ranks, [str(n) for n in ranks])
        axes.set_xlabel("ranks on the node")
        axes.legend(fontsize="small")
    return figure
