"""The client of `lacuna-message-bench`."""

from __future__ import annotations

import secrets
from pathlib import Path

from lacuna.mpi.installations import Peer
from lacuna.mpi.job import Job
from lacuna.mpi.launch import launch
from lacuna.worker.client import find_executable


def find_bench() -> Path:
    """The executable: `LACUNA_MESSAGE_BENCH` if set, otherwise the one installed in the package."""
    return find_executable("lacuna-message-bench", "LACUNA_MESSAGE_BENCH")


class MessageBench(Job):
    """One running job of two ranks, connected through an MPI and through Lacuna."""

    transport: str

    def __init__(self, peer: Peer, folder: Path, silence: float) -> None:
        """Compiles the shim into `folder` and starts the job. `silence`: seconds after which it is given up.

        Raises PeerError where this MPI cannot be used, and WorkerError where the job did not start.
        """
        bench = find_bench()
        started = launch(peer)
        self.transport = started.transport
        meeting = f"bench-{secrets.token_hex(8)}"
        super().__init__(peer.name, started, [bench, peer.shim(folder), "SOCKET", meeting], folder, silence)
