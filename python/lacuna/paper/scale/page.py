"""What `lacuna bench scale` shows."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from lacuna.bench.presentation import Picture, Presentation, table_of
from lacuna.paper.scale.rows import SCHEDULES, ScaleCell, ScaleRow, ScaleRun
from lacuna.report.row_tables import RowTable
from lacuna.units import bytes_text, us_text

_MEANINGS = (
    "Each rank sends each a block with gaps, by alltoallw, on a modelled NIC that the ranks of a node share. A time is "
    "virtual, from the first rank's start to the last one's end, of the second exchange; every byte is compared. The "
    "regret is by how much the schedule that is chosen takes longer than the best. Memory is what a rank has for "
    "messages, at most. Wall time is the simulation's."
)


def _time(schedule: str) -> Callable[[ScaleCell], str]:
    def text(cell: ScaleCell) -> str:
        found = next((row for row in cell.rows if row.schedule == schedule), None)
        return "-" if found is None else us_text(found.us) + (" *" if found.chosen else "")

    return text


def _regret(cell: ScaleCell) -> str:
    return "-" if cell.regret is None else f"{cell.regret:.0%}"


_BY_CELL: dict[str, Callable[[ScaleCell], str]] = {
    "block": lambda cell: bytes_text(cell.best.bytes),
    "ranks": lambda cell: str(cell.best.ranks),
    "nodes": lambda cell: str(cell.best.nodes),
    **{f"{schedule}, µs": _time(schedule) for schedule in SCHEDULES},
    "regret": _regret,
}

_BY_ROW: dict[str, Callable[[ScaleRow], str]] = {
    "block": lambda row: bytes_text(row.bytes),
    "ranks": lambda row: str(row.ranks),
    "schedule": lambda row: row.schedule + (" *" if row.chosen else ""),
    "µs": lambda row: us_text(row.us),
    "expected, µs": lambda row: us_text(row.expected_us),
    "messages of a rank": lambda row: f"{row.messages / row.ranks:.0f}",
    "bytes of a rank": lambda row: bytes_text(round(row.message_bytes / row.ranks)),
    "not ready": lambda row: str(row.not_ready),
    "connections": lambda row: str(row.connections),
    "registered": lambda row: bytes_text(row.registered),
    "allocated": lambda row: bytes_text(row.allocated),
    "wall, s": lambda row: f"{row.wall_s:.2f}",
}


class ScalePresentation(Presentation[ScaleRun]):
    name = "scale"
    subject = "Exchanges of many ranks"
    heading = "Exchanges of many ranks on nodes that share a NIC, by schedule"
    meanings = _MEANINGS

    def worst(self) -> Iterator[tuple[str, RowTable]]:
        yield "By ranks; * is chosen", table_of(_BY_CELL, self.result.cells)

    def remarks(self) -> Iterator[str]:
        yield from (f"Skipped: {what}" for what in self.result.skipped)

    def tables(self) -> Iterator[tuple[str, str, RowTable]]:
        yield "By ranks", "The schedule with a star is chosen.", table_of(_BY_CELL, self.result.cells)
        yield "Every row", "", table_of(_BY_ROW, self.result.rows)
        yield "Skipped", "", RowTable(["case"], [[what] for what in self.result.skipped])

    def pictures(self) -> Iterator[Picture]:
        from lacuna.paper.scale.picture import by_ranks

        caption = "Virtual time by the number of ranks, on up to 16 nodes; filled marks are what is chosen"
        yield Picture("By the number of ranks", "scale.png", by_ranks(self.result), caption)
