"""MPI programs whose ranks are on two hosts do the same with Lacuna loaded as without it.

The hosts are network namespaces, the launchers the MPIs' own: `python tests/mpi/run.py --inter-node` runs all programs
so.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from mpi_ready import Ready, program, run

from lacuna.mpi.launch import launch
from lacuna.mpi.two_hosts import Hosts, HostsError, two_hosts

pytestmark = pytest.mark.gate

MPIS = ("openmpi4-debian", "openmpi5", "mpich5", "impi")
"""All but Debian's MPICH 4.0, which hangs by itself at random over TCP, with libfabric as with UCX."""
PROGRAMS = ("collect", "edges", "errors", "f08", "finalize", "patterns-halo", "persistent", "types")
HOSTS_FAIL = {
    ("openmpi5", "collect"): "Open MPI 5 ends collect by itself over TCP",
    ("impi", "collect"): "collect does not end by itself with Intel MPI between hosts",
    ("impi", "errors"): "Intel MPI ends errors by itself between hosts",
    ("impi", "f08"): "impi comes without f08 for this compiler",
}
"""What an MPI does wrong by itself between hosts."""


@pytest.fixture(scope="module")
def hosts() -> Iterator[Hosts]:
    try:
        with two_hosts() as made:
            yield made
    except HostsError as e:
        pytest.skip(str(e))


@pytest.fixture(scope="module", params=MPIS)
def mpi(request: pytest.FixtureRequest, hosts: Hosts) -> Ready:
    found = {peer.name: peer for peer in run.installed()}
    if request.param not in found:
        pytest.skip(f"{request.param} is not here; `make peers` installs it")
    return Ready(found[request.param], launch(found[request.param], hosts), run.BUILT)


def built(mpi: Ready, name: str) -> Path:
    if known := HOSTS_FAIL.get((mpi.peer.name, name)):
        pytest.skip(known)
    return mpi.build(program(name).source)


@pytest.mark.parametrize("name", PROGRAMS)
def test_does_the_same_as_without(mpi: Ready, name: str) -> None:
    """Whatever has gaps and is longer than a descriptor, in chunks of odd lengths."""
    mpi.compare(program(name), built(mpi, name), run.INTER_NODE, options="--inter-node ")


def test_long_chunks_that_nobody_receives(mpi: Ready) -> None:
    """Programs that end with messages on their way, whose chunks are too long to be sent before they are asked for."""
    mpi.compare(
        program("errors"),
        built(mpi, "errors"),
        {**run.INTER_NODE, "LACUNA_MPI_CHUNK": "300000"},
        options="--inter-node ",
    )


def test_the_library_takes_part(mpi: Ready) -> None:
    """Between hosts in chunks; what shared memory could carry, if the hosts were not told apart, would be offered."""
    done = mpi.preloaded(program("types"), built(mpi, "types"), {**run.INTER_NODE, "LACUNA_MPI_REPORT": "1"})
    assert ": sent in chunks, " in done.err
    assert ": received in chunks, " in done.err
    assert ": offered, " not in done.err


@pytest.mark.parametrize("ranks", [1, 3, pytest.param(16, marks=pytest.mark.all)])
def test_any_number_of_ranks(mpi: Ready, ranks: int) -> None:
    """Of which several are on each host."""
    ring = run.Program(run.HERE / "ring.c", "", ranks)
    preloaded = mpi.compare(
        ring, mpi.build(ring.source), {**run.INTER_NODE, "LACUNA_MPI_REPORT": "1"}, options="--inter-node "
    )
    assert (": sent in chunks, " in preloaded.err) == (ranks > 1)
    assert (": offered, " in preloaded.err) == (ranks > 2)


READ = {**run.INTER_NODE, "LACUNA_MPI_NIC": "ofi:tcp", "LACUNA_MPI_REPORT": "1"}
"""Messages between hosts are read by libfabric's provider."""
WARNING = "messages between nodes go without RDMA: "


def needs_provider(done: run.Outcome) -> None:
    if "NIC ofi needs libfabric" in done.err:
        pytest.skip("no libfabric here; Debian's package is libfabric1")


@pytest.mark.parametrize("name", ["types", "patterns-halo", "f08", "finalize", "errors"])
def test_messages_that_a_provider_reads(mpi: Ready, name: str) -> None:
    """The same again, and all ranks came to use the provider."""
    done = mpi.compare(program(name), built(mpi, name), READ, options="--inter-node ")
    needs_provider(done)
    assert WARNING not in done.err
    if name in ("types", "patterns-halo", "f08"):
        assert ": read by a device, " in done.err


def test_a_death_among_readers_ends_the_job(mpi: Ready) -> None:
    """The one that waits for a message of a dead rank is told, or ended by the launcher."""
    death = run.Program(run.HERE / "deaths" / "death.c", "kill sender", 2)
    binary = mpi.build(death.source)
    mpi.plain(death, binary, wanted=run.ends_early)
    needs_provider(mpi.preloaded(death, binary, READ, wanted=run.ends_early))


def test_a_provider_that_there_is_not(mpi: Ready) -> None:
    """It is said once by each rank, and the MPI moves the messages."""
    more = {**READ, "LACUNA_MPI_NIC": "ofi:carrier-pigeon"}
    done = mpi.preloaded(program("types"), built(mpi, "types"), more)
    needs_provider(done)
    assert done.err.count(WARNING) == program("types").ranks
    assert 'no provider "carrier-pigeon"' in done.err
    assert ": sent in chunks, " in done.err
    assert ": read by a device, " not in done.err
