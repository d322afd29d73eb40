"""A rule is stated only as far as the measurements bear it out."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
from conftest import grid_subject, guide, row

from lacuna.guide.contests import Grid, contests, grids
from lacuna.guide.rules import derive, honesty, range_text

pytestmark = pytest.mark.check

BLOCKS, COUNTS = (16, 64, 256, 1024, 4096), (4, 16, 64, 256)


def grid(time_us: Callable[[str, int, int], float]) -> Grid:
    rows = [
        row(grid_subject(b, n), method, time_us(method, b, n))
        for b in BLOCKS
        for n in COUNTS
        for method in ("pack", "sgrs")
    ]
    (only,) = grids(contests(guide(*rows)))
    return only


def test_a_clean_crossover_is_found() -> None:
    rule = derive(grid(lambda method, block, _: 2.0 if (method == "sgrs") == (block < 200) else 1.0))
    assert rule is not None
    assert [(part.blocks, part.combo[0]) for part in rule.parts] == [((16, 64), "pack"), ((256, 1024, 4096), "sgrs")]
    assert rule.trusted
    assert (
        honesty(rule)
        == "as good as the measured best in 20 of 20 cells (100%); at worst it takes 1.0× the time of the best."
    )


def test_the_count_splits_where_it_matters() -> None:
    rule = derive(grid(lambda method, block, n: 2.0 if (method == "sgrs") == (block < 200 and n > 20) else 1.0))
    assert rule is not None
    assert rule.agreement == 1.0
    assert ((16, 64), (64, 256), "pack") in [(part.blocks, part.counts, part.combo[0]) for part in rule.parts]


def test_one_odd_cell_does_not_split_a_rule() -> None:
    rule = derive(grid(lambda method, block, n: 2.0 if (method == "sgrs") == ((block, n) == (16, 4)) else 1.0))
    assert rule is not None
    assert len(rule.parts) == 1
    assert (rule.agreed, rule.cells, rule.worst) == (19, 20, 2.0)


def test_chaos_is_not_called_a_rule() -> None:
    rng = random.Random(3)
    rule = derive(grid(lambda *_: rng.choice((1.0, 2.0, 3.0, 4.0)) * rng.uniform(0.9, 1.1)))
    assert rule is not None
    assert not rule.trusted


def test_a_pick_that_was_censored_somewhere_says_so() -> None:
    rows = [row(grid_subject(b, n), "sgrs", 1.0, censored=b == 16 and n == 4) for b in BLOCKS for n in COUNTS]
    rows += [row(grid_subject(b, n), "pack", 2.0) for b in BLOCKS for n in COUNTS]
    (only,) = grids(contests(guide(*rows)))
    rule = derive(only)
    assert rule is not None
    assert "censored or impossible" in honesty(rule)


def test_too_few_cells_give_no_rule() -> None:
    (only,) = grids(contests(guide(row(grid_subject(), "pack", 1.0))))
    assert derive(only) is None


def test_ranges_in_words() -> None:
    assert range_text((16, 64), (16, 64), str) == "any"
    assert range_text((16,), (16, 64), str) == "up to 16"
    assert range_text((64,), (16, 64), str) == "from 64"
