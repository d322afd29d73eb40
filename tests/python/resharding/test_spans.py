"""What two shards of one dimension have in common, against a list of all elements; and what finding it costs."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest

from lacuna.resharding import spans
from lacuna.resharding.spans import Span, Term

pytestmark = pytest.mark.check


def elements(shard: Sequence[Span]) -> dict[int, int]:
    """Of each element where it is in the shard."""
    turns = [(span, turn) for span in shard for turn in range(span.times)]
    return {
        span.start + turn * span.stride + i: span.local + turn * span.step + i
        for span, turn in turns
        for i in range(span.length)
    }


def spelled(terms: Sequence[Term]) -> list[tuple[int, int]]:
    return sorted(
        (term.source + turn * term.source_step + i, term.target + turn * term.target_step + i)
        for term in terms
        for turn in range(term.times)
        for i in range(term.length)
    )


def test_it_is_what_is_in_both_lists() -> None:
    rng = random.Random(1)
    for _ in range(3000):
        n = rng.randint(1, 400)
        shards = []
        for _ in range(2):
            shards_of, start = rng.randint(1, 6), rng.choice([0, 0, rng.randint(0, 30)])
            made = spans.cyclic(n, rng.randint(1, 20), shards_of, rng.randrange(shards_of), start)
            shards.append([Span(start, n, 0)] if rng.random() < 0.1 else list(made))
        own, other = (elements(shard) for shard in shards)
        expected = sorted((own[at], other[at]) for at in own.keys() & other.keys())
        assert spelled(spans.common(*shards)) == expected, shards


@pytest.mark.parametrize(("blocks", "places"), [((251, 257), (4, 3)), ((997, 1009), (8, 6)), ((1, 7), (64, 48))])
def test_looks_are_as_many_as_what_is_found(
    blocks: tuple[int, int], places: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not as the product of both shards' blocks within a common period."""
    looks = 0
    look = spans._of_one_period

    def counted(*arguments: object) -> object:
        nonlocal looks
        looks += 1
        return look(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(spans, "_of_one_period", counted)
    one, other = (list(spans.cyclic(10**8, block, n, n - 1)) for block, n in zip(blocks, places, strict=True))
    terms = spans.common(one, other)
    assert terms
    assert looks <= 2 * len(terms) + 4 * (places[0] + places[1]) + 4 * max(blocks)
