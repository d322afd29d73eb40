"""The picture of `lacuna bench interactions`."""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, NullLocator

from lacuna.interactions.rows import MATTERS, Interactions
from lacuna.style import INK, in_style

_DOT = "#0072b2"
_MEAN = "#d55e00"
_NEAR, _FAR = (1, 1.05, 1.1, 1.2, 1.3, 1.4), (1, 1.5, 2, 3, 5, 10, 20, 50)
"""Ticks, by whether all losses are below the last of _NEAR."""


@in_style
def losses(result: Interactions) -> Figure:
    """Of each NIC and condition a dot for each case, and a line at their mean."""
    summary = result.summary()
    most = max(map(len, summary.values()))
    drawn = Figure(figsize=(1.5 + 3.6 * len(summary), 1.3 + 0.32 * most), layout="constrained")
    for axes, nic in zip(drawn.subplots(1, len(summary), squeeze=False)[0], summary, strict=True):
        _panel(axes, result, nic)
    return drawn


def _panel(axes: Axes, result: Interactions, nic: str) -> None:
    summary = result.summary()[nic]
    names = list(summary)
    for effect in result.effects:
        if effect.nic == nic:
            axes.plot(effect.loss, names.index(effect.condition), "o", markersize=4, color=_DOT, alpha=0.6)
    for y, name in enumerate(names):
        mean = summary[name]["loss_geomean"]
        axes.plot([mean, mean], [y - 0.3, y + 0.3], color=_MEAN, linewidth=2)
    axes.axvline(1, color=INK, linewidth=0.8)
    axes.axvline(MATTERS, color=INK, linewidth=0.6, linestyle=":")
    axes.set_xscale("log")
    losses_here = [e.loss for e in result.effects if e.nic == nic]
    high = 1.06 * max(_NEAR[3], *losses_here)
    axes.set_xlim(min(0.97, 0.99 * min(losses_here)), high)
    axes.set_xticks([t for t in (_NEAR if high < _NEAR[-1] else _FAR) if t <= high])
    axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:g}×"))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.set_xlabel("what the best way without it loses")
    axes.set_title(nic)
    axes.grid(axis="x")
