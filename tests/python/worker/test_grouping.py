"""Records in groups."""

from __future__ import annotations

import pytest

from lacuna.worker.grouping import grouped

pytestmark = pytest.mark.check


def test_groups_and_their_members_keep_their_order() -> None:
    found = grouped(iter(["pear", "fig", "plum", "apple", "figs"]), lambda word: word[0])
    assert list(found.items()) == [("p", ["pear", "plum"]), ("f", ["fig", "figs"]), ("a", ["apple"])]
    assert grouped([], len) == {}
