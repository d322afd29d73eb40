"""`lacuna bench device`: what it shows of what the bench says, and the bench itself on the emulated device."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from lacuna.bench.device.rows import DeviceRun, summaries
from lacuna.cli.app import app

HELLO = {"hello": {"device": "cuda:0", "model": "NVIDIA H200", "driver": "13.0", "rows": 3}}


def row(name: str, group: str, share: float, verified: bool = True, **us: float) -> str:
    said = {"group": group, "name": name, "payload": 64 << 20, "share": share, "verified": verified, "us": us}
    return json.dumps({"row": said})


LINES = [
    json.dumps(HELLO),
    json.dumps({"faces": {"pairs": 26, "us": 14.0, "nothing_us": 10.0, "verified": True}}),
    row("pack 8 B of 16", "vectors", 0.9, lacuna=40.0, contiguous=36.0, element=50.0, **{"2D": 80.0}),
    row("pack columns", "transposes", 0.4, lacuna=90.0, contiguous=36.0),
    json.dumps({"end": {"left_out": 2, "wrong": False}}),
]


def written(folder: Path, lines: list[str]) -> Path:
    (folder / "bench.jsonl").write_text("\n".join(lines) + "\n")
    (folder / "arrays.jsonl").write_text(json.dumps({"name": "pack 8 B of 16", "us": {"torch": 50.0}}) + "\n")
    return folder


def test_reads_what_a_gpu_was_measured_with(tmp_path: Path) -> None:
    output = tmp_path / "out"
    arguments = ["bench", "device", "--from", str(written(tmp_path, LINES)), "--output", str(output)]
    ended = CliRunner().invoke(app, arguments)
    assert ended.exit_code == 0, ended.output
    text = " ".join(ended.output.split())
    assert "cuda:0: NVIDIA H200, CUDA 13.0" in text
    assert "vectors 1 0.90 0.90 0.80 0.80" in text
    assert "transposes 1 0.40 0.40" in text
    assert "all 2 0.60 0.40 0.80 0.80" in text
    assert "26 faces in one launch: 14.0 us, an empty one 10.0" in text
    assert "2 rows: the budget was used up" in text
    assert json.loads((output / "device.json").read_text())["rows"][0]["us"]["torch"] == 50.0
    assert (output / "device.png").stat().st_size > 10_000


def test_wrong_bytes_are_an_error(tmp_path: Path) -> None:
    lines = [LINES[0], row("pack 8 B of 16", "vectors", 0.9, verified=False, lacuna=40.0, contiguous=36.0)]
    ended = CliRunner().invoke(app, ["bench", "device", "--from", str(written(tmp_path, lines))])
    assert ended.exit_code == 1
    faces = DeviceRun("", "", "")
    faces.take({"faces": {"verified": False}})
    assert faces.errors == ["faces: wrong bytes"]


def test_refuses_what_is_no_measurement(tmp_path: Path) -> None:
    ended = CliRunner().invoke(app, ["bench", "device", "--from", str(tmp_path)])
    assert ended.exit_code == 2
    ended = CliRunner().invoke(app, ["bench", "device", "--from", str(written(tmp_path, ["[1]"]))])
    assert ended.exit_code == 2
    assert summaries(DeviceRun("", "", "")) == []


def test_measures_the_emulated_device(tmp_path: Path) -> None:
    arguments = ["bench", "device", "--device", "emulated", "--payload", "1", "--groups", "faces,structs"]
    ended = CliRunner().invoke(app, [*arguments, "--output", str(tmp_path)])
    assert ended.exit_code == 0, ended.output
    document = json.loads((tmp_path / "device.json").read_text())
    assert [r["verified"] for r in document["rows"]] == [True] * 4
    assert document["machine"]["device"] == "emulated"
    assert "26 faces" in ended.output


def test_says_why_it_cannot(monkeypatch: pytest.MonkeyPatch) -> None:
    ended = CliRunner().invoke(app, ["bench", "device", "--device", "cuda:99", "--groups", "faces"])
    assert ended.exit_code == 3
    assert "GPU" in ended.output or "cuda:99" in ended.output
    monkeypatch.setenv("LACUNA_DEVICE_BENCH", "/nowhere")
    ended = CliRunner().invoke(app, ["bench", "device"])
    assert ended.exit_code == 3
    assert "LACUNA_DEVICE_BENCH names /nowhere" in ended.output
