"""The command with the real worker: it measures this machine."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from lacuna._core import Layout

from lacuna import command
from lacuna.analysis import contests
from lacuna.measuring import measure_pair
from lacuna.pairs import Pair
from lacuna.record import read_guide
from lacuna.worker import Worker, WorkerError, find_worker


@pytest.fixture(autouse=True)
def needs_the_worker() -> None:
    try:
        find_worker()
    except WorkerError as e:
        pytest.skip(str(e))


def guide(directory: Path, *arguments: str, fault: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "lacuna", "guide", "--output", str(directory), *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env={**os.environ, "LACUNA_TEST_FAULT": fault},
    )


def test_quick_guide_of_this_machine(tmp_path: Path) -> None:
    ended = guide(tmp_path, "--quick")
    assert ended.returncode == 0, ended.stderr
    data = json.loads((tmp_path / "guide.json").read_text())
    assert data["errors"] == []
    methods = {r["method"] for r in data["rows"]}
    assert methods >= {
        "pack",
        "pack_pipelined",
        "gather_write",
        "multi_write",
        "sgrs",
        "by_hand_elements",
        "by_hand_memcpy",
    }
    # How many a budget is enough for depends on the machine, and on what else it does; none goes without being named.
    cells = {(r["block_bytes"], r["block_count"], r["shape"]) for r in data["rows"] if r["experiment"] == "grid"}
    assert cells
    assert len(cells) + sum("B × " in text for text in data["unmeasured"]) >= 5 * 4 * 2
    layouts = {r["layout"].split()[0] for r in data["rows"] if r["experiment"] == "ddtbench"}
    named = {text.split()[0] for text in data["unmeasured"] if re.match("FFT2|LAMMPS|MILC|NAS_|SPECFEM3D|WRF", text)}
    assert len(layouts | named) == 16


@pytest.mark.parametrize("method", ["umr_read", "pack"])
def test_a_slowed_method_is_never_chosen(tmp_path: Path, method: str) -> None:
    ended = guide(tmp_path, "--quick", fault=f"slow:{method}:100")
    assert ended.returncode == 0, ended.stderr
    assert "A fault was planted" in ended.stdout
    found = contests(read_guide(tmp_path / "guide.json"))
    assert len(found) > 10  # a machine with other work measures less in the time
    best = [c.best.method for c in found if c.best]
    assert method not in best
    assert len(best) > 10


@pytest.mark.parametrize("fault", ["corrupt:umr_write", "corrupt:sgrs:20"])
def test_a_corrupt_method_fails_the_run_and_is_named(tmp_path: Path, fault: str) -> None:
    method = fault.split(":")[1]
    ended = guide(tmp_path, "--quick", "--budget", "8", fault=fault)
    assert ended.returncode == 1
    assert f"{method}/" in ended.stderr
    assert re.search(r"byte \d+ of the destination \(block \d+, byte \d+ of the stream\) is 0x", ended.stderr)
    assert re.search(r"(B|KiB) × \d+, ", ended.stderr)  # the layout
    data = json.loads((tmp_path / "guide.json").read_text())
    assert {e["method"] for e in data["errors"]} == {method}
    wrong = {(e["layout"], e["path"], e["notify"]) for e in data["errors"]}  # each is told once, second looks or not
    assert len(wrong) == len(data["errors"])
    assert method not in {r["method"] for r in data["rows"]} or fault.count(":") == 2


def test_a_fault_that_is_none_is_refused(tmp_path: Path) -> None:
    ended = guide(tmp_path, "--quick", fault="slow:nobody:2")
    assert ended.returncode == 3
    assert "is no fault" in ended.stderr


def test_chunks_meet_receives_on_a_fast_wire() -> None:
    """A receiver that unpacks more slowly than the wire brings chunks: without credits the device tries again after a
    while, and pack_pipelined took half as long again as pack."""
    blocks = Layout.vector(632, 311, 622, Layout.bytes(1))
    pair = Pair("", Layout.bytes(blocks.size), blocks)
    with Worker(find_worker(), command.worker_nic("model:what-if-400g"), 20) as worker:
        rows = measure_pair(worker, pair, 1, 100.0).rows
    took = {row.method: row.latency_us for row in rows if row.notify == "none"}
    assert took["pack_pipelined"] < 0.9 * took["pack"]
