"""`lacuna guide --check`: whether a profile holds on this machine, within five seconds; here on a simulated NIC."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest
from lacuna._core import nic_label, price_names, profile_file, usual_prices

from lacuna import calibrate, command, plan, run
from lacuna.record import Guide
from lacuna.worker import Worker, WorkerError, find_worker


@pytest.fixture(autouse=True)
def needs_the_worker() -> None:
    try:
        find_worker()
    except WorkerError as e:
        pytest.skip(str(e))


def check(*arguments: str) -> subprocess.CompletedProcess[str]:
    line = [sys.executable, "-m", "lacuna", "guide", "--nic", "model", "--check", *arguments]
    return subprocess.run(line, capture_output=True, text=True, timeout=60, check=False)


def file() -> Path:
    return Path(profile_file(nic_label(command.worker_nic("model"))))


@pytest.fixture
def measured() -> Path:
    """The profile that sixty pairs give."""
    with Worker(find_worker(), command.worker_nic("model"), 20) as worker:
        told = worker.hello
        cells = plan.counted(plan.simulated(plan.pair_cells(60)), told)
        result = Guide(told.version, command.created(), "", told.machine, told.nic, told.methods)
        run.measure(worker, cells, result, time.monotonic() + 60, 50, lambda *_: None)
    profile = calibrate.calibrate(result, cells)
    assert profile
    return profile.store(told.nic.name)


def test_a_profile_of_such_a_machine_holds(measured: Path, tmp_path: Path) -> None:
    before = measured.read_bytes()
    began = time.monotonic()
    ended = check("--json", str(tmp_path / "check.json"))
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert time.monotonic() - began < 10  # five on a machine that is its own
    assert f"{measured} holds here." in ended.stdout
    assert json.loads((tmp_path / "check.json").read_text())["regret_geomean"] < 1.1
    assert measured.read_bytes() == before


def test_one_of_another_kind_does_not(measured: Path) -> None:
    document = json.loads(measured.read_text())
    (peers,) = document["classes"]
    peers["seen"] = []
    peers["paths"]["wire"]["leans"] = {}
    peers["paths"]["wire"]["prices"] = dict(zip(price_names(), usual_prices("mapped", 2.7), strict=True))
    measured.write_text(json.dumps(document))
    ended = check()
    assert ended.returncode == 1, ended.stdout + ended.stderr
    assert "does not hold here; run `lacuna guide`" in ended.stdout


def test_without_a_profile_there_is_nothing_to_check() -> None:
    assert not file().exists()
    ended = check()
    assert ended.returncode == 3
    assert f"no profile at {file()}; `lacuna guide` makes one" in ended.stderr


def test_it_goes_alone() -> None:
    ended = check("--validate")
    assert ended.returncode == 2
    assert "--check" in ended.stderr
