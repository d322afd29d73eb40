"""The documentation's text, by scripts/check_docs.py; and what the README's quickstart of Python prints."""

from __future__ import annotations

import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PATIENCE = 120
"""Seconds."""


@pytest.mark.check
def test_links_lengths_and_names_are_right() -> None:
    line = [sys.executable, ROOT / "scripts" / "check_docs.py"]
    ended = subprocess.run(line, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert (ended.returncode, ended.stdout) == (0, "")


@pytest.mark.check
def test_the_guide_to_copying_runs_as_it_stands() -> None:
    page = (ROOT / "docs" / "guide" / "copying.md").read_text()
    program = "".join(re.findall(r"```python\n(.*?)```", page, re.DOTALL))
    checked = """
assert np.array_equal(by_head[::-1], cache.transpose(1, 0, 2, 3))
assert np.shares_memory(positions, arrays) and len(charges) == len(atoms)
assert np.array_equal(taken, table[rows])
assert triangle == matrix[np.tril_indices(300)].tobytes()
assert np.array_equal(planes, view)
"""
    filled = program.replace("np.zeros(", "made(") + checked
    made = """
def made(shape, dtype="f8"):
    array = np.zeros(shape, dtype)
    array.view("u1").reshape(-1)[:] = np.arange(array.nbytes) % 59
    return array
"""
    line = [sys.executable, "-c", f"import numpy as np{made}{filled}"]
    ended = subprocess.run(line, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert re.fullmatch(r"NumPy: [\d.]+ GB/s\nLacuna: [\d.]+ GB/s\n", ended.stdout)


@pytest.mark.parametrize(("page", "count", "prints"), [("resharding", 4, ""), ("kv-cache", 2, "True\n")])
def test_a_guide_of_several_ranks_runs_as_it_stands(page: str, count: int, prints: str, tmp_path: Path) -> None:
    text = (ROOT / "docs" / "guide" / f"{page}.md").read_text()
    found = re.search(r"```python\n(.*?)```", text, re.DOTALL)
    assert found
    program = tmp_path / "guide.py"
    program.write_text(found[1].replace('"job"', repr(f"job-{tmp_path}")))
    ranks = [subprocess.Popen([sys.executable, program], stdout=subprocess.PIPE, text=True) for _ in range(count)]
    said = [rank.communicate(timeout=PATIENCE)[0] for rank in ranks]
    assert ([rank.returncode for rank in ranks], "".join(said)) == ([0] * count, prints)


def test_the_readme_prints_what_it_says(tmp_path: Path) -> None:
    readme = (ROOT / "README.md").read_text()
    found = re.search(
        r"```python\n(?P<program>(?:.*\n)*?)```\n\n    \$ python pair\.py.*\n(?P<output>(?:    .*\n)+)", readme
    )
    assert found
    program = tmp_path / "pair.py"
    # A name of this test's own: another run on this machine may have the README's.
    program.write_text(found["program"].replace('"demo"', repr(f"demo-{tmp_path}")))
    ranks = [subprocess.Popen([sys.executable, program], stdout=subprocess.PIPE, text=True) for _ in range(2)]
    said = [rank.communicate(timeout=PATIENCE)[0] for rank in ranks]
    assert [rank.returncode for rank in ranks] == [0, 0]
    assert "".join(said) == textwrap.dedent(found["output"])
