#!/usr/bin/env python3
"""Transfers of NIXL between two processes: the plug-in LACUNA beside NIXL's own plug-in UCX.

    $(scripts/peers.sh nixl) scripts/nixl_bench.py [--quick] [--most PIECES] [--block BYTES] [--json FILE]

Lists of 1 to 100 000 descriptors whose pieces have a stride, or lie in random order. Times of the initiator: to prepare
a transfer (the second of a kind: the first one connects), to post it, and from posting to its end; medians of the
repetitions of all rounds. The backends run in turn, in processes of their own. What arrived is verified in the same
run, gaps too. UCX runs as it chooses itself, and by TCP alone, beside LACUNA by NIC local and by ofi:tcp. Exits with 1
if wrong bytes arrived, with 77 if NIXL is not here.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.metadata
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
PLUGINS = ROOT / "build" / "release" / "nixl"
SKIPPED = 77
PATIENCE = 300.0
"""Seconds that one end waits for the other."""

COUNTS = (1, 100, 10_000, 100_000)
SHAPES = ("strided", "random")
OPERATIONS = ("WRITE", "READ")
TIMES = ("prepare_us", "post_us", "complete_us")
SEED = 5


@dataclass(frozen=True)
class Backend:
    """A plug-in, with what it is given."""

    name: str
    plugin: str
    nic: str = ""
    environment: dict[str, str] = field(default_factory=dict)


BACKENDS = (
    Backend("LACUNA local", "LACUNA", "local"),
    Backend("UCX", "UCX"),
    Backend("LACUNA ofi:tcp", "LACUNA", "ofi:tcp"),
    Backend("UCX tcp", "UCX", environment={"UCX_TLS": "tcp"}),
)


@dataclass
class Row:
    backend: str
    shape: str
    operation: str
    count: int
    block_bytes: int
    prepare_us: list[float] = field(default_factory=list)
    post_us: list[float] = field(default_factory=list)
    complete_us: list[float] = field(default_factory=list)
    estimated_us: float = 0
    verified: bool = True

    @property
    def key(self) -> tuple[str, str, str, int]:
        return (self.backend, self.shape, self.operation, self.count)

    def medians(self) -> dict[str, Any]:
        return {**asdict(self), **{name: median(getattr(self, name)) for name in TIMES}}


# --- the two ends, run by NIXL's Python -------------------------------------------------------------------------------


class Letters:
    """Files of a folder, by which two ends first talk."""

    folder: Path

    def put(self, name: str, data: bytes) -> None:
        (self.folder / f"{name}.part").write_bytes(data)
        (self.folder / f"{name}.part").rename(self.folder / name)

    def get(self, name: str) -> bytes:
        deadline = time.monotonic() + PATIENCE
        while not (self.folder / name).exists():
            if time.monotonic() > deadline:
                sys.exit(f"waited {PATIENCE:.0f} s in vain for {name}")
            time.sleep(0.002)
        return (self.folder / name).read_bytes()


class End(Letters):
    """An agent with data to send and room to receive, and the files by which two ends first talk."""

    def __init__(self, role: str, folder: Path, plugin: str, nic: str, block: int) -> None:
        import numpy as np

        nixl = importlib.import_module("nixl")  # not in the environment of the tools that check this file

        self.numpy, self.role, self.folder, self.block = np, role, folder, block
        blocks = 2 * max(COUNTS)
        self.data = np.random.default_rng(SEED).integers(0, 256, (blocks, block), dtype=np.uint8)
        self.room = np.zeros((blocks, block), dtype=np.uint8)
        self.agent = nixl.nixl_agent(role, nixl.nixl_agent_config(backends=[]))
        self.agent.create_backend(plugin, {"nic": nic} if nic else {})
        stretches = [(array.ctypes.data, array.nbytes, 0, "") for array in (self.data, self.room)]
        self.agent.register_memory(stretches, "DRAM")
        self.put(f"{role}.bases", f"{self.data.ctypes.data} {self.room.ctypes.data}".encode())
        self.put(f"{role}.metadata", self.agent.get_agent_metadata())

    def blocks(self, shape: str, count: int) -> tuple[Any, Any]:
        """Which blocks go, and to which: the same at both ends."""
        numpy = self.numpy
        if shape == "strided":
            return numpy.arange(count) * 2, numpy.arange(count) * 2 + 1
        random = numpy.random.default_rng([SEED, count])
        return tuple(random.permutation(len(self.data))[:count] for _ in range(2))

    def right(self, shape: str, count: int) -> bool:
        """Whether the room holds what was sent, and nothing else; it is empty afterwards."""
        source, destination = self.blocks(shape, count)
        right = bool((self.room[destination] == self.data[source]).all())
        self.room[destination] = 0
        right = right and not self.room.any()
        self.room[:] = 0
        return right

    def descriptors(self, base: int, blocks: Any) -> Any:
        table = self.numpy.zeros((len(blocks), 3), dtype=self.numpy.uint64)
        table[:, 0] = base + blocks * self.block
        table[:, 1] = self.block
        return self.agent.get_xfer_descs(table, "DRAM")


def serve(end: End) -> None:
    """The target: looks at what arrived when it is asked to."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        for text in end.agent.get_new_notifs().get("initiator", []):
            if text == b"end":
                return
            name, shape, count = text.decode().split()
            end.put(name, b"1" if end.right(shape, int(count)) else b"0")
            deadline = time.monotonic() + PATIENCE
        time.sleep(0.001)
    sys.exit("the target heard no end")


