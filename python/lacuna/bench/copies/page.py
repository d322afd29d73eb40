"""What `lacuna bench copy` shows: the summary with its goals, the worst rows, all rows, a picture."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from rich.text import Text

from lacuna.bench.copies.figures import OPERATIONS, OTHERS, by_element, by_family, compared, divided, limit_share
from lacuna.bench.copies.rows import Against, Copies, CopyRow
from lacuna.bench.presentation import Picture, Presentation
from lacuna.medians import geomean
from lacuna.mpi.installations import ANOTHER_MPI
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
    "permutation_large_vs_memcpy_geomean": 1.6,
    "permutation_large_4B_and_more_vs_memcpy_geomean": 1.3,
    "permutation_small_vs_memcpy_geomean": 1.6,
    "permutation_vs_memcpy_worst": 3.0,
    "permutation_vs_numpy_geomean": 0.35,
    "permutation_vs_numpy_worst": 1.0,
    "drawn_warm_vs_hand_worst": 1.05,
    "drawn_cold_vs_hand_worst": 1.1,
    "drawn_transpack_vs_dense_side_worst": 1.05,
}
"""At most; the rest is for information."""

_MEANINGS = (
    "A ratio is Lacuna's time over the other's, the median of ratios within rounds; below 1 Lacuna is faster. "
    "By hand is the faster of two loops: over the elements, or a memcpy for each block, compiled for this machine. "
    "Worst is the largest lower end of a 95 % interval, worst median the largest ratio, of rows of 1 KiB and more. "
    "Cold: flushed from all caches and from the TLB before each sample. "
    "The limit is the best of several loops that read or store each touched cache line once, and move nothing to "
    "its place. NumPy and torch are called from Python with one thread, against Lacuna there."
)


class CopyPresentation(Presentation[Copies]):
    name = "copy"
    subject = "Copies"
    heading = "Copies of scattered data, on this machine"
    meanings = _MEANINGS

    def figures(self) -> RowTable:
        rows: list[list[str | Text]] = []
        own = tuple(f"{family}_" for family in by_family(self._drawn()))
        for name, value in self.result.summary().items():
            goal = _GOALS.get(name)
            if goal is None and name.startswith(own):
                continue  # the table of the families has them
            style = "" if goal is None else ("green" if value <= goal else "red")
            least = "" if goal is None else f"at most {_figure(name, goal)}"
            rows.append([name, Text(_figure(name, value), style=style), least])
        return RowTable(["figure", "here", "goal"], rows)

    def worst(self) -> Iterator[tuple[str, RowTable]]:
        yield "Families of layouts that the seed draws: geometric mean, worst", self._families(self._drawn(), False)
        for operation in ("pack", "unpack"):
            rows = [r for r in self.result.rows if r.operation == operation and r.judged]
            rows.sort(key=lambda r: -r.hand.low)
            yield f"Where {operation} is slowest against the loop by hand", self._table(rows[:6])

    def remarks(self) -> Iterator[str]:
        if not self.result.mpis:
            yield f"No MPI was compared. {ANOTHER_MPI}."
        if self._drawn() and "torch" not in self.result.arrays:
            yield "torch was not compared: it is not installed."

    def pictures(self) -> Iterator[Picture]:
        from lacuna.bench.copies.families_picture import times_over_memcpy
        from lacuna.bench.copies.picture import bandwidth, selection

        rows = [r for r in self.result.rows if not r.is_drawn]
        some, everything = bandwidth(self.result, selection(rows)), bandwidth(self.result, rows)
        yield Picture("Bandwidth against the limit", "copy.png", some, "Bandwidth of each layout", of_page=everything)
        caption = "Time over that of memcpy, a mark for each layout"
        yield Picture("Families of layouts", "copy-families.png", times_over_memcpy(self._drawn()), caption)

    def tables(self) -> Iterator[tuple[str, str, RowTable]]:
        words = f"Seed {self.result.seed}. A pair is the geometric mean and the largest lower end of an interval."
        yield "Families of layouts that the seed draws", words, self._families(self._drawn(), True)
        for operation in OPERATIONS:
            rows = [r for r in self.result.rows if r.operation == operation]
            yield f"{operation}: every row", "", self._table(rows)

    def _drawn(self) -> list[CopyRow]:
        return [r for r in self.result.rows if r.is_drawn and r.judged]

    def _families(self, rows: list[CopyRow], with_operations: bool) -> RowTable:
        """A line for each family, for permutations of each element, and for each operation."""
        lines: dict[str, list[CopyRow]] = {}
        for family, own in by_family(rows).items():
            lines[family] = own
            if with_operations:
                lines |= divided(family, own)
            elif family == "permutation":
                lines |= by_element(family, own)
        others = [name for name in OTHERS if compared(rows, name)]
        head = ["family", "rows", *(OTHERS[name] for name in others), "of limit"]
        return RowTable(head, [_family_cells(name, some, others) for name, some in lines.items() if some])

    def _table(self, rows: Iterable[CopyRow]) -> RowTable:
        mpis = [mpi.name for mpi in self.result.mpis]
        head = ["layout", "cache", "bytes", "ns", "by hand", "memcpy", "NumPy", "of limit", *mpis]
        return RowTable(head, [_cells(row, mpis) for row in rows], texts=2)


def _family_cells(name: str, rows: list[CopyRow], others: list[str]) -> list[str]:
    def pair(found: list[Against]) -> str:
        return f"{geomean([a.ratio for a in found]):.2f}, {max(a.low for a in found):.2f}" if found else "-"

    cells = [pair(compared(rows, other)) for other in others]
    return [name.replace("_", " "), str(len(rows)), *cells, f"{100 * limit_share(rows):.0f} %"]


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
        f"{row.numpy.ratio:.2f}" if row.numpy else "-",
        f"{100 / row.limit.ratio:.0f} %",
        *(ratios.get(name, "-") for name in mpis),
    ]


def _ratio(against: Against) -> str:
    return f"{against.ratio:.2f} [{against.low:.2f}, {against.high:.2f}]"
