"""The mini-applications of examples/mini as programs of an MPI: compiled by its own wrappers, in C and Fortran."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path

from lacuna.mpi.applications import ApplicationError, Program, flags_of, sources
from lacuna.mpi.fortran import compiler_of
from lacuna.mpi.installations import MpiInstallation
from lacuna.mpi.launch import Launch


@dataclass(frozen=True)
class Mini:
    """A program, and how large its exchanges get: what --largest means is the program's."""

    name: str
    source: str
    largest: int
    quick: int
    libraries: tuple[str, ...] = ()
    """What it needs besides MPI, by pkg-config's names."""


PINGPONG = Mini("pingpong", "pingpong.c", 16 << 20, 1 << 20)
COLLECTIVES = Mini("collectives", "collectives.c", 256 << 10, 32 << 10)
HALO = Mini("halo", "halo.c", 4096, 2048)
HALO_FORTRAN = Mini("halo_fortran", "halo.f90", 4096, 2048)
FFT2 = Mini("fft2", "fft2.c", 1024, 512, ("fftw3",))
GATHER = Mini("gather", "gather.c", 65536, 4096)
APPLICATIONS = (HALO, HALO_FORTRAN, FFT2, GATHER)


def build(installation: MpiInstallation, mini: Mini, started: Launch, folder: Path) -> Program:
    """Compiles it into `folder`. Raises MissingError where this MPI has no Fortran, or a library is not installed,
    and ApplicationError with what the compiler said."""
    place = sources() / "examples" / "mini"
    harness, built = folder / f"mini-{installation.name}.o", folder / f"{mini.name}-{installation.name}"
    optimised = ("-O3", "-march=native")
    c = [str(installation.mpicc), *optimised, "-std=gnu11"]
    libraries = [*(flag for library in mini.libraries for flag in flags_of(library)), "-ldl", "-lm"]
    compile_in = partial(installation.compile, failure=ApplicationError, folder=folder)
    if not harness.exists():
        compile_in("mini.c", [*c, "-c", str(place / "mini.c"), "-o", str(harness)])
    source = str(place / mini.source)
    if not source.endswith(".f90"):
        compile_in(mini.source, [*c, source, str(harness), "-o", str(built), *libraries])
        return Program(installation, mini.name, built, started)
    fortran = compiler_of(installation)
    modules = folder / f"modules-{installation.name}"
    modules.mkdir(exist_ok=True)
    # MPI's module declares at most one kind of buffer for each call; programs pass others.
    line = [*fortran.line, *optimised, "-ffree-line-length-none", "-fallow-argument-mismatch", "-w", f"-J{modules}"]
    compile_in(mini.source, [*line, source, str(harness), "-o", str(built), *fortran.libraries, *libraries])
    return Program(installation, mini.name, built, started)
