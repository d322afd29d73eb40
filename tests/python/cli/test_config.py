"""`lacuna config`, and what a command says that lacks lacuna[guide]."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from typer.testing import CliRunner

import lacuna.cli.app
from lacuna.cli.app import app

PLACE = Path(lacuna.__path__[-1])


def test_flags_name_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    done = CliRunner().invoke(app, ["config", "--cflags", "--libs"])
    assert done.exit_code == 0
    library = PLACE / "lib"
    assert done.stdout.split() == [f"-I{PLACE / 'include'}", f"-L{library}", f"-Wl,-rpath,{library}", "-llacuna"]
    monkeypatch.setattr(lacuna, "__path__", ["/nowhere"])
    assert CliRunner().invoke(app, ["config", "--libs"]).exit_code == 3
    assert CliRunner().invoke(app, ["config"]).exit_code == 2


def test_a_program_compiles_and_finds_the_library(tmp_path: Path) -> None:
    flags = CliRunner().invoke(app, ["config", "--cflags", "--libs"]).stdout.split()
    (tmp_path / "program.c").write_text("#include <lacuna.h>\nint main(void) { return lacuna_error_message() == 0; }\n")
    subprocess.run(["cc", str(tmp_path / "program.c"), "-o", str(tmp_path / "program"), *flags], check=True)
    subprocess.run([str(tmp_path / "program")], check=True)


@pytest.mark.check
def test_a_command_that_measures_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lacuna.cli.app, "find_spec", lambda name: None if name == "scipy" else object())
    for command in ("guide", "bench", "compare", "paper"):
        done = CliRunner().invoke(app, [command])
        assert (done.exit_code, done.stdout) == (3, "")
        assert done.stderr == f"ERROR: lacuna {command} needs scipy: pip install 'lacuna[guide]'\n"
    assert CliRunner().invoke(app, ["explain", "vector(4, 1, 2, byte)"]).exit_code == 0
