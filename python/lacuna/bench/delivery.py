"""How a command hands over what it found, the same for all: JSON to --json and --output, page and pictures to
--output, tables to the terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import typer
from rich.console import Console

from lacuna.bench import command_exit
from lacuna.files import write_whole
from lacuna.worker.process import WorkerError


class Delivered(Protocol):
    """What a run found."""

    errors: list[str]
    interrupted: bool

    @property
    def is_empty(self) -> bool:
        """There is nothing to show or to write."""

    def to_json(self) -> str: ...


class Shown(Protocol):
    """How it is shown: a table on the terminal, files of this name in a folder."""

    @property
    def name(self) -> str: ...

    @property
    def result(self) -> Delivered: ...

    def show(self, console: Console) -> None: ...

    def write(self, folder: Path) -> list[Path]:
        """The page and the pictures; returns the files."""


@dataclass(frozen=True)
class Delivery:
    """Where a command's results go. Says before measuring, not after, whether they can be written there."""

    data: Path | None
    output: Path | None

    def __post_init__(self) -> None:
        if self.data is not None and not self.to_stdout:
            _prepare(self.data.parent, "--json")
            if self.data.is_dir():
                raise typer.BadParameter(f"{self.data} is a directory", param_hint="--json")
        if self.output:
            _prepare(self.output, "--output")

    @property
    def to_stdout(self) -> bool:
        return self.data == Path("-")

    def console(self) -> Console:
        """Standard error where standard output holds the data."""
        return command_exit.console(to_stderr=self.to_stdout)

    def write_json(self, text: str) -> list[Path]:
        """As --json. Returns the file, if it is one."""
        if self.to_stdout:
            sys.stdout.write(text)
            sys.stdout.flush()
        elif self.data:
            write_whole(self.data, text)
            return [self.data]
        return []

    def write(self, console: Console, text: str, name: str, draw: Callable[[Path], list[Path]]) -> list[Path]:
        """Writes the data first, whatever may happen to what `draw` makes in --output. Returns the files."""
        files = self.write_json(text)
        if self.output:
            files.append(self.output / name)
            write_whole(files[-1], text)
            with console.status("drawing the report"):
                files += draw(self.output)
        return files

    def hand_over(self, console: Console, shown: Shown) -> None:
        """Shows the tables last, to a reader who may leave."""
        files = self.write(console, shown.result.to_json(), f"{shown.name}.json", shown.write)
        shown.show(console)
        show_written(console, files)

    def run(self, shown: Shown, measure: Callable[[Console], None]) -> None:
        """Measures, hands over what there is, whatever ended it, and ends the command with the status that its help
        documents."""
        console, result = self.console(), shown.result
        failure: WorkerError | None = None
        try:
            with command_exit.terminable():
                measure(console)
        except KeyboardInterrupt:
            result.interrupted = True
        except WorkerError as e:
            failure = e
        if not result.is_empty:
            self.hand_over(console, shown)
        if failure is not None:
            command_exit.fail(str(failure))
        command_exit.end(result.errors, interrupted=result.interrupted)


def show_written(console: Console, files: Sequence[Path]) -> None:
    if files:
        console.print("Written: " + ", ".join(str(f) for f in files), soft_wrap=True)


def _prepare(directory: Path, option: str) -> None:
    probe = directory / ".lacuna-probe"
    try:
        directory.mkdir(parents=True, exist_ok=True)
        probe.touch()
        probe.unlink()
    except OSError as e:
        raise typer.BadParameter(f"cannot write to {directory}: {e.strerror}", param_hint=option) from e
