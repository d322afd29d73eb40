"""What is shown of a bench's result: on the terminal, on a page and in pictures, the same for all benches."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Generic, TypeVar

from rich.console import Console
from rich.text import Text

from lacuna.bench.result import BenchResult
from lacuna.files import write_whole
from lacuna.report.html import Raw, code, figure, note, page, paragraph, section, table
from lacuna.report.row_tables import Cell, RowTable

if TYPE_CHECKING:
    from matplotlib.figure import Figure

R = TypeVar("R", bound=BenchResult)
Row = TypeVar("Row")


@dataclass(frozen=True)
class Picture:
    """None as a figure: there is nothing to draw."""

    title: str
    file: str
    figure: Figure | None
    caption: str
    of_page: Figure | None = None
    """A larger one for the page, where there is room."""
    words: str = ""


def table_of(columns: Mapping[str, Callable[[Row], Cell]], rows: Iterable[Row], texts: int = 1) -> RowTable:
    """A line for each row. `columns`: what stands there, by its heading."""
    return RowTable([*columns], [[cell(row) for cell in columns.values()] for row in rows], texts)


class Presentation(ABC, Generic[R]):
    """The parts are the bench's, their order is here."""

    name: ClassVar[str]
    """Of the files: name.json, name.html, name.png."""
    subject: ClassVar[str]
    """"Copies": on whatever machine."""
    heading: ClassVar[str]
    meanings: ClassVar[str]
    """What a time, a ratio and a figure of the summary is."""

    def __init__(self, result: R) -> None:
        self.result = result

    def figures(self) -> RowTable:
        """The summary: a line of each figure, if the bench has no better table."""
        return RowTable(["figure", "value"], [[name, f"{value:.4g}"] for name, value in self.result.summary().items()])

    @abstractmethod
    def pictures(self) -> Iterator[Picture]:
        """Imports what draws: matplotlib takes half a second, which a run without pictures need not spend."""

    @abstractmethod
    def tables(self) -> Iterator[tuple[str, str, RowTable]]:
        """All rows, for the page: a title, words that may be empty, a table."""

    def worst(self) -> Iterator[tuple[str, RowTable]]:
        """A few rows, for the terminal."""
        yield from ()

    def remarks(self) -> Iterator[str]:
        """More to be told, in a line each."""
        yield from ()

    def show(self, console: Console) -> None:
        result = self.result
        console.print(Text(f"{self.subject} on {result.place}", style="bold"))
        for mpi in result.mpis:
            console.print(Text("; ".join(filter(None, (f"{mpi.name}: {mpi.version}", mpi.transport))), style="dim"))
        figures = self.figures()
        if figures.rows:
            console.print(figures.on_terminal())
            console.print(Text(self.meanings, style="dim"))
        for title, rows in self.worst():
            if rows.rows:
                console.print(Text(f"\n{title}", style="bold"))
                console.print(rows.on_terminal())
        for line in (*self.remarks(), *self._notes()):
            console.print(Text(line))

    def _notes(self) -> Iterator[str]:
        """What a reader has to know of a run that is not whole."""
        yield from (f"ERROR: {error}" for error in self.result.errors)
        if self.result.left_out:
            yield f"{len(self.result.left_out)} were left out, the first of them {self.result.left_out[0]}."
        if self.result.interrupted:
            yield "Interrupted: what was measured is here."

    def write(self, folder: Path) -> list[Path]:
        """Writes the page and the pictures; returns the files."""
        from lacuna.report.style import save_png, svg

        files, drawn = [folder / f"{self.name}.html"], []
        for picture in self.pictures():
            words = [paragraph(picture.words)] if picture.words else []
            if picture.figure is None:
                drawn.append(section(picture.title, *words, paragraph("Nothing of it was measured.")))
                continue
            files.append(folder / picture.file)
            save_png(picture.figure, files[-1])
            shown = figure(svg(picture.of_page or picture.figure), picture.caption)
            drawn.append(section(picture.title, *words, shown))
        write_whole(files[0], self._page(drawn))
        return files

    def _page(self, drawn: list[Raw]) -> str:
        result = self.result
        versions = [(mpi.name, mpi.version, mpi.transport) for mpi in result.mpis]
        parts = [
            section("Summary", paragraph(self.meanings), self.figures().on_page()),
            *drawn,
            *(
                section(title, *([paragraph(words)] if words else []), rows.on_page())
                for title, words, rows in self.tables()
                if rows.rows
            ),
            section("Compared with", table(("name", "version", "transport"), versions or [("-", "no MPI", "-")])),
            *self.more_sections(),
            *(section("Errors", *(note(error, bad=True) for error in result.errors)) for _ in result.errors[:1]),
            *(section("Left out", paragraph("; ".join(result.left_out))) for _ in result.left_out[:1]),
            section("How to run it again", code(f"{result.command} --output DIR")),
        ]
        built = ", ".join(filter(None, (f"Lacuna {result.lacuna_version}", result.instruction_set, result.compiler)))
        lead = f"Measured {result.created} by {built}, on {result.place}."
        return page(f"Lacuna: {self.subject.lower()} on {result.place}", self.heading, lead, "".join(parts))

    def more_sections(self) -> Iterator[Raw]:
        yield from ()
