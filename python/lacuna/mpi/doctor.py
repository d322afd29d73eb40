"""What the library for MPI programs will do on a machine and for a program, and what would keep it from doing it."""

from __future__ import annotations

import os
import resource
import shutil
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from elftools.common.exceptions import ELFError
from elftools.elf.dynamic import DynamicSection
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection

from lacuna import device
from lacuna.mpi.interposer import ABIS, MpiError, abi_of_launcher, find_mpirun, preload_library, tools_behind

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

PTRACE_SCOPE = Path("/proc/sys/kernel/yama/ptrace_scope")
DEVICES = Path("/sys/class/infiniband")
LOCKED = 512 << 20
"""Bytes that a rank may want to register: what waits to be read, and what is read into."""


class Verdict(StrEnum):
    """How a finding is meant."""

    OK = "ok"
    NOTE = "note"
    """It works, but not as well as it could, or not for all of the program."""
    WRONG = "wrong"
    """It will not work."""


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at."""

    what: str
    verdict: Verdict
    text: str


@dataclass(frozen=True)
class Group:
    """Calls of MPI that the library treats alike; `names` without MPI_, in small letters."""

    what: str
    taken: str
    """What is done with them; empty: they pass through."""
    names: frozenset[str]


def _with_variants(names: Iterable[str]) -> frozenset[str]:
    """The non-blocking, persistent and large forms of collectives as well."""
    forms = [form for name in names for form in (name, f"i{name}", f"{name}_init")]
    return frozenset(forms)


GROUPS = (
    Group(
        "datatypes with gaps",
        "",
        frozenset(
            [
                "type_vector",
                "type_create_hvector",
                "type_hvector",
                "type_indexed",
                "type_create_hindexed",
                "type_hindexed",
                "type_create_indexed_block",
                "type_create_hindexed_block",
                "type_create_struct",
                "type_struct",
                "type_create_subarray",
                "type_create_darray",
                "type_create_resized",
            ]
        ),
    ),
    Group(
        "messages",
        "taken",
        frozenset(
            [
                "send",
                "ssend",
                "rsend",
                "bsend",
                "isend",
                "issend",
                "irsend",
                "ibsend",
                "send_init",
                "ssend_init",
                "rsend_init",
                "bsend_init",
                "recv",
                "irecv",
                "recv_init",
                "sendrecv",
                "sendrecv_replace",
                "isendrecv",
                "mrecv",
                "imrecv",
            ]
        ),
    ),
    Group("MPI_Pack and MPI_Unpack", "taken", frozenset(("pack", "unpack"))),
    Group(
        "collectives",
        "taken: what has gaps is packed here, or goes straight from rank to rank",
        _with_variants(
            [
                "alltoall",
                "alltoallv",
                "alltoallw",
                "allgather",
                "allgatherv",
                "gather",
                "gatherv",
                "scatter",
                "scatterv",
                "bcast",
                "neighbor_alltoall",
                "neighbor_alltoallv",
                "neighbor_alltoallw",
                "neighbor_allgather",
                "neighbor_allgatherv",
            ]
        ),
    ),
    Group("MPI_Put and MPI_Get", "taken where the MPI is slow with gaps at the origin", frozenset(("put", "get"))),
    Group(
        "one-sided communication",
        "",
        frozenset(["rput", "rget", "accumulate", "get_accumulate", "raccumulate"]),
    ),
    Group(
        "files",
        "",
        frozenset(["file_read_all", "file_write_all", "file_read_at_all", "file_write_at_all", "file_set_view"]),
    ),
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
            symbols = list(_symbols(elf))
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


def _symbols(elf: ELFFile) -> Iterator[tuple[str, bool]]:
    """Names, and whether this file defines them."""
    for name in (".dynsym", ".symtab"):
        section = elf.get_section_by_name(name)
        if isinstance(section, SymbolTableSection):
            yield from ((symbol.name, symbol["st_shndx"] != "SHN_UNDEF") for symbol in section.iter_symbols())


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


def look_at_machine(mpirun: str | None, abi: str | None) -> list[Finding]:
    """The launcher, the library for its MPI, and what messages go through."""
    found: list[Finding] = []
    try:
        launcher = find_mpirun(mpirun)
        of_launcher = abi_of_launcher(launcher)
        found.append(Finding("launcher", Verdict.OK, f"{launcher}, of {ABIS[of_launcher]}"))
    except MpiError as e:
        of_launcher = None
        found.append(Finding("launcher", Verdict.NOTE if abi else Verdict.WRONG, str(e)))
    chosen = abi or of_launcher
    if chosen:
        try:
            found.append(Finding("library", Verdict.OK, str(preload_library(chosen))))
        except MpiError as e:
            found.append(Finding("library", Verdict.WRONG, str(e)))
    found += _tools(os.environ.get("LD_PRELOAD", ""))
    found += [_shared_memory(), _direct_copies(), _devices(), _gpus()]
    cpus = len(os.sched_getaffinity(0))
    if cpus == 1:
        found.append(Finding("CPUs", Verdict.NOTE, "one: ranks take turns, and nothing is packed while it is unpacked"))
    return found


def _tools(preloads: str) -> list[Finding]:
    text = "is behind Lacuna's library in LD_PRELOAD and does not see the calls that Lacuna takes; name it first"
    return [Finding("tools", Verdict.NOTE, f"{name} {text}") for name in tools_behind(preloads)]


def _shared_memory() -> Finding:
    try:
        os.close(os.memfd_create("lacuna-doctor"))
    except OSError as e:
        return Finding("shared memory", Verdict.WRONG, f"memfd_create: {e.strerror}; messages are left to the MPI")
    return Finding("shared memory", Verdict.OK, "memory without a name can be shared")


def _direct_copies() -> Finding:
    what = "direct copies"
    try:
        scope = int(PTRACE_SCOPE.read_text())
    except (OSError, ValueError):
        scope = 0
    if scope == 0:
        return Finding(what, Verdict.OK, "ranks of one user may copy out of each other's memory")
    reason = "only between a process and its children" if scope == 1 else "for administrators only"
    return Finding(
        what,
        Verdict.NOTE,
        f"allowed {reason} ({PTRACE_SCOPE} is {scope}); long blocks go through shared memory, which takes up to twice "
        "as long" + ("; `sysctl kernel.yama.ptrace_scope=0` allows them" if scope < 3 else ""),
    )


def _devices() -> Finding:
    what = "other nodes"
    names = sorted(entry.name for entry in DEVICES.iterdir()) if DEVICES.is_dir() else []
    if not names:
        return Finding(what, Verdict.OK, "no RDMA device here: the MPI moves data with gaps in chunks")
    text = f"by {', '.join(names)}, to nodes that have a device, too (LACUNA_MPI_NIC names one, or says off)"
    locked = resource.getrlimit(resource.RLIMIT_MEMLOCK)[0]
    if locked != resource.RLIM_INFINITY and locked < LOCKED:
        limit = f"a process may lock {locked} bytes of memory; `ulimit -l unlimited` lets it register all it wants"
        return Finding(what, Verdict.NOTE, f"{text}; but {limit}")
    return Finding(what, Verdict.OK, text)


def _gpus() -> Finding:
    cards, why_none = device.look()
    if why_none:
        return Finding("GPUs", Verdict.OK, f"none: {why_none}")
    models = ", ".join(f"{card['name']} ({card['model']}, CUDA {card['driver']})" for card in cards)
    return Finding("GPUs", Verdict.NOTE, f"{models}: lacuna.device moves layouts of their memory; messages do not yet")


def look_at_file(file: Path, mpirun: str | None, abi: str | None) -> list[Finding]:
    """As look_at_program(), or that the file is no program of the loader's."""
    program = read_program(file)
    if program is None:
        return [Finding("program", Verdict.NOTE, f"{file} is a script; what it calls is not seen")]
    try:
        chosen = abi or abi_of_launcher(find_mpirun(mpirun))
    except MpiError:
        chosen = None
    return look_at_program(program, chosen)


