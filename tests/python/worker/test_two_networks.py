"""NIC `ofi` on provider tcp between two network namespaces, as if on two machines; also where packets are lost."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
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


def passes(folder: str, tests: str, loss: str, nic: str = "ofi:tcp") -> str:
    """Runs these tests of a program, an end of each on either side; skips where there are no namespaces."""
    program = PROGRAMS / f"lacuna_{folder}_tests"
    if not program.exists():
        pytest.skip(f"{program.relative_to(ROOT)} is not built")
    line = [ROOT / "scripts" / "two_networks.sh", "--loss", loss, program, "--gtest_brief=1", f"--gtest_filter={tests}"]
    environment = {**os.environ, "LACUNA_TEST_NIC": nic, "LACUNA_TIER": "all", "LACUNA_SHARD": ""}
    run = subprocess.run(line, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=PATIENCE, check=False)
    if run.returncode == SKIPPED:
        pytest.skip(run.stderr.strip().splitlines()[-1])
    assert run.returncode == 0, run.stdout[-5000:] + run.stderr[-5000:]
    assert run.stdout.count("[  PASSED  ]") == 2, run.stdout
    assert "[  PASSED  ] 0 tests" not in run.stdout, run.stdout
    return run.stdout


def test_the_seam() -> None:
    passes("nic", ON_WIRE, "0")


def dropped(said: str) -> int:
    """Packets, by both ends."""
    return sum(int(count) for count in re.findall(r"dropped (\d+)", said))


def test_the_seam_where_packets_are_lost() -> None:
    said = passes("nic", ON_WIRE, "1")
    assert dropped(said) > 0, said


def test_every_method() -> None:
    """An end that has what it waited for polls no more: the provider may owe the other one nothing then."""
    passes("method", METHODS, "0")


@pytest.mark.all
def test_every_method_where_packets_are_lost() -> None:
    said = passes("method", METHODS, "1")
    assert dropped(said) > 0, said


def between(first: str, second: str, *, limit: float = PATIENCE) -> str:
    """What two shell commands print, one on either side."""
    line = [ROOT / "scripts" / "two_networks.sh", "bash", "-c", first, "--", "bash", "-c", second]
    environment = {**os.environ, "LACUNA_SECRET": "of the two networks"}
    run = subprocess.run(line, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=limit, check=False)
    if run.returncode == SKIPPED:
        pytest.skip(run.stderr.strip().splitlines()[-1])
    assert run.returncode == 0, run.stdout[-5000:] + run.stderr[-5000:]
    return run.stdout


@pytest.mark.all
@pytest.mark.parametrize("provider", ["sockets", "tcp;ofi_rxm"])
def test_the_seam_of_other_providers(provider: str) -> None:
    passes("nic", "Nic/Messages*TwoProcesses/wire:Nic/OneSided*TwoProcesses/wire", "0", f"ofi:{provider}")


def test_the_guide_measures_the_other_machine(tmp_path: Path) -> None:
    guide = f"{sys.executable} -m lacuna guide --nic ofi:tcp"
    own = f"export XDG_CONFIG_HOME={tmp_path}; exec "
    there = f"{own}{guide} --listen 10.77.0.1"
    here = f"{own}{guide} 10.77.0.1 --quick --budget 11 --output {tmp_path}/results"
    between(there, here)
    assert json.loads((tmp_path / "results" / "guide.json").read_text(encoding="utf-8"))["rows"]


PAGES = """
import os, numpy as np, lacuna
rank = int(os.environ["LACUNA_TEST_RANK"])
rows, heads, tokens = 64, 8, 512  # bytes of a head, heads, tokens
pages = (16, 64)
with lacuna.connect("10.77.0.1:7477", 2, rank=rank, secret=os.environ["LACUNA_SECRET"], nic="ofi:tcp") as ranks:
    values = np.arange(tokens * heads * rows, dtype=np.uint32).astype(np.uint8).reshape(tokens, heads, rows)
    page = pages[rank]
    count = tokens // page
    memory = np.zeros(2 * count * page * heads * rows, dtype=np.uint8)
    table = [(3 * i + 1) % (2 * count) for i in range(count)]
    block = heads * rows * page
    layout = lacuna.Layout.paged(block, table)
    if rank == 0:  # hand-over, page by page
        for i, number in enumerate(table):
            memory[number * block : (number + 1) * block] = values[i * page : (i + 1) * page].reshape(-1)
        ranks.send(memory, 1, layout=layout)
        ranks.send(values[:, :4], 1)  # resharding: this rank's tokens, the half of the heads that the other one keeps
    else:
        ranks.recv(memory, 0, layout=layout)
        for i, number in enumerate(table):
            came = memory[number * block : (number + 1) * block]
            assert (came == values[i * page : (i + 1) * page].reshape(-1)).all()
        assert memory.sum(dtype=np.int64) == values.sum(dtype=np.int64)  # nothing beside its pages
        kept = np.zeros((4, tokens, rows), dtype=np.uint8)
        ranks.recv(kept.transpose(1, 0, 2), 0)
        assert (kept == values[:, :4].transpose(1, 0, 2)).all()
        print("all pages, all heads")
"""


def test_a_kv_cache_is_handed_over_and_resharded(tmp_path: Path) -> None:
    program = tmp_path / "pages.py"
    program.write_text(PAGES, encoding="utf-8")
    line = f"exec {sys.executable} {program}"
    assert "all pages, all heads" in between(line, line)


@pytest.mark.parametrize(
    ("program", "fault"), [("lacuna-network-bench", ""), ("lacuna-faulty-network-bench", "gap:lacuna")]
)
def test_the_bench_verifies_what_it_measures(program: str, fault: str) -> None:
    bench = PROGRAMS / program
    if not bench.exists():
        pytest.skip(f"{program} is not built")
    line = f"LACUNA_TEST_FAULT={fault} exec {bench} ofi:tcp 10.77.0.1:7481 {{}} ddtbench 32768 32768 5"
    said = [json.loads(line) for line in between(line.format(0), line.format(1)).splitlines()]
    rows = [one["row"] for one in said if "row" in one]
    errors = [one["error"] for one in said if "error" in one]
    assert said[0]["hello"]["nic"] == "ofi:tcp"
    if fault:
        assert not rows
        assert "lacuna moved wrong bytes" in errors[0]
    else:
        assert not errors
        assert {contender["name"] for contender in rows[0]["contenders"]} >= {"lacuna", "hand_elements"}
