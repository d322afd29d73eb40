"""The rooms of the package: which may know which, how many files are in one, and what `import lacuna` brings in."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

pytestmark = pytest.mark.check

PACKAGE = Path(__file__).resolve().parents[2] / "python" / "lacuna"
ROOMS = ["api", "worker", "guide", "report", "mpi", "bench", "paper", "cli"]
"""From the top of the ladder down: a room may know those before it. The API is what lies in the package itself."""

TESTS = Path(__file__).resolve().parent
MOST_FILES = 15
FILES = sorted(PACKAGE.rglob("*.py"))


def room_of(parts: tuple[str, ...]) -> str:
    return parts[0] if parts and parts[0] in ROOMS else "api"


def imported(tree: ast.AST) -> Iterator[tuple[str, ...]]:
    """What of the package a file imports, by its names within the package."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "lacuna":
            for name in node.names:
                yield (*node.module.split(".")[1:], name.name)


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(PACKAGE)))
def test_a_file_knows_the_rooms_above_it(file: Path) -> None:
    tree = ast.parse(file.read_text())
    own = room_of(file.relative_to(PACKAGE).parts)
    if file.name != "__main__.py":
        below = [".".join(names) for names in imported(tree) if ROOMS.index(room_of(names)) > ROOMS.index(own)]
        assert not below, f"{own} may not know rooms below it"


@pytest.mark.parametrize("folder", sorted({file.parent for file in FILES}), ids=lambda folder: folder.name)
def test_a_room_has_few_files_and_says_what_it_is(folder: Path) -> None:
    assert len(list(folder.glob("*.py"))) <= MOST_FILES
    assert ast.get_docstring(ast.parse((folder / "__init__.py").read_text()))


def test_no_two_files_of_tests_share_a_name() -> None:
    """One run of all of them takes the first only, and fails at the second."""
    named = Counter(file.name for file in TESTS.rglob("*.py"))
    assert [name for name, count in named.items() if count > 1] == []


@pytest.mark.parametrize(
    ("module", "large"),
    [
        ("lacuna", {"matplotlib", "scipy", "numpy", "rich", "typer", "msgspec"}),
        ("lacuna.cli.app", {"matplotlib", "scipy", "numpy", "rich", "msgspec", "elftools"}),
        *((f"lacuna.cli.{name}", {"matplotlib", "scipy", "numpy"}) for name in ("compare", "config", "info", "mpi")),
        *((f"lacuna.cli.{name}", {"matplotlib", "scipy"}) for name in ("bench", "explain", "guide", "paper")),
    ],
)
def test_an_import_brings_nothing_large_in(module: str, large: set[str]) -> None:
    code = f"import sys, {module}; print(*sorted({{name.split('.')[0] for name in sys.modules}}))"
    names = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert not large & set(names)