def look_at_program(program: Program, chosen: str | None) -> list[Finding]:
    """What it is, which MPI it asks for, and what of its calls is taken. `chosen`: the ABI of the library."""
    found: list[Finding] = []
    if program.is_static or (program.defines_mpi and program.abi is None):
        return [Finding("program", Verdict.WRONG, f"{program.file} has its MPI in itself: nothing can be preloaded")]
    if program.is_setuid:
        found.append(Finding("program", Verdict.WRONG, f"{program.file} is setuid: the loader ignores LD_PRELOAD"))
    if program.abi is None:
        found.append(Finding("program", Verdict.NOTE, f"{program.file} does not ask for an MPI itself"))
    elif chosen is not None and program.abi != chosen:
        text = f"{program.file} is built for {ABIS[program.abi]}, and the launcher is of {ABIS[chosen]}"
        mixed = {program.abi, chosen} == {"mpich", "abi"}
        found.append(Finding("program", Verdict.NOTE if mixed else Verdict.WRONG, text))
    else:
        found.append(Finding("program", Verdict.OK, f"{program.file}, built for {ABIS[program.abi]}"))
    for group in GROUPS:
        used = sorted(group.names & program.calls)
        if not used:
            continue
        names = ", ".join(used[:6]) + (f" and {len(used) - 6} more" if len(used) > 6 else "")
        if group is GROUPS[0]:
            found.append(Finding(group.what, Verdict.OK, f"made by {names}"))
        elif group.taken:
            found.append(Finding(group.what, Verdict.OK, f"{group.taken} ({names})"))
        else:
            found.append(Finding(group.what, Verdict.NOTE, f"left to the MPI ({names})"))
    if program.abi is not None and not GROUPS[0].names & program.calls:
        text = "it makes no datatypes with gaps itself: there is little to gain, unless its libraries do"
        found.append(Finding("datatypes with gaps", Verdict.NOTE, text))
    return found


def find_program(name: str) -> Path | None:
    """A file, or a command on the PATH."""
    path = Path(name)
    if path.is_file():
        return path
    command = shutil.which(name)
    return Path(command) if command else None
