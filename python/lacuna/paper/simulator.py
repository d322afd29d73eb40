"""The client of `lacuna-worker --simulate`, which runs the methods on a NIC in virtual time (docs/design/model.md).

One request holds many trials and is answered by one line with a row for each. The same request always has the same
answer, to the nanosecond.
"""

from __future__ import annotations

import json
import selectors
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from lacuna.worker import WorkerError, WorkerSilentError, find_worker

Parameters = Mapping[str, float]


@dataclass(frozen=True)
class Trial:
    """One transfer: a layout in the worker's words, a method, and how the receiver is told."""

    layout: Mapping[str, object]
    method: str
    notify: str = "none"

    def to_json(self) -> dict[str, object]:
        return {"layout": dict(self.layout), "method": self.method, "notify": self.notify}


def grid(block_bytes: int, blocks: int) -> dict[str, object]:
    """Blocks with gaps of twice their size, as in Table 4."""
    return {"kind": "grid", "block_bytes": block_bytes, "block_count": blocks}


class RefusedError(WorkerError):
    """A trial that the method or the profile's NIC cannot do; the text says why."""


class Simulator:
    """One running worker; use it as a context manager. `verify`: bytes are moved and compared; it changes no time."""

    def __init__(self, *, verify: bool = True, timeout: float = 300.0) -> None:
        self._verify = verify
        self._timeout = timeout
        self._stderr = tempfile.TemporaryFile()  # noqa: SIM115 - as long as the process
        try:
            self._process = subprocess.Popen(
                [find_worker(), "--simulate"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._stderr,
                start_new_session=True,
            )
        except OSError as e:
            raise WorkerError(f"the simulator could not be started: {e}") from e

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout, self._stderr):
            if stream:
                stream.close()

    def transfers(
        self, profile: Path, trials: Sequence[Trial], overrides: Parameters | None = None, *, verify: bool | None = None
    ) -> list[dict[str, float]]:
        """A row for each trial. Errors: RefusedError for the first that cannot be done, or moved a wrong byte."""
        return self._ask("transfers", profile, [t.to_json() for t in trials], overrides, verify=verify)

    def set_up(
        self, profile: Path, trials: Sequence[Mapping[str, int]], overrides: Parameters | None = None
    ) -> list[dict[str, float]]:
        """What comes before a transfer: keys of so many `entries`, memory of so many `bytes`."""
        return self._ask("set_up", profile, trials, overrides)

    def alltoall(
        self, profile: Path, ranks: int, trials: Sequence[Trial], overrides: Parameters | None = None
    ) -> list[dict[str, float]]:
        return self._ask("alltoall", profile, [t.to_json() for t in trials], overrides, ranks=ranks)

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
        rows: list[dict[str, Any]] = self._exchange(request)["rows"]
        for trial, row in zip(trials, rows, strict=True):
            if "refused" in row:
                raise RefusedError(f"{row['refused']} (in {json.dumps(trial)})")
        return rows

    def _exchange(self, request: object) -> dict[str, Any]:
        assert self._process.stdin
        assert self._process.stdout
        try:
            self._process.stdin.write((json.dumps(request) + "\n").encode())
            self._process.stdin.flush()
        except OSError as e:
            raise self._ended() from e
        with selectors.DefaultSelector() as selector:
            selector.register(self._process.stdout, selectors.EVENT_READ)
            if not selector.select(self._timeout):
                raise WorkerSilentError(f"the simulator said nothing for {self._timeout:.0f} s")
        line = self._process.stdout.readline()
        if not line:
            raise self._ended()
        try:
            answer = json.loads(line)
        except ValueError as e:
            raise WorkerError(f"the simulator wrote {line[:100]!r}") from e
        if "error" in answer:
            raise WorkerError(f"the simulator refuses the request: {answer['error']}")
        return dict(answer)

    def _ended(self) -> WorkerError:
        self._process.wait()
        self._stderr.seek(0)
        said = self._stderr.read()[-2000:].decode(errors="replace").strip()
        return WorkerError(f"the simulator ended with status {self._process.returncode}. {said}".strip())
