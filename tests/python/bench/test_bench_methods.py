"""`lacuna bench methods` from end to end against a worker that makes up its measurements."""

from __future__ import annotations

import io
import json
import re
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest
from balanced_html import Balance
from conftest import MACHINE, METHODS, NIC, PATIENCE, row
from made_up_command import ROW_KEYS, Lacuna
from rich.console import Console

from lacuna.bench.methods import experiments, terminal
from lacuna.bench.methods.experiments import MethodRun
from lacuna.bench.methods.places import here, views

WORK = {
    "work_requests",
    "receives",
    "sges",
    "doorbells",
    "completions",
    "keys_created",
    "keys_bound",
    "key_entries",
    "bytes_copied",
}


@pytest.fixture
def lacuna(fake_worker: Path, tmp_path: Path) -> Lacuna:
    return Lacuna(fake_worker, tmp_path / "new")


def methods(lacuna: Lacuna, *arguments: str, mood: str = "") -> subprocess.CompletedProcess[str]:
    return lacuna("bench", "methods", *arguments, mood=mood)


def read(file: Path) -> dict[str, Any]:
    found = json.loads(file.read_text())
    assert isinstance(found, dict)
    return found


def test_json_holds_every_experiment(lacuna: Lacuna, tmp_path: Path) -> None:
    file = tmp_path / "deep" / "b.json"
    ended = methods(lacuna, "--json", str(file))
    assert ended.returncode == 0, ended.stderr
    data = read(file)
    assert list(data) == [
        *("schema", "created", "lacuna_version", "command", "seconds", "interrupted", "fault", "machine", "nic"),
        *("methods", "errors", "skips", "unmeasured", "experiments", "looks", "repeats", "rows"),
    ]
    assert data["schema"] == 1
    assert data["command"] == "lacuna bench methods"
    assert data["errors"] == data["unmeasured"] == []
    ids = [e["id"] for e in data["experiments"]]
    assert ids == [e.id for e in experiments.EXPERIMENTS]
    assert {frozenset(e) for e in data["experiments"]} == {
        frozenset({"id", "title", "conditions", "finding", "x", "x_unit"})
    }
    assert {r["experiment"] for r in data["rows"]} == set(ids)
    for r in data["rows"]:
        assert r.keys() - {"reason"} == ROW_KEYS | {"bandwidth_mbs"}
        assert r["counters"].keys() == {"send", "receive"}
        assert all(side.keys() == WORK for side in r["counters"].values())
        assert r["bandwidth_mbs"] == pytest.approx(r["payload_bytes"] / r["latency_us"])
    keys = [r for r in data["rows"] if r["experiment"] == "F20"]
    assert {r["method"] for r in keys} == {"create_key", "bind_key", "invalidate_key"}
    assert {r["block_count"] for r in keys} >= {4, 32768}
    assert {r["notify"] for r in data["rows"] if r["experiment"] == "R5.2.1"} == {"none", "imm", "flag"}
    assert list(tmp_path.glob("new/*")) == []
    assert max(map(len, ended.stdout.splitlines()[:-1])) <= 120


@pytest.mark.gate
def test_output_holds_data_page_and_picture(lacuna: Lacuna) -> None:
    ended = methods(lacuna, "--quick", "--output", str(lacuna.output))
    assert ended.returncode == 0, ended.stderr
    assert sorted(p.name for p in lacuna.output.iterdir()) == ["bench.html", "bench.json", "bench.png"]
    text = (lacuna.output / "bench.html").read_text()
    balance = Balance()
    balance.feed(text)
    assert not balance.open
    assert "http://" not in text.replace("http://www.w3.org/", "")
    assert "<script" not in text
    data = read(lacuna.output / "bench.json")
    assert text.count("<figure") == len(data["experiments"]) + 1  # the last shows how quiet the machine was
    for e in data["experiments"]:
        assert e["id"] in text
    assert "To compare with" in text
    assert "key entries" in text
    assert data["command"] == "lacuna bench methods --quick"


def test_nothing_is_written_without_being_asked(lacuna: Lacuna, tmp_path: Path) -> None:
    before = sorted(tmp_path.iterdir())
    ended = methods(lacuna, "--quick")
    assert ended.returncode == 0, ended.stderr
    assert sorted(tmp_path.iterdir()) == before
    for e in experiments.EXPERIMENTS:
        assert f"{e.id}  {e.title}" in ended.stdout
    assert ended.stdout.count("To compare with:") == 15
    assert "What each side has to do" in ended.stdout
    assert "\x1b" not in ended.stdout


def test_experiments_can_be_chosen(lacuna: Lacuna, tmp_path: Path) -> None:
    file = tmp_path / "b.json"
    ended = methods(lacuna, "--experiment", "f20", "--experiment", "R5.2.1", "--json", str(file), "--budget", "20")
    assert ended.returncode == 0, ended.stderr
    data = read(file)
    assert [e["id"] for e in data["experiments"]] == ["F20", "R5.2.1"]
    assert data["command"] == "lacuna bench methods --experiment F20 --experiment R5.2.1 --budget 20"
    assert {r["experiment"] for r in data["rows"]} == {"F20", "R5.2.1"}


@pytest.mark.parametrize(
    "arguments",
    [("--experiment", "F99"), ("--budget", "0"), ("--json", "/dev/null/x"), ("--output", "/dev/null/x"), ("--what",)],
)
def test_wrong_usage_exits_with_2(lacuna: Lacuna, arguments: tuple[str, ...]) -> None:
    ended = methods(lacuna, *arguments)
    assert ended.returncode == 2
    assert "Traceback" not in ended.stderr
    if "F99" in arguments:
        assert "R5.3.3" in ended.stderr.replace("\n", "")


