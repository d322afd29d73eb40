"""The documents' findings on the model: Table 4, the fit, profiles, and the commands. Virtual time is the same on every
machine, so numbers may be asserted."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
import typer
from conftest import PATIENCE
from matplotlib.lines import Line2D

from lacuna.cli import paper as command
from lacuna.paper import fit, pictures, profiles, runs, table4
from lacuna.paper import page as report
from lacuna.paper.profiles import CACHE_VARIANT, LABELS, PLATFORM_2, Profile, ProfileError
from lacuna.paper.results import CHAPTERS, Chapter, Results
from lacuna.paper.section import Finding, Line, Plot, Section
from lacuna.paper.sections import alltoall_2005, figures_of_paper, figures_of_report, questions, table4_findings
from lacuna.paper.sections.study import section
from lacuna.paper.simulator import RefusedError, Simulator, Trial, grid
from lacuna.worker.client import find_worker
from lacuna.worker.process import WorkerError


@pytest.fixture
def simulator() -> Any:
    try:
        find_worker()
    except WorkerError as e:
        pytest.skip(str(e))
    with Simulator() as started:
        yield started


# --- profiles -------------------------------------------------------------------------------------------------------


def test_every_profile_says_where_its_numbers_come_from() -> None:
    assert {PLATFORM_2, CACHE_VARIANT, "connectx5-platform1", "infiniband-pcix-2005"} <= set(profiles.names())
    for name in profiles.names():
        profile = profiles.load(name)
        for parameter in profile.parameters.values():
            assert parameter.label in LABELS
            assert len(parameter.origin) > 3, f"{name}: {parameter.name}"
            if parameter.label == "calibrated":
                assert parameter.prior
                assert "Table 4" in parameter.origin


def test_a_profile_inherits_from_its_base() -> None:
    base, derived = profiles.load(PLATFORM_2), profiles.load("what-if-no-umr")
    assert derived.value("limits.indirect_keys") == 0 < base.value("limits.indirect_keys")
    assert derived.value("nic.wire_gb_s") == base.value("nic.wire_gb_s")
    assert derived.parameters["nic.wire_gb_s"].inherited
    assert not derived.parameters["limits.indirect_keys"].inherited


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "cannot read"),
        ('{"parameters": {"a": 1}}', "cannot read"),
        ('{"parameters": {"a": {"value": 1, "label": "guessed", "origin": "x"}}}', "guessed"),
        ('{"base": "self", "parameters": {}}', "no end"),
    ],
)
def test_a_bad_profile_is_named(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "self.json"
    file.write_text(text)
    with pytest.raises(ProfileError, match=said) as caught:
        profiles.load(str(file))
    assert "self.json" in str(caught.value)


def test_an_unknown_profile_lists_those_there_are() -> None:
    with pytest.raises(ProfileError, match=PLATFORM_2):
        profiles.load("connectx9")


# --- the table and its fit ------------------------------------------------------------------------------------------


def test_table4_is_whole() -> None:
    cells = {(c.block_bytes, c.method, c.blocks): c.paper_us for c in table4.cells()}
    assert len(cells) == 120
    assert cells[256, "sgrs", 16] == 6.30
    assert cells[65536, "umr_w", 512] == 16647.07
    assert len({c.row for c in table4.cells()}) == 20


def test_errors_are_fractions() -> None:
    errors = table4.Errors.of(np.array([0.01, -0.02, 0.03, -0.10]))
    assert (errors.median, errors.max) == (pytest.approx(0.025), pytest.approx(0.10))


class FakeSimulator:
    """A model of two parameters whose values are known: a constant and a price for each byte."""

    truth: Mapping[str, float] = {"a": 5.0, "b": 0.2}

    def latency(self, trial: Trial, values: Mapping[str, float]) -> float:
        layout = cast(Mapping[str, int], trial.layout)
        return values["a"] + values["b"] * layout["block_bytes"] * layout["block_count"] / 1000

    def transfers(
        self, _: Path, trials: Sequence[Trial], overrides: Mapping[str, float], *, verify: bool
    ) -> list[dict[str, float]]:
        assert not verify
        return [{"latency_us": self.latency(t, overrides)} for t in trials]


@pytest.fixture
def two_parameters(monkeypatch: pytest.MonkeyPatch) -> fit.Problem:
    fake = FakeSimulator()
    cells = tuple(replace(c, paper_us=fake.latency(c.trial, fake.truth)) for c in table4.cells())
    monkeypatch.setattr(table4, "cells", lambda: cells)
    priors = {"a": 9.0, "b": 1.0}
    parameters = {n: profiles.Parameter(1.0, "calibrated", "Table 4", prior, n) for n, prior in priors.items()}
    return fit.Problem(cast(Simulator, fake), Profile("fake", "fake", Path("fake"), parameters))


def test_the_fit_finds_what_the_table_was_made_with(two_parameters: fit.Problem) -> None:
    fitted = fit.repeat(two_parameters)
    # The regularisation to priors of twice and five times the truth pull by a little.
    assert fitted.values == {"a": pytest.approx(5.0, rel=0.01), "b": pytest.approx(0.2, rel=0.01)}
    assert fitted.errors.max < 0.01
    assert fitted.leave_one_out.max < 0.02


def test_a_row_that_is_left_out_has_no_part_in_its_error(
    two_parameters: fit.Problem, monkeypatch: pytest.MonkeyPatch
) -> None:
    wrong = (256, "sgrs")
    cells = tuple(
        table4.Cell(c.block_bytes, c.method, c.blocks, c.paper_us * (3 if c.row == wrong else 1))
        for c in table4.cells()
    )
    monkeypatch.setattr(table4, "cells", lambda: cells)
    x, r = fit.solve(two_parameters, two_parameters.prior)
    left_out = fit.leave_one_out(two_parameters, x, r, steps=6)
    of_row = [i for i, c in enumerate(cells) if c.row == wrong]
    # The others say a third of what the row says; a fit with it comes nearer to it.
    assert np.abs(left_out[of_row] + 2 / 3).max() < 0.05
    assert np.abs(np.expm1(r[of_row])).mean() < np.abs(left_out[of_row]).mean()


@pytest.mark.all
def test_the_model_meets_table4(simulator: Simulator) -> None:
    found = table4_findings.section(simulator)
    data = found.data
    assert cast(float, data["median_error"]) <= 0.03
    assert cast(float, data["p90_error"]) <= 0.08
    assert cast(float, data["max_error"]) <= 0.15
    assert cast(float, data["leave_one_out_median"]) <= 0.06
    assert len(cast(list[object], data["cells"])) == 120
    assert found.findings[0].holds


# --- the simulator --------------------------------------------------------------------------------------------------


def test_the_same_request_has_the_same_answer(simulator: Simulator) -> None:
    path = profiles.find(PLATFORM_2)
    trials = [Trial(grid(b, n), m) for b in (64, 5000) for n in (3, 40) for m in ("pack", "sgrs", "umr_send")]
    first = simulator.transfers(path, trials)
    assert simulator.transfers(path, trials) == first
    unmoved = simulator.transfers(path, trials, verify=False)
    assert [r["latency_us"] for r in unmoved] == [r["latency_us"] for r in first]
    assert all(r["verified"] for r in first)
    assert not any(r["verified"] for r in unmoved)


def test_a_slower_wire_costs_what_its_bytes_cost(simulator: Simulator) -> None:
    path = profiles.find(PLATFORM_2)
    trial = [Trial(grid(1 << 20, 1), "sgrs")]
    fast, slow = (simulator.transfers(path, trial, {"nic.wire_gb_s": rate})[0]["latency_us"] for rate in (8.0, 4.0))
    carried = (1 << 20) + 1024 * profiles.load(PLATFORM_2).value("nic.header_bytes")
    assert slow - fast == pytest.approx(carried / 4000 - carried / 8000, rel=1e-3)


@pytest.mark.parametrize(
    ("trial", "said"),
    [
        (Trial(grid(64, 4), "teleport"), "teleport"),
        (Trial({"kind": "grid", "block_bytes": 64}, "pack"), "block_count"),
        (Trial(grid(64, 4), "sgrs", "smoke"), "smoke"),
        (Trial(grid(64, 4), "pack_write"), "notification"),
    ],
)
def test_what_cannot_be_done_is_said(simulator: Simulator, trial: Trial, said: str) -> None:
    with pytest.raises(RefusedError, match=said):
        simulator.transfers(profiles.find(PLATFORM_2), [trial])
    assert simulator.transfers(profiles.find(PLATFORM_2), [Trial(grid(64, 4), "pack")])  # it works on


def test_a_wrong_override_names_the_parameter(simulator: Simulator) -> None:
    with pytest.raises(WorkerError, match=r"no parameter is named nic\.colour"):
        simulator.transfers(profiles.find(PLATFORM_2), [Trial(grid(64, 4), "pack")], {"nic.colour": 1.0})


# --- experiments ----------------------------------------------------------------------------------------------------


def test_a_crossing_is_where_one_stays_ahead() -> None:
    panel = runs.Panel("", [1, 2, 3, 4])
    panel.lines = {
        "a": {x: {"latency_us": us} for x, us in zip(panel.xs, (1.0, 5.0, 2.0, 2.0), strict=True)},
        "b": {x: {"latency_us": 3.0} for x in panel.xs},
    }
    assert panel.first("a", "b") == 3
    assert panel.first("b", "a") is None
    assert panel.best(2, ("a", "b")) == "b"


def test_a_finding_has_its_sections_id_and_label_and_a_reason() -> None:
    made = Section("F0", "", "", PLATFORM_2, "literature")
    made.finds("a", "1", "1", True)
    made.finds("b", "1", "2", False)
    made.finds("c", "1", "2", False, "because", of="Item 0", label="calibrated")
    assert [(f.id, f.label, f.reason) for f in made.findings] == [
        ("F0", "literature", ""),
        ("F0", "literature", "the model does not say why"),
        ("Item 0", "calibrated", "because"),
    ]


@pytest.mark.parametrize("which", ["F21", "R5.2.1", "R5.2.2"])
def test_a_study_judges_and_draws(simulator: Simulator, which: str) -> None:
    study = next(s for s in (*figures_of_paper.STUDIES, *figures_of_report.STUDIES) if s.id == which)
    made = section(study, simulator)
    assert {f.id for f in made.findings} == {which}
    assert made.plots[0].lines
    assert all(f.reason for f in made.findings if not f.holds)


def test_a_line_has_one_colour_in_the_legend_and_in_every_panel() -> None:
    names = (("pack", "sgrs"), ("512 x 1 KiB", "512 x 4 KiB"), ("512 x 4 KiB", "wire"))
    plots = [Plot(str(i), "x", "y", [Line(n, [1, 2], [1.0, 2.0]) for n in pair]) for i, pair in enumerate(names)]
    drawn = pictures.draw(Section("F0", "t", "c", PLATFORM_2, plots=plots))
    legend = {h.get_label(): h.get_color() for h in drawn.legends[0].legend_handles if isinstance(h, Line2D)}
    assert set(legend) == {n for pair in names for n in pair}
    assert len(set(legend.values())) == len(legend)
    for axes, pair in zip(drawn.axes, names, strict=True):
        assert [line.get_color() for line in axes.lines] == [legend[n] for n in pair]


def test_a_judge_can_say_no() -> None:
    panel = runs.Panel("", [1024, 1048576])
    panel.lines = {m: {x: {"latency_us": 10.0} for x in panel.xs} for m in ("pack", "sgrs")}
    study = next(s for s in figures_of_paper.STUDIES if s.id == "F17b")
    made = Section("F17b", "", "", PLATFORM_2)
    study.judge(made, {"": panel}, cast(Simulator, None))
    (finding,) = made.findings
    assert not finding.holds
    assert finding.id == "F17b"


def test_table3_and_what_is_not_dominated() -> None:
    def spot(size: int, blocks: int) -> questions.Spot:
        def row(us: float, cpu: float) -> dict[str, float]:
            return {"latency_us": us, "cpu_send_us": cpu, "cpu_recv_us": 0.0}

        return questions.Spot(size, blocks, {"pack": row(5, 4), "sgrs": row(6, 1), "umr_send": row(7, 2)})

    assert spot(64, 16).table3 == "umr_write, silent"
    assert (spot(64, 128).table3, spot(128, 128).table3) == ("pack", "sgrs")
    assert spot(64, 16).fastest == "pack"
    assert spot(64, 16).undominated() == ["pack", "sgrs"]


def test_unequal_lists_move_the_right_bytes(simulator: Simulator) -> None:
    assert questions.unequal_lists(simulator).findings[0].holds


# --- the commands ---------------------------------------------------------------------------------------------------


def lacuna(*arguments: str, env: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "lacuna", "paper", *arguments],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
        env={**os.environ, **(env or {})},
    )


def test_one_experiment_by_its_name(simulator: Simulator, tmp_path: Path) -> None:
    del simulator
    ended = lacuna("f20", "--json", "-", "--output", str(tmp_path))
    assert ended.returncode == 0, ended.stderr
    data = json.loads(ended.stdout)
    assert {"table4", "findings", "what_if"} <= set(data)
    (finding,) = data["findings"]
    assert set(finding) >= {"id", "statement", "label", "expected", "got", "holds"}
    assert finding["label"] in LABELS
    page = (tmp_path / "paper.html").read_text()
    assert "F20" in page
    assert "register.key_ns" in page  # with its origin
    assert (tmp_path / "paper.png").stat().st_size > 10_000


def test_help_lists_every_experiment() -> None:
    ended = lacuna("--help")
    assert ended.returncode == 0
    for chapter in CHAPTERS:
        assert chapter.name in ended.stdout


def test_a_missing_worker_is_said(tmp_path: Path) -> None:
    ended = lacuna("f20", env={"LACUNA_WORKER": str(tmp_path / "nothing")})
    assert ended.returncode == 3
    assert "LACUNA_WORKER" in ended.stderr


def test_what_was_simulated_before_a_failure_is_written(simulator: Simulator, tmp_path: Path) -> None:
    del simulator

    def breaks(_: Simulator) -> Section:
        raise WorkerError("it broke")

    chapters = [next(c for c in CHAPTERS if c.name == "f20"), Chapter("broken", "it breaks", breaks)]
    file = tmp_path / "paper.json"
    with pytest.raises(typer.Exit) as ended:
        command._run(chapters, [], file, None)
    assert ended.value.exit_code == 3
    assert [f["id"] for f in json.loads(file.read_text())["findings"]] == ["F20"]


def test_the_report_escapes_and_tells_what_does_not_hold(tmp_path: Path) -> None:
    no = Finding("F0", "a < b", "predicted", "<x>", "y", holds=False, reason="because <of> this")
    files = report.write(Results("0", "lacuna paper", [Section("F0", "t", "c", PLATFORM_2, findings=[no])]), tmp_path)
    page = files[0].read_text()
    assert "a &lt; b" in page
    assert "<b>does not hold</b>" in page
    assert "Because &lt;of&gt; this" in page
    assert len(files) == 1  # nothing to draw


def test_the_alltoall_of_2005_is_made_of_exchanges() -> None:
    found = alltoall_2005.rows(profiles.load("infiniband-pcix-2005"), columns=(64,), ranks=2)
    assert [r.method for r in found] == 2 * ["sgrs", "multi_write", "pack"]
    assert alltoall_2005.gains(found)[64] < alltoall_2005.gains(found, left_registered=True)[64]
    assert 0.13 < alltoall_2005.gains(found)[64] < 0.33  # what finding() takes for the paper's 23 %
    made = Section("S2", "", "", "")
    alltoall_2005.add(made, found)
    assert [f.holds for f in made.findings] == [True]
    assert made.plots[0].lines[0].ys == [found[0].latency_us]
    assert len(made.grids[0].rows) == 2
