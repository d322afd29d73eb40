"""What `lacuna bench mpi` shows: figures of each MPI, the worst rows, all rows, pictures."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from lacuna.bench.mpi.program_rows import ProgramRow
from lacuna.bench.mpi.rows import ForcedRow, MpiRow, MpiRun
from lacuna.bench.presentation import Picture, Presentation
from lacuna.report.html import Raw, code, section
from lacuna.report.row_tables import RowTable
from lacuna.units import bytes_text, us_text

_MEANINGS = (
    "A time is that of one message, half a round trip between two processes on two CPUs. Judged are datatypes that are "
    "sent and received with Lacuna preloaded (mpi_ddt): against packing by hand around the MPI's contiguous messages "
    "without it (vs_hand; the faster of two loops, over the elements or a memcpy for each block), and against the same "
    "datatypes without it (vs_host). A ratio is the median of those within rounds, with its 95 % interval; below 1 "
    "Lacuna is faster. Worst is the largest lower end of an interval. Large: 32 KiB of payload and more. "
    "pack_vs_host, contiguous_vs_host: the same of MPI_Pack around messages, and of as many contiguous bytes, which "
    "the program neither writes nor reads in between. latency_8B_extra_ns: what a contiguous message of 8 bytes takes "
    "more. commit_us_1000_blocks: MPI_Type_commit of that many irregular blocks."
)
_METHODS = (
    "manual: loops around contiguous messages. mpi_ddt: the datatype itself. mpi_pack_ddt: MPI_Pack, a message of "
    "packed bytes, MPI_Unpack. reference: as many contiguous bytes, not packed. Bandwidth is 2 × payload / round trip. "
    "Packing overhead is (pack + unpack) / (communication + pack + unpack), where communication is what the reference "
    "of the same job takes; below zero the method is faster than that."
)
_PROGRAMS = (
    "Programs in runs with and without Lacuna by turns; a time is that of one exchange, of the slowest rank, the "
    "median of the medians of runs; a ratio is the median of pairs of runs. With more ranks than CPUs the scheduler "
    "decides most of it."
)
_WORST = 8

_TEXTS = 2
_HEAD = ["case", "MPI", "bytes", "hand, µs", "MPI, µs", "Lacuna", "vs hand", "vs MPI", "rounds"]
_PROGRAM_TEXTS = 2
_PROGRAM_HEAD = ["case", "MPI", "ranks", "hosts", "bytes", "hand, µs", "MPI, µs", "Lacuna", "vs hand", "vs MPI"]
_FORCED_TEXTS = 3
_FORCED_HEAD = ["case", "MPI", "best", "bytes", "blocks", "chosen, µs", "best, µs", "ratio", "rounds"]
_METHOD_TEXTS = 4
_METHOD_HEAD = [
    *("case", "MPI", "method", "", "bytes", "µs"),
    *("95 % interval", "MB/s", "packing overhead", "vs hand", "vs MPI"),
]


class MpiPresentation(Presentation[MpiRun]):
    name = "mpi"
    subject = "MPI datatypes"
    heading = "MPI datatypes, with Lacuna and without"
    meanings = _MEANINGS

    def figures(self) -> RowTable:
        """A line of each figure, a column of each MPI."""
        lines: dict[str, dict[str, str]] = {}
        for mpi, figures in self.result.summary().items():
            for name, value in figures.items():
                if isinstance(value, dict):
                    for side, us in value.items():
                        lines.setdefault(f"{name}, {side}", {})[mpi] = us_text(us)
                elif isinstance(value, float):
                    lines.setdefault(name, {})[mpi] = f"{value:.0f}" if name.endswith("_ns") else f"{value:.2f}"
        names = [mpi.name for mpi in self.result.mpis]
        rows = [[name, *(cells.get(mpi, "-") for mpi in names)] for name, cells in lines.items()]
        return RowTable(["figure", *names], rows)

    def worst(self) -> Iterator[tuple[str, RowTable]]:
        rows = self.result.judged()
        by_hand = sorted(rows, key=lambda r: -r.ratio_vs_hand_low)[:_WORST]
        yield "Where it is slowest against packing by hand", self._datatypes(by_hand)
        by_host = sorted(rows, key=lambda r: -r.ratio_vs_host_low)[:_WORST]
        yield "Where it is slowest against the MPI without it", self._datatypes(by_host)
        slowest = sorted(self.result.forced, key=lambda r: -r.ratio)[:_WORST]
        yield "Where its choice is slowest against the best that it can be told", _forced(slowest)
        yield "Programs", _programs(self.result.programs)

    def remarks(self) -> Iterator[str]:
        if self.result.programs:
            yield _PROGRAMS

    def pictures(self) -> Iterator[Picture]:
        from lacuna.bench.mpi.picture import programs, ratios

        caption = "Time of datatypes over that of packing by hand"
        yield Picture("Datatypes against packing by hand", "mpi.png", ratios(self.result), caption)
        yield Picture("Programs", "mpi-programs.png", programs(self.result), caption, words=_PROGRAMS)

    def tables(self) -> Iterator[tuple[str, str, RowTable]]:
        yield "Programs: every row", "", _programs(self.result.programs)
        yield "Datatypes: every row", "", self._datatypes(self.result.judged())
        yield "Against what can be forced", "", _forced(self.result.forced)
        methods = RowTable(_METHOD_HEAD, [_method_cells(row) for row in self.result.rows], _METHOD_TEXTS)
        yield "DDTBench: every method", _METHODS, methods

    def more_sections(self) -> Iterator[Raw]:
        if self.result.variables:
            lines = "\n".join(f"{name}={value}" for name, value in self.result.variables.items())
            yield section("Variables that were set", code(lines))

    def _datatypes(self, rows: Iterable[MpiRow]) -> RowTable:
        plain = {(r.mpi, r.case, r.method): r for r in self.result.rows if not r.preloaded}

        def cells(row: MpiRow) -> list[str]:
            return [
                row.case,
                row.mpi,
                bytes_text(row.payload_bytes),
                us_text(plain[row.mpi, row.case, "manual"].latency_us),
                us_text(plain[row.mpi, row.case, row.method].latency_us),
                us_text(row.latency_us),
                *_ratios(row),
                str(row.rounds),
            ]

        return RowTable(_HEAD, [cells(row) for row in rows], _TEXTS)


def _ratios(row: MpiRow | ProgramRow) -> tuple[str, str]:
    return (
        f"{row.ratio_vs_hand:.2f} [{row.ratio_vs_hand_low:.2f}, {row.ratio_vs_hand_high:.2f}]",
        f"{row.ratio_vs_host:.2f} [{row.ratio_vs_host_low:.2f}, {row.ratio_vs_host_high:.2f}]",
    )


def _forced(rows: Iterable[ForcedRow]) -> RowTable:
    return RowTable(_FORCED_HEAD, [_forced_cells(row) for row in rows], _FORCED_TEXTS)


def _programs(rows: Iterable[ProgramRow]) -> RowTable:
    return RowTable(_PROGRAM_HEAD, [_program_cells(row) for row in rows], _PROGRAM_TEXTS)


def _forced_cells(row: ForcedRow) -> list[str]:
    return [
        row.case,
        row.mpi,
        row.best,
        bytes_text(row.payload_bytes),
        f"{row.blocks:,}",
        us_text(row.automatic_us),
        us_text(row.ways_us[row.best]),
        f"{row.ratio:.2f}",
        str(row.rounds),
    ]


def _program_cells(row: ProgramRow) -> list[str]:
    return [
        row.case,
        row.mpi,
        str(row.ranks),
        str(row.hosts),
        bytes_text(row.payload_bytes),
        us_text(row.hand_us),
        us_text(row.host_us),
        us_text(row.lacuna_us),
        *_ratios(row),
    ]


def _method_cells(row: MpiRow) -> list[str]:
    return [
        row.case,
        row.mpi,
        row.method + (f", {row.loop}" if row.loop else ""),
        "preloaded" if row.preloaded else "plain",
        bytes_text(row.payload_bytes),
        us_text(row.latency_us),
        f"{us_text(row.ci_low_us)} to {us_text(row.ci_high_us)}",
        f"{row.bandwidth_MBps:,.0f}",
        f"{100 * row.packing_overhead:.0f} %",
        f"{row.ratio_vs_hand:.2f}",
        f"{row.ratio_vs_host:.2f}",
    ]
