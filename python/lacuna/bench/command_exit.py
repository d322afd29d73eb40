"""How commands start, how they are interrupted, and how they end."""

from __future__ import annotations

import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import NoReturn

import typer
from rich.console import Console

from lacuna.worker.process import WorkerError

MEASUREMENT_FAILED = 1
ENVIRONMENT = 3
INTERRUPTED = 130
"""Exit statuses, as each command's help documents them."""

_PIPE_WIDTH = 120


def console(*, to_stderr: bool = False) -> Console:
    """Standard output, or standard error where that holds data: as wide as the terminal, or wide enough for the
    tables in a pipe."""
    console = Console(highlight=False, stderr=to_stderr)
    return console if console.is_terminal else Console(highlight=False, stderr=to_stderr, width=_PIPE_WIDTH)


@contextmanager
def terminable() -> Iterator[None]:
    """SIGTERM, by which batch systems announce the end of a job, acts like Ctrl-C: what was measured is kept."""

    def interrupt(_signal: int, _frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def fail(text: str) -> NoReturn:
    """Ends a command that lacks what it needs."""
    Console(stderr=True, highlight=False, soft_wrap=True).print(f"ERROR: {text}", markup=False)
    raise typer.Exit(ENVIRONMENT)


@contextmanager
def guarded() -> Iterator[None]:
    """Ends a command that leaves nothing, if it is interrupted or lacks the program that works for it."""
    try:
        with terminable():
            yield
    except KeyboardInterrupt:
        Console(stderr=True, highlight=False).print("Interrupted.")
        raise typer.Exit(INTERRUPTED) from None
    except WorkerError as e:
        fail(str(e))


def end(errors: Sequence[object], *, interrupted: bool) -> None:
    """Ends a command that has told what went wrong; returns if nothing did."""
    if interrupted:
        raise typer.Exit(INTERRUPTED)
    if errors:
        raise typer.Exit(MEASUREMENT_FAILED)
