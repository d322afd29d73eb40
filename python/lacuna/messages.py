"""Messages between processes: `connect`, and the communicator that it returns."""

from __future__ import annotations

import secrets
import socket
from collections.abc import Sequence
from types import TracebackType
from typing import Any

from lacuna._core import Exposed, Layout, Pending, Ranks, Status
from lacuna.exchanges import Block, Exchange, exchange, transpose

ANY_SOURCE = -1
ANY_TAG = -1


class Request:
    """A send or a receive that is under way. Its array is kept until it is done."""

    def __init__(self, ranks: Ranks, pending: Pending) -> None:
        self._ranks = ranks
        self._pending = pending

    def test(self) -> bool:
        """Moves messages on; whether this one is done. What became of it, `wait` says."""
        return self._ranks.test(self._pending)

    def wait(self) -> Status:
        """Moves messages on until this one is done. Raises ValueError (a message longer than its receive, a receive
        that was cancelled), ConnectionError (the peer is lost)."""
        return self._ranks.wait(self._pending)

    def cancel(self) -> bool:
        """Takes back a receive that has found no message. False: it has, or it is a send."""
        return self._ranks.cancel(self._pending)


class Communicator:
    """Processes that send one another messages, by rank. Made by `connect`.

    Arrays are NumPy arrays and all else that has the buffer protocol, or DLPack in memory that the CPU reaches (pinned
    and managed memory of a GPU too), with any strides; or a `layout` that lies `offset` bytes behind the array's first
    element. Their elements may be of any type but Python objects (TypeError). Tags are 0 or more. Messages are matched
    as in MPI.

    Nothing moves but inside of a call, unless there is a `progress_thread`.
    """

    def __init__(self, ranks: Ranks) -> None:
        self._ranks = ranks

    @property
    def rank(self) -> int:
        """The rank of this process, from 0."""
        return self._ranks.rank

    @property
    def size(self) -> int:
        """How many ranks there are."""
        return self._ranks.size

    def send(self, array: Any, dest: int, tag: int = 0, *, layout: Layout | None = None, offset: int = 0) -> None:
        """Sends the array to rank `dest`; returns once it may be changed. Raises ValueError (no such rank, a tag below
        0), ConnectionError (the peer is lost)."""
        self._ranks.send(array, dest, tag, layout, offset)

    def recv(
        self,
        array: Any,
        source: int = ANY_SOURCE,
        tag: int = ANY_TAG,
        *,
        layout: Layout | None = None,
        offset: int = 0,
    ) -> Status:
        """Receives into the array; what came. Raises as `Request.wait`."""
        return self._ranks.recv(array, source, tag, layout, offset)

    def isend(self, array: Any, dest: int, tag: int = 0, *, layout: Layout | None = None, offset: int = 0) -> Request:
        """Begins to send. The array must not be changed until the request is done."""
        return Request(self._ranks, self._ranks.isend(array, dest, tag, layout, offset))

    def irecv(
        self,
        array: Any,
        source: int = ANY_SOURCE,
        tag: int = ANY_TAG,
        *,
        layout: Layout | None = None,
        offset: int = 0,
    ) -> Request:
        """Begins to receive. The array must not be read until the request is done."""
        return Request(self._ranks, self._ranks.irecv(array, source, tag, layout, offset))

    def expose(self, array: Any) -> Exposed:
        """Lets the other ranks put to, and get from, a contiguous array. What is returned names it: send it to them."""
        return self._ranks.expose(array)

    def withdraw(self, exposed: Exposed) -> None:
        """No rank reaches the memory afterwards; waits for what is under way."""
        self._ranks.withdraw(exposed)

    def register_memory(self, array: Any) -> int:
        """Registers an array's memory, from its first byte to its last, until `deregister_memory`: for all messages in
        it. The array is kept as long. It spares messages their registration where the kernel does not tell of freed
        memory (`statistics`), and the look at it elsewhere."""
        return self._ranks.register_memory(array)

    def deregister_memory(self, number: int) -> None:
        """Raises ValueError (no such number)."""
        self._ranks.deregister_memory(number)

    def put(self, array: Any, to: Exposed, offset: int = 0, *, layout: Layout | None = None) -> None:
        """Moves the array into exposed memory, into `layout` (as many bytes in a row if left out), `offset` bytes
        behind its beginning. The other rank's program makes no call for it, but it has to be in calls, or to have a
        progress thread. Returns once the bytes are there."""
        self.iput(array, to, offset, layout=layout).wait()

    def get(self, array: Any, source: Exposed, offset: int = 0, *, layout: Layout | None = None) -> None:
        """Moves exposed memory into the array; as `put`."""
        self.iget(array, source, offset, layout=layout).wait()

    def iput(self, array: Any, to: Exposed, offset: int = 0, *, layout: Layout | None = None) -> Request:
        """Begins to put. Several that are under way are done in any order."""
        return Request(self._ranks, self._ranks.put(array, to, offset, layout))

    def iget(self, array: Any, source: Exposed, offset: int = 0, *, layout: Layout | None = None) -> Request:
        """Begins to get."""
        return Request(self._ranks, self._ranks.get(array, source, offset, layout))

    def alltoallw(
        self,
        sends: Sequence[Block],
        receives: Sequence[Block],
        *,
        schedule: str = "automatic",
        window: int = 8,
        timeout: float | None = None,
    ) -> None:
        """sends[i] goes to rank i, and what comes from rank i goes into receives[i]: one of each for each rank, the own
        one included; None is empty. A block is an array of any shape and strides, or (array, layout), or (array,
        layout, offset in bytes). The two ends of a message may have different layouts of as many bytes.

        All ranks call it, with the same `schedule` ("automatic", "at_once", "pairwise", "forward"). `window`: messages
        under way at once in "pairwise". `timeout` in seconds: for the other ranks.

        Raises ValueError on all ranks, with nothing written, if a rank's arguments cannot be, or sizes, calls or
        schedules of ranks do not fit together; ConnectionError if a rank is lost, TimeoutError. After these two memory
        is written in part, and the communicator is good for no more than its end."""
        self.alltoallw_init(sends, receives, schedule=schedule, window=window).run(timeout)

    def alltoallw_init(
        self, sends: Sequence[Block], receives: Sequence[Block], *, schedule: str = "automatic", window: int = 8
    ) -> Exchange:
        """The same, to be started again and again with the same arrays: the ranks agree once."""
        return exchange(self._ranks, enumerate(sends), enumerate(receives), schedule, window, everyone=True)

    def neighbor_exchange(
        self,
        sends: Sequence[tuple[int, Block]],
        receives: Sequence[tuple[int, Block]],
        *,
        schedule: str = "automatic",
        window: int = 8,
        timeout: float | None = None,
    ) -> None:
        """Sends to, and receives from, any ranks: lists of (rank, block), blocks and errors as in `alltoallw`. A rank
        may come several times: the i-th message of one rank to another goes into the i-th receive from it. All ranks of
        the communicator call it, those without neighbours with empty lists."""
        self.neighbor_exchange_init(sends, receives, schedule=schedule, window=window).run(timeout)

    def neighbor_exchange_init(
        self,
        sends: Sequence[tuple[int, Block]],
        receives: Sequence[tuple[int, Block]],
        *,
        schedule: str = "automatic",
        window: int = 8,
    ) -> Exchange:
        """The same, to be started again and again with the same arrays: the ranks agree once."""
        return exchange(self._ranks, sends, receives, schedule, window, everyone=False)

    def transpose(
        self,
        before: Any,
        after: Any,
        *,
        row_blocks: Sequence[int] | None = None,
        column_blocks: Sequence[int] | None = None,
        schedule: str = "automatic",
        window: int = 8,
        timeout: float | None = None,
    ) -> None:
        """Transposes a matrix of `rows` x `columns` whose rows are spread over the ranks in blocks.

        `before`: this rank's rows, of shape (row_blocks[rank], columns). `after`: its rows of the transpose, of shape
        (column_blocks[rank], rows). Elements of a row lie side by side, rows may be further apart. `row_blocks`: rows
        of each rank; as even as can be if left out, the first ones have one more. `column_blocks`: the same of the
        columns. The rest, and errors, as in `alltoallw`."""
        self.transpose_init(
            before, after, row_blocks=row_blocks, column_blocks=column_blocks, schedule=schedule, window=window
        ).run(timeout)

    def transpose_init(
        self,
        before: Any,
        after: Any,
        *,
        row_blocks: Sequence[int] | None = None,
        column_blocks: Sequence[int] | None = None,
        schedule: str = "automatic",
        window: int = 8,
    ) -> Exchange:
        """The same, to be started again and again with the same arrays: the ranks agree once."""
        return transpose(self._ranks, before, after, row_blocks, column_blocks, schedule, window)

    def probe(self, source: int = ANY_SOURCE, tag: int = ANY_TAG) -> Status | None:
        """The message that a receive would find now, if there is one."""
        return self._ranks.probe(source, tag)

    def progress(self) -> bool:
        """Moves messages on without waiting; whether something moved."""
        return self._ranks.progress()

    def statistics(self) -> str:
        """What was sent and received, by which protocol and way."""
        return self._ranks.statistics()

    def explain(self, send: Layout, receive: Layout, dest: int) -> str:
        """How a message would travel to `dest`."""
        return self._ranks.explain(send, receive, dest)

    def close(self) -> None:
        """Waits until the peers took what was sent, a minute at most. Requests end with it."""
        self._ranks.close()

    def __enter__(self) -> Communicator:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def wait_any(requests: Sequence[Request]) -> int:
    """Moves messages on until one of the requests is done; its index. They belong to one communicator."""
    if not requests:
        raise ValueError("wait_any() of no request")
    return requests[0]._ranks.wait_any([r._pending for r in requests])


