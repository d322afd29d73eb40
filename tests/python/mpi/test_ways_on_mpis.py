"""The program that times an MPI's ways, on the MPIs that are here: each byte that arrives is verified."""

from __future__ import annotations

from pathlib import Path

import pytest
from conftest import PATIENCE
from mpi_ready import run as programs

from lacuna.layout_text import parse
from lacuna.mpi import ways
from lacuna.mpi.installations import MpiInstallation
from lacuna.mpi.interposer import abi_of
from lacuna.mpi.launch import launch
from lacuna.mpi.two_hosts import HostsError, two_hosts
from lacuna.mpi.ways import CHUNKS, SERVING, Measured, WaysError, WrongBytesError

MPIS = {
    "openmpi5": "open_mpi",
    "mpich5": "mpich",
    "openmpi4-debian": "open_mpi",
    "mpich4-debian": "mpich_4_0",
    "impi": "intel",
}
OF_GATE = ("openmpi4-debian", "mpich4-debian", "impi")


def measured(installation: MpiInstallation) -> Measured:
    return ways.measure(installation, 1, lambda _: None, PATIENCE)


TOLD = """
#include <mpi.h>
#include <string.h>
static int packs;
double lacuna_mpi_line_ns(void) { return 20; }
int lacuna_mpi_force_way(const char* way) {
  packs = way != NULL && strcmp(way, "packed") == 0;
  return way != NULL && strcmp(way, "host") != 0 && !packs && strcmp(way, "offered") != 0;
}
#ifdef SPOILED
int MPI_Recv(void* to, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm, MPI_Status* status) {
  int result = PMPI_Recv(to, count, type, from, tag, comm, status);
  if (packs && type != MPI_DOUBLE) ((char*)to)[SPOILED] ^= 1;
  return result;
}
#endif
"""
"""A library that is told the way, and does nothing about it; or spoils a byte."""


@pytest.fixture(
    scope="module", params=[pytest.param(m, marks=[pytest.mark.gate] if m in OF_GATE else []) for m in MPIS]
)
def mpi(request: pytest.FixtureRequest) -> MpiInstallation:
    found = next((peer for peer in programs.installed() if peer.name == request.param), None)
    if found is None:
        pytest.skip(f"{request.param} is not here; `make peers` installs it")
    return found


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes, runs = (256, 4096), (8, 1024)
    monkeypatch.setattr(ways, "BYTES", sizes)
    monkeypatch.setattr(ways, "RUNS", runs)
    monkeypatch.setattr(ways, "CELLS", ((256, 8), (4096, 8), (4096, 1024)))
    monkeypatch.setattr(ways, "CONTIGUOUS", (65536,))


def preload(mpi: MpiInstallation, folder: Path, monkeypatch: pytest.MonkeyPatch, *options: str) -> None:
    (folder / "told.c").write_text(TOLD)
    library = folder / f"liblacuna_mpi_{abi_of(launch(mpi).version)}.so"
    line = [mpi.mpicc, "-shared", "-fPIC", *options, folder / "told.c", "-o", library]
    mpi.compile("told.c", line, RuntimeError)
    monkeypatch.setenv("LACUNA_MPI_LIB_DIR", str(folder))


@pytest.mark.usefixtures("small")
def test_on_an_mpi(mpi: MpiInstallation) -> None:
    """By the package's own library: the program verifies what arrives by each way."""
    found = measured(mpi)
    assert found.library == MPIS[mpi.name]
    for (use, form), serving in SERVING.items():
        for way in serving:
            assert [ns > 0 for ns in found.ns[use][form][way]] == [True, False, True, True]
    assert set(found.contiguous) == {"host", "offered"}
    # Whether a line is known depends on the machine.
    assert len(found.line_times.ns) == len(ways.CELLS) + len(ways.CONTIGUOUS)


GIVEN = {
    "loops": "subarray([4, 6, 24], [2, 3, 12], [1, 2, 9], byte)",
    "a_list": "hindexed([300, 1, 7], [5, 1000, 900], byte)",
    "no_gaps": "bytes(1000)",
}


@pytest.mark.parametrize("text", GIVEN.values(), ids=GIVEN)
def test_a_layout_on_an_mpi(mpi: MpiInstallation, text: str) -> None:
    """The program verifies each byte and each gap of each way."""
    found = ways.measure_given(mpi, parse(text), 1)
    assert ways.library_of(found.library_version) == MPIS[mpi.name]
    assert len(found.line_times.ns) == 1
    assert {(use, form) for use, forms in found.ns.items() for form in forms} == {
        (use, form) for use, form in SERVING if form == "regular"
    }


def test_two_hosts_on_an_mpi(mpi: MpiInstallation, monkeypatch: pytest.MonkeyPatch) -> None:
    if mpi.name == "mpich4-debian":
        pytest.skip("Debian's MPICH 4.0 hangs by itself at random over TCP")
    monkeypatch.setattr(ways, "CHUNKED", (65536,))
    try:
        with two_hosts() as hosts:
            _, times = ways.measure_nodes(mpi, hosts, 1, lambda _: None, PATIENCE)
    except HostsError as e:
        pytest.skip(str(e))
    assert set(times) == {"packed", *(f"chunked {chunk}" for chunk in CHUNKS)}


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("place", [0, 8], ids=["wrong_byte", "writes_beside"])
def test_a_way_that_spoils_a_byte(
    mpi: MpiInstallation, place: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    preload(mpi, tmp_path, monkeypatch, f"-DSPOILED={place}")
    with pytest.raises(WrongBytesError, match="a way moved wrong bytes"):  # launchers may lose which
        measured(mpi)


@pytest.mark.usefixtures("small")
def test_without_the_library(mpi: MpiInstallation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    preload(mpi, tmp_path, monkeypatch, "-Dlacuna_mpi_force_way=another_name")
    with pytest.raises(WaysError, match="ended before the last size"):
        measured(mpi)