@pytest.mark.gate
def test_a_wrong_byte_fails_the_run_loudly_and_keeps_the_files(lacuna: Lacuna) -> None:
    ended = methods(lacuna, "--quick", "--output", str(lacuna.output), mood="error")
    assert ended.returncode == 1
    assert "byte 17 is 0x00" in ended.stderr
    assert {e["method"] for e in read(lacuna.output / "bench.json")["errors"]} == {"sgrs"}
    assert "byte 17 is 0x00" in (lacuna.output / "bench.html").read_text()


@pytest.mark.parametrize(
    ("mood", "says"), [("die", "the sky is up"), pytest.param("hang", "fell silent", marks=pytest.mark.gate)]
)
def test_a_broken_worker_ends_the_run_and_keeps_what_was_measured(lacuna: Lacuna, mood: str, says: str) -> None:
    ended = methods(lacuna, "--output", str(lacuna.output), "--timeout", "1", mood=mood)
    assert ended.returncode == 3
    assert says in ended.stderr
    assert "Traceback" not in ended.stderr
    assert read(lacuna.output / "bench.json")["rows"]


def test_a_run_in_which_nothing_works_still_ends_in_order(lacuna: Lacuna) -> None:
    assert methods(lacuna, "--experiment", "F17a", "--output", str(lacuna.output), mood="nodata").returncode == 1
    assert read(lacuna.output / "bench.json")["rows"] == []
    assert not (lacuna.output / "bench.png").exists()


def test_a_nic_without_indirect_keys_says_so(lacuna: Lacuna, tmp_path: Path) -> None:
    file = tmp_path / "b.json"
    ended = methods(lacuna, "--quick", "--json", str(file), mood="nokeys")
    assert ended.returncode == 0, ended.stderr
    data = read(file)
    assert {name: limit for name, limit in data["nic"]["indirect"].items() if limit} == {}
    assert {r["method"] for r in data["rows"] if r["experiment"] == "F21"} == {"pack", "sgrs"}
    assert not [r for r in data["rows"] if r["experiment"] == "F20"]
    assert "create_key" in {s["method"] for s in data["skips"]}
    assert "none: one key stands for one region" in lacuna("info", mood="nokeys").stdout


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_run_keeps_what_was_measured(lacuna: Lacuna, tmp_path: Path, number: signal.Signals) -> None:
    file = tmp_path / "b.json"
    with lacuna.held("bench", "methods", "--json", str(file)) as running:
        assert running.stdout is not None
        assert running.stdout.readline().startswith("measuring")
        running.send_signal(number)
        running.communicate(timeout=PATIENCE)
    assert running.returncode == 130
    data = read(file)
    assert data["interrupted"] is True
    assert data["rows"]


def test_the_budget_is_kept(lacuna: Lacuna, tmp_path: Path) -> None:
    """The worker uses all the time that it is given, and cells are left out."""
    file = tmp_path / "b.json"
    lacuna.variables["MADE_UP_MS"] = "budget"
    ended = methods(lacuna, "--budget", "5", "--json", str(file))
    assert ended.returncode == 0, ended.stderr
    data = read(file)
    assert data["rows"]
    assert data["unmeasured"]
    assert data["seconds"] < 5


def test_help_comes_with_an_example(lacuna: Lacuna) -> None:
    assert "methods" in lacuna("bench", "--help").stdout
    assert "lacuna bench methods --quick" in methods(lacuna, "--help").stdout


def invented(*, latency_us: float = 1.0) -> MethodRun:
    """A bench in which pack is best at small sizes and the last method at large ones; numbers as large as they get."""
    chosen = list(experiments.EXPERIMENTS)
    bench = MethodRun(
        "0.1.0", "2030-01-02T03:04:05Z", "lacuna bench methods", MACHINE, NIC, METHODS, experiments=chosen
    )
    for point in (p for e in chosen for p in e.points):
        s = point.cell.subject
        for i, method in enumerate(point.cell.methods):
            time_us = latency_us * (1 + 0.4 * i + s.payload_bytes / (2000 * (i + 1)))
            bench.rows.append(row(s, method, time_us, censored=method == "umr_send" and s.payload_bytes > 1 << 20))
    return bench


def shown(bench: MethodRun, width: int) -> str:
    out = io.StringIO()
    terminal.show(Console(file=out, width=width, highlight=False), bench)
    return out.getvalue()


@pytest.mark.parametrize("width", [80, 120])
@pytest.mark.parametrize("latency_us", [1.0, 57.0])
def test_tables_fit_the_terminal_and_cut_nothing(width: int, latency_us: float) -> None:
    text = shown(invented(latency_us=latency_us), width)
    assert max(map(len, text.splitlines())) <= width
    assert "…" not in text
    assert "cens." in text
    assert text.count("To compare with:") == 15


def test_what_was_found_is_told_like_a_finding() -> None:
    found = {view.experiment.id: here(view) for view in views(invented())}
    assert found["F17a"] == ["pack is the fastest up to 32 B, sgrs from 64 B"]
    assert found["F20"] == []
    assert len(found["R5.3.3"]) in (1, 3)


def test_each_experiment_has_one_star_a_cell() -> None:
    table = shown(invented(), 120).split("F17b  ")[0]
    assert len(re.findall(r"\*\d", table)) == 10


def test_a_contiguous_message_competes_with_nobody() -> None:
    (view,) = [v for v in views(invented()) if v.experiment.id == "F19"]
    assert view.references == ["pack of one block"]
    assert view.methods == ["pack", "sgrs"]
    for spot in view.panels[0].spots:
        assert {r.subject.block_count for r in spot.contest.ranking} == {30}
        assert spot.references["pack of one block"].subject.payload_bytes == spot.contest.subject.payload_bytes
