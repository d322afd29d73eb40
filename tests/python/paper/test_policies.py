"""Registration policies on the model: what `lacuna paper` says of S4."""

from __future__ import annotations

import pytest

from lacuna import _core
from lacuna.paper import profiles
from lacuna.paper.sections import policies

pytestmark = pytest.mark.check


def test_memory_that_was_used_before_is_spread_evenly() -> None:
    assert policies.buffers(0, 4) == [1, 2, 3, 4]
    assert policies.buffers(100, 4) == [0, 0, 0, 0]
    assert policies.buffers(50, 6) == [1, 0, 2, 0, 3, 0]
    assert policies.buffers(25, 8).count(0) == 2


@pytest.mark.parametrize("name", policies.NETWORKS)
def test_the_slides_order(name: str) -> None:
    profile = profiles.load(name)

    def speed(policy: str, reuse: int) -> float:
        return policies.gb_s(profile, policy, policies.LARGE, reuse, 3)

    assert speed("pipeline", 0) > max(speed("leave_pinned", 0), speed("copy", 0))
    assert speed("leave_pinned", 100) >= max(speed("pipeline", 100), speed("copy", 100))


def test_the_same_question_has_the_same_answer() -> None:
    path = str(profiles.find("myrinet-gm-2006"))
    ask = [_core.simulate_messages(path, "leave_pinned", 1 << 18, 1 << 20, [0, 0, 1, 0]) for _ in range(2)]
    assert ask[0] == ask[1]
    first, again, fresh, known = ask[0]
    # One send of some asks for a completion, which takes the CPU some nanoseconds.
    assert again == pytest.approx(known, abs=0.05)
    assert max(again, known) < fresh <= first


def test_what_cannot_be_is_refused() -> None:
    path = str(profiles.find("myrinet-gm-2006"))
    for arguments, says in (
        (("nail", 1, 1, [0]), 'no way "nail"'),
        (("copy", 1, 0, [0]), "a byte at least"),
        (("copy", 1, 1, []), "numbered from 0"),
        (("copy", 1, 1, [-1]), "numbered from 0"),
    ):
        policy, part, size, buffers = arguments
        with pytest.raises(ValueError, match=says):
            _core.simulate_messages(path, policy, part, size, buffers)
    with pytest.raises(ValueError, match="nowhere"):
        _core.simulate_messages("/nowhere.json", "copy", 1, 1, [0])
