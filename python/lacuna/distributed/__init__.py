"""Point-to-point calls of torch.distributed for tensors of any strides.

    dist = lacuna.distributed.init_process_group()      under torchrun, or with a name, a rank and a world_size
    dist = lacuna.distributed.from_torch()              among the ranks of torch's process group

    dist.send(tensor, dst=1)                            ... and a program's other calls, as they are

torch.distributed sends contiguous tensors; a view is copied first, and a receive into one is refused or copied behind.
Here both ends may be any views on the CPU, of as many bytes, and nothing is copied beside. Tensors are torch's, and all
else that `lacuna.copy` takes. Nothing of torch is imported but by `from_torch`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from lacuna.messages import ANY_SOURCE, Communicator, Request, connect

__all__ = ["P2POp", "ProcessGroup", "Work", "from_torch", "init_process_group"]


class Work:
    """A send or a receive that is under way."""

    def __init__(self, request: Request) -> None:
        self._request = request

    def wait(self) -> bool:
        """Waits until it is done; True then. Raises as `lacuna.Request.wait`."""
        self._request.wait()
        return True

    def is_completed(self) -> bool:
        """Moves messages on; whether it is done."""
        return self._request.test()


class P2POp(NamedTuple):
    """One of a batch: `op` is the group's `isend` or `irecv`."""

    op: Callable[..., Work]
    tensor: Any
    peer: int
    tag: int = 0


class ProcessGroup:
    """Ranks that send one another tensors. Made by `init_process_group` or `from_torch`."""

    def __init__(self, ranks: Communicator) -> None:
        self.communicator = ranks
        """For everything else: exchanges, put and get, `lacuna.reshard`."""

    def get_rank(self) -> int:
        return self.communicator.rank

    def get_world_size(self) -> int:
        return self.communicator.size

    def send(self, tensor: Any, dst: int, tag: int = 0) -> None:
        """Sends it; returns once it may be changed."""
        self.communicator.send(tensor, dst, tag)

    def recv(self, tensor: Any, src: int | None = None, tag: int = 0) -> int:
        """Receives into it, from any rank if there is no `src`; the rank that it came from."""
        return int(self.communicator.recv(tensor, ANY_SOURCE if src is None else src, tag).source)

    def isend(self, tensor: Any, dst: int, tag: int = 0) -> Work:
        """Begins to send. The tensor must not be changed until it is done."""
        return Work(self.communicator.isend(tensor, dst, tag))

    def irecv(self, tensor: Any, src: int | None = None, tag: int = 0) -> Work:
        """Begins to receive. The tensor must not be read until it is done."""
        return Work(self.communicator.irecv(tensor, ANY_SOURCE if src is None else src, tag))

    def batch_isend_irecv(self, batch: Sequence[P2POp]) -> list[Work]:
        """Begins all of them: receives first, so that no send has to wait for one."""
        first = sorted(range(len(batch)), key=lambda i: batch[i].op == self.isend)
        begun = {i: batch[i].op(batch[i].tensor, batch[i].peer, batch[i].tag) for i in first}
        return [begun[i] for i in range(len(batch))]

    def destroy_process_group(self) -> None:
        """As `Communicator.close`."""
        self.communicator.close()

    def __enter__(self) -> ProcessGroup:
        return self

    def __exit__(self, *_: object) -> None:
        self.destroy_process_group()


def init_process_group(
    address: str | None = None, *, rank: int | None = None, world_size: int | None = None, **options: Any
) -> ProcessGroup:
    """Meets the other ranks. `rank` and `world_size` are RANK and WORLD_SIZE of the environment if left out, which
    torchrun sets. `address`: as `lacuna.connect` has it; where torchrun started all ranks on one machine, a name made
    of its MASTER_ADDR and MASTER_PORT if left out. `options` are those of `lacuna.connect`.

    Raises ValueError if something is missing that the environment does not say, and as `lacuna.connect`."""
    own, size = _number("RANK", rank), _number("WORLD_SIZE", world_size)
    if address is None:
        if os.environ.get("LOCAL_WORLD_SIZE", "") != str(size) or "MASTER_PORT" not in os.environ:
            raise ValueError(
                "init_process_group() needs an address, as lacuna.connect() has it: a name on one machine, or "
                "host:port with a secret. torchrun says none that serves unless all ranks are on one machine"
            )
        address = f"torchrun-{os.environ.get('MASTER_ADDR', '')}-{os.environ['MASTER_PORT']}"
    return ProcessGroup(connect(address, size, rank=own, **options))


def from_torch(group: Any = None, **options: Any) -> ProcessGroup:
    """Meets the ranks of a process group of torch.distributed (the default one if left out), by its own collectives.
    `options` are those of `lacuna.connect`."""
    import torch.distributed

    return ProcessGroup(connect(comm=_TorchComm(torch.distributed, group), **options))


class _TorchComm:
    """What `lacuna.connect` asks of a communicator, of torch."""

    def __init__(self, dist: Any, group: Any) -> None:
        self._dist, self._group = dist, group

    def Get_rank(self) -> int:  # noqa: N802, as mpi4py names it
        return int(self._dist.get_rank(self._group))

    def Get_size(self) -> int:  # noqa: N802
        return int(self._dist.get_world_size(self._group))

    def allgather(self, said: Any) -> list[Any]:
        heard: list[Any] = [None] * self.Get_size()
        self._dist.all_gather_object(heard, said, group=self._group)
        return heard

    def bcast(self, said: Any, root: int) -> Any:
        return self.allgather(said)[root]


def _number(name: str, given: int | None) -> int:
    if given is not None:
        return given
    if not os.environ.get(name, "").isdigit():
        raise ValueError(f"{name.lower()} is not given, and {name} of the environment is no number: torchrun sets it")
    return int(os.environ[name])
