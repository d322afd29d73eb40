"""MPI programs do the same with Lacuna loaded before their MPI as without it: data, statuses, errors, and they end.

The programs are in tests/mpi, and tests/mpi/run.py runs one of them by hand.
"""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from lacuna.launch import Launch, launch
from lacuna.peers import Peer

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "mpi"))

import run

MPIS = ("openmpi4-debian", "mpich4-debian", "openmpi5", "mpich5", "impi", "mpich5-abi")


@dataclass(frozen=True)
class Ready:
    """An MPI, how it starts ranks, and where its programs are built."""

    peer: Peer
    started: Launch
    folder: Path


@pytest.fixture(scope="module")
def found() -> dict[str, Peer]:
    return {peer.name: peer for peer in run.installed()}


@pytest.fixture(scope="module", params=MPIS)
def mpi(request: pytest.FixtureRequest, found: dict[str, Peer], tmp_path_factory: pytest.TempPathFactory) -> Ready:
    if request.param not in found:
        pytest.skip(f"{request.param} is not here; `make peers` installs it")
    peer = found[request.param]
    return Ready(peer, launch(peer), tmp_path_factory.mktemp("mpi"))


@pytest.mark.parametrize("program", run.programs(), ids=lambda program: program.name)
def test_does_the_same_as_without(mpi: Ready, program: run.Program) -> None:
    library = run.library(mpi.peer)
    try:
        built = run.build(mpi.peer, program.source, mpi.folder)
    except run.CannotError as e:
        pytest.skip(str(e))
    plain = run.run(mpi.started, program, built, None)
    preloaded = run.run(mpi.started, program, built, library)
    why = run.failure(plain, preloaded, "preloaded")
    if why:
        pytest.fail(f"{why}\nagain: python tests/mpi/run.py --mpi {mpi.peer.name} --only {program.name}", pytrace=False)


def test_the_library_takes_part(mpi: Ready) -> None:
    """Programs in which it leaves everything to the MPI would pass as well."""
    program = next(program for program in run.programs() if program.name == "reuse")
    built = run.build(mpi.peer, program.source, mpi.folder)
    done = run.run(mpi.started, program, built, run.library(mpi.peer), {"LACUNA_MPI_REPORT": "1"})
    assert done.code == 0, done.text()
    assert ": offered, " in done.err
    assert ": accepted, " in done.err


DIRECT = ("edges", "errors", "persistent", "threads", "types", "patterns-halo", "progress-both_first", "progress-chain")


@pytest.mark.parametrize(
    "program", [program for program in run.programs() if program.name in DIRECT], ids=lambda program: program.name
)
def test_copies_directly(mpi: Ready, program: run.Program) -> None:
    """Whatever is longer than a descriptor, and wherever the receiver is there in time; with a report of it."""
    if (mpi.peer.name, program.name) in run.HOSTS_FAIL:
        pytest.skip(run.HOSTS_FAIL[mpi.peer.name, program.name])
    built = run.build(mpi.peer, program.source, mpi.folder)
    plain = run.run(mpi.started, program, built, None)
    variables = {
        "LACUNA_PATH": "kernel",
        "LACUNA_MPI_OFFER": "62",
        "LACUNA_MPI_OFFER_CONTIGUOUS": "62",
        "LACUNA_MPI_REPORT": "1",
    }
    why = run.failure(plain, run.run(mpi.started, program, built, run.library(mpi.peer), variables), "preloaded")
    if why:
        pytest.fail(why, pytrace=False)


def test_direct_copies_are_reported(mpi: Ready) -> None:
    program = next(program for program in run.programs() if program.name == "types")
    if (mpi.peer.name, "types") in run.HOSTS_FAIL:
        pytest.skip(run.HOSTS_FAIL[mpi.peer.name, "types"])
    built = run.build(mpi.peer, program.source, mpi.folder)
    variables = {"LACUNA_PATH": "kernel", "LACUNA_MPI_OFFER": "62", "LACUNA_MPI_REPORT": "1"}
    done = run.run(mpi.started, program, built, run.library(mpi.peer), variables)
    assert done.code == 0, done.text()
    if "does without path kernel" in done.err:
        pytest.skip("this system lets no process copy out of another one's memory")
    assert "offered, copied directly, " in done.err
    assert "accepted, copied directly, " in done.err


