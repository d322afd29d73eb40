"""The command as tests start it: with the worker that makes up its measurements, by a made-up clock."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from conftest import PATIENCE, wait_for

ROW_KEYS = {
    "experiment",
    "nic",
    "method",
    "path",
    "notify",
    "layout",
    "block_bytes",
    "block_count",
    "payload_bytes",
    "shape",
    "cache",
    "latency_us",
    "ci_low_us",
    "ci_high_us",
    "ci_level",
    "cpu_send_us",
    "cpu_recv_us",
    "copy_send_us",
    "copy_recv_us",
    "counters",
    "samples",
    "visits",
    "behind",
    "behind_low",
    "behind_high",
    "half_us",
    "bandwidth_mbs",
    "censored",
}


MADE_UP_TIME = Path(__file__).with_name("made_up_time.py")


@dataclass
class Lacuna:
    """Runs the command with the fake worker, by a made-up clock."""

    worker: Path
    output: Path
    variables: dict[str, str] = field(default_factory=dict)
    """Of its environment."""

    def environment(self, mood: str) -> dict[str, str]:
        return {**os.environ, "LACUNA_WORKER": str(self.worker), "FAKE_WORKER": mood, **self.variables}

    def __call__(self, *arguments: str, mood: str = "") -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, str(MADE_UP_TIME), *arguments],
            env=self.environment(mood),
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )

    def guide(self, *arguments: str, mood: str = "") -> subprocess.CompletedProcess[str]:
        """Too short for a profile, if the arguments say nothing else: to fit prices takes the longest."""
        budget = () if "--budget" in arguments else ("--budget", "11")
        return self("guide", "--quick", "--output", str(self.output), *budget, *arguments, mood=mood)

    @contextmanager
    def held(self, *arguments: str) -> Iterator[subprocess.Popen[str]]:
        """The command once it has measured some cells: it waits for the next one."""
        reached = self.worker.with_name("held")
        environment = {**self.environment("held"), "FAKE_WORKER_HELD": str(reached)}
        line = [sys.executable, str(MADE_UP_TIME), *arguments]
        with subprocess.Popen(line, env=environment, stdout=subprocess.PIPE, text=True) as running:
            try:
                wait_for("the worker measures its fifth cell", reached.exists, running)
                yield running
            finally:
                running.kill()

    @property
    def data(self) -> dict[str, Any]:
        found = json.loads((self.output / "guide.json").read_text())
        assert isinstance(found, dict)
        return found