def timed(end: End, row: Row, bases: dict[str, int], repetitions: int) -> None:
    """A row's transfers, one after the other."""
    source, destination = end.blocks(row.shape, row.count)
    writes = row.operation == "WRITE"
    own = end.data if writes else end.room
    local = end.descriptors(own.ctypes.data, source if writes else destination)
    remote = end.descriptors(bases["room" if writes else "data"], destination if writes else source)
    end.agent.release_xfer_handle(end.agent.initialize_xfer(row.operation, local, remote, "target"))
    start = time.perf_counter()
    handle = end.agent.initialize_xfer(row.operation, local, remote, "target")
    row.prepare_us.append((time.perf_counter() - start) * 1e6)
    for _ in range(repetitions):
        start = time.perf_counter()
        state = end.agent.transfer(handle)
        posted = time.perf_counter()
        while state == "PROC":
            state = end.agent.check_xfer_state(handle)
        row.complete_us.append((time.perf_counter() - start) * 1e6)
        row.post_us.append((posted - start) * 1e6)
        if state != "DONE":
            sys.exit(f"{row.key}: a transfer ended with {state}")
    row.estimated_us = end.agent.estimate_xfer_cost(handle)[0]
    end.agent.release_xfer_handle(handle)


def drive(end: End, backend: str, repetitions: int, counts: list[int]) -> None:
    """The initiator: all rows, verified, into a file."""
    end.agent.add_remote_agent(end.get("target.metadata"))
    bases = dict(zip(("data", "room"), map(int, end.get("target.bases").split()), strict=True))
    rows: list[dict[str, Any]] = []
    for shape in SHAPES:
        for count in counts:
            for operation in OPERATIONS:
                row = Row(backend, shape, operation, count, end.block)
                timed(end, row, bases, repetitions)
                if operation == "WRITE":
                    name = f"checked-{len(rows)}"
                    end.agent.send_notif("target", f"{name} {shape} {count}".encode())
                    row.verified = end.get(name) == b"1"
                else:
                    row.verified = end.right(shape, count)
                rows.append(asdict(row))
    end.agent.send_notif("target", b"end")
    end.put("rows.json", json.dumps(rows).encode())


# --- the driver -------------------------------------------------------------------------------------------------------


