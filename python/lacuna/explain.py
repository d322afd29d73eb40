"""The `lacuna explain` command: what a layout is, and how it is copied here."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.text import Text

from lacuna import __version__, command
from lacuna._core import Layout, instruction_set
from lacuna.command import JsonOption
from lacuna.layout_text import LayoutTextError, Parsed, read
from lacuna.units import bytes_text

MOST_RUNS = 1_000_000
"""So many runs are looked at for their lengths."""

_BAR = 40
_LABEL = 12


def explain(
    source: Annotated[str, typer.Argument(metavar="LAYOUT", help="A layout, in one of the forms above.")],
    destination: Annotated[
        str | None,
        typer.Argument(metavar="LAYOUT", help="The destination of as many bytes.", show_default=False),
    ] = None,
    data: JsonOption = None,
) -> None:
    """Show what a layout is and how it is copied: runs, extent, canonical form, and the kernel of each step here.

    With two layouts, a source and a destination: both, if they have as many bytes. Put quotes around a LAYOUT, for
    the shell. It is one of these:

    \b
    DDTBench     NAS_LU_y, NAS_LU_y:3, FFT2:1:receive
                 the family, the index of its size (0 if left out), send or
                 receive (send if left out); any other name lists all families
    basic types  byte char short int long float double c_float_complex
                 c_double_complex int8 .. uint64 float32 float64, unsigned_int
                 and so on, in any case, also as MPI_DOUBLE and MPI_INT8_T
    MPI's        contiguous(count, old)
                 vector(count, blocklength, stride, old)
                 hvector(count, blocklength, stride_bytes, old)
                 indexed([blocklengths], [displacements], old)
                 hindexed([blocklengths], [byte_displacements], old)
                 indexed_block(blocklength, [displacements], old)
                 hindexed_block(blocklength, [byte_displacements], old)
                 struct([blocklengths], [byte_displacements], [members])
                 subarray([sizes], [subsizes], [starts], old, order=C)
                 darray(processes, rank, [sizes], [distributions],
                        [block_sizes], [grid], old, order=C)
                 resized(old, lower_bound, extent)
                 old and members are LAYOUTs; the order is C or F;
                 distributions are none, block or cyclic; a block size of -1
                 is the default
    others       bytes(count)
                 blocks([offsets], [lengths])
                 paged(block_bytes, [page_numbers])
                 offsets and lengths are in bytes; page n is at n * block_bytes
    NumPy views  matrix.npy, matrix.npy[::2, 3:5], matrix.npy.T
                 the elements in index order, relative to the first; put
                 quotes around a name with spaces, or not of .npy: "my file"

    A list is [1, 2, 3], range(first, end, step) as in Python, or a .npy file of integers. Arguments may be named:
    vector(count=16, blocklength=4, stride=100, old=double).

    \b
    Examples:
      lacuna explain NAS_LU_y:3
      lacuna explain 'vector(16, 4, 100, double)'
      lacuna explain 'struct([1, 3], [0, 16], [int, vector(2, 1, 3, double)])'
      lacuna explain 'subarray([64, 64], [8, 8], [0, 4], float, order=F)'
      lacuna explain 'paged(8192, pages.npy)' 'bytes(1048576)'
      lacuna explain 'matrix.npy[::2, 3:5]' --json - | jq '.layouts[0].kernels'

    \b
    Exit status:
      0    all is well
      2    wrong usage, a LAYOUT that cannot be read, or sizes that differ
    """
    command.prepare_json(data)
    layouts = [_read(text) for text in (source, destination) if text is not None]
    sizes = [parsed.layout.size for parsed in layouts]
    if len(set(sizes)) > 1:
        raise typer.BadParameter(
            f"the source has {sizes[0]:,} bytes, the destination {sizes[1]:,}; they must be as many",
            param_hint="LAYOUT",
        )
    console = command.console(to_stderr=command.is_stdout(data))
    roles = ("Source: ", "Destination: ") if destination is not None else ("",)
    for role, parsed in zip(roles, layouts, strict=True):
        _show(console, role, parsed)
    if destination is not None:
        console.print(f"Both have {_bytes(sizes[0])}.")
    command.write_json(data, json.dumps(_document(layouts), indent=1) + "\n")


def _read(text: str) -> Parsed:
    try:
        return read(text)
    except LayoutTextError as e:
        raise typer.BadParameter(str(e), param_hint="LAYOUT") from e


def _document(layouts: list[Parsed]) -> dict[str, Any]:
    return {
        "lacuna_version": __version__,
        "instruction_set": instruction_set(),
        "layouts": [_facts(parsed) for parsed in layouts],
    }


def _facts(parsed: Parsed) -> dict[str, Any]:
    layout = parsed.layout
    return {
        "parsed": parsed.meaning,
        "bytes": layout.size,
        "runs": layout.run_count,
        "mean_run_bytes": layout.size / layout.run_count if layout.run_count else None,
        "lower_bound": layout.lower_bound,
        "extent": layout.extent,
        "true_lower_bound": layout.true_lower_bound,
        "true_extent": layout.true_extent,
        "run_lengths": {
            "of_first_runs": min(layout.run_count, MOST_RUNS),
            "classes": [{"from": low, "to": 2 * low - 1, "runs": runs} for low, runs in _classes(layout)],
        },
        "form": layout.describe(),
        "kernels": layout.kernels().splitlines(),
    }


def _classes(layout: Layout) -> Iterator[tuple[int, int]]:
    """The least length and the number of runs of each class, from the shortest to the longest that is there."""
    found = layout.length_classes(MOST_RUNS)
    first = next((i for i, runs in enumerate(found) if runs), 0)
    for i, runs in enumerate(found[first:], first):
        yield 1 << i, runs


def _show(console: Console, role: str, parsed: Parsed) -> None:
    layout = parsed.layout
    console.print(Text.assemble((role + parsed.meaning, "bold")), soft_wrap=True)
    mean = f", {layout.size / layout.run_count:,.1f} B on average" if layout.run_count else ""
    _row(console, "bytes", _bytes(layout.size))
    _row(console, "runs", f"{layout.run_count:,}{mean}")
    _row(console, "extent", f"{_bytes(layout.extent)} from {layout.lower_bound:,}")
    _row(console, "true extent", f"{_bytes(layout.true_extent)} from {layout.true_lower_bound:,}")
    _row(console, "form", layout.describe())
    _row(console, "instructions", instruction_set())
    _row(console, "plan", *(layout.kernels().splitlines() or ["nothing to copy"]))
    if layout.run_count:
        _row(console, "run lengths", *_histogram(layout))
    console.print()


def _row(console: Console, label: str, *lines: str) -> None:
    for i, line in enumerate(lines):
        console.print(Text(f"  {label if i == 0 else '':{_LABEL}}  {line}"), soft_wrap=True)


def _histogram(layout: Layout) -> Iterator[str]:
    if layout.run_count > MOST_RUNS:
        yield f"of the first {MOST_RUNS:,} runs:"
    classes = list(_classes(layout))
    most = max(runs for _, runs in classes)
    yield f"{'from':>8}  {'below':>8}  {'runs':>9}"
    for low, runs in classes:
        bar = "#" * max(runs > 0, round(_BAR * runs / most))
        yield f"{bytes_text(low):>8}  {bytes_text(2 * low):>8}  {runs:>9,}  {bar}".rstrip()


def _bytes(value: int) -> str:
    return f"{value:,} B" + (f" ({bytes_text(value)})" if value >= 1024 else "")
