"""Table 3 of the paper behind Lacuna, and other simple rules, beside what this machine's measurements say: the guide's
section on them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from lacuna._core import Guide
from lacuna.guide.baselines import RULES, regret_figures, ruled, table3_of
from lacuna.guide.calibration import Stored, layouts_of
from lacuna.guide.contests import Contest, Grid
from lacuna.guide.fitting import limits_text
from lacuna.guide.pairs import Pair
from lacuna.guide.plan import grid_cell
from lacuna.medians import geomean
from lacuna.report.html import Raw, heading, paragraph, section
from lacuna.report.row_tables import MethodCell, RowTable
from lacuna.units import bytes_text, gain_text
from lacuna.worker.records import Row


@dataclass(frozen=True)
class Beside:
    """One cell: what the documents' guide and ours name, and how many times as long as the best they take."""

    block_bytes: int
    block_count: int
    table3: Row
    table3_times: float
    ours: Row
    ours_times: float


def _judged(grid: Grid, stored: Stored) -> Iterator[tuple[Pair, Contest, Row | None]]:
    """Each cell with what the fitted prices choose, if that was measured."""
    nic = stored.profile.nic
    message_us = stored.profile.classes[0].message_us  # of the peers that most cells were measured with
    guide = Guide(nic.name, message_us=message_us, limits=limits_text(nic), profile=str(stored.file))
    for (block, count), contest in sorted(grid.cells.items()):
        cell = grid_cell(block, count, contest.subject.shape, contest.subject.cache, required=False)
        send, receive = layouts_of([cell])[cell.subject]
        choice = guide.choose(send, receive, cold=contest.subject.cache == "cold")
        ours = next((r for r in contest.ranking if (r.method, r.path) == (choice["method"], choice["path"])), None)
        yield Pair(cell.label, send, receive), contest, ours


def beside(grid: Grid, stored: Stored) -> list[Beside]:
    """The cells of a grid where both were measured."""
    made = []
    for _, contest, ours in _judged(grid, stored):
        best, subject = contest.best, contest.subject
        theirs = contest.best_of(table3_of(subject.block_bytes, subject.block_count))
        if best and theirs and ours:
            times = (theirs.latency_us / best.latency_us, ours.latency_us / best.latency_us)
            made.append(Beside(subject.block_bytes, subject.block_count, theirs, times[0], ours, times[1]))
    return made


def regrets(found: Sequence[Grid], stored: Stored) -> dict[str, list[float]]:
    """How many times as long as the best of each cell Lacuna's choice and each rule takes, by name."""
    made: dict[str, list[float]] = {"Lacuna": [], **{rule.name: [] for rule in RULES}}
    for grid in found:
        for pair, contest, ours in _judged(grid, stored):
            times = {(r.method, r.path, r.notify): (r.latency_us, r.latency_us) for r in contest.ranking}
            if contest.best and ours:
                made["Lacuna"].append(ours.latency_us / contest.best.latency_us)
            for name, rule in ruled(pair, times).items() if times else ():
                made[name].append(rule.regret)
    return {name: values for name, values in made.items() if values}


def _rules(found: Sequence[Grid], stored: Stored) -> Raw:
    rows = [
        (name, *(f"{figure:.2f}" for figure in regret_figures(values).values()), f"{len(values):,}")
        for name, values in regrets(found, stored).items()
    ]
    return RowTable(("rule", "over the best, average", "95 %", "most", "cells"), rows).on_page()


def part(found: Sequence[Grid], stored: Stored | None) -> Raw:
    """The section; empty without a profile."""
    grid = next((g for g in found if g.shape == "symmetric" and g.cache == "warm"), None)
    rows = beside(grid, stored) if grid and stored else []
    if not rows or stored is None:
        return Raw("")
    theirs = geomean([r.table3_times for r in rows])
    ours = geomean([r.ours_times for r in rows])
    intro = paragraph(
        "Table 3 says: blocks of less than 128 B by umr_write below 60 ± 30 blocks and by copy from there on; larger "
        "ones by umr_write below, by sgrs above. Here it takes "
        f"{theirs:.2f} times as long as the best way on average, on whichever path suits its method best; what Lacuna "
        f"chooses by the fitted prices takes {ours:.2f} times as long."
    )
    lines = [
        (
            bytes_text(r.block_bytes),
            f"{r.block_count:,}",
            MethodCell(r.table3.method, f" on {r.table3.path}"),
            gain_text(r.table3_times),
            MethodCell(r.ours.method, f" on {r.ours.path}"),
            gain_text(r.ours_times),
        )
        for r in rows
    ]
    head = ("block size", "blocks", "Table 3", "over the best", "Lacuna chooses", "over the best")
    rules = paragraph(
        "Other simple rules, over all cells of all maps, each by whichever paths suit its methods best. Zero-copy: the "
        "best of the methods by which no CPU packs; from 16 KiB blocks as MPICH's density threshold, from 16 KiB "
        "payload as UCX's eager protocols. The prices were fitted to these cells; `lacuna guide --validate` "
        "compares on others."
    )
    cells = RowTable(head, lines, texts=(0, 2, 4)).on_page()
    return section("Table 3 beside ours", intro, cells, heading("Simple rules"), rules, _rules(found, stored))
