"""NIXL's own example, the one of docs/start/nixl.md, as a new user would run them; and the flows of those that NIXL
publishes, in programs of our own: its wheel does not have them."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest
from conftest import PATIENCE
from nixl_ready import ROOT, environment, nixl_libraries, nixl_python, skip_without

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


@pytest.mark.parametrize("nic", ["local", "ofi:tcp"])
@pytest.mark.parametrize("flow", ["basic", "expanded", "partial"])
def test_a_published_flow(flow: str, nic: str, tmp_path: Path) -> None:
    skip_without(nic)
    variables = {**environment(), "PYTHONPATH": str(ROOT / "scripts")}
    program = Path(__file__).with_name("flows.py")
    started = [
        subprocess.Popen(
            [nixl_python(), program, flow, role, tmp_path, nic],
            env=variables,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for role in ("target", "initiator")
    ]
    try:
        said = [started[1].communicate(timeout=PATIENCE)[0]]
        if started[1].returncode != 0:
            started[0].kill()  # it would wait for the other end
        said.insert(0, started[0].communicate(timeout=PATIENCE)[0])
    finally:
        for process in started:
            process.kill()
    assert [process.returncode for process in started] == [0, 0], os.linesep.join(said)
    for role, text in zip(("target", "initiator"), said, strict=True):
        assert f"{flow} {role} passed" in text
