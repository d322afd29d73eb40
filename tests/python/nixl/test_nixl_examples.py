"""NIXL's own example, and the one of docs/start/nixl.md, as a new user would run them."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

from conftest import PATIENCE
from nixl_ready import environment, nixl_libraries, nixl_python

PAGE = Path(__file__).resolve().parents[3] / "docs" / "start" / "nixl.md"


def test_the_example_that_nixl_brings() -> None:
    """Two agents in one process; it takes the plug-in's name."""
    folder = nixl_libraries()
    example = folder.with_name("nixl_cu12.scripts") / "nixl_example"
    libraries = [folder, folder.with_name(".nixl_cu12.mesonpy.libs")]
    loader = "/lib64/ld-linux-x86-64.so.2"  # pip installs the program without the right to run it
    ended = subprocess.run(
        [loader, "--library-path", ":".join(map(str, libraries)), example, "LACUNA"],
        env=environment(),
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "Transfer verified\nTest done" in ended.stdout


def test_the_page_prints_what_it_says(tmp_path: Path) -> None:
    text = PAGE.read_text()
    programs = re.findall(r"```python\n(.*?)```", text, re.S)
    (said,) = re.findall(r"\$ python target\.py & python initiator\.py\n((?:    .*\n)+)", text)
    for name, program in zip(("target.py", "initiator.py"), programs, strict=True):
        (tmp_path / name).write_text(program)
    started = [
        subprocess.Popen([nixl_python(), name], cwd=tmp_path, env=environment(), stdout=subprocess.PIPE, text=True)
        for name in ("target.py", "initiator.py")
    ]
    printed = [process.communicate(timeout=PATIENCE)[0] for process in started]
    assert [process.returncode for process in started] == [0, 0]
    expected = [line.removeprefix("    ") for line in said.splitlines()]
    lines = [line for text in printed for line in text.splitlines() if "NIXL" not in line]
    assert sorted(lines) == sorted(expected), os.linesep.join(printed)
