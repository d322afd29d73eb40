"""Two guides side by side."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import FAR, PATIENCE, QUIET, grid_subject, guide, look, row

from lacuna.guide.run_record import Guide, Repeat, read_guide
from lacuna.report.comparison import Comparison, compare, repeats_within
from lacuna.worker.protocol import SchemaError

pytestmark = pytest.mark.check


def made(times: dict[int, dict[str, float]], far: tuple[int, ...] = ()) -> Guide:
    """A guide of cells of one block each, by block size; some of them measured with the cores far apart."""
    result = guide(*(row(grid_subject(b, 1), m, us) for b, found in times.items() for m, us in found.items()))
    result.looks = [look(grid_subject(b, 1), FAR if b in far else QUIET) for b in times]
    return result


def compared(a: dict[int, dict[str, float]], b: dict[int, dict[str, float]]) -> Comparison:
    return compare(made(a), made(b))


def test_the_same_guide_has_no_differences(full_guide: Guide) -> None:
    c = compare(full_guide, full_guide)
    assert c.pairs
    assert not c.disagreeing
    assert not c.changed
    assert all(change.ratio == pytest.approx(1.0) for change in (*c.by_group(), *c.by_method()))


def test_methods_that_are_close_may_change_places() -> None:
    c = compared({16: {"pack": 1.0, "sgrs": 1.03}}, {16: {"pack": 1.03, "sgrs": 1.0}})
    assert len(c.disagreeing) == 1
    assert not c.beyond_close
    assert c.disagreeing[0].apart == pytest.approx(1.03)


def test_methods_that_are_not_close_are_a_disagreement() -> None:
    c = compared({16: {"pack": 1.0, "sgrs": 1.5}}, {16: {"pack": 1.1, "sgrs": 1.0}})
    assert len(c.beyond_close) == 1
    assert c.beyond_close[0].apart == pytest.approx(1.5)
    assert c.beyond_close[0].pooled_apart == pytest.approx((1.5 / 1.1) ** 0.5)


def test_a_best_that_the_other_has_not_is_a_disagreement() -> None:
    c = compared({16: {"pack": 1.0}}, {16: {"sgrs": 1.0}})
    assert c.beyond_close[0].apart is None
    assert json.dumps(c.to_json())


def test_what_is_within_the_noise_is_no_change() -> None:
    assert not compared({16: {"pack": 1.0}}, {16: {"pack": 1.04}}).changed
    (pair,) = compared({16: {"pack": 1.0}}, {16: {"pack": 1.3}}).changed
    assert pair.ratio == pytest.approx(1.3)


def test_second_looks_widen_the_noise() -> None:
    s = grid_subject()
    assert repeats_within([]) == 1.05
    wild = [Repeat(s, "pack/mapped", "pack/mapped", 1.0, 1.0, 1.4)] * 10
    assert repeats_within(wild) == pytest.approx(1.4)
    a, b = made({16: {"pack": 1.0}}), made({16: {"pack": 1.3}})
    a.repeats = wild
    assert not compare(a, b).changed


def test_cells_of_one_machine_are_compared_in_like_states() -> None:
    times = {16: {"pack": 1.0}, 64: {"pack": 1.0}}
    c = compare(made(times), made(times, far=(64,)))
    assert [p.subject.block_bytes for p in c.pairs] == [16]
    assert c.odd == 1
    assert "another state" in c.warnings[0]
    c = compare(made(times), made(times, far=(16, 64)))
    assert len(c.pairs) == 2  # nothing is alike: all are compared, and it is said
    assert "two machines" in c.warnings[0]


def test_a_guide_survives_its_file(full_guide: Guide, tmp_path: Path) -> None:
    full_guide.repeats = [Repeat(grid_subject(), "pack/mapped", "sgrs/mapped", 1.02, 4.0, 4.1)]
    file = tmp_path / "guide.json"
    file.write_text(full_guide.to_json())
    again = read_guide(file)
    assert json.loads(again.to_json()) == json.loads(full_guide.to_json())


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{}", "required field `schema`"),
        ("[1]", "no JSON object"),
        ('{"schema": 2}', "schema 2"),
        ("nonsense", "no guide.json"),
    ],
)
def test_a_file_that_is_no_guide_is_named(tmp_path: Path, text: str, says: str) -> None:
    file = tmp_path / "x.json"
    file.write_text(text)
    with pytest.raises(SchemaError, match=says):
        read_guide(file)


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "lacuna", "compare", *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE,
    )


@pytest.mark.gate
def test_the_command_shows_and_writes(full_guide: Guide, tmp_path: Path) -> None:
    for name, result in (("a", full_guide), ("b", made({16: {"pack": 9.0}, 64: {"sgrs": 1.0}}))):
        (tmp_path / name).mkdir()
        (tmp_path / name / "guide.json").write_text(result.to_json())
    a, b = str(tmp_path / "a"), str(tmp_path / "b" / "guide.json")
    ended = run(a, a, "--output", str(tmp_path / "out"), "--exit-code")
    assert ended.returncode == 0, ended.stderr
    assert "cells are in both guides" in ended.stdout
    page = (tmp_path / "out" / "compare.html").read_text()
    assert "Two guides, side by side" in page
    ended = run(b, b, "--json", "-")
    assert json.loads(ended.stdout)["cells"] == 2
    assert "cells are in both guides" in ended.stderr
    assert run(a, b).returncode == 2  # no cell in common
    assert run(a, str(tmp_path / "none")).returncode == 2
    slower = made({16: {"pack": 20.0}, 64: {"sgrs": 1.0}})
    (tmp_path / "c.json").write_text(slower.to_json())
    assert run(b, str(tmp_path / "c.json")).returncode == 0
    assert run(b, str(tmp_path / "c.json"), "--exit-code").returncode == 1
