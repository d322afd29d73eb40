"""The command with the real worker: it measures this machine."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from lacuna.worker import WorkerError, find_worker


def test_quick_guide_of_this_machine(tmp_path: Path) -> None:
    try:
        find_worker()
    except WorkerError as e:
        pytest.skip(str(e))
    started = time.monotonic()
    ended = subprocess.run(
        [sys.executable, "-m", "lacuna", "guide", "--quick", "--output", str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    assert time.monotonic() - started < 20
    data = json.loads((tmp_path / "guide.json").read_text())
    assert data["errors"] == []
    assert {r["method"] for r in data["rows"]} >= {"pack", "pack_pipelined", "gather_write", "multi_write", "sgrs"}
    cells = {(r["block_bytes"], r["block_count"], r["shape"]) for r in data["rows"] if r["experiment"] == "grid"}
    assert len(cells) >= 5 * 4 * 2
    assert len({r["layout"].split()[0] for r in data["rows"] if r["experiment"] == "ddtbench"}) == 16
