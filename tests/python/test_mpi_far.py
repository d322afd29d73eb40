"""MPI programs whose ranks are on two hosts do the same with Lacuna loaded as without it.

The hosts are network namespaces, the launchers the MPIs' own: `python tests/mpi/run.py --far` runs all programs so.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from lacuna.hosts import Hosts, HostsError, two_hosts
from lacuna.launch import Launch, launch
from lacuna.peers import Peer

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "mpi"))

import run

MPIS = ("openmpi4-debian", "openmpi5", "mpich5", "impi")
"""All but Debian's MPICH 4.0, which hangs by itself at random over TCP, with libfabric as with UCX."""
PROGRAMS = ("collect", "edges", "errors", "f08", "patterns-halo", "persistent", "types")
HOSTS_FAIL = {
    ("openmpi5", "collect"): "Open MPI 5 ends collect by itself over TCP",
    ("impi", "collect"): "collect does not end by itself with Intel MPI between hosts",
    ("impi", "errors"): "Intel MPI ends errors by itself between hosts",
    ("impi", "f08"): "impi comes without f08 for this compiler",
}
"""What an MPI does wrong by itself between hosts."""


@dataclass(frozen=True)
class Ready:
    peer: Peer
    started: Launch
    folder: Path


@pytest.fixture(scope="module")
def hosts() -> Iterator[Hosts]:
    try:
        with two_hosts() as made:
            yield made
    except HostsError as e:
        pytest.skip(str(e))


@pytest.fixture(scope="module", params=MPIS)
def mpi(request: pytest.FixtureRequest, hosts: Hosts, tmp_path_factory: pytest.TempPathFactory) -> Ready:
    found = {peer.name: peer for peer in run.installed()}
    if request.param not in found:
        pytest.skip(f"{request.param} is not here; `make peers` installs it")
    return Ready(found[request.param], launch(found[request.param], hosts), tmp_path_factory.mktemp("mpi"))


def program(name: str) -> run.Program:
    return next(program for program in run.programs() if program.name == name)


def compare(mpi: Ready, name: str, variables: dict[str, str]) -> None:
    """Skips where the MPI fails by itself: what is tested is what the library adds."""
    known = HOSTS_FAIL.get((mpi.peer.name, name)) or run.HOSTS_FAIL.get((mpi.peer.name, name))
    if known:
        pytest.skip(known)
    try:
        built = run.build(mpi.peer, program(name).source, mpi.folder)
    except run.CannotError as e:
        pytest.skip(str(e))
    plain = run.run(mpi.started, program(name), built, None)
    if plain.code != 0:
        pytest.skip(f"{mpi.peer.name} fails by itself between hosts: {' '.join(plain.text().split())[:400]}")
    preloaded = run.run(mpi.started, program(name), built, run.library(mpi.peer), variables)
    why = run.failure(plain, preloaded, "preloaded")
    if why:
        again = f"python tests/mpi/run.py --far --mpi {mpi.peer.name} --only {name}"
        pytest.fail(f"{why}\nagain: {again}", pytrace=False)


@pytest.mark.parametrize("name", PROGRAMS)
def test_does_the_same_as_without(mpi: Ready, name: str) -> None:
    """Whatever has gaps and is longer than a descriptor, in chunks of odd lengths."""
    compare(mpi, name, run.FAR)


def test_long_chunks_that_nobody_receives(mpi: Ready) -> None:
    """Programs that end with messages on their way, whose chunks are too long to be sent before they are asked for."""
    compare(mpi, "errors", {**run.FAR, "LACUNA_MPI_CHUNK": "300000"})


def test_the_library_takes_part(mpi: Ready) -> None:
    """Between hosts in chunks; what shared memory could carry, if the hosts were not told apart, would be offered."""
    built = run.build(mpi.peer, program("types").source, mpi.folder)
    done = run.run(mpi.started, program("types"), built, run.library(mpi.peer), {**run.FAR, "LACUNA_MPI_REPORT": "1"})
    assert done.code == 0, done.text()
    assert ": sent in chunks, " in done.err
    assert ": received in chunks, " in done.err
    assert ": offered, " not in done.err


@pytest.mark.parametrize("ranks", [1, 3, 16])
def test_any_number_of_ranks(mpi: Ready, ranks: int) -> None:
    """Of which several are on each host."""
    built = run.build(mpi.peer, run.HERE / "ring.c", mpi.folder)
    many = run.Program(run.HERE / "ring.c", "", ranks)
    plain = run.run(mpi.started, many, built, None)
    preloaded = run.run(mpi.started, many, built, run.library(mpi.peer), {**run.FAR, "LACUNA_MPI_REPORT": "1"})
    why = run.failure(plain, preloaded, "preloaded")
    if why:
        pytest.fail(why, pytrace=False)
    assert (": sent in chunks, " in preloaded.err) == (ranks > 1)
    assert (": offered, " in preloaded.err) == (ranks > 2)
