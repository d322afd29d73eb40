"""What `lacuna explain` prints, and what it refuses."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner, Result

from lacuna import Layout, _core
from lacuna.cli import app
from lacuna.explain import MOST_RUNS
from lacuna.layout_text import CONSTRUCTORS

VECTOR = "vector(16, 4, 100, double)"


def explain(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["explain", *arguments])


def data(*arguments: str) -> dict[str, Any]:
    ended = explain(*arguments, "--json", "-")
    assert ended.exit_code == 0, ended.stderr
    found = json.loads(ended.stdout)
    assert isinstance(found, dict)
    return found


def rows(text: str) -> dict[str, str]:
    """The labelled lines."""
    return {line[2:14].strip(): line[16:] for line in text.splitlines() if line[:2] == "  " and line[2:14].strip()}


def test_a_layout_is_explained() -> None:
    ended = explain(VECTOR)
    assert ended.exit_code == 0
    assert ended.stderr == ""
    assert ended.stdout.splitlines()[0] == "vector(count=16, blocklength=4, stride=100, old=double)"
    found = rows(ended.stdout)
    assert found["bytes"] == "512 B"
    assert found["runs"] == "16, 32.0 B on average"
    assert found["extent"] == found["true extent"] == "12,032 B (11.8 KiB) from 0"
    assert found["form"] == "16 x +800 B { 32 B }"
    assert found["instructions"] == _core.instruction_set()
    assert found["plan"] == Layout.vector(16, 4, 100, Layout.bytes(8)).kernels().splitlines()[0]
    assert ended.stdout.rstrip().splitlines()[-1].split() == ["32", "B", "64", "B", "16", "#" * 40]


def test_bounds_and_true_bounds_differ_where_they_do() -> None:
    found = rows(explain("resized(hindexed_block(1, [16], double), -8, 2048)").stdout)
    assert found["extent"] == "2,048 B (2 KiB) from -8"
    assert found["true extent"] == "8 B from 16"


def test_run_lengths_are_counted_in_classes_of_powers_of_two() -> None:
    text = "blocks([0, 10, 20, 100, 200], [1, 2, 3, 4, 37])"
    assert Layout.blocks([0, 10, 20, 100, 200], [1, 2, 3, 4, 37]).length_classes() == [1, 2, 1, 0, 0, 1]
    bars = [line.split("  ")[-1].strip() for line in explain(text).stdout.splitlines() if line.endswith("#")]
    assert bars == ["#" * 20, "#" * 40, "#" * 20, "#" * 20]
    classes = data(text)["layouts"][0]["run_lengths"]["classes"]
    assert classes == [
        {"from": 1, "to": 1, "runs": 1},
        {"from": 2, "to": 3, "runs": 2},
        {"from": 4, "to": 7, "runs": 1},
        {"from": 8, "to": 15, "runs": 0},
        {"from": 16, "to": 31, "runs": 0},
        {"from": 32, "to": 63, "runs": 1},
    ]


def test_of_very_many_runs_the_first_are_looked_at() -> None:
    text = f"vector({2 * MOST_RUNS}, 1, 2, byte)"
    assert "of the first 1,000,000 runs:" in explain(text).stdout
    assert "of the first" not in explain(f"vector({MOST_RUNS}, 1, 2, byte)").stdout
    assert data(text)["layouts"][0]["run_lengths"] == {
        "of_first_runs": MOST_RUNS,
        "classes": [{"from": 1, "to": 1, "runs": MOST_RUNS}],
    }


def test_a_layout_of_nothing() -> None:
    found = rows(explain("contiguous(0, int)").stdout)
    assert (found["bytes"], found["runs"], found["form"], found["plan"]) == ("0 B", "0", "empty", "nothing to copy")
    assert "run lengths" not in found
    layout = data("contiguous(0, int)")["layouts"][0]
    assert (layout["mean_run_bytes"], layout["kernels"], layout["run_lengths"]["classes"]) == (None, [], [])


def test_a_source_and_a_destination() -> None:
    ended = explain(VECTOR, "bytes(512)")
    assert ended.exit_code == 0
    lines = ended.stdout.splitlines()
    assert lines[0].startswith("Source: vector(")
    assert "Destination: bytes(count=512)" in lines
    assert lines[-1] == "Both have 512 B."
    assert [layout["runs"] for layout in data(VECTOR, "bytes(512)")["layouts"]] == [16, 1]


def test_sizes_that_differ_are_refused() -> None:
    ended = explain(VECTOR, "bytes(5120)")
    assert ended.exit_code == 2
    assert ended.stdout == ""
    assert "the source has 512 bytes, the destination 5,120" in ended.stderr


@pytest.mark.parametrize("texts", [["vector(16, 4, 1oo, double)"], ["bytes(8)", "vector(16, 4, 1oo, double)"]])
def test_what_cannot_be_read_is_pointed_at(texts: list[str]) -> None:
    ended = explain(*texts)
    assert ended.exit_code == 2
    assert ended.stdout == ""
    _, shown, caret = ended.stderr.rstrip().splitlines()[-3:]
    assert 'cannot read "1oo, double)"' in ended.stderr
    assert shown.strip() == "vector(16, 4, 1oo, double)"
    assert shown[caret.index("^") :].startswith("1oo")


def test_json_has_the_same() -> None:
    found = data("MILC_su3_zd:3:receive")
    assert found.keys() == {"lacuna_version", "instruction_set", "layouts"}
    layout = _core.ddtbench("MILC_su3_zd", 3)[1]
    (shown,) = found["layouts"]
    assert shown.pop("parsed").startswith("MILC_su3_zd:3:receive (DDTBench, ")
    assert sum(c["runs"] for c in shown.pop("run_lengths")["classes"]) == layout.run_count
    assert shown == {
        "bytes": layout.size,
        "runs": layout.run_count,
        "mean_run_bytes": layout.size / layout.run_count,
        "lower_bound": layout.lower_bound,
        "extent": layout.extent,
        "true_lower_bound": layout.true_lower_bound,
        "true_extent": layout.true_extent,
        "form": layout.describe(),
        "kernels": layout.kernels().splitlines(),
    }


def test_json_goes_to_a_file_or_to_standard_output(tmp_path: Path) -> None:
    file = tmp_path / "new" / "x.json"
    ended = explain(VECTOR, "--json", str(file))
    assert "16 x +800 B" in ended.stdout
    assert json.loads(file.read_text()) == data(VECTOR)
    assert "16 x +800 B" in explain(VECTOR, "--json", "-").stderr
    assert explain(VECTOR, "--json", str(tmp_path)).exit_code == 2


def test_markup_of_the_terminal_is_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    np.save("a[red]b:smile:.npy", np.zeros(3))
    assert explain('"a[red]b:smile:.npy"').stdout.startswith('"a[red]b:smile:.npy" (float64, 3)')


@pytest.mark.parametrize("family", _core.ddtbench_families())
@pytest.mark.parametrize("side", ["send", "receive"])
def test_every_ddtbench_layout_can_be_explained(family: str, side: str) -> None:
    ended = explain(f"{family}:0:{side}")
    assert ended.exit_code == 0
    assert "plan" in rows(ended.stdout)


def test_help_lists_the_forms() -> None:
    text = explain("--help").stdout
    for name, (_, signature) in CONSTRUCTORS.items():
        assert "".join(f"{name}({signature})".split()) in "".join(text.split())
    for name in ("NAS_LU_y:3", "FFT2:1:receive", "double", "matrix.npy[::2, 3:5]", "range("):
        assert name in text
