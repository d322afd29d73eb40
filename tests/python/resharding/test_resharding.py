"""lacuna.reshard against NumPy: thousands of pairs of meshes, each element in its place and no other one changed."""

from __future__ import annotations

import random
from math import prod

import numpy as np
import pytest
from drawn_shardings import drawn_mesh, drawn_sharding, laid_out, naive_part

import lacuna
from lacuna.resharding import Cyclic, Mesh, PartitionSpec, Replicate, Segments, Shard, Sharding, Split

pytestmark = pytest.mark.check
P = PartitionSpec
SEEDS = 20
PAIRS = 100
"""Of meshes, of each seed."""


@pytest.mark.parametrize("seed", range(SEEDS))
def test_random_meshes_as_numpy_has_it(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(PAIRS):
        shape = tuple(rng.randint(1, 13) for _ in range(rng.randint(1, 4)))
        first = drawn_mesh(rng, 0)
        before = drawn_sharding(rng, first, shape)
        after = drawn_sharding(rng, drawn_mesh(rng, rng.choice([0, 0, 2, 50])), shape)
        dtype = np.dtype(rng.choice(["i4", "i8", "c16"]))
        whole = np.arange(prod(shape)).reshape(shape).astype(dtype)
        plan = lacuna.reshard(before, after, shape, itemsize=dtype.itemsize)
        sources = {rank: laid_out(naive_part(before, whole, rank), rng) for rank in before.mesh.ranks}
        expected = {rank: naive_part(after, whole, rank) for rank in after.mesh.ranks}
        targets = {rank: laid_out(np.full_like(part, -1), rng) for rank, part in expected.items()}
        plan.move(sources, targets)
        for rank, part in expected.items():
            assert plan.target_shape(rank) == part.shape
            assert np.array_equal(targets[rank], part), f"rank {rank} of {before} to {after}"
            base = targets[rank]
            while base.base is not None:
                base = base.base
            assert np.count_nonzero(base == 77) == base.size - part.size + np.count_nonzero(part == 77)
            received = plan.receives(rank)
            assert sum(pair.bytes for pair in received) == part.size * dtype.itemsize
            for pair in received:
                assert pair in plan.sends(pair.source)
                assert plan.layout(pair, of_source=True).size == plan.layout(pair, of_source=False).size == pair.bytes
        assert sorted(plan.pairs()) == sorted(pair for rank in after.mesh.ranks for pair in plan.receives(rank))


def test_replicas_share_the_work_evenly_and_take_their_own() -> None:
    rng = random.Random(5)
    for _ in range(200):
        replicas, targets = rng.randint(1, 6), rng.randint(1, 24)
        before = Sharding(Mesh((replicas, 2), ("copy", "x")), P("x"))
        after = Sharding(Mesh((targets,), ("y",), range(100, 100 + targets)), P("y"))
        pairs = list(lacuna.reshard(before, after, (rng.randint(1, 200),)).pairs())
        for part in range(2):
            load = dict.fromkeys(range(part, 2 * replicas, 2), 0)
            for pair in pairs:
                if pair.source in load:
                    load[pair.source] += pair.bytes
            largest = max((pair.bytes for pair in pairs if pair.source in load), default=0)
            assert max(load.values()) - min(load.values()) <= largest
    mesh = Mesh((4, 2), ("copy", "x"))
    same = lacuna.reshard(Sharding(mesh, P("x")), Sharding(mesh, P("x")), (64,))
    assert all(pair.source == pair.target for pair in same.pairs())


def test_words_of_torch_and_of_jax_mean_one_thing() -> None:
    mesh = Mesh((2, 3), ("dp", "tp"))
    pairs = [
        ([Shard(0), Shard(1)], P("dp", "tp")),
        ([Replicate(), Shard(1)], P(None, "tp")),
        ([Shard(1), Shard(1)], P(None, ("dp", "tp"))),
        ([Replicate(), Replicate()], P()),
    ]
    for placements, spec in pairs:
        for rank in mesh.ranks:
            assert Sharding(mesh, placements).parts((7, 11), rank) == Sharding(mesh, spec).parts((7, 11), rank)


def test_a_fused_projection_of_fewer_heads_than_ranks() -> None:
    """8 query heads, 2 of K and V each, of 4 numbers: to 4 ranks, two of which share a head of K and V."""
    heads, columns = 8 + 2 + 2, 4
    whole = np.arange(heads * columns).reshape(heads, columns)
    before = Sharding(Mesh((2,), ("tp",)), P(Segments((8, "tp"), (2, "tp"), (2, "tp"))))
    mesh = Mesh((4,), ("tp",), ranks=[10, 11, 12, 13]).split("tp", kv=2, copy=2)
    after = Sharding(mesh, P(Segments((8, ("kv", "copy")), (2, "kv"), (2, "kv"))))
    plan = lacuna.reshard(before, after, whole.shape, itemsize=8)
    sources = {0: whole[[0, 1, 2, 3, 8, 10]], 1: whole[[4, 5, 6, 7, 9, 11]]}
    targets = {rank: np.zeros(plan.target_shape(rank), np.int64) for rank in mesh.ranks}
    plan.move(sources, targets)
    for rank, kept in zip(mesh.ranks, ([0, 1, 8, 10], [2, 3, 8, 10], [4, 5, 9, 11], [6, 7, 9, 11]), strict=True):
        assert np.array_equal(targets[rank], whole[kept])


def test_a_plan_has_layouts_by_pairs_and_not_by_pieces() -> None:
    """Tokens dealt out in turn, to heads: a million pieces, and a layout of some bytes for each pair."""
    before = Sharding(Mesh((8,), ("dcp",)), P(Cyclic("dcp"), None))
    after = Sharding(Mesh((4,), ("tp",), range(8, 12)), P(None, "tp"))
    plan = lacuna.reshard(before, after, (1 << 20, 16), itemsize=128)
    pairs = list(plan.pairs())
    assert len(pairs) == 32
    for pair in pairs:
        for of_source in (False, True):
            layout = plan.layout(pair, of_source=of_source)
            assert layout.run_count == 1 << 17
            assert len(layout.wire()) < 64
    assert plan.explain().startswith(
        "(1048576, 16) of 128 B: 32 pairs, 2147483648 B, 0 of it own\n8 ranks send 268435456"
    )


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        (lambda: Mesh((2, 2), ("a",)), "as many axes"),
        (lambda: Mesh((2,), ("a",), [1, 1]), "do not fill it"),
        (lambda: Mesh((2,), ("a",)).split("a", b=3), "has 2 places"),
        (lambda: Sharding(Mesh((2,), ("a",)), P("b")), "names the axis 'b'"),
        (lambda: Sharding(Mesh((2,), ("a",)), P("a", "a")), "two dimensions over the axis 'a'"),
        (lambda: Sharding(Mesh((2,), ("a",)), [Shard(0), Shard(1)]), "2 placements for a mesh of 1 axes"),
        (lambda: Sharding(Mesh((2,), ("a",)), [Shard(-1)]), "from the end"),
        (lambda: Cyclic("a", 0), "at least 1"),
        (lambda: _plan(P(None, "a")), "has 2 entries; the tensor has 1 dimensions"),
        (lambda: _plan(P(Split("a", (3, 4)))), "does not cut 8 elements"),
        (lambda: _plan(P(Split("a", (11, -3)))), "does not cut 8 elements"),
        (lambda: Segments((9, "a"), (-1, None)), "fewer than 0 elements"),
        (lambda: _plan(P(Segments((7, "a")))), "has 7 elements; the dimension has 8"),
        (lambda: _plan(P("a")).source_shape(5), "rank 5 is not in the mesh"),
        (lambda: _plan(P("a")).move({0: np.zeros(3), 1: np.zeros(4)}, {0: np.zeros(8)}), r"has shape \(3,\)"),
        (lambda: _plan(P("a")).move({0: None, 1: None}, {0: np.zeros(8)}), "it needs an array"),
        (lambda: _plan(P("a")).run(None, None, None, by="pigeon"), "is none of messages, exchange"),
    ],
)
def test_what_cannot_be_says_why(wrong: object, says: str) -> None:
    assert callable(wrong)
    with pytest.raises(ValueError, match=says):
        wrong()


def _plan(spec: PartitionSpec) -> lacuna.resharding.Execution:
    return lacuna.reshard(Mesh((2,), ("a",)), Mesh((1,), ("b",)), (8,), spec, P(), itemsize=8)
