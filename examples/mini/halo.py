"""The halo exchange of halo.c where there is no compiler: NumPy, and MPI's own functions by ctypes.

Ranks stand side by side. Each has a block of doubles and, beside it, columns of its neighbours, which MPI_Type_vector
describes. Prints the lines of mini.h; times are those of rank 0, and nothing is packed by hand.

    mpirun -n 2 python halo.py --library libmpi.so.40 --seconds 0.5 --largest 2048
"""

from __future__ import annotations

import argparse
import ctypes
import json
import sys
import time
from pathlib import Path

import numpy as np
import numpy.typing as npt

DEPTH, LEAST, TAG = 2, 256, 7
FEWEST_ROUNDS, MOST_ROUNDS, MOST_REPEATS, SHORTEST_SAMPLE = 5, 1001, 200, 200e-6
"""As in mini.c; seconds."""


class Found(ctypes.Structure):
    """What dladdr says of an address."""

    _fields_ = (
        ("file", ctypes.c_char_p),
        ("base", ctypes.c_void_p),
        ("name", ctypes.c_char_p),
        ("at", ctypes.c_void_p),
    )


class Mpi:
    """The functions of a library, and the handles of its ABI. A call that fails ends the job, as MPI does by itself."""

    def __init__(self, library: str) -> None:
        self._library = ctypes.CDLL(library, mode=ctypes.RTLD_GLOBAL)
        if hasattr(self._library, "ompi_mpi_comm_world"):  # Open MPI: addresses of objects
            self.handle: type = ctypes.c_void_p
            self.world, self.double = (self._address(f"ompi_mpi_{name}") for name in ("comm_world", "double"))
            self.ignored = ctypes.c_void_p(None)
        else:  # MPICH and its like: numbers
            self.handle = ctypes.c_int
            self.world, self.double = ctypes.c_int(0x44000000), ctypes.c_int(0x4C00080B)
            self.ignored = ctypes.c_void_p(1)
        self("Init", None, None)
        self.rank, self.ranks = self._number("Comm_rank"), self._number("Comm_size")

    def __call__(self, name: str, *arguments: object) -> None:
        getattr(self._library, f"MPI_{name}")(*arguments)

    def _address(self, name: str) -> ctypes.c_void_p:
        return ctypes.c_void_p(ctypes.addressof(ctypes.c_byte.in_dll(self._library, name)))

    def _number(self, name: str) -> int:
        found = ctypes.c_int()
        self(name, self.world, ctypes.byref(found))
        return found.value

    def broadcast(self, value: float) -> float:
        """Rank 0's."""
        shared = ctypes.c_double(value)
        self("Bcast", ctypes.byref(shared), 1, self.double, 0, self.world)
        return shared.value

    def send_in(self) -> str:
        """The library whose MPI_Send this program calls: whether one was loaded before MPI's."""
        found = Found()
        address = ctypes.cast(self._library.MPI_Send, ctypes.c_void_p)
        return Path(found.file.decode()).name if ctypes.CDLL(None).dladdr(address, ctypes.byref(found)) else ""


class Block:
    """A rank's part of the grid, with columns of its neighbours at the left and at the right."""

    def __init__(self, mpi: Mpi, n: int) -> None:
        self._mpi = mpi
        self.n = n
        self.values: npt.NDArray[np.float64] = np.empty((n, n + 2 * DEPTH))
        self._columns = mpi.handle()
        mpi("Type_vector", n, DEPTH, n + 2 * DEPTH, mpi.double, ctypes.byref(self._columns))
        mpi("Type_commit", ctypes.byref(self._columns))
        edges = ((mpi.rank - 1, DEPTH, 0), (mpi.rank + 1, n, n + DEPTH))  # a neighbour, columns for it, columns of it
        self._edges = [edge for edge in edges if 0 <= edge[0] < mpi.ranks]
        self._requests = (mpi.handle * (2 * len(self._edges)))()

    @property
    def sent_bytes(self) -> int:
        """Of the rank that sends most."""
        return min(2, self._mpi.ranks - 1) * self.n * DEPTH * self.values.itemsize

    def exchange(self) -> None:
        calls = [("Irecv", received, neighbour) for neighbour, _, received in self._edges]
        calls += [("Isend", sent, neighbour) for neighbour, sent, _ in self._edges]
        for i, (call, column, neighbour) in enumerate(calls):
            address = ctypes.c_void_p(self.values.ctypes.data + column * self.values.itemsize)
            request = ctypes.byref(self._requests, i * ctypes.sizeof(self._mpi.handle))
            self._mpi(call, address, 1, self._columns, neighbour, TAG, self._mpi.world, request)
        self._mpi("Waitall", len(calls), self._requests, self._mpi.ignored)

    def verify(self, call: int) -> None:
        """An exchange of values that differ with each call. Ends the job where a byte is wrong, or was not to move."""
        columns = np.arange(self.n + 2 * DEPTH) - DEPTH + self._mpi.rank * self.n
        right = np.arange(self.n)[:, None] * 65536.0 + columns + call * 0.125
        inside = slice(DEPTH, DEPTH + self.n)
        self.values[:] = -1
        self.values[:, inside] = right[:, inside]
        self.exchange()
        right[:, (columns < 0) | (columns >= self._mpi.ranks * self.n)] = -1  # no rank sends these
        if not np.array_equal(self.values, right):
            print(f"halo in Python, {self.n} x {self.n}: wrong bytes", file=sys.stderr, flush=True)
            self._mpi("Abort", self._mpi.world, 1)

    def timed(self, repeats: int) -> float:
        """Seconds of one exchange among so many that follow at once."""
        self._mpi("Barrier", self._mpi.world)
        start = time.perf_counter()
        for _ in range(repeats):
            self.exchange()
        return (time.perf_counter() - start) / repeats

    def close(self) -> None:
        self._mpi("Type_free", ctypes.byref(self._columns))


def run(mpi: Mpi, n: int, seconds: float) -> None:
    block = Block(mpi, n)
    block.verify(1)
    block.timed(1)
    repeats = int(mpi.broadcast(min(MOST_REPEATS, 1 + SHORTEST_SAMPLE / block.timed(1))))
    times: list[float] = []
    while mpi.broadcast(len(times) < FEWEST_ROUNDS or (len(times) < MOST_ROUNDS and sum(times) * repeats < seconds)):
        times.append(block.timed(repeats))
    block.verify(2)
    if mpi.rank == 0:
        line = {"case": f"halo in Python, {n} x {n}", "ranks": mpi.ranks, "bytes": block.sent_bytes}
        line |= {"hand_us": [], "datatype_us": [round(one * 1e6, 3) for one in times], "send_in": mpi.send_in()}
        print(json.dumps(line), flush=True)
    block.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--library", required=True, metavar="FILE", help="the MPI's libmpi")
    parser.add_argument("--seconds", type=float, default=0.5, help="for each size")
    parser.add_argument("--largest", type=int, default=2048, metavar="N", help="rows of the largest block")
    options = parser.parse_args()
    mpi = Mpi(options.library)
    n = LEAST
    while n <= options.largest:
        run(mpi, n, options.seconds)
        n *= 2
    mpi("Finalize")


if __name__ == "__main__":
    main()
