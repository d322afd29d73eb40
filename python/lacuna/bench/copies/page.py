"""What `lacuna bench copy` shows: the summary with its goals, the worst rows, all rows, a picture."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from rich.text import Text

from lacuna.bench.copies.rows import Against, Copies, CopyRow
from lacuna.bench.presentation import Picture, Presentation
from lacuna.report.row_tables import RowTable
from lacuna.units import bytes_text

_GOALS = {
    "pack_vs_hand_geomean": 0.75,
    "pack_vs_hand_worst": 1.0,
    "unpack_vs_hand_geomean": 0.75,
    "unpack_vs_hand_worst": 1.0,
    "vs_best_mpi_geomean": 0.5,
    "vs_best_mpi_worst": 1.0,
    "transpack_vs_pack_unpack_geomean": 0.6,
    "equal_typemaps_worst": 1.05,
    "random_fragments_worst": 1.10,
    "pack_2_blocks_of_8_bytes_ns": 25.0,
    "commit_an_indexed_block_of_10000_entries_ns": 100_000.0,
}
"""At most; the rest is for information."""

_MEANINGS = (
    "A ratio is Lacuna's time over the other's, the median of ratios within rounds; below 1 Lacuna is faster. "
    "By hand is the faster of two loops: over the elements, or a memcpy for each block, compiled for this machine. "
    "Worst is the largest lower end of a 95 % interval, worst median the largest ratio, of rows of 1 KiB and more. "
    "Cold: flushed from all caches and from the TLB before each sample. "
    "The limit is the best of several loops that read or store each touched cache line once, and move nothing to "
    "its place."
)


class CopyPresentation(Presentation[Copies]):
    name = "copy"
    subject = "Copies"
    heading = "Copies of scattered data, on this machine"
    meanings = _MEANINGS

    def figures(self) -> RowTable:
        rows: list[list[str | Text]] = []
        for name, value in self.result.summary().items():
            goal = _GOALS.get(name)
            style = "" if goal is None else ("green" if value <= goal else "red")
            least = "" if goal is None else f"at most {_figure(name, goal)}"
            rows.append([name, Text(_figure(name, value), style=style), least])
        return RowTable(["figure", "here", "goal"], rows)

    def worst(self) -> Iterator[tuple[str, RowTable]]:
        for operation in ("pack", "unpack"):
            rows = [r for r in self.result.rows if r.operation == operation and r.judged]
            rows.sort(key=lambda r: -r.hand.low)
            yield f"Where {operation} is slowest against the loop by hand", self._table(rows[:6])

    def remarks(self) -> Iterator[str]:
        if not self.result.mpis:
            yield "No MPI was compared: --mpi MPICC names one (scripts/peers.sh installs four)."

    def pictures(self) -> Iterator[Picture]:
        from lacuna.bench.copies.picture import bandwidth, selection

        result = self.result
        some, everything = bandwidth(result, selection(result.rows)), bandwidth(result, result.rows)
        yield Picture("Bandwidth against the limit", "copy.png", some, "Bandwidth of each layout", of_page=everything)

    def tables(self) -> Iterator[tuple[str, str, RowTable]]:
        for operation in ("pack", "unpack", "transpack"):
            rows = [r for r in self.result.rows if r.operation == operation]
            yield f"{operation}: every row", "", self._table(rows)

    def _table(self, rows: Iterable[CopyRow]) -> RowTable:
        mpis = [mpi.name for mpi in self.result.mpis]
        head = ["layout", "cache", "bytes", "ns", "by hand", "memcpy", "of limit", *mpis]
        return RowTable(head, [_cells(row, mpis) for row in rows], texts=2)


def _figure(name: str, value: float) -> str:
    return f"{value:,.0f} ns" if name.endswith(("_ns", "_hand")) and "vs" not in name else f"{value:.2f}"


def _cells(row: CopyRow, mpis: list[str]) -> list[str]:
    ratios = {m.name: _ratio(m) for m in row.mpi}
    return [
        row.case,
        row.cache,
        bytes_text(row.bytes),
        f"{row.lacuna_ns:,.0f}",
        _ratio(row.hand),
        f"{row.memcpy.ratio:.2f}",
        f"{100 / row.limit.ratio:.0f} %",
        *(ratios.get(name, "-") for name in mpis),
    ]


def _ratio(against: Against) -> str:
    return f"{against.ratio:.2f} [{against.low:.2f}, {against.high:.2f}]"
