"""Table 4: the fit, its residuals, and what the table says beyond the paper's text (items 1 to 4 and 6)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from statistics import median

import numpy as np

from lacuna.paper import fit, profiles, table4
from lacuna.paper.fit import Fitted, FittedCell, Problem
from lacuna.paper.profiles import CACHE_VARIANT, PLATFORM_2
from lacuna.paper.runs import sweep
from lacuna.paper.section import Line, Plot, Section
from lacuna.paper.simulator import Simulator, Trial, grid
from lacuna.report.row_tables import RowTable
from lacuna.units import bytes_text
from lacuna.worker.process import WorkerError

GOALS = {"median": 0.03, "p90": 0.08, "max": 0.15}
LEFT_OUT_GOAL = 0.06


def section(simulator: Simulator) -> Section:
    profile = profiles.load(PLATFORM_2)
    fitted = fit.evaluate(Problem(simulator, profile))
    paper = np.array([c.paper_us for c in table4.cells()])
    moved = table4.modelled_us(simulator, profile, verify=True)
    if not np.allclose(moved / paper - 1, fitted.relative, rtol=0, atol=1e-9):
        raise WorkerError("the model's times depend on whether bytes are moved")
    made = Section(
        "Table 4",
        "Latency by block size and count",
        "one-way latency of 16 to 512 blocks of 256 B to 64 KB with gaps of twice the block; lines are the model, "
        "points the paper. Fifteen parameters are fitted to these 120 cells; the bytes of each cell move and are "
        "compared",
        PLATFORM_2,
        "calibrated",
    )
    errors, left_out = fitted.errors, fitted.leave_one_out
    holds = all(getattr(errors, name) <= goal for name, goal in GOALS.items()) and left_out.median <= LEFT_OUT_GOAL
    made.finds(
        "the model gives the paper's latencies",
        "median 3 %, 90th percentile 8 %, maximum 15 %; without the row that is compared, median 6 %",
        f"{errors.text()}; without the row: median {left_out.median:.1%}",
        holds,
    )
    cells = fitted.cells()
    made.plots = _plots(cells)
    made.grids = [residuals(fitted), _parameters(profile, fitted)]
    made.data = {
        **{f"{name}_error": value for name, value in vars(errors).items()},
        **{f"leave_one_out_{name}": value for name, value in vars(left_out).items()},
        "unit": "fraction of the paper's value",
        "cells": cells,
    }
    return made


def _plots(cells: Sequence[FittedCell]) -> list[Plot]:
    plots = []
    for size in dict.fromkeys(c.block_bytes for c in cells):
        lines = []
        for name, ours in table4.METHODS.items():
            at = [c for c in cells if (c.block_bytes, c.method) == (size, name)]
            counts = [c.blocks for c in at]
            lines.append(Line(ours, counts, [c.model_us for c in at]))
            lines.append(Line(ours, counts, [c.paper_us for c in at], paper=True))
        plots.append(Plot(f"blocks of {bytes_text(size)}", "number of blocks", "one-way latency (µs)", lines))
    return plots


def residuals(fitted: Fitted) -> RowTable:
    rows = []
    for (size, method), of_row in groupby(fitted.cells(), key=lambda c: (c.block_bytes, c.method)):
        cells = list(of_row)
        left_out = median(abs(c.error_left_out) for c in cells)
        rows.append([bytes_text(size), method, *(f"{c.error:+.1%}" for c in cells), f"{left_out:.1%}"])
    head = ["block", "method", *map(str, table4.COUNTS), "left out"]
    title = "Model over paper, by number of blocks; at the right the median when the row is not fitted"
    return RowTable(head, rows, texts=2, title=title)


def _parameters(profile: profiles.Profile, fitted: Fitted) -> RowTable:
    rows = [[p.name, f"{p.prior:g}", f"{fitted.values[p.name]:.4g}", p.origin] for p in profile.calibrated if p.prior]
    head = ("parameter", "prior", "value", "what it rests on")
    return RowTable(head, rows, texts=(0, 3), title="Fitted parameters")


def texts(simulator: Simulator) -> Section:
    """Items 2 to 4: where the paper's text and its table say different things. Both are shown."""
    made = Section(
        "Items 2-4",
        "Where the paper's text and its own table differ",
        "what Table 4 says of crossings that the text puts elsewhere; the model is calibrated to the table",
        PLATFORM_2,
        "calibrated",
    )
    cells = {(c.block_bytes, c.method, c.blocks): c.paper_us for c in table4.cells()}
    model = dict(zip(cells, table4.modelled_us(simulator, profiles.load(PLATFORM_2)), strict=True))

    def ratios(source: dict[tuple[int, str, int], float]) -> list[float]:
        return [source[256, "copy", n] / source[256, "sgrs", n] for n in table4.COUNTS]

    def span(values: list[float]) -> str:
        return f"{min(values):.2f} to {max(values):.2f}"

    made.finds(
        "text: sgrs passes copy at 128 B; table, with gaps of twice the block: they are equal at 256 B for every n",
        f"copy/sgrs at 256 B: {span(ratios(cells))} (within 10 % of 1)",
        span(ratios(model)),
        max(abs(r - 1) for r in ratios(model)) < 0.1,
        "the text does not contradict the table: its 128 B belong to a gap of 45 MB, which the table does not "
        "have. The model is out at 512 x 256 B, where its sgrs is 12 % faster than the paper's",
        of="Item 2",
    )
    cliff = [source[65536, "copy", n] / source[65536, "sgrs", n] for source in (cells, model) for n in (256, 512)]
    made.finds(
        "copy/sgrs jumps where both sides' bytes leave the last-level cache: two cells",
        f"{cliff[0]:.2f} and {cliff[1]:.2f} at 16.8 and 33.5 MB",
        f"{cliff[2]:.2f} and {cliff[3]:.2f}",
        abs(cliff[2] / cliff[0] - 1) < 0.1 and abs(cliff[3] / cliff[1] - 1) < 0.1,
        of="Item 3",
    )
    found = [_crossing(source) for source in (cells, model)]
    crossings = [", ".join(f"{bytes_text(b)}: {n:.0f}" for b, n in one.items()) for one in found]
    made.finds(
        "text: umr_w loses to sgrs from 60 ± 30 blocks on; table: the crossing depends on the block size",
        crossings[0],
        crossings[1],
        all(0.5 <= found[1][b] / n <= 2 for b, n in found[0].items()),
        of="Item 4",
    )
    return made


