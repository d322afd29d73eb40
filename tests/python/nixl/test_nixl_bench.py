"""scripts/nixl_bench.py measures the plug-in, and verifies what arrived."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest
from conftest import PATIENCE
from nixl_ready import ROOT, nixl_python, plugin

TIMES = ("prepare_us", "post_us", "complete_us")


@pytest.mark.gate
def test_it_has_a_verified_row_of_each_backend(tmp_path: Path) -> None:
    file = tmp_path / "rows.json"
    command = [
        nixl_python(),
        ROOT / "scripts" / "nixl_bench.py",
        "--quick",
        "--only",
        "LACUNA",
        "--most",
        "100",
        "--block",
        "64",
    ]
    variables = {**os.environ, "LACUNA_PROFILE": "/nonexistent/profile"}
    ended = subprocess.run(
        [*command, "--json", file, "--plugins", plugin().parent],
        env=variables,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    said = json.loads(file.read_text())
    assert said["schema"] == 1
    rows = said["rows"]
    assert len(rows) == 2 * 2 * 2 * 2  # backends, shapes, counts, operations
    assert all(row["verified"] for row in rows)
    assert all(row[name] > 0 for row in rows for name in TIMES)
    assert {row["backend"] for row in rows} == {"LACUNA local", "LACUNA ofi:tcp"}
