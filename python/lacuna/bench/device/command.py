"""Runs `lacuna bench device`: the bench on the GPU, then torch and CuPy on the same rows."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

import typer
from rich.console import Console

from lacuna import clock
from lacuna.bench.device.rows import DeviceRun
from lacuna.bench.progress import Meter
from lacuna.worker.process import LineProcess, WorkerError, find_executable
from lacuna.worker.protocol import SchemaError, parsed

_ARRAYS = Path(__file__).with_name("array_libraries.py")
_PATIENCE = 3600.0
"""Seconds for a line: the bench itself keeps the budget."""


@dataclass(frozen=True)
class DeviceRace:
    """What is asked for, and where it goes."""

    result: DeviceRun
    device: str
    payload: int
    groups: str
    warm: bool
    budget: float
    lines: list[bytes] = field(default_factory=list)
    """What the bench said, for the array libraries."""

    def __call__(self, console: Console) -> None:
        options = ["--device", self.device, "--payload", str(self.payload), "--seconds", str(max(1, int(self.budget)))]
        options += (["--groups", self.groups] if self.groups else []) + (["--warm"] if self.warm else [])
        self._measure(console, options)
        self._array_libraries(console)

    def _measure(self, console: Console, options: list[str]) -> None:
        executable = find_executable("lacuna-device-bench", "LACUNA_DEVICE_BENCH")
        deadline = clock.now() + self.budget
        with LineProcess("lacuna-device-bench", [executable, *options]) as bench:
            first = bench.line_or_end(time.monotonic() + _PATIENCE)
            if first is None:
                return
            self.lines.append(first)
            planned, done = bench.parse(first, self.result.take), 0
            with Meter(console, planned, deadline - clock.now(), "rows") as meter:
                while (line := bench.line_or_end(time.monotonic() + _PATIENCE)) is not None:
                    self.lines.append(line)
                    done += bench.parse(line, self.result.take)
                    meter.advance(done, max(done, planned), deadline - clock.now())

    def _array_libraries(self, console: Console) -> None:
        if not self.device.startswith("cuda:") or importlib.util.find_spec("torch") is None:
            console.print("torch and CuPy: not compared with (they are not installed, or this is no GPU)")
            return
        with console.status("torch and CuPy on the same rows"), TemporaryDirectory() as folder:
            said = Path(folder) / "bench.jsonl"
            said.write_bytes(b"".join(line + b"\n" for line in self.lines))
            done = subprocess.run([sys.executable, _ARRAYS, said], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise WorkerError(f"torch and CuPy could not be measured: {done.stderr.strip()[-400:]}")
        self.result.add_arrays(done.stdout.splitlines())


def take_folder(result: DeviceRun, folder: Path) -> None:
    """What scripts/gpu_check.sh left in a folder. Raises typer.BadParameter."""
    try:
        for line in (folder / "bench.jsonl").read_text(encoding="utf-8").splitlines():
            result.take(parsed(line))
        with suppress(FileNotFoundError):
            result.add_arrays((folder / "arrays.jsonl").read_text(encoding="utf-8").splitlines())
    except (OSError, SchemaError, KeyError) as e:
        raise typer.BadParameter(f"{folder}: {e}", param_hint="--from") from e
