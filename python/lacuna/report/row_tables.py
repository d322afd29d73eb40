"""Rows of numbers: as a table on the terminal, and on a page. The first columns are text, the others to the right."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich import box
from rich.table import Table
from rich.text import Text

from lacuna.report.html import Number, Raw, table


@dataclass(frozen=True)
class RowTable:
    head: Sequence[str]
    rows: Sequence[Sequence[str | Text]]
    texts: int = 1
    """So many columns are text."""

    def on_terminal(self) -> Table:
        made = Table(box=box.SIMPLE_HEAD)
        for i, column in enumerate(self.head):
            made.add_column(column, justify="left" if i < self.texts else "right")
        for row in self.rows:
            made.add_row(*row)
        return made

    def on_page(self) -> Raw:
        def numbers(cells: Sequence[str | Text]) -> list[str | Number]:
            plain = [str(cell) for cell in cells]
            return [*plain[: self.texts], *map(Number, plain[self.texts :])]

        return table(numbers(self.head), map(numbers, self.rows))
