"""Rows of numbers: as a table on the terminal, and on a page. The first columns are text, the others to the right."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich import box
from rich.table import Table

from lacuna.report.html import Number, Raw, table


def shown(head: Sequence[str], rows: Iterable[Sequence[str]], texts: int = 1) -> Table:
    made = Table(box=box.SIMPLE_HEAD)
    for i, column in enumerate(head):
        made.add_column(column, justify="left" if i < texts else "right")
    for row in rows:
        made.add_row(*row)
    return made


def written(head: Sequence[str], rows: Iterable[Sequence[str]], texts: int = 1) -> Raw:
    def numbers(cells: Sequence[str]) -> list[str | Number]:
        return [*cells[:texts], *map(Number, cells[texts:])]

    return table(numbers(head), map(numbers, rows))


def notes(errors: Sequence[str], left_out: Sequence[str], *, interrupted: bool) -> list[str]:
    """What a reader has to know of a run that is not whole."""
    found = [f"ERROR: {error}" for error in errors]
    if left_out:
        found.append(f"{len(left_out)} were left out, the first of them {left_out[0]}.")
    if interrupted:
        found.append("Interrupted: what was measured is here.")
    return found