def wait_all(requests: Sequence[Request]) -> list[Status]:
    """Waits for all; what became of each. All are ended before the first one's error is raised."""
    found: list[Status] = []
    first: Exception | None = None
    for request in requests:
        try:
            found.append(request.wait())
        except (ValueError, ConnectionError, RuntimeError) as e:
            first = first or e
    if first:
        raise first
    return found


def connect(
    address: str | None = None,
    size: int = 2,
    *,
    rank: int = -1,
    secret: str = "",
    comm: Any = None,
    timeout: float = 30.0,
    nic: str | None = None,
    eager_bytes: int = 8192,
    unexpected_bytes: int = 4 << 20,
    progress_thread: bool = False,
    registering: str | None = None,
    learning: str | None = None,
) -> Communicator:
    """Meets the other processes, and returns once all have come.

    `address` is a name, for processes of one user on one machine, whose ranks are given as they come unless `rank`
    says; or "host:port", where rank 0 listens, for ranks that have the `secret` of at least 16 characters. Or `comm` is
    an mpi4py communicator, whose ranks and size are taken.

    `nic`: "local", "verbs", "ofi:tcp" and others. If left out, what LACUNA_NIC names; else "local", or,
    if ranks are on several machines, an RDMA device, or else what libfabric has.

    `eager_bytes`: a message of up to so many is sent before anybody asks for it. `unexpected_bytes`: of such messages,
    kept for each peer until they are received. `progress_thread`: messages move while the program computes.
    `registering`: what becomes of memory that a NIC has to know ("automatic", "copy", "leave_pinned", "pipeline",
    "leave_pinned_pipeline"); LACUNA_REGISTERING if left out. `learning`: "off", "observe", "on" or "on:N", whether one
    message in N (100) goes another way to correct the choice; LACUNA_LEARN if left out.

    Raises ValueError, PermissionError (another user's process, a wrong secret), TimeoutError (and who is missing),
    ConnectionError.
    """
    if comm is not None:
        address, size, rank, secret = _meet_through(comm)
    if address is None:
        raise ValueError("connect() needs an address or comm")
    ranks = Ranks(
        address,
        size,
        rank,
        secret,
        timeout,
        nic or "",
        eager_bytes,
        unexpected_bytes,
        progress_thread,
        registering,
        learning,
    )
    return Communicator(ranks)


def _meet_through(comm: Any) -> tuple[str, int, int, str]:
    """Where the ranks of an MPI communicator meet: by a random name on one machine, else at rank 0's."""
    rank, size = comm.Get_rank(), comm.Get_size()
    hosts = comm.allgather(socket.gethostname())
    name, secret = "", ""
    if rank == 0:
        secret = secrets.token_hex(16)
        name = f"mpi-{secrets.token_hex(16)}"
        if any(host != hosts[0] for host in hosts):
            with socket.create_server(("", 0)) as free:
                name = f"{hosts[0]}:{free.getsockname()[1]}"
    name, secret = comm.bcast((name, secret), root=0)
    return name, size, rank, secret
