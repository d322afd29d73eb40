"""Table 3 of the founding documents beside what this machine's measurements say: the guide's section on it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lacuna._core import Guide
from lacuna.analysis import Grid
from lacuna.calibrate import Stored, layouts_of
from lacuna.fitting import limits_text
from lacuna.page import Number, Raw, method_name, paragraph, section, table, text
from lacuna.plan import grid_cell
from lacuna.schema import Row
from lacuna.units import bytes_text, gain_text
from lacuna.validate import geomean, table3_of


@dataclass(frozen=True)
class Beside:
    """One cell: what the documents' guide and ours name, and how many times as long as the best they take."""

    block_bytes: int
    block_count: int
    table3: Row
    table3_times: float
    ours: Row
    ours_times: float


def beside(grid: Grid, stored: Stored) -> list[Beside]:
    """The cells of a grid where both were measured."""
    nic = stored.profile.nic
    guide = Guide(nic.name, limits=limits_text(nic), profile=str(stored.file))
    made = []
    for (block, count), contest in sorted(grid.cells.items()):
        best = contest.best
        theirs = contest.best_of(table3_of(block, count))
        if best is None or theirs is None:
            continue
        subject = best.subject
        cell = grid_cell(block, count, subject.shape, subject.cache, required=False)
        send, receive = layouts_of([cell])[cell.subject]
        choice = guide.choose(send, receive, cold=subject.cache == "cold")
        ours = next((r for r in contest.ranking if (r.method, r.path) == (choice["method"], choice["path"])), None)
        if ours is None:
            continue
        made.append(
            Beside(block, count, theirs, theirs.latency_us / best.latency_us, ours, ours.latency_us / best.latency_us)
        )
    return made


def part(found: Sequence[Grid], stored: Stored | None) -> Raw:
    """The section; empty without a profile."""
    grid = next((g for g in found if g.shape == "symmetric" and g.cache == "warm"), None)
    rows = beside(grid, stored) if grid and stored else []
    if not rows:
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
            Number(f"{r.block_count:,}"),
            Raw(f"{method_name(r.table3.method)} on {text(r.table3.path)}"),
            Number(gain_text(r.table3_times)),
            Raw(f"{method_name(r.ours.method)} on {text(r.ours.path)}"),
            Number(gain_text(r.ours_times)),
        )
        for r in rows
    ]
    head = ("block size", "blocks", "Table 3", "over the best", "Lacuna chooses", "over the best")
    return section("Table 3 beside ours", intro, Raw(table(head, lines)))
