"""What the `lacuna` command loads before it does something, and what it says of its commands."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from lacuna.cli.app import COMMANDS, app, load

PRINT_MODULES = """
import sys
from lacuna.cli.app import main
sys.argv = ["lacuna", *sys.argv[1:]]
try:
    main()
finally:
    print(*sys.modules, file=sys.stderr)
"""


def loaded_by(*words: str) -> set[str]:
    line = [sys.executable, "-c", PRINT_MODULES, *words]
    return set(subprocess.run(line, capture_output=True, text=True, check=True).stderr.split())


@pytest.mark.check
@pytest.mark.parametrize("option", ["--help", "--version"])
def test_the_list_of_commands_loads_none_of_them(option: str) -> None:
    ours = {name for name in loaded_by(option) if name.startswith("lacuna.")}
    assert {name for name in ours if name.startswith("lacuna.cli.")} == {"lacuna.cli.app"}
    assert not {name for name in ours if name.split(".")[1] in ("bench", "guide", "mpi", "paper", "report", "worker")}


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_loads_no_other(name: str) -> None:
    mine = COMMANDS[name].place.partition(":")[0]
    others = {f"lacuna.cli.{command.place.partition(':')[0]}" for command in COMMANDS.values()} - {f"lacuna.cli.{mine}"}
    assert not loaded_by(name, "--help") & others


@pytest.mark.check
@pytest.mark.parametrize("name", COMMANDS)
def test_the_list_says_what_the_command_says(name: str) -> None:
    assert load(name).help.lstrip().startswith(COMMANDS[name].summary)


def pages_named(*words: str) -> set[str]:
    """By the help of a command and of those below it."""
    said = CliRunner().invoke(app, [*words, "--help"]).stdout
    named = set(re.findall(r"docs/[\w/-]+\.md", re.sub(r"\s+", " ", said)))
    _, _, below = said.partition("\nCommands:\n")
    return named.union(*(pages_named(*words, name) for name in re.findall(r"^  (\w+)  ", below, re.MULTILINE)))


def test_each_page_that_help_names_comes_with_the_package() -> None:
    folder = Path(CliRunner().invoke(app, ["config", "--docs-dir"]).stdout.strip())
    named = pages_named()
    assert "docs/start/mpi.md" in named
    assert [page for page in named if not (folder.parent / page).is_file()] == []


@pytest.mark.check
def test_a_misspelt_command_is_told_which_may_be_meant() -> None:
    done = CliRunner().invoke(app, ["gide"])
    assert done.exit_code == 2
    assert "No such command 'gide'. Did you mean 'guide'?" in done.stderr