def pair(backend: Backend, arguments: argparse.Namespace) -> list[Row]:
    """Both ends of one backend, in processes of their own."""
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "NIXL_LOG_LEVEL": "ERROR", **backend.environment}
        if backend.plugin == "LACUNA":
            environment["NIXL_PLUGIN_DIR"] = str(arguments.plugins)
        common = [
            folder,
            backend.plugin,
            backend.nic or "-",
            backend.name,
            str(arguments.block),
            str(arguments.repetitions),
        ]
        counts = ",".join(map(str, arguments.counts))
        ends = [
            subprocess.Popen([sys.executable, __file__, "--end", role, *common, counts], env=environment)
            for role in ("target", "initiator")
        ]
        ended = [end.wait() for end in reversed(ends)]
        if any(ended):
            for end in ends:
                end.kill()
            sys.exit(f"{backend.name}: an end failed")
        return [Row(**row) for row in json.loads((Path(folder) / "rows.json").read_text())]


def measured(arguments: argparse.Namespace) -> Iterator[Row]:
    """Each backend's rows, with the times of all rounds."""
    rows: dict[tuple[str, str, str, int], Row] = {}
    for _ in range(arguments.rounds):
        for backend in (one for one in BACKENDS if one.name.startswith(arguments.only)):
            for row in pair(backend, arguments):
                known = rows.setdefault(row.key, row)
                if known is row:
                    continue
                for name in TIMES:
                    getattr(known, name).extend(getattr(row, name))
                known.verified = known.verified and row.verified
    yield from rows.values()


def end_main(arguments: list[str]) -> None:
    role, folder, plugin, nic, backend, block, repetitions, counts = arguments
    end = End(role, Path(folder), plugin, "" if nic == "-" else nic, int(block))
    if role == "target":
        serve(end)
    else:
        drive(end, backend, int(repetitions), [int(count) for count in counts.split(",")])
    os._exit(0)  # NIXL's own libraries do not all survive the end of an interpreter


def main() -> int:
    if sys.argv[1:2] == ["--end"]:
        end_main(sys.argv[2:])
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="one round, and no lists of 100 000")
    parser.add_argument("--most", type=int, default=COUNTS[-1], metavar="PIECES", help="of a list; others are left out")
    parser.add_argument("--block", type=int, default=512, help="bytes of a piece")
    parser.add_argument("--only", default="", metavar="NAME", help="backends whose names begin so")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--plugins", type=Path, default=PLUGINS, help="the folder of libplugin_LACUNA.so")
    arguments = parser.parse_args()
    most = min(arguments.most, 10_000) if arguments.quick else arguments.most
    arguments.counts = [count for count in COUNTS if count <= most]
    arguments.rounds, arguments.repetitions = (1, 5) if arguments.quick else (2, 5)
    try:
        version = importlib.metadata.version("nixl-cu12")
    except importlib.metadata.PackageNotFoundError:
        print("SKIP: this Python has no NIXL: scripts/peers.sh install, then run it by $(scripts/peers.sh nixl)")
        return SKIPPED
    rows = [row.medians() for row in measured(arguments)]
    print(f"{'backend':<15} {'shape':<8} {'pieces':>13}" + "".join(f"{name:>13}" for name in (*TIMES, "estimated_us")))
    for row in rows:
        times = "".join(f"{row[name]:>13.1f}" for name in (*TIMES, "estimated_us"))
        said = "" if row["verified"] else "  WRONG BYTES"
        print(f"{row['backend']:<15} {row['shape']:<8} {row['operation']:<6}{row['count']:>7}{times}{said}")
    if arguments.json:
        machine = {"system": platform.platform(), "cpus": os.cpu_count()}
        file = {"schema": 1, "nixl_version": version, "machine": machine, "command": sys.argv, "rows": rows}
        arguments.json.write_text(json.dumps(file, indent=1))
    return 0 if all(row["verified"] for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
