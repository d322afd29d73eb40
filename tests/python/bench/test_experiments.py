"""The experiments are what the worker can measure, and what the documents did."""

from __future__ import annotations

import pytest
from conftest import MACHINE, NIC
from fake_tables import METHODS
from fake_worker import subject
from simulated_plan import Simulation, required

from lacuna.bench.methods import experiments
from lacuna.bench.methods.experiments import MB, Experiment
from lacuna.guide import plan
from lacuna.worker.records import Hello, Method

ALL = experiments.EXPERIMENTS
BY_ID = {e.id: e for e in ALL}
HELLO = Hello(
    "0.1.0",
    MACHINE,
    NIC,
    tuple(Method(name, one_sided, tuple(notifies), "") for name, (one_sided, notifies, _) in METHODS.items()),
)


def test_every_experiment_is_there_once() -> None:
    assert [e.id for e in ALL] == [
        *("F17a", "F17b", "F18", "F19", "F20", "F21", "F22", "F23", "F24", "F25"),
        *("R5.2.1", "R5.3.1", "R5.3.2", "R5.3.3", "S2"),
    ]


@pytest.mark.parametrize("experiment", ALL, ids=lambda e: e.id)
def test_cells_are_valid_and_distinct(experiment: Experiment) -> None:
    assert len({p.cell.subject for p in experiment.points}) == len(experiment.points)
    assert len({(p.x, p.group, p.reference) for p in experiment.points}) == len(experiment.points)
    for point in experiment.points:
        cell, s = point.cell, point.cell.subject
        assert s.experiment == experiment.id
        assert s.block_bytes > 0
        assert cell.setup_ms > 0
        assert cell.label.startswith(f"{experiment.id}: ")
        if cell.verb == "keys":
            assert cell.ask(10.0) == {"entries": point.x}
            assert s.payload_bytes == 64 * point.x
            continue
        request = cell.ask(10.0)
        assert request["methods"] == list(cell.methods)
        assert "notifies" not in request
        assert set(cell.methods) <= METHODS.keys()
        _, block, count, payload, shape = subject(cell.spec)  # which asserts what the worker demands
        assert (block, count, payload, shape) == (s.block_bytes, s.block_count, s.payload_bytes, s.shape)


def xs(name: str) -> list[int]:
    return sorted({p.x for p in BY_ID[name].points})


def test_the_conditions_are_those_of_the_documents() -> None:
    assert (xs("F17a")[0], xs("F17a")[-1], len(xs("F17a"))) == (2, 1024, 10)
    assert (xs("F17b")[0], xs("F17b")[-1]) == (2048, 1 << 20)
    assert xs("F18") == [1 << k for k in range(11, 21)]
    assert xs("F20") == [4, 16, 64, 256, 1024, 2048, 4096, 8192, 16384, 32768]
    assert (xs("F21")[0], xs("F21")[-1]) == (4, 4096)
    assert xs("F23") == xs("R5.3.3") == [16, 32, 64, 128, 256, 512]
    assert xs("F24") == [5, 9, 13, 21, 29, 37, 45, 57]
    assert xs("F25") == [4, 8, 16, 32, 64, 128]
    assert (xs("R5.2.1")[0], xs("R5.2.1")[-1]) == (2, 1 << 20)
    specs = {name: [p.cell.spec for p in BY_ID[name].points] for name in BY_ID}
    assert {s["gap_bytes"] for name in ("F17a", "F17b", "F18", "F21", "F22") for s in specs[name]} == {45 * MB}
    assert {(s["gap_bytes"], s["remote"]) for s in specs["R5.2.1"]} == {(20 * MB, "contiguous")}
    assert {(s["gap_bytes"], s["shape"]) for s in specs["R5.3.2"]} == {(16 * MB, "sender_coarser")}
    assert {s["shape"] for s in specs["F22"]} == {"sender_finer"}
    assert all(int(str(s["gap_bytes"])) == 2 * int(str(s["block_bytes"])) for s in specs["F23"])
    assert {int(str(s["gap_bytes"])) + int(str(s["block_bytes"])) for s in specs["S2"]} == {4096 * 4 + 64}
    face = BY_ID["F25"].points[0].cell
    assert (face.spec["block_bytes"], face.spec["block_count"], face.spec["gap_bytes"]) == (16, 2, 16)


def test_layouts_have_short_names() -> None:
    names = {p.cell.subject.layout for e in ALL for p in e.points}
    assert {"blocks_gap45MB", "stencil_21x8B", "blocks_gap20MB_to_contiguous", "blocks_gap2x", "contiguous"} <= names
    assert max(map(len, names)) <= 30


def test_a_thinned_plan_is_a_third_with_the_largest_of_everything() -> None:
    for full, thin in zip(ALL, experiments.thinned(ALL), strict=True):
        full_xs, thin_xs = xs(full.id), sorted({p.x for p in thin.points})
        assert len(thin_xs) == -(-len(full_xs) // 3)
        assert thin_xs[-1] == full_xs[-1]
        assert thin.groups == full.groups


def test_the_thinned_cells_come_first_and_small_before_large() -> None:
    cells = plan.counted(experiments.cells(ALL), HELLO)
    flags = [c.required for c in cells]
    assert flags == sorted(flags, reverse=True)
    assert sum(flags) == len(experiments.cells(experiments.thinned(ALL)))
    first = [c.setup_ms + c.round_ms for c in cells if c.required]
    assert first == sorted(first)


def test_what_lies_far_apart_costs_no_more_to_set_up_than_its_windows() -> None:
    far = BY_ID["F17a"].points[0].cell
    assert far.touched_bytes == 30 * (2 + 8192)


def test_combinations_are_counted_by_path_method_and_notification() -> None:
    by_id = {c.subject.experiment: c for c in plan.counted(experiments.cells(ALL), HELLO)}
    paths = len(NIC.paths)
    assert by_id["F17a"].combos == paths * 2
    assert by_id["R5.2.1"].combos == paths * 4 * 3
    assert by_id["F20"].combos == 3
    few = plan.counted([plan.grid_cell(64, 16, "symmetric", "warm", required=True)], HELLO)
    assert few[0].combos == paths * sum(len(m.notifies) for m in HELLO.methods)


@pytest.mark.parametrize(("quick", "seconds"), [(False, 130), (True, 36)])
@pytest.mark.parametrize("factor", [0.3, 1.0, 4.0])
def test_the_default_time_is_enough_for_all(quick: bool, seconds: float, factor: float) -> None:
    cells = plan.counted(experiments.cells(experiments.thinned(ALL) if quick else ALL), HELLO)
    simulation = Simulation(factor, fixed_ms=20)
    assert simulation.run(cells, seconds) <= seconds * 1.02
    assert simulation.required == required(cells)
