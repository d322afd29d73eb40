"""Rows of numbers: as a table on the terminal, and on a page. The first columns are text, the others to the right."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from rich import box
from rich.table import Table
from rich.text import Text

from lacuna.report.html import Number, Raw, method_name, table, text
from lacuna.report.palette import ink


@dataclass(frozen=True)
class MethodCell:
    """A method in its colour, and what follows it."""

    method: str
    rest: str = ""


Cell = str | Text | MethodCell


@dataclass(frozen=True)
class RowTable:
    head: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    texts: int | Collection[int] = 1
    """So many columns are text, or these."""
    title: str = ""
    """On the terminal."""

    def _is_text(self, column: int) -> bool:
        return column < self.texts if isinstance(self.texts, int) else column in self.texts

    def on_terminal(self) -> Table:
        made = Table(
            box=box.SIMPLE_HEAD, show_edge=False, title=self.title or None, title_justify="left", title_style="bold"
        )
        for i, column in enumerate(self.head):
            made.add_column(column, justify="left" if self._is_text(i) else "right")
        for row in self.rows:
            made.add_row(*map(_terminal_cell, row))
        return made

    def on_page(self) -> Raw:
        def aligned(cells: Sequence[Cell]) -> list[Raw | Number]:
            shown = map(_page_cell, cells)
            return [cell if self._is_text(i) else Number(cell) for i, cell in enumerate(shown)]

        return table(aligned(self.head), map(aligned, self.rows))


def fact_grid(facts: Iterable[tuple[str, str]], style: str = "bold") -> Table:
    """For the terminal: subjects, and what there is to say of each."""
    made = Table.grid(padding=(0, 2))
    for subject, words in facts:
        made.add_row(Text(subject, style), Text(words))
    return made


def _terminal_cell(cell: Cell) -> str | Text:
    return Text.assemble((cell.method, ink(cell.method).terminal), cell.rest) if isinstance(cell, MethodCell) else cell


def _page_cell(cell: Cell) -> Raw:
    if isinstance(cell, MethodCell):
        return Raw(method_name(cell.method) + text(cell.rest))
    return Raw(f"<b>{text(cell)}</b>") if isinstance(cell, Text) and "bold" in str(cell.style) else text(cell)
