"""Two hosts on one machine: network namespaces that TCP connects, for MPI jobs over several nodes.

A host has its own network, its own name and its own /etc/hosts; processors, memory and files are shared, so what its
wire takes is time of the same processors. An MPI's own launcher starts the ranks, through an agent in ssh's place.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from lacuna.mpi.installations import run_tool

NAMES = ("lacuna-a", "lacuna-b")
NETWORK = "10.77.0.0/24"
INTERFACE = "wire"
"""Of either host, and of no other: names of interfaces are those of their namespaces."""
_ADDRESSES = ("10.77.0.1", "10.77.0.2")

_ENTER = """#!/bin/sh
# enter HOST COMMAND...
host=$1
shift
case $host in
  {a}) space={space_a} ;;
  {b}) space={space_b} ;;
  *) echo "there is no host $host" >&2; exit 1 ;;
esac
exec ip netns exec "$space" unshare --uts --mount sh -c \\
  'hostname "$0" && mount --bind {hosts} /etc/hosts && exec "$@"' "$host" "$@"
"""

_AGENT = """#!/bin/sh
# agent [OPTION...] HOST COMMAND..., as ssh takes them
while :; do case $1 in -*) shift ;; *) break ;; esac; done
host=$1
shift
exec {enter} "$host" sh -c "$*"
"""


class HostsError(Exception):
    """There cannot be two hosts here; the text says why."""


@dataclass(frozen=True)
class Hosts:
    enter: Path
    """A program that runs another one on a host."""
    agent: Path
    """The same with ssh's arguments."""


@contextlib.contextmanager
def two_hosts() -> Iterator[Hosts]:
    """Raises HostsError without root's rights, or without `ip` and `unshare`. What still runs there at the end, is
    killed."""
    for program, package in (("ip", "iproute2"), ("unshare", "util-linux")):
        if shutil.which(program) is None:
            raise HostsError(f"two hosts on one machine take `{program}`, of the package {package}")
    own = f"lacuna-{os.getpid()}-{secrets.token_hex(3)}"
    spaces = (f"{own}-a", f"{own}-b")
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        folder.chmod(0o755)
        hosts = folder / "hosts"
        lines = [f"{address} {name}\n" for address, name in zip(_ADDRESSES, NAMES, strict=True)]
        hosts.write_text("".join(["127.0.0.1 localhost\n", *lines]))
        enter = folder / "enter"
        a, b = NAMES
        enter.write_text(_ENTER.format(a=a, b=b, space_a=spaces[0], space_b=spaces[1], hosts=hosts))
        agent = folder / "agent"
        agent.write_text(_AGENT.format(enter=enter))
        for script in (enter, agent):
            script.chmod(0o755)
        try:
            _connect(spaces)
            _run(str(enter), a, "true")
            yield Hosts(enter, agent)
        finally:
            for space in spaces:
                _remove(space)


def _connect(spaces: tuple[str, str]) -> None:
    for space in spaces:
        _run("ip", "netns", "add", space)
    ends = (INTERFACE, "netns", spaces[0], "type", "veth", "peer", "name", INTERFACE, "netns", spaces[1])
    _run("ip", "link", "add", *ends)
    for space, address in zip(spaces, _ADDRESSES, strict=True):
        _run("ip", "-n", space, "address", "add", f"{address}/24", "dev", INTERFACE)
        _run("ip", "-n", space, "link", "set", "lo", "up")
        _run("ip", "-n", space, "link", "set", INTERFACE, "up")
    for space in spaces:  # up to a second, in which some libraries do not see the interface
        is_up = f"until grep -q up /sys/class/net/{INTERFACE}/operstate; do sleep 0.05; done"
        _run("ip", "netns", "exec", space, "sh", "-c", is_up)


def _remove(space: str) -> None:
    pids = subprocess.run(["ip", "netns", "pids", space], capture_output=True, text=True, check=False).stdout.split()
    for pid in pids:
        with contextlib.suppress(OSError):
            os.kill(int(pid), signal.SIGKILL)
    subprocess.run(["ip", "netns", "delete", space], capture_output=True, check=False)


def _run(*command: str) -> None:
    def failure(reason: str) -> HostsError:
        return HostsError(f"no two hosts on this machine: {reason}")

    done = run_tool(command, failure)
    if done.returncode != 0:
        raise failure(f"{' '.join(command)}: {done.stderr.strip()}")
