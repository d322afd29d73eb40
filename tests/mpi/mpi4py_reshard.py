"""Four ranks of Python: a tensor from one mesh to another by MPI_Alltoallw, and what each rank has afterwards."""

import traceback
import zlib

import numpy as np
from mpi4py import MPI

import lacuna
from lacuna.resharding import Cyclic, Mesh, Segments, Sharding
from lacuna.resharding import PartitionSpec as P

world = MPI.COMM_WORLD
tall, square = Mesh((4,), ("x",)), Mesh((2, 2), ("a", "b"))
SIDES = [
    (Sharding(tall, P("x")), Sharding(square, P("b", None, "a"))),
    (Sharding(tall, P(Cyclic("x"))), Sharding(square, P(None, "a"), order=(2, 0, 1))),
    (Sharding(square, P(None, Segments((8, "a"), (10, ("a", "b"))))), Sharding(tall, P(Cyclic("x", 3), None))),
]
SHAPE = (250, 18, 6)


def part(side: Sharding, whole: np.ndarray) -> np.ndarray:
    """This rank's, by NumPy: the elements that the spans of each dimension name."""
    kept = []
    for parts in side.parts(SHAPE, world.rank):
        spans = [span for one in parts for span in one.spans]
        kept.append([s.start + i * s.stride + j for s in spans for i in range(s.times) for j in range(s.length)])
    return whole[np.ix_(*kept)]


def moved(number: int, before: Sharding, after: Sharding) -> str:
    whole = np.random.default_rng(number).random(SHAPE)
    plan = lacuna.reshard(before, after, SHAPE, itemsize=8)
    room = np.full((*plan.target_shape(world.rank), 2), -1.0)
    plan.run(world, np.ascontiguousarray(part(before, whole)), room[..., 1], by="mpi")
    right = np.array_equal(room[..., 1], part(after, whole)) and bool((room[..., 0] == -1).all())
    return f"sides {number}: {room.shape} {zlib.crc32(room.tobytes()):08x} {'right' if right else 'wrong'}"


try:
    lines = [moved(number, *sides) for number, sides in enumerate(SIDES)]
except Exception:  # said, so that it is not taken for a fault of the MPI
    lines = [traceback.format_exc()]
said = world.gather(lines)
if world.rank == 0:
    for rank, text in enumerate(said or []):
        print(f"--- rank {rank}", *text, sep="\n", flush=True)
