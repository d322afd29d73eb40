"""`lacuna guide --check`: whether a profile holds on this machine, within five seconds; here on a simulated NIC, and
by a made-up clock."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import PATIENCE
from lacuna._core import nic_label, price_names, profile_file, usual_prices
from made_up_command import MADE_UP_TIME

from lacuna import clock
from lacuna.cli.options import worker_nic
from lacuna.guide import calibration, campaign, plan
from lacuna.guide.calibration import Profile
from lacuna.guide.run_record import Guide
from lacuna.worker.client import Worker, find_worker
from lacuna.worker.process import WorkerError
from lacuna.worker.result import begun

PAIR_MS = 150.0
"""What a pair takes by the made-up clock."""


@pytest.fixture(autouse=True, scope="module")
def needs_the_worker() -> None:
    try:
        find_worker()
    except WorkerError as e:
        pytest.skip(str(e))


def check(*arguments: str) -> subprocess.CompletedProcess[str]:
    line = [sys.executable, str(MADE_UP_TIME), "guide", "--nic", "model", "--check", *arguments]
    environment = {**os.environ, "MADE_UP_MS": f"{PAIR_MS:g}"}
    return subprocess.run(line, env=environment, capture_output=True, text=True, timeout=PATIENCE, check=False)


def file() -> Path:
    return Path(profile_file(nic_label(worker_nic("model"))))


@pytest.fixture(scope="module")
def profile() -> tuple[str, Profile]:
    """That sixty pairs give, and the name of its NIC."""
    with pytest.MonkeyPatch.context() as patch, Worker(find_worker(), worker_nic("model"), PATIENCE) as worker:
        patch.setattr(clock, "now", lambda: 0.0)
        told = worker.hello
        cells = plan.counted(plan.simulated(plan.pair_cells(60)), told)
        result = begun(Guide, "", told.machine, told.nic, told.methods)
        campaign.measure(worker, cells, result, PATIENCE, 50, lambda *_: None)
    made = calibration.calibrate(result, cells)
    assert made
    return told.nic.name, made


@pytest.fixture
def measured(profile: tuple[str, Profile]) -> Path:
    nic, made = profile
    return made.store(nic)


@pytest.mark.gate
def test_a_profile_of_such_a_machine_holds(measured: Path, tmp_path: Path) -> None:
    before = measured.read_bytes()
    ended = check("--json", str(tmp_path / "check.json"))
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert f"{measured} holds here." in ended.stdout
    found = json.loads((tmp_path / "check.json").read_text())
    assert found["regret_geomean"] < 1.1
    assert 3 < len(found["pairs"]) * PAIR_MS / 1e3 <= 5  # it uses its five seconds, and keeps them
    assert measured.read_bytes() == before


@pytest.mark.gate
def test_one_of_another_kind_does_not(measured: Path) -> None:
    document = json.loads(measured.read_text())
    (peers,) = document["classes"]
    peers["seen"] = []
    peers["paths"]["wire"]["biases"] = {}
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
