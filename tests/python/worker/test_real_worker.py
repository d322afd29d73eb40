"""The command with the real worker: it measures this machine."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from conftest import PATIENCE
from lacuna._core import Layout

from lacuna.bench.validation.pair_measurement import measure_pair
from lacuna.cli.options import worker_nic
from lacuna.guide.contests import contests
from lacuna.guide.pairs import Pair
from lacuna.guide.plan import Cell, grid_cell
from lacuna.guide.run_record import Guide
from lacuna.worker.client import Worker, find_worker
from lacuna.worker.process import WorkerError
from lacuna.worker.records import Failure, Row
from lacuna.worker.result import begun

FAULTY = Path(__file__).parents[3] / "build" / "release" / "bin" / "lacuna-faulty-worker"
"""With the faults that are planted; the worker that is installed has none."""


@pytest.fixture(autouse=True)
def needs_the_worker() -> None:
    try:
        find_worker()
    except WorkerError as e:
        pytest.skip(str(e))


def guide(directory: Path, *arguments: str, fault: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "lacuna", "guide", "--output", str(directory), "--timeout", f"{PATIENCE}", *arguments],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
        env={**os.environ, **({"LACUNA_WORKER": str(FAULTY), "LACUNA_TEST_FAULT": fault} if fault else {})},
    )


CELLS = [
    grid_cell(16, 4, "symmetric", "warm", required=True),
    grid_cell(256, 64, "sender_finer", "warm", required=True),
]
"""Few: on a busy machine each word between the worker's two processes waits for the scheduler."""
SLOWER = 10


@contextmanager
def faulty(fault: str) -> Iterator[Worker]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LACUNA_TEST_FAULT", fault)
        with Worker(FAULTY, "local", PATIENCE) as worker:
            assert worker.hello.fault == fault
            yield worker


def look(worker: Worker, number: int, cell: Cell) -> tuple[list[Row], list[Failure]]:
    """Of each combination three visits of some transfers, and no more: however long they take, and whoever is ahead."""
    request: dict[str, object] = {
        "id": number,
        **cell.ask(PATIENCE * 1e3),
        "max_samples": 1,
        "budget_ms": PATIENCE * 1e3,
    }
    answers = list(worker.measure(request, cell.subject))
    return [a for a in answers if isinstance(a, Row)], [a for a in answers if isinstance(a, Failure)]


@pytest.mark.gate
def test_quick_guide_of_this_machine(tmp_path: Path) -> None:
    """How much a budget is enough for depends on the machine, and on what else it does."""
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
    # No cell goes without being named.
    cells = {(r["block_bytes"], r["block_count"], r["shape"]) for r in data["rows"] if r["experiment"] == "grid"}
    assert len(cells) + sum("B × " in text for text in data["unmeasured"]) >= 5 * 4 * 2
    layouts = {r["layout"].split()[0] for r in data["rows"] if r["experiment"] == "ddtbench"}
    named = {text.split()[0] for text in data["unmeasured"] if re.match("FFT2|LAMMPS|MILC|NAS_|SPECFEM3D|WRF", text)}
    assert len(layouts | named) == 16


@pytest.mark.parametrize("method", ["umr_read", pytest.param("pack", marks=pytest.mark.gate)])
def test_a_slowed_method_is_never_chosen(method: str) -> None:
    with faulty(f"slow:{method}:{SLOWER}") as worker:
        hello = worker.hello
        result = begun(Guide, "", hello.machine, hello.nic, hello.methods)
        for number, cell in enumerate(CELLS):
            rows, failures = look(worker, number, cell)
            result.rows += rows
            assert failures == []
    found = contests(result)
    assert len(found) == len(CELLS)
    best = [c.best.method for c in found if c.best]
    assert len(best) == len(CELLS)
    assert method not in best


@pytest.mark.parametrize("fault", ["corrupt:umr_write", "corrupt:sgrs:5"])
def test_a_corrupt_method_is_found_and_named(fault: str) -> None:
    """From the first transfer on, which is verified, or from the sixth on, which the last one shows."""
    method = fault.split(":")[1]
    failures: list[Failure] = []
    with faulty(fault) as worker:
        for number, cell in enumerate(CELLS):
            rows, failed = look(worker, number, cell)
            failures += failed
            # What is far behind at its first transfers, on a busy machine by chance, has no more.
            assert all(row.censored for row in rows if row.method == method)
    assert {f.method for f in failures} == {method}
    says = r"byte \d+ of the destination \(block \d+, byte \d+ of the stream\) is 0x"
    assert all(re.search(says, failure.message) for failure in failures)


@pytest.mark.gate
def test_a_corrupt_method_fails_the_run(tmp_path: Path) -> None:
    file = tmp_path / "b.json"
    line = [sys.executable, "-m", "lacuna", "bench", "methods", "--quick", "--experiment", "F21", "--json", str(file)]
    line += ["--budget", f"{PATIENCE}", "--timeout", f"{PATIENCE}"]
    environment = {**os.environ, "LACUNA_WORKER": str(FAULTY), "LACUNA_TEST_FAULT": "corrupt:umr_send"}
    ended = subprocess.run(line, env=environment, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert ended.returncode == 1, ended.stderr
    assert "umr_send/" in ended.stderr
    assert re.search(r"byte \d+ of the destination \(block \d+, byte \d+ of the stream\) is 0x", ended.stderr)
    assert re.search(r"(B|KiB) × \d+, ", ended.stderr)  # the layout
    data = json.loads(file.read_text())
    assert {e["method"] for e in data["errors"]} == {"umr_send"}
    assert "umr_send" not in {r["method"] for r in data["rows"]}
    assert data["rows"]


def test_a_fault_that_is_none_is_refused(tmp_path: Path) -> None:
    ended = guide(tmp_path, "--quick", fault="slow:nobody:2")
    assert ended.returncode == 3
    assert "is no fault" in ended.stderr


def test_chunks_meet_receives_on_a_fast_wire() -> None:
    """A receiver that unpacks more slowly than the wire brings chunks: without credits the device tries again after a
    while, and pack_pipelined took half as long again as pack."""
    blocks = Layout.vector(632, 311, 622, Layout.bytes(1))
    pair = Pair("", Layout.bytes(blocks.size), blocks)
    with Worker(find_worker(), worker_nic("model:what-if-400g"), PATIENCE) as worker:
        rows = measure_pair(worker, pair, 1, 100.0).rows
    took = {row.method: row.latency_us for row in rows if row.notify == "none"}
    assert took["pack_pipelined"] < 0.9 * took["pack"]
