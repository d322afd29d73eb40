"""Who wins a cell, and when nobody may be said to."""

from __future__ import annotations

from dataclasses import replace

import pytest
from conftest import METHODS, ddtbench_subject, grid_subject, guide, row

from lacuna.guide.contests import Contest, censored, contests, ddtbench, grids, notify_costs, one_of_each_family
from lacuna.worker.records import Row

pytestmark = pytest.mark.check

S = grid_subject()


def contest(*rows: Row) -> Contest:
    (only,) = contests(guide(*rows))
    return only


def test_best_is_the_fastest_over_methods_and_paths() -> None:
    hand = [row(S, "by_hand_elements", 4.0), row(S, "by_hand_memcpy", 3.0, path="kernel")]
    c = contest(*hand, row(S, "pack", 2.5), row(S, "sgrs", 1.5))
    assert c.best is not None
    assert (c.best.method, c.best.path) == ("sgrs", "mapped")
    assert c.gain(c.best) == pytest.approx(2.0)  # over the better of two loops, at its best path
    assert not c.tied


def test_censored_rows_never_win() -> None:
    c = contest(row(S, "pack", 4.0), row(S, "sgrs", 1.0, censored=True))
    assert c.best is not None
    assert c.best.method == "pack"
    assert [r.method for r in c.censored] == ["sgrs"]


def test_nothing_wins_where_all_is_censored() -> None:
    c = contest(row(S, "pack", 4.0, censored=True))
    assert c.best is None
    assert c.gain(c.best) is None


def test_no_gain_without_a_baseline() -> None:
    c = contest(row(S, "sgrs", 4.0))
    assert c.gain(c.best) is None


def test_one_sided_method_competes_with_its_notification() -> None:
    c = contest(row(S, "pack", 2.0), row(S, "multi_write", 1.0), row(S, "multi_write", 3.0, notify="imm"))
    assert c.best is not None
    assert c.best.method == "pack"


def test_one_sided_method_that_was_never_told_to_notify_competes_without() -> None:
    c = contest(row(S, "pack", 2.0), row(S, "multi_write", 1.0))
    assert c.best is not None
    assert c.best.method == "multi_write"


@pytest.mark.parametrize(
    ("second", "half_width", "tied"), [(1.01, 0.01, True), (1.05, 0.01, False), (1.15, None, True)]
)
def test_tie_is_where_intervals_meet(second: float, half_width: float | None, tied: bool) -> None:
    c = contest(row(S, "pack", 1.0, half_width=half_width), row(S, "sgrs", second, half_width=half_width))
    assert c.tied == tied


def test_grids_are_split_by_shape_and_cache_warm_first() -> None:
    cold, finer = grid_subject(cache="cold"), grid_subject(shape="sender_finer")
    found = grids(contests(guide(row(cold, "pack", 1.0), row(finer, "pack", 1.0), row(S, "pack", 1.0))))
    assert [(g.shape, g.cache) for g in found] == [
        ("symmetric", "warm"),
        ("sender_finer", "warm"),
        ("symmetric", "cold"),
    ]


def test_middle_size_stands_for_a_family() -> None:
    rows = [row(ddtbench_subject(f"NAS_LU_y {n}", 480 * n, 12), "pack", 1.0) for n in (5, 1, 3)]
    layouts = ddtbench(contests(guide(*rows, row(ddtbench_subject("FFT2 256"), "pack", 1.0))))
    assert [c.subject.layout for c in layouts] == ["FFT2 256", "NAS_LU_y 1", "NAS_LU_y 3", "NAS_LU_y 5"]
    assert [c.subject.layout for c in one_of_each_family(layouts)] == ["FFT2 256", "NAS_LU_y 3"]


def test_censored_combinations_are_counted_by_cell() -> None:
    other = grid_subject(block_count=64)
    rows = [
        row(S, "multi_write", 2e4, censored=True),
        row(S, "multi_write", 3e4, notify="imm", censored=True),
        row(other, "multi_write", 5e4, censored=True),
    ]
    (group,) = censored(guide(*rows))
    assert (group.cells, group.fastest_us, group.slowest_us) == (2, 2e4, 5e4)


def test_notification_is_priced_against_the_bare_write() -> None:
    rows = [row(S, "multi_write", 1.0), row(S, "multi_write", 1.3, notify="imm"), row(S, "pack", 5.0)]
    (cost,) = notify_costs(rows, METHODS)
    assert (cost.method, cost.notify, cost.cells) == ("multi_write", "imm", 1)
    assert cost.extra_us == pytest.approx(0.3)


def test_hand_packing_is_never_chosen() -> None:
    c = contest(row(S, "by_hand_memcpy", 1.0), row(S, "pack", 1.5))
    assert c.best is not None
    assert c.best.method == "pack"
    assert c.gain(c.best) == pytest.approx(1 / 1.5)


def test_rows_are_told_apart_by_how_far_they_were_behind() -> None:
    """The rounds of a cell share a disturbance: the latencies' intervals meet, and yet one was always the faster."""
    fast = row(S, "pack", 10.0, half_width=0.3, behind=1.0)
    slow = row(S, "sgrs", 11.0, half_width=0.3, behind=1.1)
    sure = replace(slow, behind_low=1.08, behind_high=1.12)
    fast = replace(fast, behind_low=1.0, behind_high=1.0)
    assert not contest(fast, sure).tied
    assert contest(fast, replace(slow, behind_low=0.98, behind_high=1.2)).tied
    assert contest(fast, replace(slow, behind_low=None, behind_high=None)).tied
