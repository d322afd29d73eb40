"""Two ranks of Python: what their buffers and objects hold after datatypes went through mpi4py, MPI_THREAD_MULTIPLE."""

import threading
import zlib

import numpy as np
from mpi4py import MPI

world = MPI.COMM_WORLD
me, other = world.rank, 1 - world.rank


def shown(what: str, array: np.ndarray) -> None:
    lines.append(f"{what}: {zlib.crc32(array.tobytes()):08x}")


def fresh(shape: tuple[int, ...], seed: int) -> np.ndarray:
    return np.random.default_rng(seed).random(shape)


def columns(comm: MPI.Comm, rows: int, tag: int) -> np.ndarray:
    """A block of columns goes to the other's rows, and back."""
    column = MPI.DOUBLE.Create_vector(rows, 4, 64).Commit()
    out, into = fresh((rows, 64), 10 + me), np.full((rows, 64), -1.0)
    requests = [comm.Irecv([into, rows * 4, MPI.DOUBLE], other, tag), comm.Isend([out, 1, column], other, tag)]
    MPI.Request.Waitall(requests)
    comm.Sendrecv([out, 1, column], other, tag + 1, [into, 1, column], other, tag + 1)
    column.Free()
    return into


lines = [f"threads: {MPI.Query_thread() == MPI.THREAD_MULTIPLE}"]
for rows in (3, 100, 5000, 50000):
    shown(f"columns of {rows}", columns(world, rows, rows))

part = MPI.INT.Create_subarray([50, 60, 70], [20, 30, 40], [3, 5, 7], order=MPI.ORDER_C).Commit()
block = np.arange(50 * 60 * 70, dtype="i").reshape(50, 60, 70) * (me + 1)
if me == 0:
    world.Send([block, 1, part], other, 1)
    world.Ssend([block, 1, part], other, 2)
else:
    for tag in (1, 2):
        status = MPI.Status()
        message = world.Mprobe(MPI.ANY_SOURCE, tag, status)
        into = np.zeros((50, 60, 70), dtype="i")
        message.Recv([into, 1, part], status)
        shown(f"part, {status.Get_count(MPI.INT)} numbers, {status.Get_elements(part)}", into)
packed = bytearray(part.Pack_size(1, world))
lines.append(f"packed: {part.Pack(block, packed, 0, world)} {zlib.crc32(packed):08x}")
part.Free()

numbers = fresh((3, 9000), 20 + me)
into = np.zeros((3, 9000))
requests = [world.Irecv(into[i], other, i) for i in range(3)] + [MPI.REQUEST_NULL]
requests += [world.Isend(numbers[i], other, i) for i in range(3)]
try:
    while not MPI.Request.Get_status_all(requests):
        pass
    assert MPI.Request.Get_status_any(requests) == (0, True)
    assert MPI.Request.Get_status_some(requests) == [0, 1, 2, 4, 5, 6]
    status = MPI.Status()
    status.source = status.error = 1
    assert MPI.Request.Get_status_any([MPI.REQUEST_NULL], status) == (MPI.UNDEFINED, True)
    assert (status.source, status.error) == (MPI.ANY_SOURCE, MPI.SUCCESS)
except NotImplementedError:  # an MPI before 4.1, unless the library is in front of it
    pass
MPI.Request.Waitall(requests)
shown("numbers", into)

told = world.sendrecv({"from": me, "list": list(range(20000))}, other)
lines.append(f"object: {told['from']} {sum(told['list'])}")

comms = [world.Dup() for _ in range(4)]
results: list[np.ndarray] = [np.empty(0)] * len(comms)


def run(i: int) -> None:
    results[i] = columns(comms[i], 2000 + i, 5)


threads = [threading.Thread(target=run, args=(i,)) for i in range(len(comms))]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
for i, result in enumerate(results):
    shown(f"thread {i}", result)

said = world.gather(lines)
if me == 0:
    for rank, text in enumerate(said or []):
        print(f"--- rank {rank}", *text, sep="\n", flush=True)
