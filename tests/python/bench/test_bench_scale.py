"""`lacuna bench scale`: which cases it takes, what it makes of them, and that it verifies what it simulates."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from lacuna._core import simulate_scale
from typer.testing import CliRunner

from lacuna.cli.app import app
from lacuna.paper.profiles import PLATFORM_2, find
from lacuna.paper.scale.command import BLOCKS, RANKS, cases
from lacuna.paper.scale.page import ScalePresentation
from lacuna.paper.scale.rows import SCHEDULES, ScaleRow, ScaleRun
from lacuna.worker.result import begun


def row(ranks: int, schedule: str, us: float, chosen: bool, block: int = 64) -> ScaleRow:
    return ScaleRow(ranks, min(ranks, 16), block, schedule, us, us, chosen, 10, 640, 0, 9, 5 << 20, 5 << 20, 0.5)


@pytest.mark.check
def test_what_makes_no_sense_is_told() -> None:
    every = list(cases(RANKS, BLOCKS))
    assert len(every) == len(RANKS) * len(BLOCKS) * len(SCHEDULES)
    senseless = {case.name: case.senseless() for case in every if case.senseless()}
    assert all(case.nodes == min(case.ranks, 16) for case in every)
    assert "never forwarded" in senseless["4 ranks, 32 KiB, forward"]
    assert "memory" in senseless["1024 ranks, 4 KiB, pairwise"]
    worth = [case for case in every if not case.senseless()]
    assert {case.schedule for case in worth if case.ranks == 256} == set(SCHEDULES)
    assert {case.schedule for case in worth if case.ranks == 1024} == {"at_once", "forward"}
    assert "never chosen" in senseless["1024 ranks, 8 B, pairwise"]
    assert all(4 * case.ranks**2 * case.bytes <= 3 << 30 for case in worth)


@pytest.mark.check
def test_a_regret_is_against_the_best(tmp_path: Path) -> None:
    run = begun(ScaleRun, "lacuna bench scale")
    assert run.is_empty
    assert run.summary() == {}
    run.rows = [row(16, "at_once", 12, True), row(16, "forward", 10, False), row(8, "at_once", 5, True)]
    run.rows += [row(32, "pairwise", 5, False)]
    run.skipped = ["32 ranks, 64 B, forward: no reason"]
    assert [(cell.best.ranks, cell.regret) for cell in run.cells] == [(8, 0), (16, pytest.approx(0.2)), (32, None)]
    summary = run.summary()
    assert summary["ranks_most"] == 32
    assert summary["regret_worst"] == pytest.approx(0.2)
    assert summary["regret_mean"] == pytest.approx(0.1)
    assert {file.name for file in ScalePresentation(run).write(tmp_path)} == {"scale.html", "scale.png"}
    assert "no reason" in (tmp_path / "scale.html").read_text()


@pytest.mark.check
def test_a_simulation_is_the_same_every_time() -> None:
    profile = str(find(PLATFORM_2))
    for schedule in SCHEDULES:
        first = simulate_scale(profile, 24, 6, 64, schedule)
        assert simulate_scale(profile, 24, 6, 64, schedule) == first
        assert first["schedule"] == schedule
        assert first["us"] > 0
    # Each rank's block for each other rank, by its own message, at least
    assert simulate_scale(profile, 24, 6, 64, "at_once")["messages"] >= 24 * 23
    assert simulate_scale(profile, 24, 6, 64, "at_once")["bytes"] >= 24 * 23 * 64
    assert simulate_scale(profile, 24, 6, 64, "forward")["messages"] < 24 * 23


@pytest.mark.check
def test_wrong_arguments_are_told() -> None:
    profile = str(find(PLATFORM_2))
    with pytest.raises(ValueError, match="elements of 8"):
        simulate_scale(profile, 2, 1, 12, "at_once")
    with pytest.raises(ValueError, match="no schedule"):
        simulate_scale(profile, 2, 1, 8, "leader")
    with pytest.raises(ValueError, match="node"):
        simulate_scale(profile, 2, 0, 8, "at_once")


@pytest.mark.check
def test_it_runs_and_verifies() -> None:
    options = ["--ranks", "4", "--ranks", "32", "--block", "8", "--block", "32768", "--json", "-"]
    done = CliRunner().invoke(app, ["bench", "scale", *options])
    assert done.exit_code == 0, done.output
    said = json.loads(done.stdout)
    assert said["errors"] == []
    assert len(said["skipped"]) == 2  # 32 KiB are not forwarded
    assert {(one["ranks"], one["bytes"]) for one in said["rows"]} == {(4, 8), (32, 8), (4, 32768), (32, 32768)}
    assert all(one["registered"] > 0 and one["messages"] > 0 for one in said["rows"])
    assert sum(one["chosen"] for one in said["rows"]) == 4
