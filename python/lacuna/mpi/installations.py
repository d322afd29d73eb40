"""Other MPIs to compare with: found by their compiler wrappers, reached through a shim that each of them compiles."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import lacuna

NO_MPI = "no MPI was found: there is no mpicc on the PATH. --mpi MPICC names one (scripts/peers.sh installs four)"


class MpiInstallationError(Exception):
    """An MPI cannot be used; the text says what was tried and what it said."""


@dataclass(frozen=True)
class MpiInstallation:
    """An MPI by its `mpicc`."""

    name: str
    mpicc: Path

    def environment(self) -> dict[str, str]:
        """The caller's variables, and those with which this MPI starts alone and at once: without a launcher, without
        looking for networks, without a daemon. Variables of other MPIs do no harm."""
        ours = {
            "OMPI_MCA_pml": "ob1",
            "OMPI_MCA_btl": "self",
            "OMPI_MCA_if": "^posix_ipv4",
            "OMPI_MCA_ess_singleton_isolated": "1",
            "PMIX_MCA_pif": "^posix_ipv4",
            "MPIR_CVAR_CH4_NETMOD": "ucx",
            "UCX_TLS": "self",
            "UCX_MODULES": "none",
            "I_MPI_FABRICS": "shm",
        }
        return {**os.environ, **self.place(), **ours}

    def place(self) -> dict[str, str]:
        """The variables by which its programs find what belongs to it, wherever it was unpacked."""
        prefix = self.mpicc.parent.parent
        ours = {"HWLOC_COMPONENTS": "-gl,-opencl", "I_MPI_PIN": "0", "HOME": os.environ.get("HOME", "/tmp")}
        if (prefix / "share" / "openmpi").is_dir() and prefix != Path("/usr"):
            ours["OPAL_PREFIX"] = str(prefix)
        if (prefix / "lib" / "libmpi.so").exists() or (prefix / "lib" / "libmpi.so.12").exists():
            ours["I_MPI_ROOT"] = str(prefix)
        if "LD_LIBRARY_PATH" in os.environ:  # another MPI's library of the same name must not come first
            ours["LD_LIBRARY_PATH"] = f"{prefix / 'lib'}:{os.environ['LD_LIBRARY_PATH']}"
        return ours

    def shim(self, folder: Path) -> Path:
        """Compiles the shim with this MPI's wrapper into `folder`. Raises MpiInstallationError with what the compiler
        said."""
        source = shim_source()
        built = folder / f"{self.name}.so"
        line = [str(self.mpicc), "-O2", "-std=gnu11", "-shared", "-fPIC", "-fvisibility=hidden", str(source), "-o"]
        try:
            done = subprocess.run(
                [*line, str(built)], env=self.environment(), capture_output=True, text=True, timeout=120
            )
        except (OSError, subprocess.TimeoutExpired) as e:
            raise MpiInstallationError(f"{self.name}: cannot run {self.mpicc}: {e}") from e
        if done.returncode != 0:
            raise MpiInstallationError(
                f"{self.name}: {self.mpicc} cannot compile the shim: {done.stderr.strip()[-400:]}"
            )
        return built


def shim_source() -> Path:
    """mpi_shim.c, which is installed with the package."""
    for folder in lacuna.__path__:
        source = Path(folder) / "shim" / "mpi_shim.c"
        if source.is_file():
            return source
    raise MpiInstallationError("mpi_shim.c is missing: this package was installed without it")


def find(wanted: Sequence[str]) -> list[MpiInstallation]:
    """The MPIs that --mpi names, as `MPICC` or `NAME=MPICC`; without any, the one whose `mpicc` is on the PATH.

    Raises MpiInstallationError where one is not there.
    """
    if not wanted:
        found = shutil.which("mpicc")
        return [MpiInstallation("mpicc", Path(found))] if found else []
    installations: list[MpiInstallation] = []
    for option in wanted:
        name, equals, path = option.partition("=")
        mpicc = shutil.which(path if equals else name)
        if mpicc is None:
            raise MpiInstallationError(f"there is no {path if equals else name}")
        own = name if equals else f"mpi{len(installations) + 1}"
        if not own.replace("-", "").replace(".", "").isalnum():
            raise MpiInstallationError(f"{own!r} is no name for an MPI; letters, digits, dots and dashes are")
        if any(own == installation.name for installation in installations):
            raise MpiInstallationError(f"two MPIs are called {own}")
        installations.append(MpiInstallation(own, Path(mpicc).absolute()))
    return installations
