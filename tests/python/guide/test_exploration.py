"""Which pair is measured next, and when enough is known: on made-up prices, and on a simulated NIC."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from conftest import PATIENCE, guide
from lacuna._core import Guide
from synthetic import ONE_PATH, run_of, some_pairs

from lacuna.guide import calibration, campaign, exploration, plan
from lacuna.guide.exploration import Explorer
from lacuna.guide.fitting import limits_text
from lacuna.guide.pairs import random_pairs
from lacuna.worker.client import Worker
from lacuna.worker.records import Hello

pytestmark = pytest.mark.check


def hello() -> Hello:
    made = guide()
    return Hello(made.lacuna_version, made.machine, ONE_PATH, made.methods)


def explorer(bound: float = 0.0, count: int = 40) -> Explorer:
    return Explorer(hello(), lambda: random_pairs(count, 3), bound)


def test_too_few_rows_explore_nothing() -> None:
    result, cells = run_of(some_pairs(5))
    found = explorer()
    assert not found.begin(result.rows, cells)
    assert found.expected_regret is None


def test_no_pair_is_wanted_twice() -> None:
    result, cells = run_of(some_pairs(24))
    found = explorer()
    assert found.begin(result.rows, cells)
    names: list[str] = []
    while wanted := found.wanted(15):
        names += [cell.subject.layout for cell in wanted]
    assert sorted(names) == sorted(replace(pair, number=1000 + i).name for i, pair in enumerate(random_pairs(40, 3)))


def test_nothing_is_wanted_where_little_is_to_be_lost() -> None:
    result, cells = run_of(some_pairs(24))
    found = explorer(bound=1.0)
    assert found.begin(result.rows, cells)
    assert found.wanted() == []
    assert found.expected_regret is not None
    assert 0 <= found.expected_regret < 1


def test_the_least_certain_pair_is_wanted_first() -> None:
    expected = np.log(np.array([[1.0, 1.01], [1.0, 3.0], [1.0, 1.0]]))
    support = np.array([[0.0, 0.0], [0.0, 0.0], [5.0, 5.0]])
    regrets = exploration._regrets(expected, np.zeros(3, dtype=np.intp), support, np.array([0.01, 0.01]))
    assert np.argmax(regrets) == 0  # close, and nothing near was measured
    assert regrets[1] < 1e-6  # the order is clear
    assert 0 < regrets[2] < regrets[0]  # as close, but near ones were measured


def test_a_way_that_nobody_can_tell_of_is_no_regret() -> None:
    expected = np.array([[0.0, np.nan], [0.0, 5.0]])
    regrets = exploration._regrets(expected, np.zeros(2, dtype=np.intp), np.zeros((2, 2)), np.array([0.01, 0.01]))
    assert list(regrets < 1e-9) == [True, True]


def test_what_is_kept_as_usual_is_a_regret() -> None:
    expected = np.log(np.array([[1.03, 1.0]]))
    sure = np.full((1, 2), 1e9)
    spread = np.array([1e-12, 1e-12])
    kept, best = (exploration._regrets(expected, np.array([way]), sure, spread) for way in (0, 1))
    assert kept[0] == pytest.approx(np.log(1.03), rel=1e-3)
    assert best[0] < 1e-6


@pytest.mark.parametrize(
    ("times", "near", "chosen"),
    [((1.09, 1.0), 0, 0), ((1.11, 1.0), 0, 1), ((1.04, 1.0), 1, 0), ((1.06, 1.0), 1, 1), ((np.nan, 1.0), 0, 1)],
)
def test_the_usual_way_is_chosen_within_the_margin(times: tuple[float, float], near: float, chosen: int) -> None:
    result, cells = run_of(some_pairs(24))
    found = explorer()
    assert found.begin(result.rows, cells)
    found._hysteresis = 0.1
    assert found._chosen(np.log(np.array([times])), np.array([0]), np.full((1, 2), near)) == [chosen]


def test_what_is_usually_best_is_what_the_library_chooses_without_a_profile() -> None:
    result, cells = run_of(some_pairs(24))
    found = explorer()
    assert found.begin(result.rows, cells)
    usual = Guide("local", limits=limits_text(ONE_PATH))
    for pair, best in zip(found._pool, found._pool_usual, strict=True):
        _, ways = usual.explain(pair.send, pair.receive)
        explored = {(w["method"], w["path"], w["notify"]): w.get("predicted_us", np.inf) for w in ways}
        assert explored[found._ways[best]] == pytest.approx(min(explored[way] for way in found._ways))


# --- with the worker, on a simulated NIC


@pytest.mark.usefixtures("still_clock")
def test_what_is_wanted_is_measured_and_kept_in_the_profile(simulated: Worker) -> None:
    told = simulated.hello
    cells = plan.counted(plan.simulated(plan.pair_cells(20)), told)
    result = replace(guide(), nic=told.nic, methods=told.methods, machine=told.machine)
    wants = Explorer(told, lambda: random_pairs(12, 3), 0.0)
    again = campaign.SecondLooks(0.0, 1, lambda: pytest.fail("no second looks"), wants, 0.9)
    campaign.measure(simulated, cells, result, PATIENCE, 50, lambda *_: None, again)
    assert result.errors == []
    assert len(cells) == 20 + 12
    assert {r.subject for r in result.rows} == {c.subject for c in cells}
    profile = calibration.calibrate(result, cells)
    assert profile
    (peers,) = json.loads(profile.store(told.nic.name).read_text())["classes"]
    assert len(peers["seen"]) == 32
    assert all(len(s["us"]) == len(peers["ways"]) for s in peers["seen"])
    # Another run keeps them, and has its own of the same pairs.
    slower = [replace(r, latency_us=2 * r.latency_us) for r in result.rows if r.subject == cells[0].subject]
    more = calibration.calibrate(replace(result, rows=slower), cells)
    assert more
    (refined,) = json.loads(more.store(told.nic.name).read_text())["classes"]
    assert len(refined["seen"]) == 32
    (first,) = (s for s in peers["seen"] if s["pair"] == refined["seen"][0]["pair"])
    twice = dict(zip(refined["ways"], refined["seen"][0]["us"], strict=True))
    once = dict(zip(peers["ways"], first["us"], strict=True))
    assert all(twice[way] == pytest.approx(2 * us, rel=1e-4) for way, us in once.items() if us)
