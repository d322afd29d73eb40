"""The report holds everything and needs nothing but itself."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from pathlib import Path

from balanced_html import Balance
from conftest import grid_subject, guide, row
from fake_tables import METHODS

from lacuna.guide.run_record import Guide
from lacuna.report import guide_page, palette
from lacuna.worker.records import Failure, Skip


def page(result: Guide, directory: Path) -> str:
    guide_page.write(result, directory)
    return (directory / "report.html").read_text(encoding="utf-8")


def test_report_is_whole_and_well_formed(full_guide: Guide, tmp_path: Path) -> None:
    text = page(full_guide, tmp_path)
    balance = Balance()
    balance.feed(text)
    assert not balance.open
    for word in (
        "In short",
        "The guide: the fastest method",
        "DDTBench",
        "Latency",
        "CPU time",
        "Censored",
        "How quiet the machine was",
        "To cite:",
        "lacuna guide --quick",
    ):
        assert word in text
    assert len(text) < 3 << 20
    picture = (tmp_path / "guide.png").read_bytes()
    assert picture.startswith(b"\x89PNG")


def test_report_loads_nothing_and_runs_nothing(full_guide: Guide, tmp_path: Path) -> None:
    text = page(full_guide, tmp_path)
    assert "<script" not in text
    assert "<link" not in text
    assert "@import" not in text
    assert not re.search(r'\b(?:src|href)\s*=\s*"(?!#)', text.replace("xlink:href", "href"))


def test_figures_are_xml_with_units_on_the_axes(full_guide: Guide, tmp_path: Path) -> None:
    figures = re.findall(r"<svg.*?</svg>", page(full_guide, tmp_path), flags=re.DOTALL)
    words = [" ".join(ET.fromstring(svg).itertext()) for svg in figures]
    for axis in (
        "number of blocks (log scale)",
        "one-way latency (µs)",
        "bandwidth (MB/s)",
        "block size (bytes)",
        "time of one transfer (µs)",
        "times faster than hand packing (log scale)",
        "time since the start of the run (s)",
    ):
        assert any(axis in text for text in words), axis


def test_text_from_outside_is_escaped(full_guide: Guide, tmp_path: Path) -> None:
    full_guide.errors.append(Failure("<b>byte 3</b>", "NAS_LU_x", "sgrs", "mapped", "none"))
    full_guide.skips[Skip("sgrs", "kernel", "none", "1 < 2 & so on")] = 1
    text = page(full_guide, tmp_path)
    assert "Invented CPU &lt;9000&gt;" in text
    assert "&lt;b&gt;byte 3&lt;/b&gt;" in text
    assert "1 &lt; 2 &amp; so on" in text
    assert "This run failed" in text


def test_interrupted_and_empty_runs_still_report(tmp_path: Path) -> None:
    empty = guide()
    empty.interrupted = True
    assert "interrupted" in page(empty, tmp_path)
    assert not (tmp_path / "guide.png").exists()


def test_a_run_of_one_cell_or_only_censored_rows_still_reports(tmp_path: Path) -> None:
    assert "too few" in page(guide(row(grid_subject(), "pack", 1.0)), tmp_path).lower()
    page(guide(row(grid_subject(), "pack", 1.0, censored=True)), tmp_path)


def test_colours_differ_and_text_on_them_is_readable() -> None:
    methods = tuple(m for m in METHODS if not m.startswith("by_hand"))
    assert len({palette.ink(m).paper for m in methods}) == len(methods)
    assert palette.readable_on("#ffffff") == "#000000"
    assert palette.readable_on("#000000") == "#ffffff"
    assert palette.tint("#000000", 0.0) == "#ffffff"
    assert palette.tint("#d55e00", 1.0) == "#d55e00"
