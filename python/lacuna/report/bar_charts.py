"""Bars: what each layout gains, and what a transfer costs each processor."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import FuncFormatter

from lacuna.guide.contests import Contest
from lacuna.report.palette import ink, tint
from lacuna.report.style import INK, case_axis, competing, in_style, method_keys, ratio_axis
from lacuna.units import bytes_text, gain_text
from lacuna.worker.records import BASELINE, Row


@in_style
def gains(layouts: Sequence[Contest], order: Sequence[str]) -> Figure | None:
    """For each layout how many times faster or slower than the baseline every method is, the best as a bar."""
    if not layouts:
        return None
    figure = Figure(figsize=(9.4, 1.3 + 0.25 * len(layouts)), layout="constrained")
    axes = figure.add_subplot()
    names = [f"{c.subject.layout}   {bytes_text(c.subject.payload_bytes)}" for c in layouts]
    draw_gains(axes, layouts, names, order)
    keys: list[Artist] = method_keys(competing(layouts, order))
    keys.append(Line2D([], [], color=INK, linewidth=1, label=BASELINE))
    figure.legend(handles=keys, loc="outside upper center", ncols=6, handlelength=1.1)
    return figure


def draw_gains(axes: Axes, layouts: Sequence[Contest], names: Sequence[str], order: Sequence[str]) -> None:
    methods = competing(layouts, order)
    gains = {(i, m): c.gain(c.best_of(m)) for i, c in enumerate(layouts) for m in methods}
    shown = [gain for gain in gains.values() if gain] + [1.0]
    low, high = max(0.1, min(shown) / 1.15), max(shown) * 1.15
    for i, contest in enumerate(layouts):
        best = contest.best
        for method in methods:
            gain = gains[i, method]
            if gain:
                axes.plot(
                    max(gain, low), i, "o", markersize=5.5, color=ink(method).paper, markeredgecolor="white", zorder=5
                )
        gain = contest.gain(best)
        if best and gain:
            axes.barh(i, gain - 1, left=1, height=0.62, color=tint(ink(best.method).paper, 0.55), zorder=2)
            text = f"{gain_text(gain)}{' ~' if contest.tied else ''}  {best.path}"
            axes.annotate(text, (gain, i), (6, 0), textcoords="offset points", va="center", fontsize=8)
    case_axis(axes, names)
    ticks = [t for t in (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100) if t <= high]
    ratio_axis(axes, low, high * (high / low) ** 0.22, ticks, "×")
    axes.set_xlabel(f"times faster than {BASELINE} (log scale)")
    axes.spines["left"].set_visible(False)


@in_style
def cost_split(chosen: Sequence[Contest], order: Sequence[str]) -> Figure | None:
    """What one transfer costs the two CPUs and which part of it is packing and unpacking, beside the latency; a
    panel for each chosen cell. None without data."""
    if not chosen:
        return None
    methods = competing(chosen, order)
    names = [*methods, "by hand"]
    figure = Figure(figsize=(10, 1.5 + 0.28 * len(names)), layout="constrained")
    panels = figure.subplots(1, len(chosen), sharey=True, squeeze=False)[0]
    for axes, contest in zip(panels, chosen, strict=True):
        for y, row in enumerate([*(contest.best_of(m) for m in methods), contest.by_hand]):
            if row:
                _draw_cost(axes, y, row)
        s = contest.subject
        axes.set_title(f"{s.block_count:,} × {bytes_text(s.block_bytes)}, {s.cache}")
        axes.set_xlabel("time of one transfer (µs)")
        axes.set_xlim(left=0)
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.10g}"))
        axes.grid(visible=True, axis="x")
        axes.set_axisbelow(True)
    panels[0].set_yticks(range(len(names)), names)
    panels[0].invert_yaxis()
    keys: list[Artist] = [
        *(Patch(facecolor=colour, label=label) for label, colour in _COSTS),
        Line2D([], [], color=INK, marker="|", markersize=11, markeredgewidth=1.6, linestyle="none", label="latency"),
    ]
    figure.legend(handles=keys, loc="outside upper center", ncols=5)
    return figure


_COSTS = (
    ("sender packs", "#0072b2"),
    ("sender, else", "#9cc9e3"),
    ("receiver unpacks", "#d55e00"),
    ("receiver, else", "#f2bf99"),
)


def _draw_cost(axes: Axes, y: int, row: Row) -> None:
    parts = (
        min(row.copy_send_us, row.cpu_send_us),
        max(0.0, row.cpu_send_us - row.copy_send_us),
        min(row.copy_recv_us, row.cpu_recv_us),
        max(0.0, row.cpu_recv_us - row.copy_recv_us),
    )
    left = 0.0
    for part, (_, colour) in zip(parts, _COSTS, strict=True):
        axes.barh(y, part, left=left, height=0.62, color=colour)
        left += part
    axes.plot(row.latency_us, y, "|", color=INK, markersize=12, markeredgewidth=1.6)
