"""What `lacuna bench messages` shows: figures, contiguous sizes, the worst rows, all rows, a picture."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from lacuna.bench.messages.rows import OURS, MessageRow, Messages, fastest
from lacuna.bench.presentation import Picture, Presentation, table_of
from lacuna.report.row_tables import RowTable
from lacuna.units import bytes_text, us_text

_MEANINGS = (
    "A time is that of one message, half a round trip between two processes on two CPUs. A ratio is Lacuna's time over "
    "the other's, the median of ratios within rounds in the same two processes, with its 95 % interval; below 1 Lacuna "
    "is faster, in figures named after a bandwidth too. By hand is the faster of two loops around the MPI's contiguous "
    "send, over the elements or a memcpy for each block, compiled for this machine. Of several MPIs the one that takes "
    "least counts; worst is the largest lower end of an interval. "
    "Large: 32 KiB of payload and more. Forced: the best of all ways, methods and two paths; each half of the rounds "
    "chooses one, which the other half judges, and these two ratios stand for the interval."
)
_NAMES = {"mpi_contiguous": "contiguous", "mpi_datatype": "datatype", "hand": "by hand", "forced": "forced"}
_WORST = 8


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
        columns: dict[str, Callable[[MessageRow], str]] = {
            "case": lambda r: r.case,
            "bytes": lambda r: bytes_text(r.payload_bytes),
            "MPI": lambda r: r.mpi,
            "against": lambda r: _NAMES.get(r.competitor, r.competitor) + (f", {r.loop}" if r.loop else ""),
            "Lacuna, µs": lambda r: us_text(ours[r.mpi, r.suite, r.case].latency_us),
            "it, µs": lambda r: us_text(r.latency_us),
            "ratio": lambda r: f"{r.ratio:.2f}",
            "95 % interval": lambda r: f"{r.ratio_low:.2f} to {r.ratio_high:.2f}",
            "rounds": lambda r: str(r.rounds),
        }
        return table_of(columns, rows)
