"""A plan carried out: by messages, by an exchange of all ranks, by an MPI, or within one process."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lacuna import _core, arrays
from lacuna.exchanges import Block, Exchange
from lacuna.messages import Communicator, wait_all
from lacuna.resharding.boxes import DatatypeMaker
from lacuna.resharding.plan import Pair, Reshard

WAYS = ("messages", "exchange", "alltoallw", "mpi")


class Execution(Reshard):
    """A `Reshard` that can be carried out. Arrays are what `lacuna.copy` takes, of each rank's local shape and any
    strides. A rank that is not in the source has None for its source array, and the same of the target."""

    def run(self, ranks: Any, source: Any, target: Any, *, by: str = "exchange", tag: int = 0) -> None:
        """Moves a rank's part. All ranks of both meshes call it; they are ranks of `ranks`.

        `by`: "messages" (a message for each pair, with `tag`; other ranks need not call), "exchange" or "alltoallw"
        (all ranks of the communicator call, and agree on the schedule), "mpi" (`ranks` is a communicator of mpi4py:
        its Alltoallw with datatypes). Raises ValueError (an array of another shape, a way that is none) and as those
        calls do."""
        if by not in WAYS:
            raise ValueError(f"by={by!r} is none of {', '.join(WAYS)}")
        if by == "messages":
            self._by_messages(ranks, source, target, tag)
        elif by == "mpi":
            self._by_mpi(ranks, source, target)
        elif by == "exchange":
            self.exchange(ranks, source, target).run()
        else:
            sends, receives = self._blocks(ranks.rank, source, target)
            ranks.alltoallw(_by_rank(sends, ranks.size), _by_rank(receives, ranks.size))

    def exchange(self, ranks: Communicator, source: Any, target: Any) -> Exchange:
        """The same, to be started again and again with the same arrays."""
        sends, receives = self._blocks(ranks.rank, source, target)
        return ranks.neighbor_exchange_init(sends, receives)

    def move(self, sources: Mapping[int, Any], targets: Mapping[int, Any], *, threads: int = 1) -> None:
        """All of it within one process: the arrays of all ranks, by rank."""
        for pair in self.pairs():
            own, other = sources[pair.source], targets[pair.target]
            arrays.copy(
                other,
                own,
                target_layout=self._layout_in(pair, other, of_source=False),
                source_layout=self._layout_in(pair, own, of_source=True),
                threads=threads,
            )

    def _by_messages(self, ranks: Communicator, source: Any, target: Any, tag: int) -> None:
        sends, receives = self._blocks(ranks.rank, source, target)
        requests = [ranks.irecv(a, peer, tag, layout=layout) for peer, (a, layout) in receives if peer != ranks.rank]
        requests += [ranks.isend(a, peer, tag, layout=layout) for peer, (a, layout) in sends if peer != ranks.rank]
        own = [block for peer, block in (*receives, *sends) if peer == ranks.rank]
        if own:
            (into, written), (out, read) = own
            arrays.copy(into, out, target_layout=written, source_layout=read)
        wait_all(requests)

    def _by_mpi(self, comm: Any, source: Any, target: Any) -> None:
        from mpi4py import MPI

        rank, size = comm.Get_rank(), comm.Get_size()
        maker = DatatypeMaker[Any](MPI)
        sides = []
        for array, pairs, of_source in ((source, self.sends(rank), True), (target, self.receives(rank), False)):
            types, counts = [MPI.BYTE] * size, [0] * size
            for pair in pairs:
                strides = self.strides_of(pair, array, of_source=of_source)
                made = self.described(maker, pair, strides, of_source=of_source)
                peer = pair.target if of_source else pair.source
                types[peer], counts[peer] = made.Commit(), 1
            sides.append([_buffer(MPI, array) if any(counts) else None, counts, [0] * size, types])
        comm.Alltoallw(*sides)
        maker.free()

    def _blocks(self, rank: int, source: Any, target: Any) -> tuple[list[tuple[int, Any]], list[tuple[int, Any]]]:
        """What a rank sends and gets: (peer, (array, layout))."""
        sends = [(p.target, (source, self._layout_in(p, source, of_source=True))) for p in self.sends(rank)]
        receives = [(p.source, (target, self._layout_in(p, target, of_source=False))) for p in self.receives(rank)]
        return sends, receives

    def _layout_in(self, pair: Pair, array: Any, *, of_source: bool) -> _core.Layout:
        return self.layout(pair, of_source=of_source, strides=self.strides_of(pair, array, of_source=of_source))

    def strides_of(self, pair: Pair, array: Any, *, of_source: bool) -> tuple[int, ...]:
        """Raises ValueError if the array is not the rank's part."""
        role, rank = ("source", pair.source) if of_source else ("target", pair.target)
        expected = self.source_shape(rank) if of_source else self.target_shape(rank)
        if array is None:
            raise ValueError(f"rank {rank} has a part of the {role}, of shape {expected}: it needs an array for it")
        _, itemsize, shape, strides = _core.memory_of(array, role)
        if shape != expected or itemsize != self.itemsize:
            raise ValueError(
                f"rank {rank}'s part of the {role} has shape {expected} and elements of {self.itemsize} B; the array "
                f"has shape {shape} and elements of {itemsize} B"
            )
        return strides


def _buffer(mpi: Any, array: Any) -> Any:
    """Where an array begins, for mpi4py, which by itself takes arrays without gaps only. The datatypes say how far it
    reaches."""
    address, itemsize, _, _ = _core.memory_of(array)
    kind = mpi.buffer if hasattr(mpi, "buffer") else mpi.memory  # the name of before mpi4py 4
    return kind.fromaddress(address, itemsize)


def _by_rank(blocks: list[tuple[int, Block]], size: int) -> list[Block]:
    placed: list[Block] = [None] * size
    for rank, block in blocks:
        placed[rank] = block
    return placed
