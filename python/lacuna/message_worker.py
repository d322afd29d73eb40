"""The client of `lacuna-message-bench`: two processes that an MPI's mpiexec starts, one JSON line each way with each.

Nothing here is trusted: a job that does not start, dies, sends garbage or falls silent ends in a `WorkerError`, and no
process of it stays behind.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import select
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from lacuna.copies_worker import RowError
from lacuna.launch import launch
from lacuna.peers import Peer
from lacuna.worker import WorkerError, find_executable

_LONGEST_LINE = 4 << 20
_START_SECONDS = 60.0
_FAREWELL_SECONDS = 5.0
_NAME = "lacuna-message-bench"
_LONGEST_COMM = 15
"""Characters of its name that the kernel keeps of a process."""


def find_bench() -> Path:
    """The executable: `LACUNA_MESSAGE_BENCH` if set, otherwise the one installed in the package."""
    return find_executable(_NAME, "LACUNA_MESSAGE_BENCH")


class _Rank:
    """One rank's end of the conversation."""

    def __init__(self, connection: socket.socket, job: MessageBench) -> None:
        self._connection = connection
        self._job = job
        self._lines = b""

    def say(self, line: bytes) -> None:
        try:
            self._connection.sendall(line)
        except OSError as e:
            raise self._job.lost("died") from e

    def hear(self, member: str, deadline: float) -> dict[str, Any]:
        line = self._line(deadline)
        try:
            answer = json.loads(line)
        except ValueError as e:
            raise self._job.lost(f"sent what is no JSON, {line[:80]!r},") from e
        if isinstance(answer, dict) and isinstance(answer.get("error"), str):
            raise RowError(answer["error"])
        if not isinstance(answer, dict) or not isinstance(answer.get(member), dict):
            raise self._job.lost(f"sent no {member} but {line[:80]!r}")
        found: dict[str, Any] = answer[member]
        return found

    def _line(self, deadline: float) -> bytes:
        while b"\n" not in self._lines:
            if len(self._lines) > _LONGEST_LINE:
                raise self._job.lost("sent an endless line")
            ready, _, _ = select.select([self._connection], [], [], max(0.0, deadline - time.monotonic()))
            if not ready:
                raise self._job.lost("fell silent")
            try:
                chunk = self._connection.recv(1 << 16)
            except OSError:
                chunk = b""
            if not chunk:
                raise self._job.lost("died")
            self._lines += chunk
        line, _, self._lines = self._lines.partition(b"\n")
        return line

    def close(self) -> None:
        self._connection.close()


class MessageBench:
    """One running job of two ranks; a context manager. `hello` is what rank 0 said of itself."""

    hello: dict[str, Any]
    transport: str

    def __init__(self, peer: Peer, folder: Path, silence: float) -> None:
        """Compiles the shim into `folder` and starts the job. `silence`: seconds after which it is given up.

        Raises PeerError where this MPI cannot be used, and WorkerError where the job did not start.
        """
        self._peer = peer
        self._silence = silence
        self._ranks: list[_Rank] = []
        self._pids: list[int] = []
        bench = find_bench()
        started = launch(peer)
        self.transport = started.transport
        shim = peer.shim(folder)
        path = folder / f"{peer.name}.socket"
        self._said = tempfile.TemporaryFile()  # noqa: SIM115, closed in close()
        with socket.socket(socket.AF_UNIX) as listener:
            try:
                listener.bind(str(path))
            except OSError as e:
                raise WorkerError(f"cannot listen at {path}: {e}; TMPDIR names another place") from e
            listener.listen(2)
            self._process = subprocess.Popen(
                [*started.line, str(bench), str(shim), str(path), f"bench-{secrets.token_hex(8)}"],
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
        """One row. Raises RowError where it could not be measured, WorkerError where the job is gone."""
        line = json.dumps(command).encode() + b"\n"
        for rank in self._ranks:
            rank.say(line)
        deadline = time.monotonic() + self._silence
        answer: dict[str, Any] = {}
        failure: RowError | None = None
        for rank in reversed(self._ranks):  # rank 0, which has the row, comes last
            try:
                answer = rank.hear("row", deadline)
            except RowError as e:
                failure = e
        if failure:
            raise failure
        return answer

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
        return WorkerError(f"{_NAME} under {self._peer.name} {how}" + (f": {said}" if said else ""))

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
        for ending in (signal.SIGTERM, signal.SIGKILL):
            if self._process.poll() is None:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(self._process.pid, ending)
                with contextlib.suppress(subprocess.TimeoutExpired):
                    self._process.wait(1)
        for pid in self._pids:
            with contextlib.suppress(OSError):
                if Path(f"/proc/{pid}/comm").read_text().strip() == _NAME[:_LONGEST_COMM]:
                    os.kill(pid, signal.SIGKILL)
        self._process.wait()
