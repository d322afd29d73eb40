"""The client of the ranks (`rank`), and of the process that keeps a CPU busy."""

from __future__ import annotations

import json
import os
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, Self

from lacuna.lines import LineError, Lines, RowError, answer
from lacuna.worker import WorkerError

_START_SECONDS = 60.0
_FAREWELL_SECONDS = 5.0


class Ranks:
    """Processes, one on each of some CPUs, that sleep but for a turn; a context manager."""

    def __init__(self, cpus: Sequence[int], silence: float) -> None:
        """`silence`: seconds after which a turn is given up. Raises WorkerError where they did not start."""
        self._silence = silence
        name = f"interactions-{secrets.token_hex(8)}"
        line = [sys.executable, "-m", "lacuna.interactions.rank", name]
        self._processes: list[subprocess.Popen[bytes]] = []
        self._lines: list[Lines] = []
        deadline = time.monotonic() + _START_SECONDS
        try:
            for rank, cpu in enumerate(cpus):
                process = subprocess.Popen(
                    [*line, str(rank), str(len(cpus)), str(cpu)],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    process_group=0,  # a Ctrl-C is for the command, which ends them
                )
                self._processes.append(process)
                self._lines += [Lines(process.stdout.fileno())] if process.stdout else []
            for rank in range(len(cpus)):
                self._hear(rank, "ready", deadline)
        except BaseException:
            self._kill()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: Any) -> None:
        if error[0] is not None:  # they may be in the middle of something
            self._kill()
        for process in self._processes:
            with suppress(OSError, ValueError):
                if process.stdin:
                    process.stdin.close()
        deadline = time.monotonic() + _FAREWELL_SECONDS
        for process in self._processes:
            with suppress(subprocess.TimeoutExpired):
                process.wait(max(0.1, deadline - time.monotonic()))
        self._kill()

    def ask(self, member: str, command: Mapping[str, Any]) -> list[dict[str, Any]]:
        """What each rank says. Raises RowError where one could not, WorkerError where one is gone."""
        line = json.dumps(command).encode() + b"\n"
        for process in self._processes:
            try:
                os.write(process.stdin.fileno() if process.stdin else -1, line)
            except OSError as e:
                self._kill()
                raise WorkerError("a rank of lacuna bench interactions died") from e
        deadline = time.monotonic() + self._silence
        found: list[dict[str, Any]] = []
        failure: RowError | None = None
        for rank in range(len(self._processes)):
            try:
                found.append(self._hear(rank, member, deadline))
            except RowError as e:
                failure = failure or e
        if failure:
            raise failure
        return found

    def _hear(self, rank: int, member: str, deadline: float) -> dict[str, Any]:
        try:
            return answer(self._lines[rank].read(deadline), member)
        except LineError as e:
            self._kill()
            raise WorkerError(f"rank {rank} of lacuna bench interactions {e}") from e

    def _kill(self) -> None:
        for process in self._processes:
            process.kill()
            process.wait()
            for end in (process.stdin, process.stdout):
                if end:
                    with suppress(OSError):
                        end.close()


_WORK = {
    "computes": "n = 0\nprint(flush=True)\nwhile True: n += 1",
    "copies": "import numpy\na = numpy.ones(8 << 20)\nb = a.copy()\nprint(flush=True)\nwhile True: b[:] = a",
}
_PROGRAM = """import ctypes, os, signal, sys
ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG: it ends by itself only with its parent
os.sched_setaffinity(0, {int(sys.argv[1])})
"""


class Busy:
    """A process that takes a CPU while it is let go; a context manager."""

    def __init__(self, what: str, cpu: int) -> None:
        """Raises WorkerError where it did not start."""
        self._process = subprocess.Popen(
            [sys.executable, "-c", _PROGRAM + _WORK[what], str(cpu)], stdout=subprocess.PIPE, process_group=0
        )
        ready = self._process.stdout.readline() if self._process.stdout else b""
        self._process.send_signal(signal.SIGSTOP)
        if not ready:
            self.__exit__()
            raise WorkerError(f"the process that {what} did not start")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: Any) -> None:
        self._process.kill()
        self._process.wait()
        if self._process.stdout:
            self._process.stdout.close()

    def go(self) -> None:
        """Raises WorkerError where it is gone: nobody would be busy."""
        if self._process.poll() is not None:
            raise WorkerError("the process that keeps a CPU busy died")
        self._process.send_signal(signal.SIGCONT)

    def stop(self) -> None:
        self._process.send_signal(signal.SIGSTOP)
