"""NIC `ofi` on provider tcp between two network namespaces, as if on two machines; also where packets are lost."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest
from conftest import PATIENCE

ROOT = Path(__file__).resolve().parents[3]
PROGRAMS = ROOT / "build" / "release" / "bin"
SKIPPED = 77
"""The status of scripts/two_networks.sh where this machine cannot do what it is asked for."""

ON_WIRE = "*wire*TwoProcesses*:*TwoProcesses*wire*"
METHODS = "*EveryMethod*TwoProcesses*wire_Default:*DdtBenchMoves*Irregular*wire:*SgrsWithDifferentLists*wire"

pytestmark = [pytest.mark.gate, pytest.mark.xdist_group("two networks")]


def passes(folder: str, tests: str, loss: str) -> str:
    """Runs these tests of a program, an end of each on either side; skips where there are no namespaces."""
    program = PROGRAMS / f"lacuna_{folder}_tests"
    if not program.exists():
        pytest.skip(f"{program.relative_to(ROOT)} is not built")
    line = [ROOT / "scripts" / "two_networks.sh", "--loss", loss, program, "--gtest_brief=1", f"--gtest_filter={tests}"]
    environment = {**os.environ, "LACUNA_TEST_NIC": "ofi:tcp", "LACUNA_TIER": "all", "LACUNA_SHARD": ""}
    run = subprocess.run(line, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=PATIENCE, check=False)
    if run.returncode == SKIPPED:
        pytest.skip(run.stderr.strip().splitlines()[-1])
    assert run.returncode == 0, run.stdout[-5000:] + run.stderr[-5000:]
    assert run.stdout.count("[  PASSED  ]") == 2, run.stdout
    assert "[  PASSED  ] 0 tests" not in run.stdout, run.stdout
    return run.stdout


def test_the_seam() -> None:
    passes("nic", ON_WIRE, "0")


def test_the_seam_where_packets_are_lost() -> None:
    said = passes("nic", ON_WIRE, "1")
    dropped = [int(count) for count in re.findall(r"dropped (\d+)", said)]
    assert sum(dropped) > 0, said


def test_every_method() -> None:
    """An end that has what it waited for polls no more: the provider may owe the other one nothing then."""
    passes("method", METHODS, "0")


@pytest.mark.all
def test_every_method_where_packets_are_lost() -> None:
    passes("method", METHODS, "1")
