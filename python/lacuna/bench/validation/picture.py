"""validation.png: how good the choices are, and where they err."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, NullLocator

from lacuna.bench.validation.validation import Validation
from lacuna.guide.baselines import TABLE_3
from lacuna.medians import geomean
from lacuna.report.palette import LACUNA, ink
from lacuna.report.style import INK, in_style, method_keys
from lacuna.units import bytes_text

_RULES = {
    "Table 3": "#9a9a9a",
    "always pack": "#d55e00",
    "always pack_pipelined": "#e69f00",
    "zero-copy from 16 KiB blocks": "#009e73",
}
"""What is drawn beside the choice; the table has all of them."""


@in_style
def figure(made: Validation) -> Figure | None:
    if not made.pairs:
        return None
    drawn = Figure(figsize=(10, 4.6), layout="constrained")
    left, right = drawn.subplots(1, 2)
    _shares(left, made)
    _pairs(right, made)
    title = f"{len(made.pairs)} random pairs of layouts on {made.nic}"
    ours, theirs = made.regret_geomean, geomean(made.regrets_of(TABLE_3.name))
    judgement = f"the chosen way takes {ours:.3f} times as long as the best one, Table 3's choice {theirs:.2f} times"
    drawn.suptitle(f"{title}\n{judgement}", fontsize=10)
    return drawn


def _shares(axes: Axes, made: Validation) -> None:
    drawn = [(made.regrets_of(name), colour, name) for name, colour in _RULES.items() if name in made.rules]
    drawn.append((made.regrets, LACUNA, "Lacuna"))
    for values, colour, label in drawn:
        ordered = np.sort(values)
        axes.step(ordered, np.arange(1, len(ordered) + 1) / len(ordered), where="post", color=colour, label=label)
    axes.set_xscale("log")
    axes.set_xlim(0.95, min(20.0, max(2.0, *(most for values, _, _ in drawn for most in values))))
    axes.set_xticks([t for t in (1, 1.1, 1.25, 1.5, 2, 3, 5, 10, 20) if t <= axes.get_xlim()[1]])
    axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:g}×"))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(FuncFormatter(lambda y, _: f"{y:.0%}"))
    axes.set_xlabel("time of the choice over time of the best way")
    axes.set_ylabel("share of the pairs at most so far")
    axes.grid(visible=True)
    axes.legend(loc="lower right")


def _pairs(axes: Axes, made: Validation) -> None:
    for pair in made.pairs:
        axes.plot(
            pair.payload_bytes, pair.regret, marker="o", markersize=4, linestyle="none", color=ink(pair.chosen[0]).paper
        )
    axes.axhline(1, color=INK, linewidth=0.7)
    axes.set_xscale("log", base=2)
    axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: bytes_text(int(x))))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda y, _: f"{y:g}×"))
    axes.set_xlabel("payload")
    axes.set_ylabel("over the best way")
    axes.grid(visible=True)
    # Above the panel: points may lie anywhere in it.
    keys = method_keys(dict.fromkeys(p.chosen[0] for p in made.pairs))
    axes.legend(handles=keys, loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=4)
