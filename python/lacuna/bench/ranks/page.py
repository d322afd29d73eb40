"""What `lacuna bench ranks` shows."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from lacuna.bench.presentation import Picture, Presentation, table_of
from lacuna.bench.ranks.rows import RanksRow, RanksRun
from lacuna.report.row_tables import RowTable
from lacuna.units import bytes_text, us_text

MEANINGS = (
    "Each rank sends each a block with gaps, by MPI_Alltoallw and by MPI_Isend, and verifies what came. A time is that "
    "of the slowest rank, without Lacuna and with it, the median of runs by turns; a ratio below 1: Lacuna is faster. "
    "Shared: memory that Lacuna adds to what the node's processes share, for each rank, after the exchanges. With more "
    "ranks than CPUs the scheduler decides most of the times. Dissemination: each rank sends a block 1, 2, 4, ... "
    "ranks further, as a barrier does. Idle: the same memory, after three seconds in which no rank called MPI."
)


def _times(figure: str) -> Callable[[RanksRow], str]:
    def text(row: RanksRow) -> str:
        return f"{us_text(1e6 * row.plain[figure])}, {us_text(1e6 * row.preloaded[figure])}"

    return text


def _ratio(figure: str) -> Callable[[RanksRow], str]:
    return lambda row: f"{row.ratio(figure):.2f}"


COLUMNS: dict[str, Callable[[RanksRow], str]] = {
    "MPI": lambda row: row.mpi,
    "ranks": lambda row: str(row.ranks),
    "block": lambda row: bytes_text(row.bytes),
    "MPI_Init, µs": _times("init_s"),
    "ratio": _ratio("init_s"),
    "Alltoallw, µs": _times("alltoallw_s"),
    "ratio ": _ratio("alltoallw_s"),
    "Isend, µs": _times("isend_s"),
    "ratio  ": _ratio("isend_s"),
    "dissem.": _ratio("dissemination_s"),
    "dup": _ratio("comm_dup_s"),
    "final.": _ratio("finalize_s"),
    "shared, MiB": lambda row: f"{row.shared_mib_of_rank:.1f}",
    "idle": lambda row: f"{row.idle_mib_of_rank:.1f}",
}


class RanksPresentation(Presentation[RanksRun]):
    name = "ranks"
    subject = "Many ranks on one node"
    heading = "Many ranks on one node, with Lacuna and without"
    meanings = MEANINGS

    def worst(self) -> Iterator[tuple[str, RowTable]]:
        yield "Every row", table_of(COLUMNS, self.result.rows)

    def tables(self) -> Iterator[tuple[str, str, RowTable]]:
        yield "Every row", "", table_of(COLUMNS, self.result.rows)

    def pictures(self) -> Iterator[Picture]:
        from lacuna.bench.ranks.picture import by_ranks

        caption = "With Lacuna over without, by the number of ranks; and the memory that a rank shares for it"
        yield Picture("By the number of ranks", "ranks.png", by_ranks(self.result), caption)
