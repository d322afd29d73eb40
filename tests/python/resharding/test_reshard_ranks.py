"""lacuna.reshard between processes: by messages, by exchanges, by all ranks' alltoallw; and by an MPI's."""

from __future__ import annotations

import random

import numpy as np
import pytest
from drawn_shardings import drawn_sides, laid_out, naive_part
from forked_ranks import run_ranks

import lacuna
from lacuna.resharding import Mesh, PartitionSpec, Sharding

RANKS = 4


@pytest.mark.parametrize("way", ["messages", "exchange", "alltoallw"])
def test_random_meshes_between_processes(way: str) -> None:
    def program(ranks: lacuna.Communicator) -> None:
        rng = random.Random(11)  # the same draws on all ranks
        for _ in range(40):
            shape = tuple(rng.randint(1, 40) for _ in range(rng.randint(1, 3)))
            sides = drawn_sides(rng, RANKS, shape)
            whole = np.arange(np.prod(shape, dtype=int)).reshape(shape)
            plan = lacuna.reshard(*sides, shape, itemsize=8)
            mine = [naive_part(s, whole, ranks.rank) if ranks.rank in s.mesh.ranks else None for s in sides]
            source = None if mine[0] is None else laid_out(mine[0], random.Random(ranks.rank))
            target = None if mine[1] is None else laid_out(np.full_like(mine[1], -1), random.Random(ranks.rank))
            plan.run(ranks, source, target, by=way)
            assert mine[1] is None or np.array_equal(target, mine[1])

    run_ranks(program, RANKS)


def test_an_exchange_is_started_again() -> None:
    def program(ranks: lacuna.Communicator) -> None:
        before = Sharding(Mesh((4,), ("x",)), PartitionSpec("x"))
        after = Sharding(Mesh((2,), ("y",), [1, 3]), PartitionSpec(None, "y"))
        plan = lacuna.reshard(before, after, (8, 6), itemsize=8)
        rows = np.zeros(plan.source_shape(ranks.rank))
        columns = np.zeros((8, 3)) if ranks.rank in (1, 3) else None
        exchange = plan.exchange(ranks, rows, columns)
        for turn in range(3):
            whole = np.arange(48.0).reshape(8, 6) + 100 * turn
            rows[:] = whole[2 * ranks.rank :][:2]
            exchange.run()
            assert columns is None or np.array_equal(columns, whole[:, :3] if ranks.rank == 1 else whole[:, 3:])

    run_ranks(program, RANKS)


def test_a_rank_without_its_array_says_so() -> None:
    def program(ranks: lacuna.Communicator) -> None:
        plan = lacuna.reshard(Mesh((2,), ("x",)), Mesh((2,), ("y",)), (4,), PartitionSpec("x"), PartitionSpec("y"))
        with pytest.raises(ValueError, match=f"rank {ranks.rank} has a part of the target"):
            plan.run(ranks, np.zeros(2, np.uint8), None, by="messages")

    run_ranks(program, 2)
