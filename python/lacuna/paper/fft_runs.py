"""Runs of examples/fft2d under several MPIs: what F12, F13 and R5.1.1 are read from."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from rich.console import Console

from lacuna import clock
from lacuna.bench.mpi.rows import name_of
from lacuna.bench.progress import Meter
from lacuna.mpi.applications import ApplicationError, MissingError, Program
from lacuna.mpi.installations import MpiInstallation, MpiInstallationError
from lacuna.mpi.interposer import MpiError

NAME = "fft2d"
VARIANTS = ("none", "send", "recv", "both", "native")


@dataclass(frozen=True)
class Plan:
    """What one finding needs: each variant at each size, in one process after the other, taking turns."""

    ns: tuple[int, ...]
    ranks: tuple[int, ...] = (2,)
    variants: tuple[str, ...] = VARIANTS
    preloads: tuple[bool, ...] = (False, True)


@dataclass(frozen=True)
class Effort:
    rounds: int
    """Jobs of each kind; those of all MPIs take turns, so that a change of the machine meets all alike."""
    repetitions: int
    seconds: int
    """Of repetitions, for each variant and size; three are made at least."""
    budget: float
    """Seconds after which no further job is started."""


@dataclass(frozen=True)
class Row:
    """What one job said of a variant and a size."""

    mpi: str
    version: str
    preloaded: bool
    ranks: int
    n: int
    variant: str
    us: dict[str, float]
    """Medians: fft, packing, communication, exchange (the two before together), whole."""
    error: float
    """The largest relative error of a row of the result that was compared."""


@dataclass
class Runs:
    rows: list[Row] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)

    @property
    def mpis(self) -> list[str]:
        return list(dict.fromkeys(r.mpi for r in self.rows))

    def us(
        self, mpi: str, n: int, variant: str, what: str = "exchange", *, preloaded: bool = False, ranks: int = 2
    ) -> float | None:
        """The median over the jobs; None where there is none."""
        found = [
            r.us[what]
            for r in self.rows
            if (r.mpi, r.n, r.variant, r.preloaded, r.ranks) == (mpi, n, variant, preloaded, ranks)
        ]
        return statistics.median(found) if found else None


def measure(
    console: Console,
    installations: Sequence[MpiInstallation],
    plan: Plan,
    effort: Effort,
    built: Callable[[MpiInstallation], Program],
    runs: Runs,
) -> None:
    """Runs the plan under each MPI, round by round, into `runs`. What fails is in its errors, and tried no more.
    `built`: the program for an MPI; raises ApplicationError, MpiInstallationError."""
    deadline = clock.now() + effort.budget
    jobs = [
        (installation, preload, ranks)
        for _ in range(effort.rounds)
        for ranks in plan.ranks
        for installation in installations
        for preload in plan.preloads
    ]
    failed: set[tuple[str, bool]] = set()
    arguments = {
        "variant": ",".join(plan.variants),
        "n": ",".join(map(str, plan.ns)),
        "repetitions": effort.repetitions,
        "seconds": effort.seconds,
    }
    with Meter(console, len(jobs), effort.budget, "jobs") as meter:
        for done, (installation, preload, ranks) in enumerate(jobs):
            meter.advance(done, len(jobs), deadline - clock.now())
            title = f"{installation.name}{', preloaded' if preload else ''}, {ranks} ranks"
            if (installation.name, preload) in failed:
                continue
            if clock.now() > deadline:
                runs.left_out.append(title)
                continue
            try:
                program, seconds = built(installation), max(120, effort.budget)
                said = program.run(arguments, ranks=ranks, preload=preload, seconds=seconds)
            except (ApplicationError, MpiError, MpiInstallationError) as e:
                failed.add((installation.name, preload))
                (runs.left_out if isinstance(e, MissingError) else runs.errors).append(str(e))
                continue
            for line in said:
                version = " ".join(str(line["mpi"]).split())
                name = name_of(version.replace(" Version:", ""), installation.name)
                us = {what: float(value) for what, value in line["us"].items()}
                error = float(line["verified"]["error"])
                runs.rows.append(Row(name, version, preload, ranks, line["n"], line["variant"], us, error))
        meter.advance(len(jobs), len(jobs), deadline - clock.now())
