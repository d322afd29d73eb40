"""A tensor on a mesh: which rank has which part of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any, NamedTuple

from lacuna.resharding import spans
from lacuna.resharding.mesh import Entry, Mesh, PartitionSpec, Split, entry_of
from lacuna.resharding.spans import Span

Key = tuple[tuple[int, ...], ...]
"""Of each dimension the places on the axes that it is spread over. Ranks of one key have the same elements."""

Name = tuple[int, tuple[int, ...]]
"""Of a part of a dimension: which segment, and the places on the axes that the segment is spread over. Parts of one
name are of the same elements, which may lie elsewhere in the ranks' arrays."""


class Part(NamedTuple):
    """What a rank has of one segment of a dimension."""

    name: Name
    spans: tuple[Span, ...]


class Sharding:
    """JAX's NamedSharding, torch's mesh with placements: how a tensor is spread over the ranks of a mesh.

        Sharding(mesh, P("data", None, "model"))        an entry for each dimension (JAX)
        Sharding(mesh, [Shard(0), Replicate()])         a placement for each axis of the mesh (torch)

    A rank's part is an array of its own, `local_shape` of each rank. `order`: how that array lies in memory, as the
    order of its dimensions from the slowest to the fastest; C order if left out.
    """

    def __init__(self, mesh: Any, spec: Sequence[Any] = (), *, order: Sequence[int] | None = None) -> None:
        """Raises ValueError (an axis that the mesh has not, or in two dimensions; a placement for another number of
        axes), TypeError (an entry that is none, a placement that is neither sharded nor replicated)."""
        self.mesh = Mesh.of(mesh)
        self.spec = _of_placements(self.mesh, spec) if any(hasattr(p, "is_shard") for p in spec) else spec
        self.order = None if order is None else tuple(order)
        named: list[str] = []
        for entry in self.entries(len(self.spec)):
            named += entry.names()
        for name in named:
            if name not in self.mesh.axes:
                raise ValueError(f"{self.spec!r} names the axis {name!r}; the mesh has {self.mesh.axes}")
            if named.count(name) > 1:
                raise ValueError(f"{self.spec!r} spreads two dimensions over the axis {name!r}")

    def entries(self, rank_of_tensor: int) -> list[Entry]:
        """One for each dimension. Raises ValueError if there are more entries than dimensions."""
        if len(self.spec) > rank_of_tensor:
            raise ValueError(f"{self.spec!r} has {len(self.spec)} entries; the tensor has {rank_of_tensor} dimensions")
        entries = [entry_of(given) for given in self.spec]
        return entries + [Split(())] * (rank_of_tensor - len(entries))

    def key(self, rank: int, dimensions: int) -> Key:
        place = self.mesh.place(rank)
        return tuple(tuple(place[axis] for axis in entry.names()) for entry in self.entries(dimensions))

    def parts(self, shape: Sequence[int], rank: int) -> list[list[Part]]:
        """Of each dimension which elements the rank has, segment by segment."""
        return [list(self._parts_of(entry, n, rank)) for entry, n in zip(self.entries(len(shape)), shape, strict=True)]

    def _parts_of(self, entry: Entry, n: int, rank: int) -> Iterator[Part]:
        place, start, local = self.mesh.place(rank), 0, 0
        for number, (size, leaf) in enumerate(entry.leaves(n)):
            own = tuple(leaf.spans(size, place, self._sizes))
            placed = tuple(span._replace(start=span.start + start, local=span.local + local) for span in own)
            yield Part((number, tuple(place[axis] for axis in leaf.names())), placed)
            start, local = start + size, local + spans.elements(own)

    def local_shape(self, shape: Sequence[int], rank: int) -> tuple[int, ...]:
        """Of the part of a tensor of that shape that the rank has, in elements."""
        return tuple(sum(spans.elements(part.spans) for part in parts) for parts in self.parts(shape, rank))

    def strides(self, shape: Sequence[int], rank: int, itemsize: int) -> tuple[int, ...]:
        """Of a rank's array without gaps, in bytes."""
        local = self.local_shape(shape, rank)
        order = self.order if self.order is not None else tuple(range(len(local)))
        if sorted(order) != list(range(len(local))):
            raise ValueError(f"the order {order} is none of {len(local)} dimensions")
        strides, step = [0] * len(local), itemsize
        for dimension in reversed(order):
            strides[dimension] = step
            step *= local[dimension]
        return tuple(strides)

    @cached_property
    def _sizes(self) -> dict[str, int]:
        return self.mesh.sizes

    def __repr__(self) -> str:
        return f"Sharding({self.mesh!r}, {self.spec!r})"


def _of_placements(mesh: Mesh, placements: Sequence[Any]) -> PartitionSpec:
    if len(placements) != len(mesh.axes):
        raise ValueError(f"{len(placements)} placements for a mesh of {len(mesh.axes)} axes; each axis has one")
    axes: dict[int, list[str]] = {}
    for axis, placement in zip(mesh.axes, placements, strict=True):
        if hasattr(placement, "split_factor"):
            raise TypeError(
                f"{placement} is cut in an order of its own (FSDP over tensor parallelism); say it as Split"
            )
        if placement.is_shard():
            if placement.dim < 0:
                raise ValueError(f"{placement} counts dimensions from the end, which needs the tensor: count from 0")
            axes.setdefault(placement.dim, []).append(axis)
        elif getattr(placement, "is_partial", bool)():
            raise TypeError(f"{placement} holds sums that are not made yet; redistribute it to Replicate() first")
    return PartitionSpec(*(tuple(axes.get(d, ())) for d in range(max(axes, default=-1) + 1)))
