"""What scripts/run_tests.py shows again of a test that failed, or left something out."""

from __future__ import annotations

import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

pytestmark = pytest.mark.check

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts"))
from run_tests import SAID_LINES, last_words, left_out  # noqa: E402


def words(*lines: str) -> list[str]:
    """Of a test that printed these."""
    case = ET.fromstring("<testcase><failure message='Failed'/><system-out/></testcase>")
    case[1].text = "\n".join(lines)
    shown = last_words(case).splitlines()
    assert shown[0] == "Failed"
    return shown[1:]


def test_the_end_is_shown() -> None:
    lines = [f"line {i}" for i in range(100)]
    assert words(*lines) == lines[-SAID_LINES:]


@pytest.mark.parametrize(
    "first",
    [
        "==7==ERROR: AddressSanitizer: heap-use-after-free on address 0x5020",
        "WARNING: ThreadSanitizer: data race (pid=7)",
        "lacuna/a.cpp:3:5: runtime error: signed integer overflow",
    ],
)
def test_of_a_sanitizer_the_beginning_is_shown_with_the_test(first: str) -> None:
    report = [first, *(f"    #{i} somewhere" for i in range(30)), "Shadow byte legend:", *["  ac"] * 30]
    shown = words("[ RUN      ] Old.One", "[       OK ] Old.One", "[ RUN      ] New.One", "warning", *report)
    assert shown == ["[ RUN      ] New.One", *report[: 2 * SAID_LINES]]


def test_what_a_program_leaves_out_is_shown(tmp_path: Path) -> None:
    file = tmp_path / "release.xml"
    said = "layout_wire 3 of the corpus\nSKIP: ofi_hello: no libfabric\nno SKIP: here"
    file.write_text(
        f"<suite><testcase name='fuzz.smoke'><system-out>{said}</system-out></testcase><testcase name='a'/></suite>"
    )
    assert left_out("release", file) == ["release: ofi_hello: no libfabric"]
    assert left_out("release", tmp_path / "none.xml") == []
