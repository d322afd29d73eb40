"""lacuna.reshard between processes, by NIXL's transfers."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import PATIENCE
from nixl_ready import ROOT, environment, nixl_python, skip_without

import lacuna

PEER = Path(__file__).with_name("reshard_peer.py")


@pytest.mark.parametrize(("nic", "ranks"), [("local", 2), ("local", 4), ("ofi:tcp", 2)])
def test_random_meshes_between_processes(nic: str, ranks: int, tmp_path: Path) -> None:
    python = nixl_python()
    version = subprocess.run([python, "-c", "import sys; print(sys.version_info[:2])"], capture_output=True, text=True)
    if version.stdout.strip() != str(sys.version_info[:2]):
        pytest.skip(f"NIXL's Python is {version.stdout.strip()}, this one {sys.version_info[:2]}: no package for both")
    skip_without(nic)
    places = [Path(next(iter(lacuna.__path__))).parent, ROOT / "tests" / "python", ROOT / "scripts"]
    variables = {**environment(), "PYTHONPATH": os.pathsep.join(map(str, places))}
    started = [
        subprocess.Popen(
            [python, PEER, str(rank), str(ranks), tmp_path, nic],
            env=variables,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for rank in range(ranks)
    ]
    said = []
    for process in started:
        try:
            said.append(process.communicate(timeout=PATIENCE)[0])
        except subprocess.TimeoutExpired:
            process.kill()
            said.append(process.communicate()[0])
    assert [process.returncode for process in started] == [0] * ranks, os.linesep.join(said)
    assert all((tmp_path / f"{rank}.done").exists() for rank in range(ranks))
