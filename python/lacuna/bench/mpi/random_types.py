"""Datatypes that are drawn by a seed, through messages and collectives: the preloaded library's calls and the MPI's
own, by turns in one job (tools/bench/mpi/random_types.c)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lacuna.bench.result import ratio_of
from lacuna.medians import median_of
from lacuna.mpi.applications import ApplicationError, MissingError, Program
from lacuna.mpi.installations import MpiInstallation, MpiInstallationError, shim_source
from lacuna.mpi.interposer import MpiError
from lacuna.mpi.launch import launch

USES = (
    *("MPI_Send", "MPI_Isend", "MPI_Alltoall", "MPI_Alltoallv", "MPI_Alltoallw", "MPI_Allgather", "MPI_Allgatherv"),
    *("MPI_Gather", "MPI_Gatherv", "MPI_Scatter", "MPI_Scatterv", "MPI_Bcast"),
    *("MPI_Neighbor_alltoall", "MPI_Neighbor_alltoallw", "MPI_Neighbor_allgather"),
)
"""What each type goes through."""
_TYPES_OF_A_JOB = 10
_SECONDS_OF_A_TYPE = 60.0
"""The slowest MPI takes about ten."""


@dataclass(frozen=True)
class RandomRow:
    """One exchange of one type. Times are of the slower rank, in microseconds: of a message, or of a call."""

    mpi: str
    use: str
    number: int
    """Of the type among those of the seed."""
    type: str
    """Its constructors, from the outermost: "vector of struct of int"."""
    count: int
    payload_bytes: int
    """Of a message, or of a collective's block."""
    runs: int
    """Bytes side by side, in so many places."""
    host_us: float
    lacuna_us: float
    ratio_vs_host: float
    """lacuna_us over host_us, round by round; the median."""
    ratio_vs_host_low: float
    ratio_vs_host_high: float
    rounds: int

    @property
    def case(self) -> str:
        return f"{self.use}, random type {self.number}"


@dataclass(frozen=True)
class RandomTypes:
    """Some of a seed's types, which one job races."""

    seed: int
    first: int
    types: int
    milliseconds: float
    """Of an exchange of a type."""

    @property
    def name(self) -> str:
        return f"random types {self.first} to {self.first + self.types - 1}"


def planned(types: int, seed: int, milliseconds: float, pattern: str = "") -> list[RandomTypes]:
    """The jobs whose names hold `pattern`."""
    jobs = [
        RandomTypes(seed, first, min(_TYPES_OF_A_JOB, types - first), milliseconds)
        for first in range(0, types, _TYPES_OF_A_JOB)
    ]
    return [job for job in jobs if pattern.lower() in job.name]


def race(job: RandomTypes, mpi: str, installation: MpiInstallation, folder: Path) -> list[RandomRow]:
    """Compiles the program into `folder`, where it is not yet, and runs it. Raises MissingError where the MPI cannot
    have it, ApplicationError where a byte was wrong or a row is missing."""
    try:
        built = folder / f"random_types-{installation.name}"
        if not built.exists():
            source = shim_source("random_types.c")
            line: list[str | Path] = [installation.mpicc, "-O2", "-std=gnu11", source, "-o", built, "-ldl"]
            installation.compile(source.name, line, ApplicationError)
        program = Program(installation, "random_types", built, launch(installation))
        given = {"seed": job.seed, "first": job.first, "types": job.types, "milliseconds": job.milliseconds}
        lines = program.run(given, preload=True, seconds=_SECONDS_OF_A_TYPE * job.types)
    except (MpiInstallationError, MpiError) as e:
        raise MissingError(str(e)) from e
    wanted = [(number, use) for number in range(job.first, job.first + job.types) for use in USES]
    if [(line.get("number"), line.get("use")) for line in lines] != wanted:
        raise ApplicationError(f"{job.name}: it did not print one line of each exchange of each type")
    return rows_from(mpi, lines)


def rows_from(mpi: str, lines: Sequence[dict[str, Any]]) -> list[RandomRow]:
    """A row of each line that the program printed."""
    rows = []
    for line in lines:
        plain, preloaded = line["plain_us"], line["preloaded_us"]
        ratio = ratio_of(preloaded, plain)
        rows.append(
            RandomRow(
                mpi=mpi,
                use=line["use"],
                number=line["number"],
                type=line["type"],
                count=line["count"],
                payload_bytes=line["bytes"],
                runs=line["runs"],
                host_us=median_of(plain).value,
                lacuna_us=median_of(preloaded).value,
                ratio_vs_host=ratio.value,
                ratio_vs_host_low=ratio.low,
                ratio_vs_host_high=ratio.high,
                rounds=len(plain),
            )
        )
    return rows
