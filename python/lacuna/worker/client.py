"""The client of `lacuna-worker`, the C++ process that measures."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from lacuna import clock
from lacuna.worker.devices import Devices, Providers
from lacuna.worker.process import LineProcess, find_executable
from lacuna.worker.protocol import SchemaError, member, read
from lacuna.worker.records import (
    Conditions,
    Corpus,
    Failure,
    Family,
    Hello,
    Row,
    Skip,
    Subject,
    read_hello,
    verified_row,
)
from lacuna.worker.remote_host import RemoteHost

_CONNECT_SECONDS = 20.0
"""What it may take longer to connect to another machine, or by a device, which pins memory first."""

_DEVICES_SECONDS = 30.0
"""What looking at all RDMA devices, or providers, may take: each device is asked for queue pairs of many sizes."""


def find_worker() -> Path:
    """The executable: `LACUNA_WORKER` if set, otherwise the one installed in the package."""
    return find_executable("lacuna-worker", "LACUNA_WORKER")


class Worker(LineProcess):
    """One running worker that measures."""

    hello: Hello

    def __init__(
        self, executable: Path, nic: str, timeout: float, options: Sequence[str] = (), remote: RemoteHost | None = None
    ) -> None:
        """Starts the worker and waits for its hello. `timeout`: seconds of silence after which it is given up.
        `remote`: its receiver is on another machine."""
        self._timeout = timeout
        more = remote.options if remote else ()
        variables = {**os.environ, **remote.variables} if remote else None
        super().__init__("the worker", [executable, "--nic", nic, *options, *more], variables)
        with self._ends_with_errors():
            longer = _CONNECT_SECONDS if remote or nic.startswith(("verbs", "ofi")) else 0.0
            self.hello = self.read(lambda said: read_hello(member(said, "hello", "line")), self._soon() + longer)

    def corpus(self, suite: str = "ddtbench", **bounds: int) -> tuple[Family, ...]:
        """The layouts of a suite (`ddtbench`, `ai`) that this worker can build."""
        self.send({"corpus": {"suite": suite, **bounds}})
        return self.read(lambda said: read(Corpus, said, "line").corpus, self._soon())

    def devices(self) -> Devices:
        """The RDMA devices of this machine."""
        self.send({"devices": {}})
        return self.read(
            lambda said: read(Devices, member(said, "devices", "line"), "devices"), time.monotonic() + _DEVICES_SECONDS
        )

    def providers(self) -> Providers:
        """The providers of libfabric on this machine."""
        self.send({"providers": {}})
        return self.read(
            lambda said: read(Providers, member(said, "providers", "line"), "providers"),
            time.monotonic() + _DEVICES_SECONDS,
        )

    def measure(
        self, request: dict[str, object], subject: Subject, latest: float = float("inf"), verb: str = "measure"
    ) -> Iterator[Row | Skip | Failure | Conditions]:
        """Measures one cell and yields what it learns, the conditions last; gives up at silence, or at `latest` on the
        clock of budgets. `verb`: what is asked for, `measure` or `keys`."""
        self.send({verb: request})
        # The worker may well say nothing until the time that it was given is over.
        allowed = self._timeout + float(str(request["budget_ms"])) / 1e3
        while True:
            deadline = time.monotonic() + min(allowed, latest - clock.now())
            answer = self.read(lambda said: _answer(said, request["id"], subject), deadline)
            if answer is not None:
                yield answer
            if answer is None or isinstance(answer, Conditions):
                return

    def _soon(self) -> float:
        return time.monotonic() + self._timeout


def _answer(said: Mapping[str, Any], request: object, subject: Subject) -> Row | Skip | Failure | Conditions | None:
    """One line of the answer to a request that measures; the last has the conditions, if anything was measured."""
    kind = next((name for name in ("row", "skip", "error", "done") if name in said), None)
    if kind is None:
        raise SchemaError("the answer is neither row, skip, error nor done")
    inner = read(dict[str, Any], said[kind], kind)
    if (number := member(inner, "id", kind)) != request:
        raise SchemaError(f"an answer to request {number} while request {request} is measured")
    if kind == "row":
        return verified_row(inner, subject, kind)
    if kind == "skip":
        return read(Skip, inner, kind)
    if kind == "error":
        return read(Failure, inner, kind)
    return read(Conditions, inner["conditions"], "done.conditions") if "conditions" in inner else None
