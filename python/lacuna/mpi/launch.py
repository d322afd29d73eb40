"""How an MPI starts two processes on this machine, or on two hosts, and what their messages go through."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

from lacuna.mpi.installations import MpiInstallation, MpiInstallationError
from lacuna.mpi.interposer import MpiError, name_and_abi, version_of
from lacuna.mpi.two_hosts import INTERFACE, NAMES, NETWORK, Hosts

_AS_ROOT = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "PRTE_ALLOW_RUN_AS_ROOT": "1",
    "PRTE_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
}
"""Containers and test machines have no other user, and nothing here leaves the machine."""
_INTEL, _OPEN_MPI = "Intel MPI", "Open MPI"


@dataclass(frozen=True)
class Launch:
    """What comes before the program on the command line, and its variables."""

    line: tuple[str, ...]
    environment: dict[str, str]
    transport: str
    """What was asked for: "pml ob1, btl self,vader"."""
    version: str
    """What mpiexec says of itself, in one line."""

    def of(self, ranks: int) -> Self:
        """The same for so many ranks, which may be more than there are CPUs."""
        line, environment = list(self.line), dict(self.environment)
        line[line.index("-n") + 1] = str(ranks)
        if "--host" in line:  # Open MPI, on hosts with room for many
            environment.setdefault("OMPI_MCA_mpi_yield_when_idle", "1")
        elif "--bind-to" in line:  # Open MPI
            line[1:1] = ["--map-by", ":OVERSUBSCRIBE"]
            if ranks > len(os.sched_getaffinity(0)):
                environment.setdefault("OMPI_MCA_mpi_yield_when_idle", "1")
        return replace(self, line=tuple(line), environment=environment)


def launch(installation: MpiInstallation, hosts: Hosts | tuple[str, str] | None = None) -> Launch:
    """Two processes that no launcher binds to CPUs: they take one each by themselves. With `hosts`, ranks go to either
    of them by turns: to two on this machine, with their messages by TCP, or to those of these names, as the MPI starts
    ranks there. Raises MpiInstallationError."""
    mpiexec = _mpiexec(installation)
    place = installation.place()
    try:
        said = version_of(mpiexec, {**os.environ, **place})
        name, _ = name_and_abi(said)
    except MpiError as e:
        raise MpiInstallationError(f"{installation.name}: {mpiexec}: {e}") from e
    machine = hosts if isinstance(hosts, Hosts) else None
    if machine:
        options, variables = _across(machine, name)
    else:
        options, variables = (_on(hosts, name), {}) if isinstance(hosts, tuple) else _here(name)
    if name.startswith(_OPEN_MPI):
        place |= _AS_ROOT
    elif name.startswith(_INTEL) and not hosts:
        place |= _chosen({"I_MPI_HYDRA_BOOTSTRAP": "fork"})
    front = (str(machine.enter), NAMES[0]) if machine else ()
    usual = "as the MPI chooses" if isinstance(hosts, tuple) else "ch4, shared memory"
    shown = ", ".join(f"{variable.removeprefix('OMPI_MCA_')} {value}" for variable, value in variables.items())
    line = (*front, str(mpiexec), *options, "-n", "2")
    return Launch(line, {**os.environ, **place, **variables}, shown or usual, said)


def _here(name: str) -> tuple[tuple[str, ...], dict[str, str]]:
    """The options of an MPI's mpiexec, and the variables that say what messages go through."""
    if name.startswith(_OPEN_MPI):
        btl = "self,vader" if _is_before_5(name) else "self,sm"
        return ("--bind-to", "none"), _chosen({"OMPI_MCA_pml": "ob1", "OMPI_MCA_btl": btl})
    if name.startswith(_INTEL):
        return ("-hosts", "localhost"), _chosen({"I_MPI_FABRICS": "shm"})
    return (), {}


def _across(hosts: Hosts, name: str) -> tuple[tuple[str, ...], dict[str, str]]:
    """The same for two hosts."""
    agent, names = str(hosts.agent), ",".join(NAMES)
    if not name.startswith(_OPEN_MPI):
        # UCX would find the other host's memory by the kernel, and that host at an address which both have.
        ucx = {"UCX_TLS": "tcp,self", "UCX_NET_DEVICES": INTERFACE}
        options = ("-launcher", "rsh", "-launcher-exec", agent, "-hosts", names, "-ppn", "1")
        return options, {"FI_PROVIDER": "tcp"} if name.startswith(_INTEL) else ucx
    slots = ",".join(f"{host}:64" for host in NAMES)
    own = ("--bind-to", "none", "--map-by", "node", "--host", slots)
    components = {"OMPI_MCA_pml": "ob1", "OMPI_MCA_btl": "self,sm,tcp", "OMPI_MCA_btl_tcp_if_include": NETWORK}
    if _is_before_5(name):
        return (*own, "--mca", "plm_rsh_agent", agent), components | {"OMPI_MCA_btl": "self,vader,tcp"}
    return (*own, "--allow-run-as-root", "--prtemca", "plm_ssh_agent", agent), components


def _on(names: tuple[str, str], name: str) -> tuple[str, ...]:
    """The same for hosts that ssh reaches, or a batch system: a rank on each."""
    if name.startswith(_OPEN_MPI):
        return ("--bind-to", "none", "--map-by", "node", "--host", ",".join(names))
    return ("-hosts", ",".join(names), "-ppn", "1")


def _is_before_5(name: str) -> bool:
    """Of Open MPI, by its name and version."""
    return name.removeprefix(_OPEN_MPI).strip().startswith(("1.", "2.", "3.", "4."))


def _mpiexec(installation: MpiInstallation) -> Path:
    """Beside the compiler: named like it, or by the usual names."""
    names = ("mpiexec", "mpirun", "mpiexec.hydra")
    for found in (*map(installation.beside, names), *map(installation.mpicc.with_name, names)):
        if os.access(found, os.X_OK):
            return found
    raise MpiInstallationError(f"{installation.name}: there is no mpiexec beside {installation.mpicc}")


def _chosen(ours: dict[str, str]) -> dict[str, str]:
    """These, unless the caller has set them."""
    return {name: os.environ.get(name, value) for name, value in ours.items()}


def end_launcher(process: subprocess.Popen[bytes], seconds: float) -> None:
    """A launcher that is asked to end, ends its ranks; then it has `seconds`."""
    for ending in (signal.SIGTERM, signal.SIGKILL):
        if process.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, ending)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(seconds)
