"""The program of docs/guide/arrays.md with torch, as a new user would run it: two processes, by hand."""

from __future__ import annotations

import os
import re
import secrets
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import PATIENCE

PAGE = Path(__file__).resolve().parents[3] / "docs" / "guide" / "arrays.md"


def test_the_page_prints_what_it_says(tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="torch is not installed")
    text = PAGE.read_text()
    (program,) = [block for block in re.findall(r"```python\n(.*?)```", text, re.S) if "init_process_group" in block]
    (said,) = re.findall(r"\$ python tensors\.py 0 & python tensors\.py 1\n    (.*)\n", text)
    name = f"page-{secrets.token_hex(8)}"  # another test may have "job"
    (tmp_path / "tensors.py").write_text(program.replace('"job"', f'"{name}"'))
    started = [
        subprocess.Popen([sys.executable, "tensors.py", rank], cwd=tmp_path, stdout=subprocess.PIPE, text=True)
        for rank in ("0", "1")
    ]
    try:
        printed = [process.communicate(timeout=PATIENCE)[0] for process in started]
    finally:
        for process in started:
            process.kill()
    assert [process.returncode for process in started] == [0, 0], os.linesep.join(printed)
    assert printed == ["", said + "\n"]
