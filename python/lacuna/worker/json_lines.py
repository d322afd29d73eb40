"""Lines that another process sends, and what the benches' lines mean.

A reader that waits sleeps in `select`: on a machine with two cores both belong to the measurement. Nothing is trusted:
a line that does not come, or does not end, is a `LineError` that says so.
"""

from __future__ import annotations

import os
import select
import time
from collections.abc import Callable, Mapping
from typing import Any

from lacuna.worker.protocol import SchemaError, parsed

LONGEST_LINE = 4 << 20
"""Bytes; the longest honest line is a corpus with a few KiB."""


class LineError(Exception):
    """There is no line, or none that makes sense; the text says what the sender did: "died"."""


class SilenceError(LineError):
    """No line arrived before the deadline."""


class EndError(LineError):
    """The other end closed, or is gone."""


class EndlessError(LineError):
    """More than `LONGEST_LINE` bytes came, and no end of a line."""


class RowError(Exception):
    """A bench could not measure one row, or a contender moved wrong bytes; the bench itself goes on."""


class Lines:
    """The lines that arrive at a descriptor."""

    def __init__(self, source: int, aside: Mapping[int, Callable[[bytes], object]] | None = None) -> None:
        """`aside`: other descriptors of the same process, and who hears what they say while a line is waited for."""
        self._source = source
        self._aside = dict(aside or {})
        self._heard = b""

    def read(self, deadline: float) -> bytes:
        """The next line, without its end; waits until `deadline` on the monotonic clock. Raises LineError."""
        while b"\n" not in self._heard:
            if len(self._heard) > LONGEST_LINE:
                raise EndlessError("sent an endless line")
            left = max(0.0, deadline - time.monotonic())
            ready, _, _ = select.select([self._source, *self._aside], [], [], left)
            for descriptor in ready:
                self._take(descriptor)
            if self._source not in ready and left == 0:
                raise SilenceError("fell silent")
        line, _, self._heard = self._heard.partition(b"\n")
        return line

    def _take(self, descriptor: int) -> None:
        try:
            chunk = os.read(descriptor, 1 << 16)
        except OSError:
            chunk = b""
        if descriptor != self._source:
            self._aside[descriptor](chunk)
            if not chunk:
                del self._aside[descriptor]
        elif chunk:
            self._heard += chunk
        else:
            raise EndError("died")


def answer(line: bytes, member: str) -> dict[str, Any]:
    """What a bench says in `member` of its line. Raises RowError where it says instead that it could not, and LineError
    where it says neither."""
    try:
        said = parsed(line)
    except SchemaError as e:
        raise LineError(f"sent what is no JSON object: {line[:80]!r}") from e
    if isinstance(said.get("error"), str):
        raise RowError(said["error"])
    if not isinstance(said.get(member), dict):
        raise LineError(f"sent no {member}: {line[:80]!r}")
    found: dict[str, Any] = said[member]
    return found
