"""Which rank hands which layers and heads to which, where two servers have different parallelism."""

from __future__ import annotations

from typing import NamedTuple

from lacuna.resharding import Sharding, reshard


class Route(NamedTuple):
    """What one rank sends to another of each request: layers and heads, from the first to below the second number."""

    source: int
    target: int
    layers: tuple[int, int]
    heads: tuple[int, int]


def routes(source: Sharding, target: Sharding, layers: int, heads: int) -> list[Route]:
    """Of a model with so many layers and heads of K and V, whose caches are spread as P(layers, heads): over pipeline
    and tensor-parallel axes, with replicas where an axis is not named. Each layer and head of a target comes from
    exactly one rank, and replicas share the work. Raises ValueError if a rank has layers or heads that are not in a
    row."""
    plan = reshard(source, target, (layers, heads))
    starts = {rank: _ranges(source, (layers, heads), rank) for rank in source.mesh.ranks}
    found = []
    for pair in plan.pairs():
        for box in pair.boxes:
            if any(len(terms) != 1 or terms[0].times != 1 for terms in box):
                raise ValueError(f"rank {pair.source} has layers or heads for rank {pair.target} that are not in a row")
            low = [start + terms[0].source for start, terms in zip(starts[pair.source], box, strict=True)]
            high = [at + terms[0].length for at, terms in zip(low, box, strict=True)]
            found.append(Route(pair.source, pair.target, (low[0], high[0]), (low[1], high[1])))
    return found


def _ranges(sharding: Sharding, shape: tuple[int, int], rank: int) -> list[int]:
    """The first layer and the first head of a rank."""
    starts = []
    for parts in sharding.parts(shape, rank):
        spans = [span for part in parts for span in part.spans]
        if any(span.start - span.local != spans[0].start or span.times != 1 for span in spans):
            raise ValueError(f"rank {rank} has layers or heads that are not in a row")
        starts.append(spans[0].start if spans else 0)
    return starts