@pytest.mark.parametrize("mode", ["full", "pack", "off"])
def test_mpi4py(mpi: Ready, mode: str) -> None:
    """It looks for functions that its MPI may lack, and finds the library's, whatever that takes."""
    if mpi.peer.name in ("mpich4-debian", "mpich5-abi"):
        pytest.skip("mpi4py looks for a libmpi.so of Open MPI's or MPICH's")
    library = run.library(mpi.peer)
    folder = str(mpi.peer.mpicc.parent.parent / "lib")
    variables = {
        "LACUNA_MPI": mode,
        "MPI4PY_MPIABI": "openmpi" if mpi.peer.name.startswith("openmpi") else "mpich",
        "LD_LIBRARY_PATH": os.pathsep.join(filter(None, [folder, os.environ.get("LD_LIBRARY_PATH")])),
    }
    program = run.Program(run.HERE, str(run.HERE / "mpi4py_program.py"), 2)
    plain = run.run(mpi.started, program, Path(sys.executable), None, variables)
    preloaded = run.run(mpi.started, program, Path(sys.executable), library, variables)
    why = run.failure(plain, preloaded, "preloaded")
    if why:
        pytest.fail(why, pytrace=False)
    assert plain.out.count("threads: True") == 2


SPAWNS = {"OMPI_MCA_btl": "^openib", "I_MPI_FABRICS": "shm:ofi", "FI_PROVIDER": "tcp"}
"""What MPIs need to reach processes that they did not start with."""


def test_spawned_processes(mpi: Ready) -> None:
    """Their messages are the MPI's own, and those within their world are not."""
    program = run.Program(run.HERE / "spawned" / "spawned.c", "", 1)
    built = run.build(mpi.peer, program.source, mpi.folder)
    plain = run.run(mpi.started, program, built, None, SPAWNS)
    if plain.code != 0:
        pytest.skip(f"{mpi.peer.name} spawns nothing here: {' '.join(plain.text().split())[:400]}")
    why = run.failure(plain, run.run(mpi.started, program, built, run.library(mpi.peer), SPAWNS), "preloaded")
    if why:
        pytest.fail(why, pytrace=False)


@pytest.mark.parametrize("who", ["sender", "receiver"])
@pytest.mark.parametrize("how", ["kill", "exit", "abort"])
def test_a_death_ends_the_job(mpi: Ready, how: str, who: str) -> None:
    """As it does without the library, and nothing stays behind."""
    program = run.Program(run.HERE / "deaths" / "death.c", f"{how} {who}", 2)
    built = run.build(mpi.peer, program.source, mpi.folder)
    plain = run.run(mpi.started, program, built, None)
    preloaded = run.run(mpi.started, program, built, run.library(mpi.peer))
    assert plain.code not in (0, None), plain.text()
    assert preloaded.code not in (0, None), preloaded.text()
    assert preloaded.seconds < plain.seconds + 10
    assert preloaded.remains == ()


def test_failures_are_noticed() -> None:
    plain = run.Outcome(0, "a\nb\n", "", 1.0, "")
    assert run.failure(plain, plain, "other") is None
    assert "+c" in (run.failure(plain, run.Outcome(0, "a\nc\n", "", 1.0, ""), "other") or "")
    assert "ended with 1" in (run.failure(plain, run.Outcome(1, "WRONG x\n", "", 1.0, ""), "other") or "")
    late = run.failure(plain, run.Outcome(None, "", "", 60.0, "rank 0 gave up"), "other") or ""
    assert "longer than 60 s" in late
    assert "gave up" in late
