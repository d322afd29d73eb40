"""A program of Lacuna's that runs beside this one and speaks JSON lines: the worker, or a bench.

This side trusts nothing: a program that is missing, dies, sends garbage or falls silent ends in a `WorkerError` that
says what happened and shows the end of the program's standard error. Whatever happens, no process is left behind.

The client sleeps in `select` while the program measures: on a machine with two cores both belong to the measurement.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

import msgspec

import lacuna
from lacuna.worker.json_lines import LONGEST_LINE, EndError, EndlessError, LineError, Lines, SilenceError, answer
from lacuna.worker.protocol import SchemaError, parsed

_STDERR_KEPT = 2048
"""Bytes of the end of standard error that go into an error message."""

_FAREWELL_SECONDS = 10.0
"""How long a program may take to end after its input was closed, before it is killed. Mostly it takes milliseconds; on
a busy machine it may take seconds, and the other side of a killed worker takes that for a failure."""

T = TypeVar("T")


class WorkerError(Exception):
    """The program is missing, died, fell silent or broke the protocol."""


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


class LineProcess:
    """A running program; use it as a context manager."""

    def __init__(self, name: str, line: Sequence[str | Path], environment: Mapping[str, str] | None = None) -> None:
        """`name`: in errors. `environment`: another one than this process's own."""
        self._name = name
        self._stderr = b""
        try:
            # A process group of its own: Ctrl-C reaches only this command, which then ends the program in order.
            self._process = subprocess.Popen(
                line,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                bufsize=0,
                process_group=0,
                env=environment,
            )
        except OSError as e:
            raise WorkerError(f"cannot start {Path(line[0]).name}: {e.strerror}") from e
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
        """Ends the program: by closing its input, or by force if that does not help."""
        with contextlib.suppress(OSError):
            self._stdin.close()
        try:
            self._process.wait(_FAREWELL_SECONDS)
        except (subprocess.TimeoutExpired, KeyboardInterrupt):
            self._kill()
        for pipe in self._pipes:
            pipe.close()

    def send(self, message: Mapping[str, object]) -> None:
        try:
            self._stdin.write(msgspec.json.encode(message) + b"\n")
        except OSError:
            raise self._died() from None

    def read(self, understood: Callable[[dict[str, Any]], T], deadline: float) -> T:
        """What the next line says. Raises WorkerError where `understood` raises SchemaError."""
        return self.parse(self._line(deadline), understood)

    def parse(self, line: bytes, understood: Callable[[dict[str, Any]], T]) -> T:
        try:
            return understood(parsed(line))
        except SchemaError as e:
            shown = line[:160].decode(errors="replace")
            raise WorkerError(f"{self._name} broke the protocol: {e}. It sent: {shown}{self._tail()}") from e

    def _line(self, deadline: float) -> bytes:
        try:
            line = self.line_or_end(deadline)
        except SilenceError as e:
            raise WorkerSilentError(f"{self._name} {e}{self._tail()}") from None
        if line is None:
            raise self._died()
        return line

    def line_or_end(self, deadline: float) -> bytes | None:
        """The next line; None if the program has ended in order. Raises SilenceError, and WorkerError."""
        try:
            return self._lines.read(deadline)
        except EndlessError:
            raise WorkerError(f"{self._name} broke the protocol: a line of more than {LONGEST_LINE} bytes") from None
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
            return WorkerError(f"{self._name} closed its output without ending{self._tail()}")
        # The process is gone, so what its standard error still holds can be read without waiting for more.
        os.set_blocking(self._pipes[1].fileno(), False)
        with contextlib.suppress(BlockingIOError):
            while chunk := os.read(self._pipes[1].fileno(), 1 << 16):
                self._overhear(chunk)
        how = f"was killed by {signal.Signals(-code).name}" if code < 0 else f"exited with status {code}"
        return WorkerError(f"{self._name} died: it {how}{self._tail()}")

    def _tail(self) -> str:
        said = self._stderr.decode(errors="replace").strip()
        return f"\nIts last words:\n{said}" if said else ""

    def _kill(self) -> None:
        """Ends the program and what it forked, at once."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()


class BenchProcess(LineProcess):
    """A bench that answers each request with one line. `hello` is what it said of itself."""

    hello: dict[str, Any]

    def __init__(
        self, line: Sequence[str | Path], silence: float, environment: Mapping[str, str] | None = None
    ) -> None:
        """Starts it. `silence`: seconds after which it is given up."""
        super().__init__(Path(line[0]).name, line, environment)
        self._silence = silence
        with self._ends_with_errors():
            self.hello = self._answer("hello")

    def ask(self, **request: object) -> dict[str, Any]:
        """One row. Raises RowError where it could not be measured, WorkerError where the bench is gone."""
        self.send(request)
        return self._answer("row")

    def _answer(self, member: str) -> dict[str, Any]:
        try:
            return answer(self._line(time.monotonic() + self._silence), member)
        except LineError as e:
            raise WorkerError(f"{self._name} {e}") from e
