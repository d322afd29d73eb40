"""How an MPI's Fortran programs are compiled."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass

from lacuna.mpi.applications import MissingError
from lacuna.mpi.installations import MpiInstallation, run_tool


@dataclass(frozen=True)
class Compiler:
    """What comes before the sources on its command line, and what behind."""

    line: tuple[str, ...]
    libraries: tuple[str, ...] = ()


def compiler_of(installation: MpiInstallation, module: str = "mpi") -> Compiler:
    """For programs that use `module`. Raises MissingError where the MPI comes without Fortran, or there is no
    compiler."""
    gfortran = shutil.which("gfortran")
    if gfortran is None:
        raise MissingError("gfortran is not here (Debian: gfortran); `make peers` installs it")
    prefix = installation.mpicc.parent.parent
    own = prefix / "include" / "mpi" / "gfortran"
    if own.is_dir():  # Intel MPI: its own wrapper looks elsewhere than its package puts the modules
        version = run_tool([gfortran, "-dumpversion"], MissingError).stdout.strip()
        modules = sorted(own.glob(f"{version.split('.')[0]}.*"))
        if not modules or not (modules[0] / f"{module}.mod").is_file():
            raise MissingError(f"{installation.name} has no module {module} for gfortran {version}")
        libraries = prefix / "lib"
        return Compiler(
            (gfortran, f"-I{modules[0]}", f"-I{prefix / 'include'}"),
            (f"-L{libraries}", f"-Wl,-rpath,{libraries}", "-lmpifort", "-lmpi"),
        )
    wrapper = installation.beside("mpifort")
    if not os.access(wrapper, os.X_OK):
        raise MissingError(f"{installation.name} comes without Fortran")
    return Compiler((str(wrapper),))
