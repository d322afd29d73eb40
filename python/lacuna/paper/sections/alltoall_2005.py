"""S2's alltoall: columns of a matrix, from everyone to everyone, by Lacuna's own collective on the modelled NIC."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

from lacuna import Layout
from lacuna._core import simulate_exchange
from lacuna.paper.profiles import Profile
from lacuna.paper.section import Line, Plot, Section, us
from lacuna.report.row_tables import RowTable

RANKS = 8
METHODS = ("sgrs", "multi_write", "pack")
COLUMNS = (16, 64, 256, 512, 1024)

_ROWS, _ROW_BYTES = 128, 4096 * 4 + 64


@dataclass(frozen=True)
class Row:
    columns: int
    method: str
    left_registered: bool
    """Memory, the first time; else each message registers its own."""
    latency_us: float
    cpu_us: float
    """Of a rank."""


def rows(profile: Profile, columns: Sequence[int] = COLUMNS, ranks: int = RANKS) -> list[Row]:
    """An exchange for each number of columns and method, the second time; every byte is compared."""
    everyone = [(a, b) for a in range(ranks) for b in range(ranks)]
    made = []
    for n in columns:
        layout = Layout.hvector(_ROWS, 1, _ROW_BYTES, Layout.bytes(4 * n))
        for left, method in product((False, True), METHODS):
            latency, cpu, _ = simulate_exchange(
                str(profile.path), ranks, everyone, layout, method, "automatic", 8, left
            )
            made.append(Row(n, method, left, latency, cpu))
    return made


def gains(found: Sequence[Row], left_registered: bool = False) -> dict[int, float]:
    """By how much less sgrs takes than multi_write, by columns."""
    time = {(r.columns, r.method): r.latency_us for r in found if r.left_registered == left_registered}
    return {n: 1 - time[n, "sgrs"] / time[n, "multi_write"] for n in sorted({r.columns for r in found})}


_REGISTERED = {False: "registered anew", True: "left registered"}


def add(made: Section, found: Sequence[Row]) -> None:
    """The finding, the plot and the table."""
    by_columns = gains(found)
    best = max(by_columns.values())
    listed = ", ".join(f"{n}: {gain:.0%}" for n, gain in by_columns.items())
    left = max(gains(found, left_registered=True).values())
    made.finds(
        f"alltoall of a vector datatype among {RANKS} processes: sgrs down by up to 23 % against multi_write",
        "up to 13 to 33 %",
        f"up to {best:.0%}, by columns: {listed}; up to {left:.0%} where memory is left registered",
        0.13 <= best <= 0.33,
        "the abstract gives neither its sizes nor its schedule, nor what becomes of memory: in what is compared each "
        "message registers its own anew; what a request costs on that NIC is an estimate of ours",
    )
    rows = {(r.columns, r.method, r.left_registered): r for r in found}
    lines = [
        Line(f"{m}, {words}", list(by_columns), [rows[n, m, left].latency_us for n in by_columns])
        for left, words in _REGISTERED.items()
        for m in METHODS
    ]
    made.plots.append(Plot(f"alltoall of {RANKS} ranks", "columns", "time (µs)", lines))
    table = [
        [str(n), words, *(f"{us(rows[n, m, left].latency_us)} ({us(rows[n, m, left].cpu_us)})" for m in METHODS)]
        for n, (left, words) in product(by_columns, _REGISTERED.items())
    ]
    title = f"The alltoall of {RANKS} ranks: time, and of it a rank's CPU time"
    made.grids.append(RowTable(["columns", "memory", *METHODS], table, texts=2, title=title))
