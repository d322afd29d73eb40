"""What scripts/check_lengths.py finds too long: files, functions, and lines that hold a comment."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.check

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "check_lengths.py"


def findings(root: Path, name: str, text: str) -> list[str]:
    """Of a tree that holds one file, without its name."""
    file = root / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    done = subprocess.run([sys.executable, SCRIPT, "--root", root], capture_output=True, text=True, check=False)
    lines = done.stdout.splitlines()
    assert done.returncode == (1 if lines else 0), done.stderr
    assert all(line.startswith(f"{name}:") for line in lines)
    return [line.removeprefix(f"{name}:") for line in lines]


@pytest.mark.parametrize("name", ["lacuna/a.cpp", "include/a.h", "tests/a.py", "cmake/a.cmake", "tests/a.inc"])
def test_a_file_has_at_most_450_lines(tmp_path: Path, name: str) -> None:
    assert findings(tmp_path, name, "\n" * 450) == []
    assert findings(tmp_path, name, "\n" * 451) == ["1: 451 lines; 450 at most"]


FUNCTIONS = {
    "lacuna/a.cpp": ("int Class::sum(int x) {", "  ++x;", "}"),
    "lacuna/a.hpp": ("template <class T>\ninline auto sum(T x) -> decltype(x) {", "  ++x;", "}"),
    "tests/a_test.cpp": ("TEST(Suite, Name) {", "  ++x;", "}"),
    "tests/a.c": ("static int sum(int x) {", "  ++x;", "}"),
    "python/a.py": ("def sum(x: int) -> int:", "    x += 1", "    return x"),
    "python/b.py": ("class A:\n    async def sum(self) -> int:", "        self.x += 1", "        return self.x"),
    "tests/a.F90": ("program p\ncontains\nsubroutine sum(x)", "  x = x + 1", "end subroutine\nend program"),
    "tests/a.inc": ("contains\nsubroutine sum(x)", "  x = x + 1", "end subroutine"),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_has_at_most_60_lines(tmp_path: Path, name: str) -> None:
    head, body, tail = FUNCTIONS[name]
    for count, long in ((58, False), (59, True)):
        said = findings(tmp_path, name, "\n".join([head, *[body] * count, tail]) + "\n")
        assert [line.partition("has ")[2] for line in said] == (["61 lines; 60 at most"] if long else [])


WIDE = "w" * 100
COMMENTS = {
    "lacuna/a.cpp": [f"// {WIDE}", f"int x;  // {WIDE}", f"/* {WIDE} */", f"/* a\n * {WIDE}\n */", f"/// {WIDE}"],
    "tests/a.c": [f"/* {WIDE} */", f"int x; /* {WIDE} */"],
    "scripts/a.sh": [f"# {WIDE}", f"true # {WIDE}"],
    "cmake/a.cmake": [f"# {WIDE}"],
    "tests/a.F90": [f"! {WIDE}", f"x = 1  ! {WIDE}"],
}
CODE = {
    "lacuna/a.cpp": [f'auto x = "// {WIDE}";', f"int sum(int /*x*/, int {WIDE}{WIDE});", "int x;  // short"],
    "scripts/a.sh": [f"echo '{WIDE}#{WIDE}'"],
}


@pytest.mark.parametrize(("name", "text"), [(name, text) for name, texts in COMMENTS.items() for text in texts])
def test_a_line_with_a_comment_has_at_most_120_characters(tmp_path: Path, name: str, text: str) -> None:
    widest = max(text.split("\n"), key=len)
    as_wide = text.replace(WIDE, WIDE + "w" * (120 - len(widest)))
    assert findings(tmp_path, name, as_wide + "\n") == []
    (found,) = findings(tmp_path, name, as_wide.replace(WIDE, WIDE + "w") + "\n")
    assert found.endswith("a comment on a line of 121 characters; 120 at most")


@pytest.mark.parametrize(("name", "text"), [(name, text) for name, texts in CODE.items() for text in texts])
def test_a_line_of_code_alone_may_be_longer(tmp_path: Path, name: str, text: str) -> None:
    assert findings(tmp_path, name, text + "\n") == []
