"""Descriptor lists of a reshard: what a plain loop over their rows moves, and how many rows there are."""

from __future__ import annotations

import ctypes
import random

import numpy as np
import pytest
from drawn_shardings import drawn_mesh, drawn_sharding, laid_out, naive_part

import lacuna
from lacuna.resharding import Cyclic, Mesh, PartitionSpec, Sharding, over_nixl

pytestmark = pytest.mark.check


def test_rows_move_what_the_plan_says_and_nothing_else() -> None:
    for seed in range(150):
        rng = random.Random(seed)
        shape = tuple(rng.randint(1, 12) for _ in range(rng.randint(1, 3)))
        source, target = (drawn_sharding(rng, drawn_mesh(rng, first), shape) for first in (0, 100))
        whole = np.arange(1, 1 + np.prod(shape, dtype=int), dtype=np.int32).reshape(shape)
        plan = lacuna.reshard(source, target, shape, itemsize=4)
        sources = {rank: laid_out(naive_part(source, whole, rank), rng) for rank in source.mesh.ranks}
        targets = {rank: laid_out(0 * naive_part(target, whole, rank), rng) for rank in target.mesh.ranks}
        for pair in plan.pairs():
            here, there = sources[pair.source], targets[pair.target]
            places = [over_nixl.Place("", a.ctypes.data, a.strides) for a in (here, there)]
            read, written = over_nixl.descriptors(plan, pair, *places)
            assert read[:, 1].sum() == pair.bytes
            assert np.array_equal(read[:, 1], written[:, 1])
            for (out, length, _), (into, _, _) in zip(read.tolist(), written.tolist(), strict=True):
                ctypes.memmove(into, out, length)
        for rank, array in targets.items():
            assert np.array_equal(array, naive_part(target, whole, rank)), (seed, rank)
            assert leaves_the_rest(array)


def leaves_the_rest(part: np.ndarray) -> bool:
    """Whether the room around a part that was laid out is as it was."""
    room = part
    while room.base is not None:
        room = room.base
    before = np.count_nonzero(room == 77)
    return before >= room.size - part.size


@pytest.mark.parametrize(
    ("before", "after", "rows"),
    [
        (PartitionSpec("x"), PartitionSpec("x"), 1),  # the same: the whole part
        (PartitionSpec("x"), PartitionSpec(None, "x"), 8),  # 8 rows, half of each
        (PartitionSpec(None, "x"), PartitionSpec(None, "x"), 1),
        (PartitionSpec(), PartitionSpec(Cyclic("x", 1)), 8),
    ],
)
def test_what_is_contiguous_on_both_sides_is_one_row(before: PartitionSpec, after: PartitionSpec, rows: int) -> None:
    plan = lacuna.reshard(Mesh((2,), ("x",)), Mesh((2,), ("x",), [2, 3]), (16, 10), before, after, itemsize=2)
    for pair in plan.pairs():
        places = [over_nixl.Place("", 4096, plan.strides(pair, of_source=side)) for side in (True, False)]
        read, written = over_nixl.descriptors(plan, pair, *places)
        assert len(read) == len(written) == rows


def test_a_place_is_that_of_the_ranks_part() -> None:
    plan = lacuna.reshard(
        Mesh((2,), ("x",)), Mesh((2,), ("y",)), (4,), PartitionSpec("x"), PartitionSpec("y"), itemsize=8
    )
    part = np.zeros(4)[::2]
    assert over_nixl.place_of(plan, 1, "b", part) == over_nixl.Place("b", part.ctypes.data, (16,))
    with pytest.raises(ValueError, match=r"has shape \(3,\)"):
        over_nixl.place_of(plan, 1, "b", np.zeros(3))
    sharding = Sharding(Mesh((1,), ("x",)))
    with pytest.raises(ValueError, match="rank 0 writes to rank 5, whose place was not given"):
        over_nixl.Writes(lacuna.reshard(sharding, Mesh((1,), ("y",), [5]), (4,), itemsize=8), None, 0, np.zeros(4), {})
