"""What `lacuna bench messages` shows: figures, contiguous sizes and the worst rows; a page and a picture."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from rich.console import Console
from rich.text import Text

from lacuna.bench.messages.rows import OURS, MessageRow, Messages, fastest
from lacuna.files import write_whole
from lacuna.report.html import Raw, code, figure, note, paragraph, section, table
from lacuna.report.row_tables import notes, shown, written
from lacuna.report.run_sections import page
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


def show(console: Console, messages: Messages) -> None:
    """The figures, each contiguous size, and where Lacuna is slowest against loops by hand."""
    console.print(Text(f"Messages on {messages.machine.get('cpu', 'this machine')}", style="bold"))
    for mpi in messages.mpis:
        console.print(Text(f"{mpi.name}: {mpi.version}; {mpi.transport}", style="dim"))
    if messages.rows:
        console.print(shown(*_figures(messages)))
        console.print(Text(_MEANINGS, style="dim"))
    contiguous = sorted(messages.rows_of("contiguous", "mpi_contiguous"), key=lambda r: r.payload_bytes)
    if contiguous:
        console.print(Text("\nContiguous messages", style="bold"))
        console.print(shown(_HEAD, _cells(messages, contiguous)))
    hand = fastest(r for r in messages.rows if r.competitor == "hand")
    if hand:
        console.print(Text("\nWhere Lacuna is slowest against the fastest loop by hand", style="bold"))
        worst = sorted(hand, key=lambda r: -r.ratio_low)[:_WORST]
        console.print(shown(_HEAD, _cells(messages, worst)))
    forced = [r for r in messages.rows if r.competitor == "forced"]
    if forced:
        console.print(Text("\nWhere Lacuna's choice is slowest against the best way that is forced", style="bold"))
        console.print(shown(_HEAD, _cells(messages, sorted(forced, key=lambda r: -r.ratio)[:_WORST])))
    for text in notes(messages.errors, messages.left_out, interrupted=messages.interrupted):
        console.print(Text(text))


def _figures(messages: Messages) -> tuple[list[str], list[list[str]]]:
    """Against the fastest of all, and against each."""
    summary = messages.summary()
    each = summary["by_mpi"]
    names = [name for name, value in summary.items() if isinstance(value, float)]

    def cell(figures: dict[str, object], name: str) -> str:
        value = figures.get(name)
        return f"{value:.2f}" if isinstance(value, float) else "-"

    rows = []
    for name in names:
        own = name.replace("best_mpi", "mpi")
        rows.append([name, cell(summary, name), *(cell(each[mpi.name], own) for mpi in messages.mpis)])
    return ["figure", "fastest MPI", *(mpi.name for mpi in messages.mpis)], rows


_HEAD = ["case", "bytes", "MPI", "against", "Lacuna, µs", "it, µs", "ratio", "95 % interval", "rounds"]


def _cells(messages: Messages, rows: Iterable[MessageRow]) -> list[list[str]]:
    ours = {(r.mpi, r.suite, r.case): r for r in messages.rows if r.competitor == OURS}
    return [
        [
            row.case,
            bytes_text(row.payload_bytes),
            row.mpi,
            _NAMES.get(row.competitor, row.competitor) + (f", {row.loop}" if row.loop else ""),
            us_text(ours[row.mpi, row.suite, row.case].latency_us),
            us_text(row.latency_us),
            f"{row.ratio:.2f}",
            f"{row.ratio_low:.2f} to {row.ratio_high:.2f}",
            str(row.rounds),
        ]
        for row in rows
    ]


# --- the page ---------------------------------------------------------------------------------------------------------


def write(messages: Messages, directory: Path) -> list[Path]:
    """Writes messages.html and messages.png; returns the files."""
    # Imported here: matplotlib takes half a second, which a run without pictures need not spend.
    from lacuna.bench.messages import picture as message_figures
    from lacuna.report.style import save_png, svg

    html, picture = directory / "messages.html", directory / "messages.png"
    drawn = message_figures.ratios(messages)
    if drawn is None:
        write_whole(html, _page(messages, paragraph("Nothing was measured.")))
        return [html]
    save_png(drawn, picture)
    write_whole(html, _page(messages, figure(svg(drawn), "Lacuna's time over the other's")))
    return [html, picture]


def _page(messages: Messages, picture: Raw) -> str:
    head, figures = _figures(messages)
    versions = [(mpi.name, mpi.version, mpi.transport) for mpi in messages.mpis]
    suites = (
        ("Contiguous messages", "contiguous"),
        ("DDTBench: every row", "ddtbench"),
        ("AI systems: every row", "ai"),
    )
    parts = [
        section("Summary", paragraph(_MEANINGS), written(head, figures)),
        section("Ratios", picture),
        *(section(title, written(_HEAD, _cells(messages, _others(messages, suite)))) for title, suite in suites),
        section("Compared with", table(("name", "version", "transport"), versions or [("-", "no MPI", "-")])),
        *(section("Errors", *(note(error, bad=True) for error in messages.errors)) for _ in messages.errors[:1]),
        *(section("Left out", paragraph("; ".join(messages.left_out))) for _ in messages.left_out[:1]),
        section("How to run it again", code(f"{messages.command} --output DIR")),
    ]
    machine = messages.machine.get("cpu", "this machine")
    built = f"Lacuna {messages.lacuna_version}, {messages.instruction_set}, {messages.compiler}"
    lead = f"Measured {messages.created} by {built}, on {machine}."
    return page(f"Lacuna: messages on {machine}", "Messages between two processes", lead, "".join(parts))


def _others(messages: Messages, suite: str) -> list[MessageRow]:
    return [r for r in messages.rows if r.suite == suite and r.competitor != OURS]
