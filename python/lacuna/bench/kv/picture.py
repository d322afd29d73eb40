"""The picture of `lacuna bench kv`."""

from __future__ import annotations

from matplotlib.figure import Figure

from lacuna.bench.kv.rows import RULES, KvRun
from lacuna.report.palette import other
from lacuna.report.style import in_style


@in_style
def by_case(run: KvRun) -> Figure | None:
    """Of each NIC and case the rules' times over that of the choice."""
    if not run.rows:
        return None
    nics = list(dict.fromkeys(row.nic for row in run.rows))
    figure = Figure(figsize=(3.6 * len(nics), 3.4), layout="constrained")
    for axes, nic in zip(figure.subplots(1, len(nics), sharey=True, squeeze=False)[0], nics, strict=True):
        rows = [row for row in run.rows if row.nic == nic]
        for i, rule in enumerate(RULES):
            over = [getattr(row, rule).us / row.chosen.us for row in rows]
            axes.barh([n + (i - 0.5) * 0.38 for n in range(len(rows))], over, height=0.36, color=other(i), label=rule)
        axes.set_yticks(range(len(rows)), [row.case for row in rows])
        axes.axvline(1, color="0.4", linewidth=0.8)
        axes.set_xscale("log")
        axes.set_xlabel("time over that of the choice")
        axes.set_title(nic)
        axes.legend(fontsize="small")
    return figure