def _crossing(source: dict[tuple[int, str, int], float]) -> dict[int, float]:
    """The number of blocks at which umr_w and sgrs are equal, between two columns by the logarithms."""
    out = {}
    for size in dict.fromkeys(b for b, _, _ in source):
        gap = [np.log(source[size, "umr_w", n] / source[size, "sgrs", n]) for n in table4.COUNTS]
        at = next(i for i, g in enumerate(gap) if g > 0)
        share = -gap[at - 1] / (gap[at] - gap[at - 1])
        out[size] = float(table4.COUNTS[at - 1] * 2**share)
    return out


def variants(simulator: Simulator) -> Section:
    """Item 1: the two causes of UMR's collapse, side by side, and the experiment that would tell them apart."""
    made = Section(
        "Item 1",
        "Why keys for many blocks collapse: two causes that look alike",
        "a search through one key's list for each packet, or a translation cache that all entries share. Both are "
        "fitted to Table 4 as well as they can be",
        f"{PLATFORM_2}, {CACHE_VARIANT}",
        "calibrated",
    )
    fitted = {name: fit.evaluate(Problem(simulator, profiles.load(p))) for name, p in _VARIANTS.items()}
    search, cache = fitted["search"], fitted["cache"]
    miss = cache.values["indirect.miss_ns"] / 1e3
    capacity = cache.values["indirect.capacity"]
    made.finds(
        "a search through the list and a translation cache explain Table 4 alike",
        "both within the goals, with parameters that mean something",
        f"search: {search.errors.text()}; cache: {cache.errors.text()}, but with {capacity:,.0f} entries of which "
        f"one that is missing takes {miss:.1f} µs",
        search.errors.median < 0.03 and cache.errors.median < 0.03 and miss < 2,
        "the collapse is linear in the list up to 512 entries. A cache shows that only while nearly everything "
        "still hits, so that its misses have to be several times as long as a read over PCIe. The table speaks for "
        "the search; only hardware decides",
    )
    plot_lines: list[Line] = []
    gain: dict[str, float] = {}
    for name, profile in _VARIANTS.items():
        layouts = {n: grid(4096, n) for n in table4.COUNTS}
        panel = sweep(simulator, profiles.load(profile), layouts, ("sgrs", "umr_send", "umr_chunked"))
        plot_lines += [
            Line(f"{m}, {name}" if m != "sgrs" else m, panel.xs, panel.curve(m), dashed=name == "cache")
            for m in panel.lines
            if m != "sgrs" or name == "search"
        ]
        gain[name] = panel.us("umr_send", 512) / panel.us("umr_chunked", 512)
    made.plots.append(Plot("blocks of 4 KB", "number of blocks", "one-way latency (µs)", plot_lines))
    made.plots += [_chunks(simulator, name) for name in _VARIANTS]
    made.finds(
        "several small keys in one sg_list tell the causes apart",
        "search: umr_chunked avoids the collapse; cache: it gains nothing",
        f"512 blocks of 4 KB, umr_send over umr_chunked: search {gain['search']:.2f}, cache {gain['cache']:.2f}",
        gain["search"] > 1.5 and gain["cache"] < 1.1,
        label="predicted",
    )
    made.notes = [_ON_HARDWARE]
    return made


_VARIANTS = {"search": PLATFORM_2, "cache": CACHE_VARIANT}

_ON_HARDWARE = (
    "The experiment on a real ConnectX: 512 blocks of 4 KB, same layout on both sides. (a) One indirect key of 512 "
    "entries, one SEND; (b) sixteen keys of 32 entries in one sg_list, one SEND; (c) as (b), while another queue pair "
    "moves data through sixteen other keys. If the NIC searches each key's list, (b) is as fast as sgrs, and (c) as "
    "(b) for as long as the wire is not full. If all entries share a cache, (b) is as slow as (a), and (c) slower "
    "still. `lacuna bench methods --experiment F23` measures (a) and (b) wherever a NIC offers indirect keys; it has "
    "not been run on one."
)


_CHUNKS = (4, 8, 16, 32, 64, 128, 256, 512)


def _chunks(simulator: Simulator, variant: str) -> Plot:
    """umr_chunked over the entries of a chunk; the limit of a key's inline list is what it cuts by."""
    profile = profiles.load(_VARIANTS[variant])
    lines = []
    for size in (256, 1024, 4096):
        trial = Trial(grid(size, 512), "umr_chunked")
        ys = [
            simulator.transfers(profile.path, [trial], {"limits.indirect_inline_entries": float(c)})[0]["latency_us"]
            for c in _CHUNKS
        ]
        lines.append(Line(f"512 x {bytes_text(size)}", _CHUNKS, ys))
    return Plot(f"umr_chunked, {variant}", "entries of a chunk", "one-way latency (µs)", lines)
