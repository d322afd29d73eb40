"""Faults of libfabric that NIC `ofi` works around: whether the installed one still has them.

Neither answer is a failure: a fault that is gone from the oldest libfabric that Lacuna takes needs no way around.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from conftest import PATIENCE

pytestmark = pytest.mark.all

FAULTS = Path(__file__).resolve().parents[2] / "support" / "ofi" / "faults"
SAID = {0: "is sound", 1: "has the fault"}
CANNOT = 77


@pytest.mark.parametrize("fault", sorted(source.stem for source in FAULTS.glob("*.c")))
def test_whether_it_is_still_there(fault: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler here")
    program = tmp_path / fault
    line = [compiler, "-Wall", "-Wextra", "-Werror", FAULTS / f"{fault}.c", "-o", program, "-lfabric"]
    built = subprocess.run(line, capture_output=True, text=True, check=False)
    if built.returncode != 0 and ("rdma/fabric.h" in built.stderr or "-lfabric" in built.stderr):
        pytest.skip("no libfabric to compile with; Debian's package is libfabric-dev")
    assert built.returncode == 0, built.stderr
    run = subprocess.run([program], capture_output=True, text=True, timeout=PATIENCE, check=False, cwd=tmp_path)
    if run.returncode == CANNOT:
        pytest.skip(f"{fault}: {run.stderr.strip()}")
    assert run.returncode in SAID, f"{run.returncode}: {run.stderr}"
    with capsys.disabled():
        print(f"\nlibfabric {SAID[run.returncode]}: {fault}")
