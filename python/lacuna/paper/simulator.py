"""The client of `lacuna-worker --simulate`, which runs the methods on a NIC in virtual time (docs/design/model.md).

One request holds many trials and is answered by one line with a row for each. The same request always has the same
answer, to the nanosecond.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lacuna.worker.client import find_worker
from lacuna.worker.process import LineProcess, WorkerError
from lacuna.worker.protocol import member, read, written

Parameters = Mapping[str, float]


@dataclass(frozen=True)
class Trial:
    """One transfer: a layout in the worker's words, a method, and how the receiver is told."""

    layout: Mapping[str, object]
    method: str
    notify: str = "none"


def grid(block_bytes: int, blocks: int) -> dict[str, object]:
    """Blocks with gaps of twice their size, as in Table 4."""
    return {"kind": "grid", "block_bytes": block_bytes, "block_count": blocks}


class RefusedError(WorkerError):
    """A trial that the method or the profile's NIC cannot do; the text says why."""


class Simulator(LineProcess):
    """One running worker; use it as a context manager. `verify`: bytes are moved and compared; it changes no time."""

    def __init__(self, *, verify: bool = True, timeout: float = 300.0) -> None:
        self._verify = verify
        self._timeout = timeout
        super().__init__("the simulator", [find_worker(), "--simulate"])

    def __exit__(self, *_: object) -> None:
        self._kill()  # nothing of it is worth to wait for
        self.close()

    def transfers(
        self, profile: Path, trials: Sequence[Trial], overrides: Parameters | None = None, *, verify: bool | None = None
    ) -> list[dict[str, float]]:
        """A row for each trial. Errors: RefusedError for the first that cannot be done, or moved a wrong byte."""
        return self._ask("transfers", profile, trials, overrides, verify=verify)

    def set_up(
        self, profile: Path, trials: Sequence[Mapping[str, int]], overrides: Parameters | None = None
    ) -> list[dict[str, float]]:
        """What comes before a transfer: keys of so many `entries`, memory of so many `bytes`."""
        return self._ask("set_up", profile, trials, overrides)

    def alltoall(
        self, profile: Path, ranks: int, trials: Sequence[Trial], overrides: Parameters | None = None
    ) -> list[dict[str, float]]:
        return self._ask("alltoall", profile, trials, overrides, ranks=ranks)

    def _ask(
        self,
        what: str,
        profile: Path,
        trials: Sequence[object],
        overrides: Parameters | None,
        *,
        verify: bool | None = None,
        **more: object,
    ) -> list[dict[str, float]]:
        request = {
            "simulate": what,
            "profile": str(profile),
            "verify": self._verify if verify is None else verify,
            "overrides": dict(overrides or {}),
            "trials": list(trials),
            **more,
        }
        self.send(request)
        rows = self.read(_rows, time.monotonic() + self._timeout)
        for trial, row in zip(trials, rows, strict=True):
            if "refused" in row:
                raise RefusedError(f"{row['refused']} (in {written(trial, indent=0)})")
        return rows


def _rows(said: Mapping[str, Any]) -> list[dict[str, Any]]:
    if "error" in said:
        raise WorkerError(f"the simulator refuses the request: {said['error']}")
    return read(list[dict[str, Any]], member(said, "rows", "line"), "rows")
