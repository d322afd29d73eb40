"""Two processes that an MPI's mpiexec starts, one JSON line each way with each: the client of `lacuna-message-bench`
and `lacuna-mpi-bench`.

Nothing here is trusted: a job that does not start, dies, sends garbage or falls silent ends in a `WorkerError`, and no
process of it stays behind.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from lacuna.mpi.launch import Launch, end_launcher
from lacuna.worker.json_lines import LineError, Lines, RowError, answer
from lacuna.worker.process import WorkerError

_START_SECONDS = 60.0
_FAREWELL_SECONDS = 5.0
_LONGEST_COMM = 15
"""Characters of its name that the kernel keeps of a process."""


class _Rank:
    """One rank's end of the conversation."""

    def __init__(self, connection: socket.socket, job: Job) -> None:
        self._connection = connection
        self._job = job
        self._lines = Lines(connection.fileno())

    def say(self, line: bytes) -> None:
        try:
            self._connection.sendall(line)
        except OSError as e:
            raise self._job.lost("died") from e

    def hear(self, member: str, deadline: float) -> dict[str, Any]:
        try:
            return answer(self._lines.read(deadline), member)
        except LineError as e:
            raise self._job.lost(str(e)) from e

    def close(self) -> None:
        self._connection.close()


class Job:
    """One running job of two ranks; a context manager. `hello` is what rank 0 said of itself."""

    hello: dict[str, Any]

    def __init__(
        self,
        name: str,
        started: Launch,
        program: Sequence[str | Path],
        folder: Path,
        silence: float,
        variables: Mapping[str, str] | None = None,
    ) -> None:
        """Starts `program`, in whose arguments "SOCKET" stands for the socket's path. `name`: of the job, and of its
        socket in `folder`. `silence`: seconds after which it is given up. `variables` are the program's alone: given to
        mpiexec they would reach its launchers too.

        Raises WorkerError where it did not start.
        """
        self._name = name
        self._program = Path(program[0]).name
        self._silence = silence
        self._ranks: list[_Rank] = []
        self._pids: list[int] = []
        path = folder / f"{name.replace(' ', '-')}.socket"
        line = [str(path) if part == "SOCKET" else str(part) for part in program]
        if variables:
            line = ["env", *(f"{variable}={value}" for variable, value in variables.items()), *line]
        self._said = tempfile.TemporaryFile()  # noqa: SIM115, closed in close()
        with socket.socket(socket.AF_UNIX) as listener:
            try:
                listener.bind(str(path))
            except OSError as e:
                raise WorkerError(f"cannot listen at {path}: {e}; TMPDIR names another place") from e
            listener.listen(2)
            self._process = subprocess.Popen(
                [*started.line, *line],
                stdin=subprocess.DEVNULL,
                stdout=self._said,
                stderr=self._said,
                env=started.environment,
                process_group=0,
            )
            try:
                self._meet(listener)
            except BaseException:
                self._kill()
                self.close()
                raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if error is not None:  # it may be in the middle of something
            self._kill()
        self.close()

    def ask(self, **command: Any) -> dict[str, Any]:
        """Rank 0's answer. Raises RowError where it has none, WorkerError where the job is gone."""
        line = json.dumps(command).encode() + b"\n"
        for rank in self._ranks:
            rank.say(line)
        deadline = time.monotonic() + self._silence
        found: dict[str, Any] = {}
        failure: RowError | None = None
        for rank in reversed(self._ranks):  # rank 0, which has the row, comes last
            try:
                found = rank.hear("row", deadline)
            except RowError as e:
                failure = e
        if failure:
            raise failure
        return found

    def close(self) -> None:
        """Ends it, within a few seconds."""
        for rank in self._ranks:
            rank.close()
        try:
            self._process.wait(_FAREWELL_SECONDS)
        except (subprocess.TimeoutExpired, KeyboardInterrupt):
            self._kill()
        self._said.close()

    def lost(self, how: str) -> WorkerError:
        """What there is to say of a job that is given up; ends it."""
        if how == "died":  # the launcher tells how
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(_FAREWELL_SECONDS)
        self._kill()
        self._said.seek(0)
        said = self._said.read()[-800:].decode(errors="replace").strip()
        return WorkerError(f"{self._program} under {self._name} {how}" + (f": {said}" if said else ""))

    def _meet(self, listener: socket.socket) -> None:
        deadline = time.monotonic() + _START_SECONDS
        found: dict[int, tuple[_Rank, dict[str, Any]]] = {}
        while len(found) < 2:
            ready, _, _ = select.select([listener], [], [], 0.1)
            if ready:
                rank = _Rank(listener.accept()[0], self)
                self._ranks.append(rank)
                hello = rank.hear("hello", deadline)
                found[int(hello["rank"])] = (rank, hello)
                self._pids.append(int(hello["pid"]))
            elif self._process.poll() is not None:
                raise self.lost("did not start")
            elif time.monotonic() > deadline:
                raise self.lost("did not come up")
        self._ranks = [found[rank][0] for rank in (0, 1)]
        self.hello = found[0][1]

    def _kill(self) -> None:
        """Ends the launcher, which ends the ranks; and these by themselves, whatever the launcher did."""
        end_launcher(self._process, 1)
        for pid in self._pids:
            with contextlib.suppress(OSError):
                if Path(f"/proc/{pid}/comm").read_text().strip() == self._program[:_LONGEST_COMM]:
                    os.kill(pid, signal.SIGKILL)
        self._process.wait()
