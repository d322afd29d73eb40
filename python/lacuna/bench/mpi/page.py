"""What `lacuna bench mpi` shows: figures of each MPI, the worst rows, all rows, pictures."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from lacuna.bench.mpi.program_rows import ProgramRow
from lacuna.bench.mpi.random_types import RandomRow
from lacuna.bench.mpi.rows import ForcedRow, MpiRow, MpiRun
from lacuna.bench.presentation import Picture, Presentation, table_of
from lacuna.bench.ranks import page as ranks_page
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
    "median of the medians of runs; a ratio is the median of pairs of runs. With more ranks than CPUs a time is from "
    "the first rank's start to the last one's end, and the scheduler decides most of it."
)
_RANDOM_TYPES = (
    "Random types are drawn by a seed; the preloaded library's calls and the MPI's own take turns in one job. "
    "random_not_slower: the share of the rows whose interval reaches down to 1."
)
_WORST = 8


def _ratio(ratio: float, low: float, high: float) -> str:
    return f"{ratio:.2f} [{low:.2f}, {high:.2f}]"


_RATIOS: dict[str, Callable[[MpiRow | ProgramRow], str]] = {
    "vs hand": lambda r: _ratio(r.ratio_vs_hand, r.ratio_vs_hand_low, r.ratio_vs_hand_high),
    "vs MPI": lambda r: _ratio(r.ratio_vs_host, r.ratio_vs_host_low, r.ratio_vs_host_high),
}
_PROGRAM: dict[str, Callable[[ProgramRow], str]] = {
    "case": lambda r: r.case,
    "MPI": lambda r: r.mpi,
    "ranks": lambda r: str(r.ranks),
    "hosts": lambda r: str(r.hosts),
    "bytes": lambda r: bytes_text(r.payload_bytes),
    "hand, µs": lambda r: us_text(r.hand_us),
    "MPI, µs": lambda r: us_text(r.host_us),
    "Lacuna": lambda r: us_text(r.lacuna_us),
    **_RATIOS,
}
_FORCED: dict[str, Callable[[ForcedRow], str]] = {
    "case": lambda r: r.case,
    "MPI": lambda r: r.mpi,
    "best": lambda r: r.best,
    "bytes": lambda r: bytes_text(r.payload_bytes),
    "blocks": lambda r: f"{r.blocks:,}",
    "chosen, µs": lambda r: us_text(r.automatic_us),
    "best, µs": lambda r: us_text(r.ways_us[r.best]),
    "ratio": lambda r: f"{r.ratio:.2f}",
    "rounds": lambda r: str(r.rounds),
}
_RANDOM: dict[str, Callable[[RandomRow], str]] = {
    "call": lambda r: r.use,
    "MPI": lambda r: r.mpi,
    "type": lambda r: f"{r.number}: {r.type}",
    "bytes": lambda r: bytes_text(r.payload_bytes),
    "runs": lambda r: f"{r.runs:,}",
    "MPI, µs": lambda r: us_text(r.host_us),
    "Lacuna": lambda r: us_text(r.lacuna_us),
    "vs MPI": lambda r: _ratio(r.ratio_vs_host, r.ratio_vs_host_low, r.ratio_vs_host_high),
    "rounds": lambda r: str(r.rounds),
}
_METHOD: dict[str, Callable[[MpiRow], str]] = {
    "case": lambda r: r.case,
    "MPI": lambda r: r.mpi,
    "method": lambda r: r.method + (f", {r.loop}" if r.loop else ""),
    "": lambda r: "preloaded" if r.preloaded else "plain",
    "bytes": lambda r: bytes_text(r.payload_bytes),
    "µs": lambda r: us_text(r.latency_us),
    "95 % interval": lambda r: f"{us_text(r.ci_low_us)} to {us_text(r.ci_high_us)}",
    "MB/s": lambda r: f"{r.bandwidth_MBps:,.0f}",
    "packing overhead": lambda r: f"{100 * r.packing_overhead:.0f} %",
    "vs hand": lambda r: f"{r.ratio_vs_hand:.2f}",
    "vs MPI": lambda r: f"{r.ratio_vs_host:.2f}",
}


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
        yield "Where its choice is slowest against the best that it can be told", table_of(_FORCED, slowest, 3)
        random = sorted(self.result.random, key=lambda r: -r.ratio_vs_host_low)[:_WORST]
        yield "Where it is slowest with random types", table_of(_RANDOM, random, 3)
        yield "Programs", table_of(_PROGRAM, self.result.programs, 2)
        yield "Many ranks", table_of(ranks_page.COLUMNS, self.result.ranks)

    def remarks(self) -> Iterator[str]:
        if self.result.programs:
            yield _PROGRAMS
        if self.result.random:
            yield _RANDOM_TYPES
        if self.result.ranks:
            yield ranks_page.MEANINGS

    def pictures(self) -> Iterator[Picture]:
        from lacuna.bench.mpi.picture import programs, ratios

        caption = "Time of datatypes over that of packing by hand"
        yield Picture("Datatypes against packing by hand", "mpi.png", ratios(self.result), caption)
        yield Picture("Programs", "mpi-programs.png", programs(self.result), caption, words=_PROGRAMS)

    def tables(self) -> Iterator[tuple[str, str, RowTable]]:
        yield "Programs: every row", "", table_of(_PROGRAM, self.result.programs, 2)
        yield "Datatypes: every row", "", self._datatypes(self.result.judged())
        yield "Many ranks: every row", ranks_page.MEANINGS, table_of(ranks_page.COLUMNS, self.result.ranks)
        yield "Random types: every row", _RANDOM_TYPES, table_of(_RANDOM, self.result.random, 3)
        yield "Against what can be forced", "", table_of(_FORCED, self.result.forced, 3)
        yield "DDTBench: every method", _METHODS, table_of(_METHOD, self.result.rows, 4)

    def more_sections(self) -> Iterator[Raw]:
        if self.result.variables:
            lines = "\n".join(f"{name}={value}" for name, value in self.result.variables.items())
            yield section("Variables that were set", code(lines))

    def _datatypes(self, rows: Iterable[MpiRow]) -> RowTable:
        plain = {(r.mpi, r.case, r.method): r for r in self.result.rows if not r.preloaded}

        columns: dict[str, Callable[[MpiRow], str]] = {
            "case": lambda r: r.case,
            "MPI": lambda r: r.mpi,
            "bytes": lambda r: bytes_text(r.payload_bytes),
            "hand, µs": lambda r: us_text(plain[r.mpi, r.case, "manual"].latency_us),
            "MPI, µs": lambda r: us_text(plain[r.mpi, r.case, r.method].latency_us),
            "Lacuna": lambda r: us_text(r.latency_us),
            **_RATIOS,
            "rounds": lambda r: str(r.rounds),
        }
        return table_of(columns, rows, 2)
