"""The interposer for MPI programs: which of its libraries suits which MPI, and where it is."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from elftools.common.exceptions import ELFError
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection

import lacuna

ABIS = {
    "openmpi": "Open MPI 4.1 and 5",
    "mpich": "MPICH, Intel MPI and MVAPICH",
    "abi": "the standard ABI of MPI-5.0 (libmpi_abi.so)",
}


class MpiError(Exception):
    """There is no such library, or no MPI; the text says what was looked for."""


def preload_library(abi: str) -> Path:
    """What LD_PRELOAD has to name: from LACUNA_MPI_LIB_DIR if that is set, else from the package. Raises MpiError."""
    if abi not in ABIS:
        raise MpiError(f"there is no ABI {abi!r}; there are {' and '.join(ABIS)}")
    name = f"liblacuna_mpi_{abi}.so"
    said = os.environ.get("LACUNA_MPI_LIB_DIR")
    folders = [Path(said)] if said else [Path(folder) / "lib" for folder in lacuna.__path__]
    for folder in folders:
        if (folder / name).is_file():
            return (folder / name).resolve()
    raise MpiError(f"{name} is not in {' or '.join(map(str, folders))}")


def abi_of(version: str) -> str:
    """The ABI of an MPI, by what its `mpirun --version` prints. Raises MpiError."""
    if "Open MPI" in version or "OpenRTE" in version or "prterun" in version.lower():
        return "openmpi"
    if "Intel(R) MPI" in version or "HYDRA" in version or "MVAPICH" in version:
        return "mpich"
    said = " ".join(version.split())[:80]
    raise MpiError(f"it says of itself {said!r}, which is no MPI known here; --abi names its ABI")


def find_mpirun(wanted: str | None) -> Path:
    """The launcher that is asked for, or the first of the usual ones on the PATH. Raises MpiError."""
    names = (wanted,) if wanted else ("mpirun", "mpiexec", "mpiexec.hydra")
    for name in names:
        found = shutil.which(name)
        if found:
            return Path(found)
    raise MpiError(f"there is no {' or '.join(names)} on the PATH; --mpirun names one")


def abi_of_launcher(mpirun: Path) -> str:
    """Raises MpiError."""
    try:
        done = subprocess.run(
            [str(mpirun), "--version"], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=30
        )
    except (OSError, subprocess.TimeoutExpired) as e:
        raise MpiError(f"cannot run {mpirun}: {e}") from e
    try:
        return abi_of(done.stdout + done.stderr)
    except MpiError as e:
        raise MpiError(f"{mpirun}: {e}") from e


def preloaded(library: Path, environment: dict[str, str]) -> dict[str, str]:
    """The variables with the library behind what is loaded already, so that tools see the program's calls, but in front
    of an MPI."""
    others = [p for p in environment.get("LD_PRELOAD", "").replace(":", " ").split() if p != str(library)]
    place = next((i for i, other in enumerate(others) if _has_mpi(other)), len(others))
    return {**environment, "LD_PRELOAD": ":".join([*others[:place], str(library), *others[place:]])}


def _has_mpi(library: str) -> bool:
    return "PMPI_Init" in functions_of(Path(library)) or Path(library).name.startswith(("libmpi.", "libmpich."))


def functions_of(library: Path) -> frozenset[str]:
    """Those of MPI that a library defines. Empty: it has none, or cannot be read."""
    try:
        with library.open("rb") as stream:
            section = ELFFile(stream).get_section_by_name(".dynsym")
            if not isinstance(section, SymbolTableSection):
                return frozenset()
            names = (symbol.name for symbol in section.iter_symbols() if symbol["st_shndx"] != "SHN_UNDEF")
            return frozenset(name for name in names if name.startswith(("MPI_", "PMPI_")))
    except (OSError, ELFError):
        return frozenset()


def tools_behind(preloads: str) -> list[str]:
    """What LD_PRELOAD names behind Lacuna's library and has functions of MPI, but is no MPI: it does not see the calls
    that Lacuna takes."""
    names = preloads.replace(":", " ").split()
    own = next((i for i, name in enumerate(names) if Path(name).name.startswith("liblacuna_mpi_")), len(names))
    return [name for name in names[own + 1 :] if functions_of(Path(name)) and not _has_mpi(name)]
