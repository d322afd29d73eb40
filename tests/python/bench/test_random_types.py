"""Random types of `lacuna bench mpi --random`: rows, jobs, the command, and the program on real MPIs."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from mpi_ready import run as programs
from typer.testing import CliRunner

from lacuna.bench.mpi import random_types
from lacuna.bench.mpi.page import MpiPresentation
from lacuna.bench.mpi.random_types import USES, RandomTypes, planned, race, rows_from
from lacuna.bench.mpi.rows import MpiRun
from lacuna.bench.result import Mpi
from lacuna.cli.app import app
from lacuna.mpi.applications import ApplicationError
from lacuna.mpi.installations import MpiInstallation
from lacuna.mpi.interposer import abi_of
from lacuna.mpi.launch import launch

OF_GATE = ("openmpi4-debian", "mpich4-debian", "impi")


def line(number: int, use: str, plain: float = 2.0, preloaded: float = 1.0) -> dict[str, Any]:
    of = {"use": use, "number": number, "type": "vector of int", "bytes": 64, "runs": 4, "count": 1}
    return {**of, "plain_us": [plain, 2 * plain, plain], "preloaded_us": [preloaded, 2 * preloaded, 9.0]}


def test_a_ratio_is_that_of_rounds() -> None:
    (row,) = rows_from("a", [line(3, "MPI_Bcast")])
    assert (row.mpi, row.case, row.payload_bytes, row.runs) == ("a", "MPI_Bcast, random type 3", 64, 4)
    assert (row.host_us, row.lacuna_us, row.ratio_vs_host, row.rounds) == (2.0, 2.0, 0.5, 3)
    assert (row.ratio_vs_host_low, row.ratio_vs_host_high) == (0.5, 4.5)


def test_jobs_of_ten_types() -> None:
    jobs = planned(25, 7, 5.0)
    assert [(job.seed, job.first, job.types) for job in jobs] == [(7, 0, 10), (7, 10, 10), (7, 20, 5)]
    assert [job.name for job in planned(25, 7, 5.0, "TYPES 10")] == ["random types 10 to 19"]
    assert planned(0, 1, 5.0) == []


def test_figures_tables_and_document(tmp_path: Path) -> None:
    run = MpiRun("0.1.0", "now", "lacuna bench mpi", {"cpu": "a CPU"}, "AVX2", "GCC 12", [Mpi("a", "a", "MPI a 1.0")])
    run.random = rows_from("a", [line(0, use, 1.0, ratio) for use, ratio in zip(USES, (0.25, 1.0, 4.0), strict=False)])
    found = run.summary()["a"]
    assert found["random_vs_host_geomean"] == pytest.approx(1.0)
    assert (found["random_vs_host_worst"], found["random_vs_host_worst_case"]) == (4.0, "MPI_Alltoall, random type 0")
    assert found["random_not_slower"] == pytest.approx(2 / 3)
    assert "random_not_slower" not in MpiRun("0.1.0", "now", "", mpis=run.mpis).summary()["a"]
    assert len(json.loads(run.to_json())["random"]) == 3
    (page,) = (f for f in MpiPresentation(run).write(tmp_path) if f.name == "mpi.html")
    assert "0: vector of int" in page.read_text()


@pytest.fixture
def play(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[list[dict[str, Any]]], MpiInstallation]:
    """An MPI whose mpiexec prints these lines."""

    def made(lines: list[dict[str, Any]]) -> MpiInstallation:
        library = "liblacuna_mpi_mpich.so"
        said = "".join(json.dumps({**of, "send_in": library}) + "\n" for of in lines)
        (tmp_path / "lines").write_text(said)
        body = f"case $1 in --version) echo HYDRA build details:; exit;; esac\ncat {tmp_path}/lines"
        for name, text in (("mpicc", "exit 0"), ("mpiexec", body)):
            (tmp_path / name).write_text(f"#!/bin/sh\n{text}\n")
            (tmp_path / name).chmod(0o755)
        (tmp_path / library).touch()
        return MpiInstallation("played", tmp_path / "mpicc")

    monkeypatch.setenv("LACUNA_MPI_LIB_DIR", str(tmp_path))
    return made


def test_each_exchange_of_each_type_has_to_be_there(
    play: Callable[[list[dict[str, Any]]], MpiInstallation], tmp_path: Path
) -> None:
    job = RandomTypes(1, 4, 2, 1.0)
    lines = [line(number, use) for number in (4, 5) for use in USES]
    assert len(race(job, "a", play(lines), tmp_path)) == 2 * len(USES)
    for spoiled in (lines[:-1], lines[::-1], [*lines, lines[-1]]):
        with pytest.raises(ApplicationError, match="did not print one line of each exchange"):
            race(job, "a", play(spoiled), tmp_path)


@pytest.mark.parametrize("wrong", [["--random", "-1"], ["--random", "x"], ["--seed", "-1"]])
def test_wrong_numbers(wrong: list[str]) -> None:
    assert CliRunner().invoke(app, ["bench", "mpi", *wrong]).exit_code == 2


# --- real MPIs --------------------------------------------------------------------------------------------------------

SPOILS = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
void* lacuna_mpi_host_function(const char* name) {
  void* found = dlsym(RTLD_NEXT, name);
  return found;
}
int MPI_Recv(void* to, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm, MPI_Status* status) {
  int result = PMPI_Recv(to, count, type, from, tag, comm, status);
  ((char*)to)[0] ^= 1;
  return result;
}
"""
"""A library that spoils a byte: of the data, or of a gap."""


