"""The client of `lacuna-worker`, the C++ process that measures.

The two speak JSON lines over the worker's standard input and output. This side trusts nothing: a worker that is
missing, dies, sends garbage or falls silent ends in a `WorkerError` that says what happened and shows the end of the
worker's standard error. Whatever happens, no process is left behind.

The client sleeps in `select` while the worker measures: on a machine with two cores both belong to the measurement.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

import lacuna
from lacuna import clock
from lacuna.worker.devices import Devices
from lacuna.worker.json_lines import LONGEST_LINE, EndError, EndlessError, Lines, SilenceError
from lacuna.worker.protocol import SchemaError, member, parsed, read
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
from lacuna.worker.remote_host import Far

_STDERR_KEPT = 2048
"""Bytes of the end of the worker's standard error that go into an error message."""

_FAREWELL_SECONDS = 10.0
"""How long a worker may take to end after its input was closed, before it is killed. Mostly it takes milliseconds; on a
busy machine it may take seconds, and the other side of a killed one takes that for a failure."""

_CONNECT_SECONDS = 20.0
"""What it may take longer to connect to another machine, or by a device, which pins memory first."""

_DEVICES_SECONDS = 30.0
"""What looking at all RDMA devices may take: each is asked for queue pairs of many sizes."""

T = TypeVar("T")


class WorkerError(Exception):
    """The worker is missing, died, fell silent or broke the protocol."""


class WorkerSilentError(WorkerError):
    """No line arrived before the deadline."""


def find_executable(name: str, variable: str) -> Path:
    """An executable of ours: what `variable` of the environment names, otherwise the one installed in the package."""
    named = os.environ.get(variable)
    candidates = [Path(named)] if named else [Path(p) / "bin" / name for p in lacuna.__path__]
    for candidate in candidates:
        if candidate.is_file():
            return candidate
    where = f"{variable} names {named}, which is not a file" if named else "this package was installed without it"
    raise WorkerError(f"{name} not found: {where}. Build it with `make build`, or set {variable}.")


def find_worker() -> Path:
    """The executable: `LACUNA_WORKER` if set, otherwise the one installed in the package."""
    return find_executable("lacuna-worker", "LACUNA_WORKER")


