"""What `lacuna bench copy` shows: the summary and the worst rows on the terminal, a page with all rows, a picture."""

from __future__ import annotations

from pathlib import Path

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from lacuna.bench.copies.rows import Against, Copies, CopyRow
from lacuna.files import write_whole
from lacuna.report.html import Number, Raw, code, figure, note, paragraph, section, table
from lacuna.report.row_tables import shown, written
from lacuna.report.run_sections import page
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


def show(console: Console, copies: Copies) -> None:
    """The summary, and the rows where Lacuna is slowest."""
    title = f"Copies on {copies.cpu}, {copies.instruction_set}, loops by {copies.compiler}"
    console.print(Text(title, style="bold"))
    for name, version in copies.mpi.items():
        console.print(Text(f"{name}: {version}", style="dim"))
    console.print(_summary(copies))
    console.print(Text(_MEANINGS, style="dim"))
    for operation in ("pack", "unpack"):
        rows = [r for r in copies.rows if r.operation == operation and r.judged]
        if rows:
            console.print(Text(f"\nWhere {operation} is slowest against the loop by hand", style="bold"))
            worst = sorted(rows, key=lambda r: -r.hand.low)[:6]
            console.print(shown(_head(copies), (_cells(row, copies) for row in worst), texts=2))
    for text in _notes(copies):
        console.print(Text(text))


def _notes(copies: Copies) -> list[str]:
    notes = [f"ERROR: {error}" for error in copies.errors]
    if not copies.mpi:
        notes.append("No MPI was compared: --mpi MPICC names one (scripts/peers.sh installs four).")
    if copies.left_out:
        notes.append(f"{len(copies.left_out)} rows were left out for time; --budget gives more.")
    if copies.interrupted:
        notes.append("Interrupted: what was measured is here.")
    return notes


def _summary(copies: Copies) -> Table:
    shown = Table(box=box.SIMPLE_HEAD)
    shown.add_column("figure")
    shown.add_column("here", justify="right")
    shown.add_column("goal", justify="right")
    for name, value in copies.summary().items():
        goal = _GOALS.get(name)
        style = "" if goal is None else ("green" if value <= goal else "red")
        shown.add_row(
            name, Text(_figure(name, value), style=style), "" if goal is None else f"at most {_figure(name, goal)}"
        )
    return shown


def _figure(name: str, value: float) -> str:
    return f"{value:,.0f} ns" if name.endswith(("_ns", "_hand")) and "vs" not in name else f"{value:.2f}"


def _head(copies: Copies) -> list[str]:
    return ["layout", "cache", "bytes", "ns", "by hand", "memcpy", "of limit", *copies.mpi]


def _cells(row: CopyRow, copies: Copies) -> list[str]:
    mpis = {m.name: m for m in row.mpi}
    return [
        row.case,
        row.cache,
        bytes_text(row.bytes),
        f"{row.lacuna_ns:,.0f}",
        _ratio(row.hand),
        f"{row.memcpy.ratio:.2f}",
        f"{100 / row.limit.ratio:.0f} %",
        *(_ratio(mpis[name]) if name in mpis else "-" for name in copies.mpi),
    ]


def _ratio(against: Against) -> str:
    return f"{against.ratio:.2f} [{against.low:.2f}, {against.high:.2f}]"


# --- the page ---------------------------------------------------------------------------------------------------------


def write(copies: Copies, directory: Path) -> list[Path]:
    """Writes copy.html and copy.png; returns the files."""
    # Imported here: matplotlib takes half a second, which a run without pictures need not spend.
    from lacuna.bench.copies import picture as copies_figures
    from lacuna.report.style import save_png, svg

    picture = directory / "copy.png"
    html = directory / "copy.html"
    files = [html]
    drawn = copies_figures.bandwidth(copies, copies_figures.selection(copies.rows))
    if drawn is not None:
        save_png(drawn, picture)
        files.append(picture)
    everything = copies_figures.bandwidth(copies, copies.rows)
    shown = figure(svg(everything), "Bandwidth of each layout") if everything else paragraph("Nothing was measured.")
    write_whole(html, _page(copies, shown))
    return files


def _page(copies: Copies, picture: Raw) -> str:
    figures = [
        (name, Number(_figure(name, value)), Number(f"at most {_figure(name, _GOALS[name])}" if name in _GOALS else ""))
        for name, value in copies.summary().items()
    ]
    versions = [(name, version) for name, version in copies.mpi.items()]
    parts = [
        section("Summary", paragraph(_MEANINGS), table(("figure", Number("here"), Number("goal")), figures)),
        section("Bandwidth against the limit", picture),
        *(_section(copies, operation) for operation in ("pack", "unpack", "transpack")),
        section("Compared with", table(("name", "version"), versions or [("-", "no MPI")])),
        *(section("Errors", *(note(error, bad=True) for error in copies.errors)) for _ in copies.errors[:1]),
        section("How to run it again", code(f"{copies.command} --output DIR")),
    ]
    lead = f"Measured {copies.created} by Lacuna {copies.lacuna_version}, {copies.instruction_set}, {copies.compiler}."
    return page(f"Lacuna: copies on {copies.cpu}", "Copies of scattered data, on this machine", lead, "".join(parts))


def _section(copies: Copies, operation: str) -> Raw:
    rows = [r for r in copies.rows if r.operation == operation]
    return section(f"{operation}: every row", written(_head(copies), (_cells(row, copies) for row in rows), texts=2))