@pytest.fixture(
    scope="module",
    params=[
        pytest.param(name, marks=[pytest.mark.gate] if name in OF_GATE else [])
        for name in ("openmpi5", "mpich5", "openmpi4-debian", "mpich4-debian", "impi")
    ],
)
def mpi(request: pytest.FixtureRequest) -> MpiInstallation:
    found = next((peer for peer in programs.installed() if peer.name == request.param), None)
    if found is None:
        pytest.skip(f"{request.param} is not here; `make peers` installs it")
    return found


def test_on_an_mpi(mpi: MpiInstallation, tmp_path: Path) -> None:
    """By the package's own library: the program verifies what arrives, data and gaps."""
    rows = race(RandomTypes(1, 7, 2, 0.1), "a", mpi, tmp_path)
    assert [(row.number, row.use) for row in rows] == [(number, use) for number in (7, 8) for use in USES]
    assert all(row.runs > 1 and row.payload_bytes >= row.runs for row in rows)
    kinds = {(row.number, row.type, row.payload_bytes) for row in rows}
    assert len(kinds) == 2
    again = race(RandomTypes(1, 8, 1, 0.1), "a", mpi, tmp_path)
    assert {(row.number, row.type, row.payload_bytes) for row in again} < kinds, "a seed's types are always the same"


def test_a_library_that_spoils_a_byte(mpi: MpiInstallation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "spoils.c").write_text(SPOILS)
    library = tmp_path / f"liblacuna_mpi_{abi_of(launch(mpi).version)}.so"
    mpi.compile("spoils.c", [mpi.mpicc, "-shared", "-fPIC", tmp_path / "spoils.c", "-o", library], RuntimeError)
    monkeypatch.setenv("LACUNA_MPI_LIB_DIR", str(tmp_path))
    with pytest.raises(ApplicationError, match="ended with") as failed:
        race(RandomTypes(1, 7, 1, 0.1), "a", mpi, tmp_path)
    said = str(failed.value)
    assert "preloaded: wrong bytes" in said or "wrong bytes" not in said  # MPICH's launcher may lose what ranks said


def test_the_program_is_installed() -> None:
    place = random_types.shim_source().parent
    assert {"random_types.c", "drawn_type.h", "exchanges.h", "two_ranks.h"} <= {file.name for file in place.iterdir()}
