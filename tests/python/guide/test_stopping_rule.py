"""Where the time goes: what is not tried, what is looked at twice, and what becomes of two looks."""

from __future__ import annotations

import pytest
from conftest import FAR, grid_subject, guide, look, row

from lacuna.guide.plan import Cell, grid_cell
from lacuna.guide.stopping_rule import Pruning, neighbours, pooled, repeat_of, worth_another_look
from lacuna.worker.records import Subject

pytestmark = pytest.mark.check


def learned(behind: dict[tuple[int, int], dict[str, float]]) -> Pruning:
    """Pruning methods, from how far behind each was in some cells; the best and hand packing are added."""
    hopeless = Pruning()
    for (block, count), methods in behind.items():
        s = grid_subject(block, count)
        rows = [row(s, m, b, behind=b) for m, b in {"sgrs": 1.0, "pack": 6.0, "by_hand_memcpy": 7.0, **methods}.items()]
        hopeless.learn(s, rows)
    return hopeless


def left_out(hopeless: Pruning, subject: Subject) -> set[str]:
    return {out.method for out in hopeless.leave_out(subject)}


def test_neighbours_are_a_quarter_smaller() -> None:
    assert neighbours(grid_subject(256, 64)) == [grid_subject(64, 64), grid_subject(256, 16)]


def test_the_hopeless_are_left_out_and_baselines_stay() -> None:
    behind = {
        (16, 64): {"multi_write": 30.0},
        (64, 16): {"multi_write": 20.0},
        (64, 64): {"multi_write": 40.0},
        (256, 16): {"multi_write": 30.0},
    }
    assert left_out(learned(behind), grid_subject(256, 64)) == {"multi_write"}


def test_who_catches_up_is_tried() -> None:
    behind = {
        (16, 64): {"umr_read": 40.0},
        (64, 16): {"umr_read": 40.0},
        (256, 4): {"umr_read": 40.0},
        (64, 64): {"umr_read": 12.0},
        (256, 16): {"umr_read": 12.0},
    }
    assert left_out(learned(behind), grid_subject(256, 64)) == set()


def test_who_is_good_in_one_neighbour_is_tried() -> None:
    behind = {
        (16, 64): {"multi_write": 30.0},
        (64, 16): {"multi_write": 2.0},
        (64, 64): {"multi_write": 40.0},
        (256, 16): {"multi_write": 2.0},
    }
    assert left_out(learned(behind), grid_subject(256, 64)) == set()


def test_what_was_left_out_stays_out() -> None:
    hopeless = learned({key: {"multi_write": 40.0} for key in ((64, 64), (256, 16), (16, 64))})
    out = hopeless.leave_out(grid_subject(256, 64))
    assert [o.behind for o in out] == [40.0]
    hopeless.learn(grid_subject(256, 64), [row(grid_subject(256, 64), "sgrs", 1.0, behind=1.0)], out)
    hopeless.learn(grid_subject(1024, 16), [row(grid_subject(1024, 16), "sgrs", 1.0, behind=1.0)], out)
    assert left_out(hopeless, grid_subject(1024, 64)) == {"multi_write"}


def cell(block: int, count: int) -> Cell:
    return grid_cell(block, count, "symmetric", "warm", required=True)


def test_disturbed_cells_come_first_then_close_ones() -> None:
    cells = [cell(16, 4), cell(64, 4), cell(256, 4)]
    disturbed, close, clear = (c.subject for c in cells)
    rows = [row(s, m, us) for s in (disturbed, clear) for m, us in (("pack", 1.0), ("sgrs", 2.0))]
    result = guide(*rows, row(close, "pack", 1.0), row(close, "sgrs", 1.05))
    result.looks = [look(disturbed, FAR), *(look(s) for s in (close, clear) for _ in range(4))]
    found = [c.subject for c in worth_another_look(cells, result, 2)]
    assert found[:2] == [disturbed, close]


def test_two_looks_are_joined() -> None:
    s = grid_subject()
    (both,) = pooled([[row(s, "pack", 4.0, behind=1.0)], [row(s, "pack", 9.0, behind=1.21)]])
    assert both.latency_us == pytest.approx(6.0)
    assert (both.ci_low_us, both.ci_high_us) == (pytest.approx(3.96), pytest.approx(9.09))
    assert both.behind == pytest.approx(1.1)
    assert (both.behind_low, both.behind_high) == (pytest.approx(0.99), pytest.approx(1.2221))
    assert (both.samples, both.visits) == (200, 24)


def test_what_the_second_look_left_out_keeps_its_first() -> None:
    s = grid_subject()
    found = pooled([[row(s, "pack", 4.0), row(s, "multi_write", 40.0)], [row(s, "pack", 4.0)]])
    assert {r.method: r.latency_us for r in found} == {"pack": 4.0, "multi_write": 40.0}


def test_a_repeat_tells_how_far_apart_two_looks_are() -> None:
    s = grid_subject()
    first = [row(s, "pack", 1.0), row(s, "sgrs", 1.1), row(s, "by_hand_memcpy", 0.5)]
    second = [row(s, "pack", 1.2), row(s, "sgrs", 1.0), row(s, "by_hand_memcpy", 0.5)]
    repeat = repeat_of(s, first, second, set())
    assert repeat is not None
    assert (repeat.first, repeat.second) == ("pack/mapped", "sgrs/mapped")
    assert repeat.apart == pytest.approx(1.2)
    assert (repeat.first_us, repeat.second_us) == (1.0, 1.2)


def test_third_looks_go_to_close_cells_only_those_with_fewest_looks_first() -> None:
    cells = [cell(16, 4), cell(64, 4), cell(256, 4)]
    often, once, clear = (c.subject for c in cells)
    close = [row(s, m, us) for s in (often, once) for m, us in (("pack", 1.0), ("sgrs", 1.05))]
    result = guide(*close, row(clear, "pack", 1.0), row(clear, "sgrs", 2.0))
    result.looks = [look(often), look(often, number=2), look(once), look(clear)]
    assert [c.subject for c in worth_another_look(cells, result, 3)] == [once, often]