class Program:
    """A running worker, whatever it does; use it as a context manager."""

    def __init__(self, executable: Path, arguments: Sequence[str], variables: Mapping[str, str] | None = None) -> None:
        """`variables`: of its environment, beside this process's own."""
        self._stderr = b""
        try:
            # A process group of its own: Ctrl-C reaches only this command, which then ends the worker in order.
            self._process = subprocess.Popen(
                [executable, *arguments],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                bufsize=0,
                process_group=0,
                env={**os.environ, **variables} if variables else None,
            )
        except OSError as e:
            raise WorkerError(f"cannot start {executable.name}: {e.strerror}") from e
        assert self._process.stdin
        assert self._process.stdout
        assert self._process.stderr
        self._stdin = self._process.stdin
        self._pipes = (self._process.stdout, self._process.stderr)
        self._lines = Lines(self._pipes[0].fileno(), {self._pipes[1].fileno(): self._overhear})

    @contextlib.contextmanager
    def _ends_with_errors(self) -> Iterator[None]:
        """Around what a constructor reads."""
        try:
            yield
        except BaseException:
            self._kill()
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if isinstance(error, WorkerError):
            self._kill()
        self.close()

    def close(self) -> None:
        """Ends the worker: by closing its input, or by force if that does not help."""
        with contextlib.suppress(OSError):
            self._stdin.close()
        try:
            self._process.wait(_FAREWELL_SECONDS)
        except (subprocess.TimeoutExpired, KeyboardInterrupt):
            self._kill()
        for pipe in self._pipes:
            pipe.close()

    def _send(self, message: dict[str, object]) -> None:
        try:
            self._stdin.write(json.dumps(message).encode() + b"\n")
        except OSError:
            raise self._died() from None

    def _read(self, understood: Callable[[dict[str, Any]], T], deadline: float) -> T:
        return self._parse(self._line(deadline), understood)

    def _parse(self, line: bytes, understood: Callable[[dict[str, Any]], T]) -> T:
        try:
            return understood(parsed(line))
        except SchemaError as e:
            shown = line[:160].decode(errors="replace")
            raise WorkerError(f"the worker broke the protocol: {e}. It sent: {shown}{self._tail()}") from e

    def _line(self, deadline: float) -> bytes:
        try:
            line = self._line_or_end(deadline)
        except SilenceError as e:
            raise WorkerSilentError(f"the worker {e}{self._tail()}") from None
        if line is None:
            raise self._died()
        return line

    def _line_or_end(self, deadline: float) -> bytes | None:
        """The next line; None if the worker has ended in order. Raises SilenceError, and WorkerError."""
        try:
            return self._lines.read(deadline)
        except EndlessError:
            raise WorkerError(f"the worker broke the protocol: a line of more than {LONGEST_LINE} bytes") from None
        except EndError:
            error = self._died()
            if self._process.returncode == 0:
                return None
            raise error from None

    def _overhear(self, chunk: bytes) -> None:
        self._stderr = (self._stderr + chunk)[-_STDERR_KEPT:]

    def _died(self) -> WorkerError:
        try:
            code = self._process.wait(_FAREWELL_SECONDS)
        except subprocess.TimeoutExpired:
            return WorkerError(f"the worker closed its output without ending{self._tail()}")
        # The process is gone, so what its standard error still holds can be read without waiting for more.
        os.set_blocking(self._pipes[1].fileno(), False)
        with contextlib.suppress(BlockingIOError):
            while chunk := os.read(self._pipes[1].fileno(), 1 << 16):
                self._overhear(chunk)
        how = f"was killed by {signal.Signals(-code).name}" if code < 0 else f"exited with status {code}"
        return WorkerError(f"the worker died: it {how}{self._tail()}")

    def _tail(self) -> str:
        said = self._stderr.decode(errors="replace").strip()
        return f"\nIts last words:\n{said}" if said else ""

    def _kill(self) -> None:
        """Ends the worker and the peer that it forked, at once."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()


class Worker(Program):
    """One running worker that measures."""

    hello: Hello

    def __init__(
        self, executable: Path, nic: str, timeout: float, options: Sequence[str] = (), far: Far | None = None
    ) -> None:
        """Starts the worker and waits for its hello. `timeout`: seconds of silence after which it is given up. `far`:
        its receiver is on another machine."""
        self._timeout = timeout
        more = far.options if far else ()
        super().__init__(executable, ["--nic", nic, *options, *more], far.variables if far else None)
        with self._ends_with_errors():
            longer = _CONNECT_SECONDS if far or nic.startswith("verbs") else 0.0
            self.hello = self._read(lambda said: read_hello(member(said, "hello", "line")), self._soon() + longer)

    def corpus(self, suite: str = "ddtbench", **bounds: int) -> tuple[Family, ...]:
        """The layouts of a suite (`ddtbench`, `ai`) that this worker can build."""
        self._send({"corpus": {"suite": suite, **bounds}})
        return self._read(lambda said: read(Corpus, said, "line").corpus, self._soon())

    def devices(self) -> Devices:
        """The RDMA devices of this machine."""
        self._send({"devices": {}})
        return self._read(
            lambda said: read(Devices, member(said, "devices", "line"), "devices"), time.monotonic() + _DEVICES_SECONDS
        )

    def measure(
        self, request: dict[str, object], subject: Subject, latest: float = float("inf"), verb: str = "measure"
    ) -> Iterator[Row | Skip | Failure | Conditions]:
        """Measures one cell and yields what it learns, the conditions last; gives up at silence, or at `latest` on the
        clock of budgets. `verb`: what is asked for, `measure` or `keys`."""
        self._send({verb: request})
        # The worker may well say nothing until the time that it was given is over.
        allowed = self._timeout + float(str(request["budget_ms"])) / 1e3
        while True:
            deadline = time.monotonic() + min(allowed, latest - clock.now())
            answer = self._read(lambda said: _answer(said, request["id"], subject), deadline)
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
