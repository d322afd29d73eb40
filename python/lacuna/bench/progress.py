"""Progress with the time left.

It is redrawn between cells and never during one: on a machine with two cores both belong to the measurement.
"""

from __future__ import annotations

from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn

from lacuna import clock

_PIPE_SECONDS = 10.0
"""How often a line is written where there is no terminal to draw on."""


class Meter:
    """A bar on a terminal, now and then a line in a pipe."""

    def __init__(self, console: Console, cells: int, seconds: float, what: str = "cells") -> None:
        self._console = console
        self._what = what
        self._written = clock.now()
        self._bar = Progress(
            TextColumn("measuring"),
            BarColumn(bar_width=50),
            TextColumn(f"{{task.completed:.0f}} of {{task.total:.0f}} {what}"),
            TextColumn("at most {task.fields[left]:.0f} s left"),
            console=console,
            auto_refresh=False,
            transient=True,
            disable=not console.is_terminal,
        )
        self._task = self._bar.add_task("", total=cells, left=seconds)
        if not console.is_terminal:
            console.print(f"measuring {cells} {what}, at most {seconds:.0f} s")

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._bar.stop()

    def advance(self, done: int, planned: int, left: float) -> None:
        """So many of the planned cells are done, second looks counted, and there is so much time left."""
        left = max(0.0, left)
        if self._console.is_terminal:
            self._bar.update(self._task, completed=done, total=planned, left=left, refresh=True)
        elif clock.now() - self._written >= _PIPE_SECONDS:
            self._written = clock.now()
            self._console.print(f"{done} of {planned} {self._what}, at most {left:.0f} s left")
