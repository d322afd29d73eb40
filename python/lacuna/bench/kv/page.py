"""What `lacuna bench kv` shows."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from lacuna.bench.kv.rows import Described, KvRow, KvRun, Moved
from lacuna.bench.presentation import Picture, Presentation, table_of
from lacuna.report.row_tables import RowTable
from lacuna.units import bytes_text, us_text

MEANINGS = (
    "Wire: both layouts as they are told to a peer; list: descriptors of 32 B for one side. Plan: both layouts from "
    "the block tables. Chosen, direct (a write for each piece) and packed: one transfer of a part of the case between "
    "two processes, verified; with each the CPU time of the sender's posts, without copies. A rule is shown by its "
    "best path and notification. Loss: the choice over the better of the two, less one; below 0 it is faster than "
    "both. At least: by the intervals of the two medians."
)

DESCRIBED: dict[str, Callable[[Described], str]] = {
    "case": lambda d: d.case,
    "pieces": lambda d: f"{d.pieces:,}".replace(",", " "),
    "piece": lambda d: bytes_text(d.piece_bytes),
    "wire": lambda d: bytes_text(d.wire_bytes),
    "list": lambda d: bytes_text(d.list_bytes),
    "plan, µs": lambda d: us_text(d.plan_us),
    "told, µs": lambda d: us_text(d.told_us),
}


def _time(which: Callable[[KvRow], Moved]) -> Callable[[KvRow], str]:
    return lambda row: f"{us_text(which(row).us)} ({us_text(which(row).posting_us)})"


MOVED: dict[str, Callable[[KvRow], str]] = {
    "case": lambda row: row.case,
    "NIC": lambda row: row.nic,
    "pieces": lambda row: str(row.pieces),
    "bytes": lambda row: bytes_text(row.bytes),
    "choice": lambda row: row.chosen.way,
    "chosen, µs (posts)": _time(lambda row: row.chosen),
    "direct, µs (posts)": _time(lambda row: row.direct),
    "packed, µs (posts)": _time(lambda row: row.packed),
    "loss": lambda row: f"{row.loss:+.1%}",
    "at least": lambda row: f"{row.loss_low:+.1%}",
}


class KvPresentation(Presentation[KvRun]):
    name = "kv"
    subject = "Transfers of serving systems"
    heading = "Transfers of serving systems, by Lacuna's choice and by two rules"
    meanings = MEANINGS

    def figures(self) -> RowTable:
        figures = self.result.summary().items()
        shown = [[name, f"{value:.4g}" if isinstance(value, float) else str(value)] for name, value in figures]
        return RowTable(["figure", "value"], shown)

    def worst(self) -> Iterator[tuple[str, RowTable]]:
        yield "In full: what describes them", table_of(DESCRIBED, self.result.described)
        yield "A part: one transfer", table_of(MOVED, self.result.rows)

    def tables(self) -> Iterator[tuple[str, str, RowTable]]:
        yield "In full: what describes them", "", table_of(DESCRIBED, self.result.described)
        yield "A part: one transfer", "", table_of(MOVED, self.result.rows, 2)

    def pictures(self) -> Iterator[Picture]:
        from lacuna.bench.kv.picture import by_case

        caption = "Time of each rule over that of Lacuna's choice: above 1 the choice is faster"
        yield Picture("Rules over the choice", "kv.png", by_case(self.result), caption)
