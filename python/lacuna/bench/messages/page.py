"""What `lacuna bench messages` shows: figures, contiguous sizes, the worst rows, all rows, a picture."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from lacuna.bench.messages.rows import OURS, MessageRow, Messages, fastest
from lacuna.bench.presentation import Picture, Presentation
from lacuna.report.row_tables import RowTable
from lacuna.units import bytes_text, us_text

_MEANINGS = (
    "A time is that of one message, half a round trip between two processes on two CPUs. A ratio is Lacuna's time over "
    "the other's, the median of ratios within rounds in the same two processes, with its 95 % interval; below 1 Lacuna "
    "is faster, in figures named after a bandwidth too. By hand is the faster of two loops around the MPI's contiguous "
    "send, over the elements or a memcpy for each block, compiled for this machine. Of several MPIs the one that takes "
    "least counts; worst is the largest lower end of an interval. "
    "Large: 32 KiB of payload and more. Forced: the best of all methods and two paths; each half of the rounds chooses "
    "one, which the other half judges, and these two ratios stand for the interval."
)
_NAMES = {"mpi_contiguous": "contiguous", "mpi_datatype": "datatype", "hand": "by hand", "forced": "forced"}
_WORST = 8


_HEAD = ["case", "bytes", "MPI", "against", "Lacuna, µs", "it, µs", "ratio", "95 % interval", "rounds"]


class MessagePresentation(Presentation[Messages]):
    name = "messages"
    subject = "Messages"
    heading = "Messages between two processes"
    meanings = _MEANINGS

    def figures(self) -> RowTable:
        """Against the fastest of all, and against each."""
        summary = self.result.summary()
        mpis = [mpi.name for mpi in self.result.mpis]

        def cell(figures: dict[str, object], name: str) -> str:
            value = figures.get(name)
            return f"{value:.2f}" if isinstance(value, float) else "-"

        rows = []
        for name in (name for name, value in summary.items() if isinstance(value, float)):
            own = name.replace("best_mpi", "mpi")
            rows.append([name, cell(summary, name), *(cell(summary["by_mpi"][mpi], own) for mpi in mpis)])
        return RowTable(["figure", "fastest MPI", *mpis], rows)

    def worst(self) -> Iterator[tuple[str, RowTable]]:
        rows = self.result.rows
        contiguous = self.result.rows_of("contiguous", "mpi_contiguous")
        yield "Contiguous messages", self._table(sorted(contiguous, key=lambda r: r.payload_bytes))
        hand = sorted(fastest(r for r in rows if r.competitor == "hand"), key=lambda r: -r.ratio_low)
        yield "Where Lacuna is slowest against the fastest loop by hand", self._table(hand[:_WORST])
        forced = sorted((r for r in rows if r.competitor == "forced"), key=lambda r: -r.ratio)
        yield "Where Lacuna's choice is slowest against the best way that is forced", self._table(forced[:_WORST])

    def pictures(self) -> Iterator[Picture]:
        from lacuna.bench.messages.picture import ratios

        yield Picture("Ratios", "messages.png", ratios(self.result), "Lacuna's time over the other's")

    def tables(self) -> Iterator[tuple[str, str, RowTable]]:
        for title, suite in (
            ("Contiguous messages", "contiguous"),
            ("DDTBench: every row", "ddtbench"),
            ("AI systems: every row", "ai"),
        ):
            rows = [r for r in self.result.rows if r.suite == suite and r.competitor != OURS]
            yield title, "", self._table(rows)

    def _table(self, rows: Iterable[MessageRow]) -> RowTable:
        ours = {(r.mpi, r.suite, r.case): r for r in self.result.rows if r.competitor == OURS}
        return RowTable(_HEAD, [_cells(row, ours[row.mpi, row.suite, row.case]) for row in rows])


def _cells(row: MessageRow, ours: MessageRow) -> list[str]:
    return [
        row.case,
        bytes_text(row.payload_bytes),
        row.mpi,
        _NAMES.get(row.competitor, row.competitor) + (f", {row.loop}" if row.loop else ""),
        us_text(ours.latency_us),
        us_text(row.latency_us),
        f"{row.ratio:.2f}",
        f"{row.ratio_low:.2f} to {row.ratio_high:.2f}",
        str(row.rounds),
    ]
