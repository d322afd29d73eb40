"""`lacuna guide --listen`: the receivers of another machine's guide, until it is done."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct

from lacuna.worker.hardware import Nic
from lacuna.worker.json_lines import SilenceError
from lacuna.worker.process import LineProcess, WorkerError
from lacuna.worker.protocol import member, read

COMES_WITHIN = 600.0
"""Seconds that it waits for the other machine."""

_PATIENCE = 3600.0
"""Seconds between two looks whether all is well, once the other machine has come: the worker itself notices when it
goes."""


class Met(Struct, frozen=True, rename={"who": "from"}):
    """The one that it measures with has come."""

    who: str


class Refused(Struct, frozen=True, rename={"who": "from"}):
    who: str
    why: str


class Listening(Struct, frozen=True):
    at: str
    nic: Nic


class Listener(LineProcess):
    """A worker that listens; a context manager."""

    def __init__(self, executable: Path, nic: str, address: str, secret: str, timeout: float) -> None:
        """Raises WorkerError where the worker cannot listen there, or has no such NIC."""
        line: list[str | Path] = [executable, "--nic", nic, "--listen", address]
        super().__init__("the worker", line, {**os.environ, "LACUNA_SECRET": secret})
        with self._ends_with_errors():
            found = self.read(
                lambda said: read(Listening, member(said, "listening", "line"), "listening"), time.monotonic() + timeout
            )
            self.at, self.nic = found.at, found.nic

    def events(self, come_within: float) -> Iterator[Met | Refused]:
        """Until the machine that came is done. Raises WorkerError where none comes, or it goes wrong."""
        deadline = time.monotonic() + come_within
        met = False
        while True:
            try:
                line = self.line_or_end(time.monotonic() + _PATIENCE if met else deadline)
            except SilenceError:
                if met:
                    continue
                raise WorkerError(f"no machine came within {come_within:g} s") from None
            if line is None:  # the worker has ended in order
                return
            event = self.parse(line, _event)
            met = met or isinstance(event, Met)
            yield event


def _event(said: Mapping[str, Any]) -> Met | Refused:
    return read(Met, said["met"], "met") if "met" in said else read(Refused, member(said, "refused", "line"), "refused")
