"""What an MPI program's file says of it: which MPI it asks for, and which of MPI's functions it calls."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from elftools.common.exceptions import ELFError
from elftools.elf.dynamic import DynamicSection
from elftools.elf.elffile import ELFFile

from lacuna.mpi.interposer import symbols_of

LIBRARIES = {
    "libmpi.so.40": "openmpi",
    "libmpi_mpifh.so.40": "openmpi",
    "libmpi_usempif08.so.40": "openmpi",
    "libmpi.so.12": "mpich",
    "libmpich.so.12": "mpich",
    "libmpifort.so.12": "mpich",
    "libmpichfort.so.12": "mpich",
    "libmpi_abi.so.1": "abi",
    "libmpifort_abi.so.1": "abi",
}
"""By what a program asks the loader for, C or Fortran: the ABI."""


@dataclass(frozen=True)
class Group:
    """Calls of MPI that the library treats alike; `names` without MPI_, in small letters."""

    what: str
    taken: str
    """What is done with them; empty: they pass through."""
    names: frozenset[str]


def _with_variants(names: str) -> str:
    """The non-blocking and persistent forms of collectives as well."""
    return " ".join(f"{name} i{name} {name}_init" for name in names.split())


def _group(what: str, taken: str, names: str) -> Group:
    return Group(what, taken, frozenset(names.split()))


WITH_GAPS = _group(
    "datatypes with gaps",
    "",
    """type_vector type_create_hvector type_hvector type_indexed type_create_hindexed type_hindexed
    type_create_indexed_block type_create_hindexed_block type_create_struct type_struct type_create_subarray
    type_create_darray type_create_resized""",
)
"""The constructors of datatypes that may have gaps."""

GROUPS = (
    _group(
        "messages",
        "taken",
        """send ssend rsend bsend isend issend irsend ibsend send_init ssend_init rsend_init bsend_init
        recv irecv recv_init sendrecv sendrecv_replace isendrecv mrecv imrecv""",
    ),
    _group("MPI_Pack and MPI_Unpack", "taken", "pack unpack"),
    _group(
        "collectives",
        "taken: what has gaps is packed here, or goes straight from rank to rank",
        _with_variants(
            """alltoall alltoallv alltoallw allgather allgatherv gather gatherv scatter scatterv bcast
            neighbor_alltoall neighbor_alltoallv neighbor_alltoallw neighbor_allgather neighbor_allgatherv"""
        ),
    ),
    _group("MPI_Put and MPI_Get", "taken where the MPI is slow with gaps at the origin", "put get"),
    _group("one-sided communication", "", "rput rget accumulate get_accumulate raccumulate"),
    _group("files", "", "file_read_all file_write_all file_read_at_all file_write_at_all file_set_view"),
)


@dataclass(frozen=True)
class Program:
    """What a program's file says of it."""

    file: Path
    needed: tuple[str, ...]
    """Libraries, by its own and its libraries' wishes."""
    calls: frozenset[str]
    """MPI functions that it asks the loader for: without MPI_, in small letters, by C or by Fortran."""
    is_static: bool
    is_setuid: bool
    defines_mpi: bool
    """MPI is in the program itself."""

    @property
    def abi(self) -> str | None:
        """None: it does not ask for an MPI."""
        return next((LIBRARIES[name] for name in self.needed if name in LIBRARIES), None)


def read_program(file: Path) -> Program | None:
    """None: it is no ELF file (a script). Libraries are followed where the loader would find them by their run path."""
    try:
        with file.open("rb") as stream:
            elf = ELFFile(stream)
            has_interpreter = any(segment["p_type"] == "PT_INTERP" for segment in elf.iter_segments())
            symbols = list(symbols_of(elf, ".dynsym", ".symtab"))
            wanted = list(_needed(elf, file))
    except (ELFError, OSError):
        return None
    undefined = {name for name, defined in symbols if not defined}
    defined = {name for name, is_defined in symbols if is_defined}
    return Program(
        file=file,
        needed=tuple(dict.fromkeys(_closure(wanted))),
        calls=frozenset(filter(None, map(_call, undefined))),
        is_static=not has_interpreter,
        is_setuid=bool(file.stat().st_mode & (stat.S_ISUID | stat.S_ISGID)),
        defines_mpi="MPI_Init" in defined or "MPI_Send" in defined,
    )


def _needed(elf: ELFFile, file: Path) -> Iterator[tuple[str, tuple[Path, ...]]]:
    """Libraries by name, and the folders where this file would have them looked for."""
    section = elf.get_section_by_name(".dynamic")
    if not isinstance(section, DynamicSection):
        return
    tags = list(section.iter_tags())
    origin = str(file.resolve().parent)
    paths = [
        getattr(tag, "runpath", getattr(tag, "rpath", ""))
        for tag in tags
        if tag.entry.d_tag in ("DT_RUNPATH", "DT_RPATH")
    ]
    folders = tuple(Path(folder.replace("$ORIGIN", origin)) for path in paths for folder in path.split(":") if folder)
    for tag in tags:
        if tag.entry.d_tag == "DT_NEEDED":
            yield getattr(tag, "needed", ""), folders


def _closure(wanted: list[tuple[str, tuple[Path, ...]]]) -> Iterator[str]:
    """These and what they ask for, one level deep: Fortran bindings and a program's own libraries ask for the MPI."""
    search = [Path(folder) for folder in os.environ.get("LD_LIBRARY_PATH", "").split(":") if folder]
    for name, folders in wanted:
        yield name
        for folder in (*search, *folders):
            try:
                with (folder / name).open("rb") as stream:
                    yield from (inner for inner, _ in _needed(ELFFile(stream), folder / name))
            except (OSError, ELFError):
                continue
            break


def _call(symbol: str) -> str | None:
    """`send` of MPI_Send, PMPI_Send_c, mpi_send_, mpi_send_f08ts_; None: it is no function of MPI."""
    name = symbol.lower().rstrip("_").removeprefix("p")
    if not name.startswith("mpi_"):
        return None
    name = name.removeprefix("mpi_")
    for ending in ("_f08ts", "_f08", "_f", "_c"):
        name = name.removesuffix(ending)
    return name


def find_program(name: str) -> Path | None:
    """A file, or a command on the PATH."""
    path = Path(name)
    if path.is_file():
        return path
    command = shutil.which(name)
    return Path(command) if command else None
