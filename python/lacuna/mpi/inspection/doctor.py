"""What the library for MPI programs will do on a machine and for a program, and what would keep it from doing it."""

from __future__ import annotations

import os
import resource
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from lacuna import device
from lacuna.mpi.inspection.program import GROUPS, WITH_GAPS, Program, read_program
from lacuna.mpi.interposer import ABIS, MpiError, abi_of_launcher, find_mpirun, preload_library, tools_behind

PTRACE_SCOPE = Path("/proc/sys/kernel/yama/ptrace_scope")
DEVICES = Path("/sys/class/infiniband")
LOCKED = 512 << 20
"""Bytes that a rank may want to register: what waits to be read, and what is read into."""
_LESSEN = ("tools", "direct copies", "other nodes", "CPUs")
"""Findings of the machine that lessen what there is to gain, where they are notes."""


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
        return Finding(
            "shared memory",
            Verdict.WRONG,
            f"memfd_create: {e.strerror}; messages are left to the MPI until the system, or the container, allows it",
        )
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
    named = os.environ.get("LACUNA_MPI_NIC", "")
    if named == "off":
        return Finding(what, Verdict.OK, "LACUNA_MPI_NIC=off: the MPI moves data with gaps in chunks")
    if named.split(":")[0] == "ofi":
        provider = named.removeprefix("ofi").lstrip(":") or "first provider"
        text = f"by libfabric's {provider}, as LACUNA_MPI_NIC={named} says; `lacuna info` says whether it can be used"
        return Finding(what, Verdict.NOTE, text)
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
        text = f"{program.file} has its MPI in itself: nothing can be preloaded; link it to its MPI's shared library"
        return [Finding("program", Verdict.WRONG, text)]
    if program.is_setuid:
        text = f"{program.file} is setuid: the loader ignores LD_PRELOAD; `chmod ug-s` it"
        found.append(Finding("program", Verdict.WRONG, text))
    if program.abi is None:
        found.append(Finding("program", Verdict.NOTE, f"{program.file} does not ask for an MPI itself"))
    elif chosen is not None and program.abi != chosen:
        text = f"{program.file} is built for {ABIS[program.abi]}, and the launcher is of {ABIS[chosen]}"
        text += "; --mpirun names another"
        mixed = {program.abi, chosen} == {"mpich", "abi"}
        found.append(Finding("program", Verdict.NOTE if mixed else Verdict.WRONG, text))
    else:
        found.append(Finding("program", Verdict.OK, f"{program.file}, built for {ABIS[program.abi]}"))
    for group in (WITH_GAPS, *GROUPS):
        used = sorted(group.names & program.calls)
        if not used:
            continue
        names = ", ".join(used[:6]) + (f" and {len(used) - 6} more" if len(used) > 6 else "")
        if group is WITH_GAPS:
            found.append(Finding(group.what, Verdict.OK, f"made by {names}"))
        elif group.taken:
            found.append(Finding(group.what, Verdict.OK, f"{group.taken} ({names})"))
        else:
            found.append(Finding(group.what, Verdict.NOTE, f"left to the MPI ({names})"))
    if program.abi is not None and not WITH_GAPS.names & program.calls:
        text = "it makes no datatypes with gaps itself: there is little to gain, unless its libraries do"
        found.append(Finding(WITH_GAPS.what, Verdict.NOTE, text))
    return found


def gain(findings: Sequence[Finding], program: str | None) -> Finding:
    """What comes first: whether the program gains on this machine, by what else was found, and what to do if not.
    `program`: as the caller named it."""
    found = {finding.what: finding for finding in findings}
    if wrong := next((finding for finding in findings if finding.verdict is Verdict.WRONG), None):
        text = f"{program} does not gain here" if program else "No MPI program gains here"
        return Finding("gain", Verdict.WRONG, f"{text}: {wrong.text}")
    if program is None:
        text = "MPI programs that send datatypes with gaps should gain here: `lacuna mpi demo` measures one"
        return Finding("gain", Verdict.OK, f"{text}, and `lacuna mpi doctor ./app` looks at yours")
    report = f"`LACUNA_MPI_REPORT=1 lacuna mpirun -n 2 {program}` tells what the program sends"
    if WITH_GAPS.what not in found:
        return Finding("gain", Verdict.NOTE, f"The file of {program} does not say whether the program gains: {report}")
    little = f"{program} gains little here"
    if found[WITH_GAPS.what].verdict is not Verdict.OK:
        text = f"{little}: the program makes no datatypes with gaps. Sending such datatypes, not packing by hand, gains"
        return Finding("gain", Verdict.NOTE, f"{text}; if its libraries make them, {report}")
    if not any(group.taken and group.what in found for group in GROUPS):
        text = f"{little}: the MPI keeps all calls that the program passes datatypes to; messages and collectives gain"
        return Finding("gain", Verdict.NOTE, text)
    text = f"{program} should gain here, by sending datatypes with gaps: `lacuna mpirun -n 2 {program}`"
    lessened = [name for name in _LESSEN if name in found and found[name].verdict is Verdict.NOTE]
    return Finding("gain", Verdict.OK, text + (f"; less than it could, see {', '.join(lessened)}" if lessened else ""))
