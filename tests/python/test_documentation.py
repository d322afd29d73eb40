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
