"""Shardings at random, and a naive reference of them: the elements of a rank's part, one by one."""

from __future__ import annotations

import random
from itertools import product
from math import prod
from typing import Any

import numpy as np
from host_arrays import view_of_shape

from lacuna.resharding import Cyclic, Mesh, PartitionSpec, Replicate, Segments, Shard, Sharding, Split

Array = np.ndarray[Any, np.dtype[Any]]


def drawn_mesh(rng: random.Random, first: int) -> Mesh:
    shape = [rng.randint(1, 4) for _ in range(rng.randint(1, 3))]
    ranks = list(range(first, first + prod(shape)))
    rng.shuffle(ranks)
    return Mesh(shape, ["a", "b", "c"][: len(shape)], ranks)


def drawn_sides(rng: random.Random, ranks: int, shape: tuple[int, ...]) -> list[Sharding]:
    """A source and a target, on ranks below that number."""
    sides = []
    for _ in range(2):
        mesh = drawn_mesh(rng, 0)
        while max(mesh.ranks) >= ranks:
            mesh = drawn_mesh(rng, 0)
        sides.append(drawn_sharding(rng, mesh, shape))
    return sides


def drawn_sharding(rng: random.Random, mesh: Mesh, shape: tuple[int, ...]) -> Sharding:
    axes: list[list[str]] = [[] for _ in shape]
    for axis in rng.sample(mesh.axes, len(mesh.axes)):
        if rng.random() < 0.8:
            rng.choice(axes).append(axis)
    if rng.random() < 0.2:
        placements = [Shard(rng.randrange(len(shape))) if rng.random() < 0.7 else Replicate() for _ in mesh.axes]
        return Sharding(mesh, placements)
    order = rng.sample(range(len(shape)), len(shape)) if rng.random() < 0.3 else None
    entries = [_entry(rng, mesh, n, tuple(names)) for n, names in zip(shape, axes, strict=True)]
    return Sharding(mesh, PartitionSpec(*entries), order=order)


def _entry(rng: random.Random, mesh: Mesh, n: int, names: tuple[str, ...]) -> Any:
    kind = rng.random()
    if not names or kind < 0.4:
        return names or None
    if kind < 0.55:
        cuts = sorted(rng.randint(0, n) for _ in range(prod(mesh.sizes[name] for name in names) - 1))
        return Split(names, tuple(b - a for a, b in zip([0, *cuts], [*cuts, n], strict=True)))
    if kind < 0.8:
        return Cyclic(names, rng.randint(1, 5))
    cut = rng.randint(0, n)
    return Segments((cut, _entry(rng, mesh, cut, names)), (n - cut, _entry(rng, mesh, n - cut, names[1:])))


def naive_indices(entry: Any, n: int, place: dict[str, int], sizes: dict[str, int]) -> list[int]:
    """The elements of a dimension that a rank has, in its order."""
    if isinstance(entry, Segments):
        found, start = [], 0
        for size, part in entry.segments:
            found += [start + i for i in naive_indices(part, size, place, sizes)]
            start += size
        return found
    names = entry.names()
    number = 0
    for name in names:
        number = number * sizes[name] + place[name]
    if isinstance(entry, Cyclic):
        places = prod(sizes[name] for name in names)
        return [i for i in range(n) if i // entry.block % places == number]
    if entry.sizes is not None:
        return list(range(n))[sum(entry.sizes[:number]) :][: entry.sizes[number]]
    kept = list(range(n))
    for name in names:
        part = -(-len(kept) // sizes[name])
        kept = kept[place[name] * part :][:part]
    return kept


def naive_part(sharding: Sharding, whole: Array, rank: int) -> Array:
    mesh = sharding.mesh
    places = dict(zip(mesh.ranks, product(*(range(n) for n in mesh.shape)), strict=True))
    place = dict(zip(mesh.axes, places[rank], strict=True))
    kept = [
        naive_indices(entry, n, place, mesh.sizes)
        for entry, n in zip(sharding.entries(whole.ndim), whole.shape, strict=True)
    ]
    return whole[np.ix_(*kept)]


def laid_out(part: Array, rng: random.Random) -> Array:
    """The same values in memory of any strides."""
    room = np.full([2 * n + 1 for n in part.shape], 77, part.dtype)
    view = view_of_shape(room, part.shape, rng)
    view[...] = part
    return view
