"""The client of `lacuna-copy-bench`, which measures copies: one JSON line each way."""

from __future__ import annotations

import json
import subprocess
import tempfile
import time
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from lacuna.worker.client import WorkerError, find_executable
from lacuna.worker.json_lines import EndError, EndlessError, LineError, Lines, SilenceError, answer


def find_bench() -> Path:
    """The executable: `LACUNA_COPY_BENCH` if set, otherwise the one installed in the package."""
    return find_executable("lacuna-copy-bench", "LACUNA_COPY_BENCH")


class CopyBench:
    """One running bench; a context manager. `hello` is what it said of itself."""

    hello: dict[str, Any]

    def __init__(self, silence: float, shim: Path | None = None, environment: dict[str, str] | None = None) -> None:
        """Starts it, with an MPI if there is a shim. `silence`: seconds after which it is given up."""
        self._silence = silence
        self._stderr = tempfile.TemporaryFile()  # noqa: SIM115, closed in close()
        line = [str(find_bench()), *(["--mpi", str(shim)] if shim else [])]
        self._process = subprocess.Popen(
            line, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._stderr, env=environment, process_group=0
        )
        assert self._process.stdout is not None
        self._lines = Lines(self._process.stdout.fileno())
        try:
            self.hello = self._read("hello")
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Ends it, within two seconds."""
        process = self._process
        if process.stdin:
            process.stdin.close()
        try:
            process.wait(2)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        if process.stdout:
            process.stdout.close()
        self._stderr.close()

    def ask(self, **command: Any) -> dict[str, Any]:
        """One row. Raises RowError where it could not be measured, WorkerError where the bench is gone."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(command).encode() + b"\n")
            self._process.stdin.flush()
        except OSError as e:
            raise self._lost("died") from e
        return self._read("row")

    def _read(self, member: str) -> dict[str, Any]:
        try:
            return answer(self._lines.read(time.monotonic() + self._silence), member)
        except SilenceError:
            raise WorkerError(f"lacuna-copy-bench was silent for {self._silence:g} s") from None
        except (EndError, EndlessError) as e:
            raise self._lost(str(e)) from None
        except LineError as e:
            raise WorkerError(f"lacuna-copy-bench {e}") from e

    def _lost(self, how: str) -> WorkerError:
        self._process.kill()
        status = self._process.wait()
        self._stderr.seek(0)
        said = self._stderr.read()[-600:].decode(errors="replace").strip()
        return WorkerError(f"lacuna-copy-bench {how} (status {status})" + (f": {said}" if said else ""))
