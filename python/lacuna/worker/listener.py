"""`lacuna guide --listen`: the receivers of another machine's guide, until it is done."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NoReturn

import typer
from msgspec import Struct
from rich.console import Console

from lacuna.bench import session
from lacuna.worker.client import Program, WorkerError, find_worker
from lacuna.worker.hardware import Nic
from lacuna.worker.json_lines import SilenceError
from lacuna.worker.protocol import member, read

COMES_WITHIN = 600.0
"""Seconds that it waits for somebody."""

_PATIENCE = 3600.0
"""Seconds between two looks whether all is well, once somebody has come: the worker itself notices who goes."""


class Met(Struct, frozen=True, rename={"who": "from"}):
    """The one that it measures with has come."""

    who: str


class Refused(Struct, frozen=True, rename={"who": "from"}):
    who: str
    why: str


class Listening(Struct, frozen=True):
    at: str
    nic: Nic


class Listener(Program):
    """A worker that listens; a context manager."""

    def __init__(self, executable: Path, nic: str, address: str, secret: str, timeout: float) -> None:
        """Raises WorkerError where the worker cannot listen there, or has no such NIC."""
        super().__init__(executable, ["--nic", nic, "--listen", address], {"LACUNA_SECRET": secret})
        with self._ends_with_errors():
            line = self._read(
                lambda said: read(Listening, member(said, "listening", "line"), "listening"), time.monotonic() + timeout
            )
            self.at, self.nic = line.at, line.nic

    def events(self, come_within: float) -> Iterator[Met | Refused]:
        """Until the one that came is done. Raises WorkerError where nobody comes, or it goes wrong."""
        deadline = time.monotonic() + come_within
        met = False
        while (line := self._next(deadline if not met else None, come_within)) is not None:
            event = self._parse(line, _event)
            met = met or isinstance(event, Met)
            yield event

    def _next(self, deadline: float | None, come_within: float) -> bytes | None:
        """The next line; None once the worker has ended in order."""
        while True:
            try:
                return self._line_or_end(deadline or time.monotonic() + _PATIENCE)
            except SilenceError:
                if deadline is not None:
                    raise WorkerError(f"nobody came within {come_within:g} s") from None


def _event(said: Mapping[str, Any]) -> Met | Refused:
    return read(Met, said["met"], "met") if "met" in said else read(Refused, member(said, "refused", "line"), "refused")


def run(nic: str, address: str, secret: str, start_within: float, come_within: float) -> NoReturn:
    """Ends the command."""
    console = session.console()
    try:
        with session.terminable(), Listener(find_worker(), nic, address, secret, start_within) as listener:
            _show(console, listener)
            began, who = time.monotonic(), ""
            for event in listener.events(come_within):
                if isinstance(event, Met):
                    began, who = time.monotonic(), event.who
                    console.print(f"Measuring with {event.who}", markup=False)
                else:
                    console.print(f"Refused {event.who}: {event.why}", markup=False, soft_wrap=True)
            console.print(f"Served {who} for {time.monotonic() - began:.0f} s; the results are there.", markup=False)
    except KeyboardInterrupt:
        Console(stderr=True, highlight=False).print("Interrupted.")
        raise typer.Exit(session.INTERRUPTED) from None
    except WorkerError as e:
        session.finish(None, e)
    raise typer.Exit


def _show(console: Console, listener: Listener) -> None:
    port = listener.at.rpartition(":")[2]
    notes = "; ".join(path.note for path in listener.nic.paths if path.note)
    console.print(f"NIC {listener.nic.name}: {notes}", markup=False, soft_wrap=True)
    console.print(
        f"Listening at {listener.at}. On the other machine, with the same secret: lacuna guide --nic NAME HOST:{port}",
        markup=False,
        soft_wrap=True,
    )
