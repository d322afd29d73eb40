"""Which classes of peers of the profile that was there a new one keeps, and what of them."""

from __future__ import annotations

from typing import Any

import pytest
from lacuna._core import speed_factor

from lacuna.guide import profile_merge
from lacuna.guide.profile_merge import refined

pytestmark = pytest.mark.check

ONE_CORE, NEAR, FAR = 1.45, 2.7, 9.0
PACK = "pack/mapped/none"


def one(
    message_us: float, rows: int = 900, *, mark: float = 1.0, pairs: int = 1, paths: tuple[str, ...] = ("mapped",)
) -> dict[str, Any]:
    """A class; `mark` is a price, by which its paths are known again."""
    prices = {"post": mark, "bind": mark, "bind_entry": mark}
    return {
        "message_us": message_us,
        "paths": {name: {"prices": prices, "biases": {}, "rows": rows} for name in paths},
        "ways": [PACK],
        "seen": [{"pair": [mark, i], "cold": False, "us": [mark + i]} for i in range(pairs)],
    }


def told(classes: list[dict[str, Any]]) -> list[tuple[float, float]]:
    """Of each class what a message takes, and whose prices it has on path mapped."""
    return [(c["message_us"], c["paths"]["mapped"]["prices"]["post"]) for c in classes]


def test_the_same_peers_are_refined_and_others_kept() -> None:
    made = refined([one(NEAR, mark=2.0)], [one(FAR, 600), one(1.1 * NEAR)])
    assert told(made) == [(NEAR, 2.0), (FAR, 1.0)]
    (own,), (older,) = (s["us"] for s in made[0]["seen"])  # its own first
    assert own == 2.0
    assert older == pytest.approx(speed_factor(NEAR, 1.1 * NEAR), rel=1e-5)  # at the speed of its class now
    assert older < 0.95


def test_the_class_with_most_rows_is_first() -> None:
    assert told(refined([one(NEAR, 300, mark=2.0)], [one(FAR, 900)])) == [(FAR, 1.0), (NEAR, 2.0)]


@pytest.mark.parametrize(("rows", "whose"), [(1800, 2.0), (1801, 1.0)])
def test_prices_that_were_fitted_to_far_more_are_kept(rows: int, whose: float) -> None:
    """A quick run, or one that saw these peers for a moment, does not undo a long one; its pairs are kept, and what
    bindings cost."""
    (made,) = refined([one(1.2 * NEAR, 900, mark=2.0)], [one(NEAR, rows)])
    assert told([made]) == [(1.2 * NEAR if whose == 2.0 else NEAR, whose)]
    assert made["paths"]["mapped"]["prices"]["bind"] == 2.0
    assert [s["pair"] for s in made["seen"]] == [[2.0, 0], [1.0, 0]]


def test_each_path_is_kept_by_itself() -> None:
    old = one(NEAR, 3000, paths=("mapped", "slots"))
    new = one(NEAR, 900, mark=2.0, paths=("mapped", "kernel"))
    (made,) = refined([new], [old])
    assert {name: path["prices"]["post"] for name, path in made["paths"].items()} == {
        "mapped": 1.0,
        "slots": 1.0,
        "kernel": 2.0,
    }


def test_an_old_class_refines_the_nearest_new_one_only() -> None:
    """Threads of one core and near peers are hardly more than a class apart: 2.6 is like both."""
    made = refined([one(ONE_CORE, mark=2.0), one(2.8, mark=3.0)], [one(2.6, 9000)])
    assert sorted(told(made)) == [(ONE_CORE, 2.0), (2.6, 1.0)]
    assert [len(c["seen"]) for c in sorted(made, key=lambda c: c["message_us"])] == [1, 2]


def test_of_two_old_classes_that_are_like_a_new_one_the_other_stays() -> None:
    made = refined([one(1.9, mark=2.0)], [one(1.4, mark=3.0), one(2.6, mark=4.0)])
    assert sorted(told(made)) == [(1.9, 2.0), (2.6, 4.0)]


def test_a_simulated_nic_has_one_class() -> None:
    assert told(refined([one(0.0, mark=2.0)], [one(0.0)])) == [(0.0, 2.0)]


def test_a_pair_that_was_measured_twice_is_there_once_as_it_was_last() -> None:
    new = one(NEAR, mark=1.0)
    new["seen"][0]["us"] = [5.0]
    (made,) = refined([new], [one(NEAR, pairs=3)])
    assert [s["us"] for s in made["seen"]] == [[5.0], [2.0], [3.0]]


def test_ways_of_both_are_known(monkeypatch: pytest.MonkeyPatch) -> None:
    old = one(NEAR, mark=1.0) | {"ways": ["sgrs/mapped/none"]}
    (made,) = refined([one(NEAR, mark=2.0)], [old])
    assert (made["ways"], [s["us"] for s in made["seen"]]) == ([PACK, "sgrs/mapped/none"], [[2.0, 0], [0, 1.0]])
    monkeypatch.setattr(profile_merge, "MOST_SEEN", 1)
    (made,) = refined([one(NEAR, mark=2.0)], [old])
    assert (made["ways"], len(made["seen"])) == ([PACK], 1)
