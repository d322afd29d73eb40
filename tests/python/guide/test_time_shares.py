"""The time is shared out, and kept, whatever the worker's speed."""

from __future__ import annotations

import pytest
from simulated_plan import FAMILIES, Simulation, required

from lacuna.guide import plan
from lacuna.guide.time_shares import Pacer, SetupModel

pytestmark = pytest.mark.check


@pytest.mark.parametrize("factor", [0.1, 1.0, 2.0])
def test_quick_measures_everything_required_and_uses_the_time(factor: float) -> None:
    cells = plan.quick(FAMILIES)
    simulation = Simulation(factor)
    assert 0.9 * 12 <= simulation.run(cells, 12) <= 12.1
    assert simulation.required == required(cells)


@pytest.mark.parametrize("factor", [0.1, 1.0])
def test_full_measures_everything_required_and_uses_the_time(factor: float) -> None:
    cells = plan.full(FAMILIES)
    simulation = Simulation(factor)
    assert 0.8 * 69 <= simulation.run(cells, 69) <= 69.5
    assert simulation.required == required(cells)


def test_fixed_cost_of_a_cell_is_learned() -> None:
    cells = plan.quick(FAMILIES)
    simulation = Simulation(fixed_ms=60)
    assert simulation.run(cells, 12) <= 12.2
    assert simulation.required == required(cells)


def test_slow_worker_loses_the_optional_cells_first() -> None:
    cells = plan.full(FAMILIES)
    simulation = Simulation(factor=4)
    assert simulation.run(cells, 69) <= 69 * 1.02
    assert simulation.required == required(cells)
    assert len(simulation.measured) < len(cells)


@pytest.mark.parametrize("factor", [20.0, 100.0])
def test_hopelessly_slow_worker_overruns_by_one_cell_at_most(factor: float) -> None:
    cells = plan.quick(FAMILIES)
    simulation = Simulation(factor)
    took = simulation.run(cells, 12)
    last_cell = simulation.measured[-1][0]
    assert took <= 12 + 1.2 * factor * last_cell.setup_ms / 1e3
    assert simulation.measured


def test_time_that_fast_cells_leave_goes_to_later_ones() -> None:
    cells = plan.quick(FAMILIES)
    hasty, patient = Simulation(enough_ms=40), Simulation()
    hasty.run(cells, 12)
    patient.run(cells, 12)
    assert hasty.measured[-1][1] > patient.measured[-1][1]


def test_censoring_spares_what_is_merely_slow() -> None:
    cells = plan.full(FAMILIES)
    pacer = Pacer(cells, 69, lambda: 0.0)
    for cell in cells:
        grant = pacer.grant()
        if grant:
            assert grant.censor_ms >= 10
            assert grant.censor_ms >= 20 * cell.transfer_ms


def test_setup_model_learns_fixed_and_proportional_cost() -> None:
    model = SetupModel()
    assert model.predict(100) == pytest.approx(100)
    for guess in (1, 2, 5, 10, 100, 1000) * 20:
        model.learn(guess, 30 + 3 * guess)
    assert model.predict(2) == pytest.approx(36, rel=0.15)
    assert model.predict(1000) == pytest.approx(3030, rel=0.15)


def test_what_is_kept_for_later_is_kept_from_optional_cells_only() -> None:
    cells = plan.full(FAMILIES)
    clock = [0.0]
    pacer = Pacer(cells, 60, lambda: clock[0])
    pacer.kept = 60
    granted = [cell for cell in cells if pacer.grant()]
    assert [c.required for c in granted] == [True] * required(cells)
