#!/usr/bin/env python3
"""Builds the site of docs/ into build/docs/html: `make docs` calls it, with the package installed.

    scripts/docs.py

The reference is generated: of C and C++ by doxygen from include/, of Python from the installed package,
of the commands from what `lacuna ... --help` prints. A warning is an error, and so is a link or an anchor that leads
nowhere. Exits with 1 then.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shutil
import subprocess
import sys
from importlib import metadata
from pathlib import Path

from doxygen_filter import groups

ROOT = Path(__file__).resolve().parent.parent
BUILD = ROOT / "build" / "docs"
_SUBCOMMAND = re.compile(r"^  (?P<name>[a-z][\w.-]*)  ", re.MULTILINE)


def headers() -> list[Path]:
    """The public ones: C's first, in the order of the reference."""
    folder = ROOT / "include"
    return [folder / "lacuna.h", *c_headers(), *sorted(folder.rglob("*.hpp"))]


def c_headers() -> list[Path]:
    """Of each topic."""
    topics = ("status", "layout", "device", "guide", "communicator", "exchange")
    return [ROOT / "include" / "lacuna" / f"{topic}.h" for topic in topics]


def doxygen() -> None:
    """Reads the headers of C and C++ and leaves XML, which breathe turns into pages."""
    if not shutil.which("doxygen"):
        sys.exit("lacuna: doxygen is not installed (Debian: doxygen)")
    settings = (ROOT / "docs" / "Doxyfile").read_text()
    settings += f"INPUT = {' '.join(map(str, headers()))}\nOUTPUT_DIRECTORY = {BUILD / 'doxygen'}\n"
    (BUILD / "doxygen").mkdir(parents=True, exist_ok=True)
    subprocess.run(["doxygen", "-"], input=settings, text=True, cwd=ROOT, check=True)


def help_of(*words: str) -> str:
    """What the command prints, called in this process: starting one for each command takes a minute."""
    (entry,) = metadata.entry_points(group="console_scripts", name="lacuna")
    said = io.StringIO()
    sys.argv = ["lacuna", *words, "--help"]
    with contextlib.redirect_stdout(said), contextlib.suppress(SystemExit):
        entry.load()()
    return said.getvalue().rstrip()


def commands(words: tuple[str, ...] = ()) -> list[str]:
    """What a command and those below it say of themselves, as Markdown."""
    text = help_of(*words)
    title = " ".join(("lacuna", *words))
    page = [f"{'#' * min(2 + len(words), 4)} {title}", "", "```text", text, "```", ""]
    _, _, below = text.partition("\nCommands:\n")
    for name in _SUBCOMMAND.findall(below):
        page += commands((*words, name))
    return page


def write_commands(page: Path) -> None:
    head = ["# Commands", "", "What each command prints for `--help`. Times are in seconds where no unit is given.", ""]
    page.write_text("\n".join([*head, *commands()]))


def write_c(page: Path) -> None:
    """Adds a section for each group of lacuna.h, with the group's functions."""
    sections = (
        f"## {title}\n\n```{{doxygengroup}} {name}\n:members:\n:undoc-members:\n:content-only:\n```\n"
        for header in c_headers()
        for name, title in groups(header)
    )
    page.write_text("\n".join([page.read_text(), *sections]))


def main() -> None:
    source = BUILD / "source"  # a copy, since the page of commands is generated into it
    shutil.rmtree(source, ignore_errors=True)
    shutil.copytree(ROOT / "docs", source)
    doxygen()
    write_c(source / "reference" / "c.md")
    write_commands(source / "reference" / "commands.md")
    environment = {**os.environ, "LACUNA_DOXYGEN_XML": str(BUILD / "doxygen" / "xml")}
    sphinx = [sys.executable, "-m", "sphinx", "--fail-on-warning", "--keep-going", "-q", "-b", "html"]
    done = subprocess.run([*sphinx, "-d", BUILD / "doctrees", source, BUILD / "html"], env=environment, check=False)
    if done.returncode:
        sys.exit(1)
    print(f"==> {BUILD / 'html' / 'index.html'}")


if __name__ == "__main__":
    main()
