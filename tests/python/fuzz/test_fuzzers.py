"""Smoke runs of the fuzzers of the Python package, their corpora and canaries; and one list that names all fuzzers."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from fuzzers import CORPUS, FUZZERS, Fuzzer

pytestmark = pytest.mark.check

ROOT = Path(__file__).resolve().parents[3]
ROWS = ROOT / "tests" / "fuzz" / "rows"

each = pytest.mark.parametrize("fuzzer", FUZZERS, ids=lambda fuzzer: fuzzer.name)


@each
def test_corpus(fuzzer: Fuzzer) -> None:
    files = sorted((CORPUS / fuzzer.name).iterdir())
    assert files
    for file in files:
        fuzzer.judge(file.read_text(encoding="utf-8"), False)


@each
def test_a_planted_fault_is_seen(fuzzer: Fuzzer) -> None:
    for seed in range(fuzzer.smoke):
        try:
            fuzzer.judge(fuzzer.draw(seed), True)
        except AssertionError:
            return
    pytest.fail("the canary lives")


@each
def test_smoke(fuzzer: Fuzzer) -> None:
    taken = 0
    for seed in range(fuzzer.smoke):
        text = fuzzer.draw(seed)
        try:
            taken += fuzzer.judge(text, False)
        except Exception as error:
            raise AssertionError(f"seed {seed}: {text!r}") from error
    assert taken >= fuzzer.least_taken * fuzzer.smoke


def test_one_list_names_all_fuzzers() -> None:
    sources = "".join(file.read_text() for file in ROWS.glob("*.cpp"))
    rows = set(re.findall(r"\.name = \"(\w+)\"", sources)) | set(
        re.findall(r"^LACUNA_FILE_ROW\((\w+),", sources, re.MULTILINE)
    )
    rows |= {fuzzer.name for fuzzer in FUZZERS}
    page = (ROOT / "docs" / "design" / "simulator.md").read_text()
    table = page[page.index("## Fuzzers") : page.index("## Preloaded programs")]
    named = {
        name
        for line in table.splitlines()
        if line.startswith("| `")
        for name in re.findall(r"`(\w+)`", line.split("|")[1])
    }
    assert named == rows
