"""`scripts/planted.py`: its bugs can be planted, and what finds them is understood."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def planted() -> ModuleType:
    spec = importlib.util.spec_from_file_location("planted", ROOT / "scripts" / "planted.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["planted"] = module
    spec.loader.exec_module(module)
    return module


def test_the_page_says_which_seed_finds_each(planted: ModuleType) -> None:
    page = (ROOT / "docs" / "design" / "simulator.md").read_text()
    rows = re.findall(r"^\| `(\w+)` \| (\d+) \|", page, re.MULTILINE)
    assert [name for name, _ in rows] == [bug.name for bug in planted.BUGS]
    assert all(int(seed) <= 1000 for _, seed in rows)


def test_each_bug_can_be_planted(planted: ModuleType, tmp_path: Path) -> None:
    """The library says what they change, once. Who changes it there changes it in the script."""
    assert len({bug.name for bug in planted.BUGS}) == len(planted.BUGS) >= 10
    for bug in planted.BUGS:
        there = tmp_path / bug.file
        there.parent.mkdir(parents=True, exist_ok=True)
        there.write_text((ROOT / bug.file).read_text())
        planted.plant(bug, tmp_path)
        assert there.read_text() != (ROOT / bug.file).read_text()
        with pytest.raises(planted.PlantError, match=f"{bug.name}: .* 0 times, not once"):
            planted.plant(bug, tmp_path)


@pytest.mark.parametrize(
    ("said", "seed", "how"),
    [
        ("seed 17 of 0a1b-dirty fails:\\n  rank 1: wrong bytes\\nseed 18 of 0a1b fails:", 17, "rank 1: wrong bytes"),
        ("seed 3 of no commit ends its process: Segmentation fault", 3, "Segmentation fault"),
        ("1000 seeds, 5 messages, 0 bad seeds", None, ""),
    ],
)
def test_the_first_seed_that_fails(planted: ModuleType, tmp_path: Path, said: str, seed: int | None, how: str) -> None:
    program = tmp_path / "lacuna_simulate"
    program.write_text(f"#!/bin/sh\nprintf '{said}\\n'\n" + ("exec sleep 600\n" if seed is not None else ""))
    program.chmod(0o755)
    found = planted.look(program, planted.BUGS[0], 1000, 1)
    assert (found.seed, found.how) == (seed, how)
