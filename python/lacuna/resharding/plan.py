"""The plan of a reshard: which rank gets what from which, a layout for each side of each pair."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from math import prod
from typing import Any, NamedTuple

from lacuna._core import Layout
from lacuna.resharding import spans
from lacuna.resharding.boxes import LayoutMaker, Made, Maker, describe
from lacuna.resharding.sharding import Key, Name, Part, Sharding
from lacuna.resharding.spans import Term

Box = tuple[tuple[Term, ...], ...]
"""Of each dimension what two ranks have in common."""

Names = tuple[Name, ...]
"""Of each dimension the name of a part: ranks that have it are replicas of one another."""


class Pair(NamedTuple):
    """What one rank sends to another; `bytes` of it. The two may be the same rank."""

    source: int
    target: int
    bytes: int
    boxes: tuple[Box, ...]


class _Side:
    """The parts of one of the two shardings, of each dimension by the key of the ranks that have them."""

    def __init__(self, sharding: Sharding, shape: tuple[int, ...]) -> None:
        self.keys: dict[int, Key] = {}
        self.parts: list[dict[tuple[int, ...], list[Part]]] = [{} for _ in shape]
        self.ranks: dict[Key, list[int]] = {}
        for rank in sharding.mesh.ranks:
            key = self.keys[rank] = sharding.key(rank, len(shape))
            if key not in self.ranks:
                for known, place, parts in zip(self.parts, key, sharding.parts(shape, rank), strict=True):
                    known.setdefault(place, parts)
            self.ranks.setdefault(key, []).append(rank)

    def names(self, key: Key) -> Iterator[Names]:
        """Of all that a rank has, where no segment is empty."""
        yield from product(*([p.name for p in self.parts[d][key[d]] if p.spans] for d in range(len(key))))

    def replicas(self) -> dict[Names, list[int]]:
        found: dict[Names, list[int]] = {}
        for key, ranks in self.ranks.items():
            for names in self.names(key):
                found.setdefault(names, []).extend(ranks)
        return found


class _Dimension:
    """What parts of the source have in common with those of the target, in one dimension."""

    def __init__(self, sources: dict[Any, list[Part]], targets: dict[Any, list[Part]]) -> None:
        self.terms: dict[tuple[Any, Name, Any], tuple[Term, ...]] = {}
        self.targets: dict[Name, dict[Any, int]] = {}
        """Of a part of the source the places of the target that have elements of it, and how many."""
        self.names: dict[Any, dict[Name, None]] = {}
        """The same seen from the target."""
        for target, parts in targets.items():
            wanted = [span for part in parts for span in part.spans]
            for source, own in sources.items():
                for part in own:
                    if terms := spans.common(part.spans, wanted):
                        self.terms[source, part.name, target] = terms
                        count = sum(term.elements for term in terms)
                        self.targets.setdefault(part.name, {})[target] = count
                        self.names.setdefault(target, {})[part.name] = None


class Reshard:
    """How a tensor goes from one sharding to another. Made by `lacuna.reshard`.

    The plan has a layout for each side of each pair of ranks that have elements in common. Making it takes time by the
    number of such pairs, whatever the number of pieces is that they consist of, and on each rank by the places of both
    meshes in each dimension. Ranks come to the same plan without talking.

    **Replicas.** Each element of a target comes from exactly one rank. A rank that has it itself takes its own; others
    take from the replica that has to send the fewest bytes of this part so far.
    """

    def __init__(self, source: Sharding, target: Sharding, shape: Sequence[int], itemsize: int) -> None:
        self.source, self.target = source, target
        self.shape, self.itemsize = tuple(int(n) for n in shape), int(itemsize)
        if self.itemsize < 1 or min(self.shape, default=0) < 0:
            raise ValueError(f"a tensor of shape {self.shape} with elements of {self.itemsize} bytes cannot be")
        self._from, self._to = _Side(source, self.shape), _Side(target, self.shape)
        self._replicas = self._from.replicas()
        self._dimensions = [_Dimension(a, b) for a, b in zip(self._from.parts, self._to.parts, strict=True)]
        self._assigned: dict[Names, dict[int, int]] = {}
        self._layouts: dict[tuple[int, int, bool, tuple[int, ...]], Layout] = {}

    def pairs(self) -> list[Pair]:
        """All pairs of ranks that have something in common, by their numbers."""
        return sorted(pair for rank in self.target.mesh.ranks for pair in self.receives(rank))

    def sends(self, rank: int) -> list[Pair]:
        """What a rank sends, by the number of the rank that gets it. Empty for a rank that is not in the source."""
        if rank not in self._from.keys:
            return []
        found: dict[int, list[Names]] = {}
        for names in self._from.names(self._from.keys[rank]):
            for target, source in self._sources(names).items():
                if source == rank:
                    found.setdefault(target, []).append(names)
        return [self._pair(rank, target, names) for target, names in sorted(found.items())]

    def receives(self, rank: int) -> list[Pair]:
        """What a rank gets, by the number of the rank that sends it. Empty for a rank that is not in the target."""
        if rank not in self._to.keys:
            return []
        key = self._to.keys[rank]
        found: dict[int, list[Names]] = {}
        for names in product(*(d.names.get(place, ()) for d, place in zip(self._dimensions, key, strict=True))):
            found.setdefault(self._sources(names)[rank], []).append(names)
        return [self._pair(source, rank, names) for source, names in sorted(found.items())]

    def layout(self, pair: Pair, *, of_source: bool, strides: Sequence[int] | None = None) -> Layout:
        """The bytes of a pair in the array of its source, or of its target, relative to the array's first element.
        `strides` of that array in bytes; those of an array without gaps, in the sharding's order, if left out."""
        given = tuple(strides) if strides is not None else self.strides(pair, of_source=of_source)
        name = (pair.source, pair.target, of_source, given)
        if name not in self._layouts:
            self._layouts[name] = self.described(LayoutMaker(), pair, given, of_source=of_source)
        return self._layouts[name]

    def described(self, maker: Maker[Made], pair: Pair, strides: Sequence[int], *, of_source: bool) -> Made:
        """The same by another maker of descriptions."""
        made = [describe(maker, box, strides, self.itemsize, of_source=of_source) for box in pair.boxes]
        return made[0] if len(made) == 1 else maker.placed([0] * len(made), made)

    def strides(self, pair: Pair, *, of_source: bool) -> tuple[int, ...]:
        """Of the pair's array on either side if it has no gaps, in bytes."""
        side, rank = (self.source, pair.source) if of_source else (self.target, pair.target)
        return side.strides(self.shape, rank, self.itemsize)

    def source_shape(self, rank: int) -> tuple[int, ...]:
        """Of the array that a rank has before. Raises ValueError if it is not in the source."""
        return self.source.local_shape(self.shape, rank)

    def target_shape(self, rank: int) -> tuple[int, ...]:
        """Of the array that a rank has afterwards. Raises ValueError if it is not in the target."""
        return self.target.local_shape(self.shape, rank)

    def explain(self) -> str:
        """How many pairs there are, what they move, and who sends how much."""
        pairs = self.pairs()
        sent: dict[int, int] = {}
        for pair in pairs:
            if pair.source != pair.target:
                sent[pair.source] = sent.get(pair.source, 0) + pair.bytes
        own = sum(pair.bytes for pair in pairs if pair.source == pair.target)
        lines = [
            f"{self.shape} of {self.itemsize} B: {len(pairs)} pairs, {sum(p.bytes for p in pairs)} B, {own} of it own"
        ]
        if sent:
            lines.append(f"{len(sent)} ranks send {min(sent.values())} to {max(sent.values())} B each")
        return "\n".join(lines)

    def _pair(self, source: int, target: int, found: list[Names]) -> Pair:
        keys = list(zip(self._dimensions, self._from.keys[source], self._to.keys[target], strict=True))
        boxes = tuple(
            tuple(d.terms[own, name, other] for (d, own, other), name in zip(keys, names, strict=True))
            for names in sorted(found)
        )
        elements = sum(prod(sum(term.elements for term in terms) for terms in box) for box in boxes)
        return Pair(source, target, elements * self.itemsize, boxes)

    def _sources(self, names: Names) -> dict[int, int]:
        """Which replica of a part of the source sends to each rank that has elements of it afterwards."""
        if names in self._assigned:
            return self._assigned[names]
        sent = dict.fromkeys(self._replicas[names], 0)
        assigned: dict[int, int] = {}
        waiting = []
        met = [d.targets.get(name, {}).items() for d, name in zip(self._dimensions, names, strict=True)]
        for chosen in product(*met):
            elements = prod(count for _, count in chosen)
            for rank in self._to.ranks[tuple(place for place, _ in chosen)]:
                if rank in sent:
                    assigned[rank] = rank
                else:
                    waiting.append((-elements, rank))
        for elements, rank in sorted(waiting):  # the largest first, which leaves the least between them
            source = min(sent, key=lambda replica: (sent[replica], replica))
            sent[source] -= elements
            assigned[rank] = source
        self._assigned[names] = assigned
        return assigned
