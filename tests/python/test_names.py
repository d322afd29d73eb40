"""Public names are made of words that the glossary has, or that MPI, verbs, NumPy or plain English have."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import pytest

import lacuna

ROOT = Path(__file__).resolve().parents[2]
GLOSSARY = ROOT / "docs" / "reference" / "glossary.md"

VOCABULARY = {
    "MPI": """all alltoallw any argument bound cancel comm communicator contiguous count cyclic darray distribute
        distribution err extent fortran get h hindexed host hvector iget indexed init iput irecv isend lower message
        neighbor none order probe put rank recv request resized send size source status struct subarray tag test true
        truncated type vector wait""",
    "verbs": "device deregister memory ok peer register registering timeout wire",
    "NumPy and CUDA": """array block blocks bytes column columns copy element kernels leading matrix pack plan row rows
        shape slice strided transpose unpack view""",
    "systems": """bandwidth c cache cold cpu decode eager encode latency length limit lost malformed open options
        overflow overlaps paged permission progress thread unexpected unsupported window""",
    "plain English": """after before cards choose classes close connect default describe dst error explain expose
        free from invalid is learning look make move number of other out placed prepare run runs s same schedule settle
        src start statistics told transfers untold us uses version warnings withdraw""",
}
"""Words that do not mean something else here than there, by where they are from."""


def known() -> set[str]:
    rows = re.findall(r"^\| (.*?) \|", GLOSSARY.read_text(), re.M)
    return set(re.findall(r"[a-z]+", " ".join([*rows, *VOCABULARY.values()]).lower()))


def words_of(names: set[str]) -> set[str]:
    words = {word.lower() for name in names for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", name)}
    return words - {"lacuna"}


@pytest.mark.check
def test_the_names_of_c() -> None:
    headers = (ROOT / "include" / "lacuna").glob("*.h")
    code = re.sub(r"/\*.*?\*/", "", "".join(header.read_text() for header in headers), flags=re.S)
    names = set(re.findall(r"\b(?:lacuna|LACUNA)_(\w+)", code))
    assert len(names) > 50
    assert words_of(names) - known() == set()


@pytest.mark.check
def test_the_names_of_python() -> None:
    names = set(lacuna.__all__) - {"__version__"}
    for name in lacuna.__all__:
        if isinstance(value := getattr(lacuna, name), type):
            names |= {member for member in dir(value) if not member.startswith("_")}
    assert len(names) > 50
    assert words_of(names) - known() == set()


@pytest.mark.check
def test_all_of_python_says_what_it_does() -> None:
    """Also help(), and the reference, which is made of it."""
    silent = []
    for name in set(lacuna.__all__) - {"__version__"}:
        value = getattr(lacuna, name)
        if isinstance(value, type):
            members = (member for member in dir(value) if not member.startswith("_"))
            silent += [f"{name}.{member}" for member in members if not inspect.getdoc(getattr(value, member))]
        if callable(value) and not inspect.getdoc(value):
            silent.append(name)
    assert silent == []
