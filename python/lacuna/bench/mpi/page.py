"""What `lacuna bench mpi` shows: figures of each MPI and the worst rows; a page and a picture."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from rich.console import Console
from rich.text import Text

from lacuna.bench.mpi.program_rows import ProgramRow
from lacuna.bench.mpi.rows import ForcedRow, MpiRow, MpiRun
from lacuna.files import write_whole
from lacuna.report.html import Raw, code, figure, note, paragraph, section, table
from lacuna.report.row_tables import notes, shown, written
from lacuna.report.run_sections import page
from lacuna.units import bytes_text, us_text

_MEANINGS = (
    "A time is that of one message, half a round trip between two processes on two CPUs. Judged are datatypes that are "
    "sent and received with Lacuna preloaded (mpi_ddt): against packing by hand around the MPI's contiguous messages "
    "without it (vs_hand; the faster of two loops, over the elements or a memcpy for each block), and against the same "
    "datatypes without it (vs_host). A ratio is the median of those within rounds, with its 95 % interval; below 1 "
    "Lacuna is faster. Worst is the largest lower end of an interval. Large: 32 KiB of payload and more. "
    "pack_vs_host, contiguous_vs_host: the same of MPI_Pack around messages, and of as many contiguous bytes, which "
    "nobody writes or reads in between. latency_8B_extra_ns: what a contiguous message of 8 bytes takes more. "
    "commit_us_1000_blocks: MPI_Type_commit of that many irregular blocks."
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


def show(console: Console, run: MpiRun) -> None:
    """The figures, and where Lacuna is slowest."""
    console.print(Text(f"MPI datatypes on {run.machine.get('cpu', 'this machine')}", style="bold"))
    for mpi in run.mpis:
        console.print(Text(f"{mpi.name}: {mpi.version}; {mpi.transport}", style="dim"))
    if run.mpis and (run.rows or run.costs or run.programs):
        console.print(shown(*_figures(run)))
        console.print(Text(_MEANINGS, style="dim"))
    rows = run.judged()
    if rows:
        console.print(Text("\nWhere it is slowest against packing by hand", style="bold"))
        console.print(shown(_HEAD, _cells(run, sorted(rows, key=lambda r: -r.ratio_vs_hand_low)[:_WORST]), _TEXTS))
        console.print(Text("\nWhere it is slowest against the MPI without it", style="bold"))
        console.print(shown(_HEAD, _cells(run, sorted(rows, key=lambda r: -r.ratio_vs_host_low)[:_WORST]), _TEXTS))
    if run.forced:
        console.print(Text("\nWhere its choice is slowest against the best that it can be told", style="bold"))
        slowest = sorted(run.forced, key=lambda r: -r.ratio)[:_WORST]
        console.print(shown(_FORCED_HEAD, _forced_cells(slowest), _FORCED_TEXTS))
    if run.programs:
        console.print(Text("\nPrograms", style="bold"))
        console.print(shown(_PROGRAM_HEAD, _program_cells(run.programs), _PROGRAM_TEXTS))
        console.print(Text(_PROGRAMS, style="dim"))
    for text in notes(run.errors, run.left_out, interrupted=run.interrupted):
        console.print(Text(text))


def _figures(run: MpiRun) -> tuple[list[str], list[list[str]]]:
    """A line of each figure, a column of each MPI."""
    lines: dict[str, dict[str, str]] = {}
    for mpi, figures in run.summary().items():
        for name, value in figures.items():
            if isinstance(value, dict):
                for side, us in value.items():
                    lines.setdefault(f"{name}, {side}", {})[mpi] = us_text(us)
            elif isinstance(value, float):
                lines.setdefault(name, {})[mpi] = f"{value:.0f}" if name.endswith("_ns") else f"{value:.2f}"
    names = [mpi.name for mpi in run.mpis]
    return ["figure", *names], [[name, *(cells.get(mpi, "-") for mpi in names)] for name, cells in lines.items()]


_TEXTS = 2
_HEAD = ["case", "MPI", "bytes", "hand, µs", "MPI, µs", "Lacuna", "vs hand", "vs MPI", "rounds"]


def _cells(run: MpiRun, rows: Iterable[MpiRow]) -> list[list[str]]:
    plain = {(r.mpi, r.case, r.method): r for r in run.rows if not r.preloaded}
    return [
        [
            row.case,
            row.mpi,
            bytes_text(row.payload_bytes),
            us_text(plain[row.mpi, row.case, "manual"].latency_us),
            us_text(plain[row.mpi, row.case, row.method].latency_us),
            us_text(row.latency_us),
            f"{row.ratio_vs_hand:.2f} [{row.ratio_vs_hand_low:.2f}, {row.ratio_vs_hand_high:.2f}]",
            f"{row.ratio_vs_host:.2f} [{row.ratio_vs_host_low:.2f}, {row.ratio_vs_host_high:.2f}]",
            str(row.rounds),
        ]
        for row in rows
    ]


_PROGRAM_TEXTS = 2
_PROGRAM_HEAD = ["case", "MPI", "ranks", "hosts", "bytes", "hand, µs", "MPI, µs", "Lacuna", "vs hand", "vs MPI"]


_FORCED_HEAD = ["case", "MPI", "best", "bytes", "blocks", "chosen, µs", "best, µs", "ratio", "rounds"]
_FORCED_TEXTS = 3


def _forced_cells(rows: Iterable[ForcedRow]) -> list[list[str]]:
    return [
        [
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
        for row in rows
    ]


def _program_cells(rows: Iterable[ProgramRow]) -> list[list[str]]:
    return [
        [
            row.case,
            row.mpi,
            str(row.ranks),
            str(row.hosts),
            bytes_text(row.payload_bytes),
            us_text(row.hand_us),
            us_text(row.host_us),
            us_text(row.lacuna_us),
            f"{row.ratio_vs_hand:.2f} [{row.ratio_vs_hand_low:.2f}, {row.ratio_vs_hand_high:.2f}]",
            f"{row.ratio_vs_host:.2f} [{row.ratio_vs_host_low:.2f}, {row.ratio_vs_host_high:.2f}]",
        ]
        for row in rows
    ]


# --- the page ---------------------------------------------------------------------------------------------------------


def write(run: MpiRun, directory: Path) -> list[Path]:
    """Writes mpi.html, mpi.png and mpi-programs.png; returns the files."""
    # Imported here: matplotlib takes half a second, which a run without pictures need not spend.
    from lacuna.bench.mpi import picture as mpi_bench_figures
    from lacuna.report.style import save_png, svg

    html, picture, of_programs = (directory / name for name in ("mpi.html", "mpi.png", "mpi-programs.png"))
    files, pictures = [html], []
    for drawn, to in ((mpi_bench_figures.ratios(run), picture), (mpi_bench_figures.programs(run), of_programs)):
        if drawn is None:
            pictures.append(paragraph("Nothing of it was measured."))
            continue
        save_png(drawn, to)
        files.append(to)
        pictures.append(figure(svg(drawn), "Time of datatypes over that of packing by hand"))
    write_whole(html, _page(run, *pictures))
    return files


def _page(run: MpiRun, picture: Raw, of_programs: Raw) -> str:
    versions = [(mpi.name, mpi.version, mpi.transport) for mpi in run.mpis]
    set_here = [f"{name}={value}" for name, value in run.variables.items()]
    parts = [
        section("Summary", paragraph(_MEANINGS), written(*_figures(run))),
        section("Datatypes against packing by hand", picture),
        section("Programs", paragraph(_PROGRAMS), of_programs),
        *(
            section("Programs: every row", written(_PROGRAM_HEAD, _program_cells(run.programs), _PROGRAM_TEXTS))
            for _ in run.programs[:1]
        ),
        section("Datatypes: every row", written(_HEAD, _cells(run, run.judged()), _TEXTS)),
        *(
            section("Against what can be forced", written(_FORCED_HEAD, _forced_cells(run.forced), _FORCED_TEXTS))
            for _ in run.forced[:1]
        ),
        section(
            "DDTBench: every method", paragraph(_METHODS), written(_METHOD_HEAD, _method_cells(run), _METHOD_TEXTS)
        ),
        section("Compared with", table(("name", "version", "transport"), versions or [("-", "no MPI", "-")])),
        *(section("Variables that were set", code("\n".join(set_here))) for _ in set_here[:1]),
        *(section("Errors", *(note(error, bad=True) for error in run.errors)) for _ in run.errors[:1]),
        *(section("Left out", paragraph("; ".join(run.left_out))) for _ in run.left_out[:1]),
        section("How to run it again", code(f"{run.command} --output DIR")),
    ]
    machine = run.machine.get("cpu", "this machine")
    built = f"Lacuna {run.lacuna_version}, {run.instruction_set}, loops by {run.compiler}"
    lead = f"Measured {run.created} by {built}, on {machine}."
    return page(f"Lacuna: MPI datatypes on {machine}", "MPI datatypes, with Lacuna and without", lead, "".join(parts))


_METHOD_TEXTS = 4
_METHOD_HEAD = [
    "case",
    "MPI",
    "method",
    "",
    "bytes",
    "µs",
    "95 % interval",
    "MB/s",
    "packing overhead",
    "vs hand",
    "vs MPI",
]


def _method_cells(run: MpiRun) -> list[list[str]]:
    return [
        [
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
        for row in run.rows
    ]
