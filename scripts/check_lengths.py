#!/usr/bin/env python3
"""Checks lengths: of files, of functions (C, C++, Fortran, Python), and of lines that hold a comment.

    scripts/check_lengths.py [--root DIR]

Prints every finding as `file:line: what` and exits with 1 if there is one. Lines of code are clang-format's and ruff's;
scripts/check_docs.py looks at pages.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import lizard
from ladder import strip_comments

FOLDERS = ("cmake", "examples", "include", "lacuna", "python", "scripts", "tests", "tools")
C_FAMILY = {".c", ".h", ".cpp", ".hpp", ".cu"}
FORTRAN = {".F90", ".inc"}
HASHED = {".cmake", ".sh", ".txt"}
"""Whose comments begin with a #."""
MOST_LINES, MOST_IN_A_FUNCTION, WIDTH = 450, 60, 120
_PARAMETER = re.compile(r"/\*\w+\*/")
"""The name of a parameter that is not used: a part of the code's line."""


def sources(root: Path) -> Iterator[Path]:
    for folder in FOLDERS:
        files = (root / folder).rglob("*")
        yield from sorted(f for f in files if f.suffix in {".py", *C_FAMILY, *FORTRAN, *HASHED} and f.is_file())


def long_functions(file: Path, text: str) -> Iterator[str]:
    if file.suffix in HASHED:
        return
    suffix = {".inc": ".f90", ".F90": ".f90", ".cu": ".cpp"}.get(file.suffix, file.suffix)  # by which lizard knows
    for function in lizard.analyze_file.analyze_source_code(f"it{suffix}", text).function_list:
        if function.length > MOST_IN_A_FUNCTION:
            yield f"{function.start_line}: {function.name} has {function.length} lines; {MOST_IN_A_FUNCTION} at most"


def without_comments(file: Path, lines: list[str]) -> Iterator[str]:
    if file.suffix in C_FAMILY:
        yield from (text for _, text in strip_comments(lines))
    else:
        mark = r"(^|\s)!(?!\$).*" if file.suffix in FORTRAN else r"(^|\s)#.*"
        yield from (re.sub(mark, "", line) for line in lines)


def long_comments(file: Path, text: str) -> Iterator[str]:
    lines = text.splitlines()
    for number, (line, code) in enumerate(zip(lines, without_comments(file, lines), strict=True), 1):
        if len(line) > WIDTH and code.rstrip() != _PARAMETER.sub("", line).rstrip():
            yield f"{number}: a comment on a line of {len(line)} characters; {WIDTH} at most"


def check(root: Path) -> Iterator[str]:
    for file in sources(root):
        path = file.relative_to(root).as_posix()
        text = file.read_text(encoding="utf-8")
        count = text.count("\n")
        if count > MOST_LINES:
            yield f"{path}:1: {count} lines; {MOST_LINES} at most"
        yield from (f"{path}:{finding}" for finding in long_functions(file, text))
        yield from (f"{path}:{finding}" for finding in long_comments(file, text))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", type=Path, default=Path(__file__).resolve().parent.parent)
    findings = list(check(parser.parse_args().root))
    print("\n".join(findings), end="\n" if findings else "")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
