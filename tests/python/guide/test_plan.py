"""The plans keep what guide.json promises."""

from __future__ import annotations

import pytest
from fake_tables import CORPUS
from simulated_plan import FAMILIES

from lacuna.guide import plan
from lacuna.guide.plan import Cell, ddtbench_cell, grid_cell, middle_size
from lacuna.guide.run_record import LeftOut
from lacuna.worker.records import Family, Size

pytestmark = pytest.mark.check


def grid_keys(cells: list[Cell]) -> set[tuple[int, int, str]]:
    return {
        (c.subject.block_bytes, c.subject.block_count, c.subject.shape)
        for c in cells
        if c.subject.experiment == "grid" and c.subject.cache == "warm" and c.required
    }


@pytest.mark.parametrize("cells", [plan.quick(FAMILIES), plan.full(FAMILIES)], ids=["quick", "full"])
def test_required_cells_hold_a_whole_grid_and_every_family(cells: list[Cell]) -> None:
    keys = grid_keys(cells)
    blocks, counts, shapes = ({key[i] for key in keys} for i in range(3))
    assert len(blocks) >= 5
    assert len(counts) >= 4
    assert len(shapes) >= 2
    assert len(keys) == len(blocks) * len(counts) * len(shapes)
    families = {c.subject.layout.split()[0] for c in cells if c.subject.experiment == "ddtbench" and c.required}
    assert families == {name for name, _ in CORPUS}


def test_quick_takes_one_size_of_each_family() -> None:
    cells = [c for c in plan.quick(FAMILIES) if c.subject.experiment == "ddtbench"]
    assert len(cells) == len(CORPUS)


def test_full_takes_every_size_three_shapes_and_both_cache_states() -> None:
    cells = plan.full(FAMILIES)
    grid = [c.subject for c in cells if c.subject.experiment == "grid"]
    assert sum(c.subject.experiment == "ddtbench" for c in cells) == sum(len(sizes) for _, sizes in CORPUS)
    assert {s.shape for s in grid} == {"symmetric", "sender_finer", "sender_coarser"}
    assert {s.cache for s in grid} == {"warm", "cold"}
    assert {s.block_bytes for s in grid} >= {16, 1 << 20}
    assert {s.block_count for s in grid} >= {1, 4096}
    assert max(s.payload_bytes for s in grid) <= plan.FULL_MESSAGE_CAP


@pytest.mark.parametrize("cells", [plan.quick(FAMILIES), plan.full(FAMILIES)], ids=["quick", "full"])
def test_no_cell_twice_required_first_and_all_possible(cells: list[Cell]) -> None:
    assert len({c.subject for c in cells}) == len(cells)
    required = [c.required for c in cells]
    assert required == sorted(required, reverse=True)
    for c in cells:
        if c.subject.shape == "sender_finer":
            assert c.subject.block_bytes >= 4
        if c.subject.shape == "sender_coarser":
            assert c.subject.block_count >= 2


def test_middle_size_is_the_largest_that_is_cheap_or_else_the_smallest() -> None:
    def family(*sizes: tuple[int, int]) -> Family:
        return Family("F", tuple(Size(payload, "", span, 1) for payload, span in sizes))

    assert middle_size(family((65536, 1 << 20), (4096, 1 << 20), (1 << 20, 1 << 20))) == 0
    assert middle_size(family((65536, 1 << 30), (4096, 1 << 20))) == 1
    assert middle_size(family((1 << 21, 1 << 21), (1 << 20, 1 << 20))) == 1


def test_specs_speak_the_workers_language() -> None:
    assert grid_cell(64, 16, "sender_finer", "warm", required=True).spec == {
        "kind": "grid",
        "block_bytes": 64,
        "block_count": 16,
        "shape": "sender_finer",
    }
    cell = ddtbench_cell(FAMILIES[0], 1, required=True)
    assert cell.spec == {"kind": "ddtbench", "name": "WRF_y_vec", "size": 1}
    assert cell.subject.layout == "WRF_y_vec 24x65x34"
    assert (cell.subject.block_bytes, cell.subject.block_count) == (64, 987)


def test_the_whole_sweep_is_cold_and_warm_in_all_shapes() -> None:
    grid = [c.subject for c in plan.full(FAMILIES) if c.subject.experiment == "grid"]
    by_state = {(s.shape, s.cache) for s in grid}
    assert len(by_state) == 6
    for shape, cache in by_state:
        here = {(s.block_bytes, s.block_count) for s in grid if (s.shape, s.cache) == (shape, cache)}
        sizes = [b * n for b, n in here]
        assert (min(b for b, _ in here), max(b for b, _ in here)) == (16, 1 << 20)
        assert max(n for _, n in here) == 4096
        assert max(sizes) == 64 << 20
    assert {s.layout for s in grid if s.cache == "cold"} == {plan.WIDE_LAYOUT}


def test_ai_transfers_are_cells_of_their_own() -> None:
    family = Family("kv", (Size(8 << 20, "256 of 24000", 16 << 20, 256),), "pages")
    (cell,) = [c for c in plan.full(FAMILIES, (family,), 8 << 20) if c.subject.experiment == "ai"]
    assert cell.spec == {"kind": "ai", "name": "kv", "most_payload": 8 << 20}
    assert cell.subject.block_bytes == 32 << 10
    assert cell.label == "kv 256 of 24000, warm"


def test_what_is_left_out_is_asked_for_and_costs_nothing() -> None:
    cell = grid_cell(64, 16, "symmetric", "warm", required=True)
    assert "leave_out" not in cell.ask(1.0)
    fewer = cell.without((LeftOut("multi_write", "kernel", 40.0),))
    assert fewer.ask(1.0)["leave_out"] == [["multi_write", "kernel"]]
    assert fewer.setup_ms < cell.setup_ms


def test_all_notifications_are_asked_for_where_there_is_time() -> None:
    cells = plan.with_all_notifications(plan.full(FAMILIES))
    assert not any("notifies" in c.ask(1.0) for c in cells)
