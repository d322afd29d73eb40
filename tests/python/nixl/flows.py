"""What programs with NIXL do, as its published examples have it: an agent that NIXL's Python runs. No test.

    flows.py FLOW target|initiator FOLDER NIC

basic      the initiator reads, and the target waits for the notification
expanded   lists prepared once, transfers by indices of them, several under way, tags, and each posted again
partial    metadata told piece by piece: the connection with one registration, then the other one

Each end asserts what it sees, and ends with 0.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from nixl import nixl_agent, nixl_agent_config
from nixl_bench import PATIENCE, Letters

BLOCKS, BLOCK = 32, 4096


class End(Letters):
    def __init__(self, role: str, folder: Path, nic: str) -> None:
        self.folder, self.role = folder, role
        self.agent = nixl_agent(role, nixl_agent_config(backends=[]))
        self.agent.create_backend("LACUNA", {"nic": nic})
        value = 1 if role == "target" else 0
        self.memory = [np.full((BLOCKS, BLOCK), value, np.uint8) for _ in range(2)]
        self.kept = [
            self.agent.register_memory([(m.ctypes.data, m.nbytes, 0, "")], "DRAM", ["LACUNA"]) for m in self.memory
        ]

    def blocks(self, which: int) -> np.ndarray:
        """A row (address, length, device) for each block of one of the two arrays."""
        array = self.memory[which]
        rows = np.zeros((BLOCKS, 3), np.uint64)
        rows[:, 0] = array.ctypes.data + BLOCK * np.arange(BLOCKS)
        rows[:, 1] = BLOCK
        return rows

    def finish(self, handle: Any, state: str) -> None:
        wait_for("a transfer", lambda: state != "PROC" or self.agent.check_xfer_state(handle) != "PROC")
        assert self.agent.check_xfer_state(handle) == "DONE"

    def hear(self, other: str, tag: bytes) -> None:
        wait_for(f"{tag!r}", lambda: self.agent.check_remote_xfer_done(other, tag))

    def tell_blocks(self, which: int) -> None:
        descs = self.agent.get_xfer_descs(self.blocks(which), "DRAM")
        self.put(f"blocks{which}", self.agent.get_serialized_descs(descs))

    def told_blocks(self, which: int) -> Any:
        return self.agent.deserialize_descs(self.get(f"blocks{which}"))


def wait_for(what: str, holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < deadline, f"waited in vain for {what}"


def basic_target(own: End) -> None:
    own.tell_blocks(0)
    own.put("metadata", own.agent.get_agent_metadata())
    own.hear("initiator", b"Done_reading")


def basic_initiator(own: End) -> None:
    assert own.agent.add_remote_agent(own.get("metadata")) == b"target"
    local = own.agent.get_xfer_descs(own.blocks(0), "DRAM")
    handle = own.agent.initialize_xfer("READ", local, own.told_blocks(0), "target", b"Done_reading")
    assert own.agent.query_xfer_backend(handle) == "LACUNA"
    own.finish(handle, own.agent.transfer(handle))
    assert (own.memory[0] == 1).all()
    own.agent.release_xfer_handle(handle)
    own.agent.remove_remote_agent("target")


def expanded_target(own: End) -> None:
    for which in range(2):
        own.tell_blocks(which)
    own.put("metadata", own.agent.get_agent_metadata())
    for turn in range(2):
        for which in range(2):
            own.hear("initiator", b"WRITE_%d" % which)
            even = own.memory[which][::2]
            assert (even == 10 * turn + which + 5).all()
            assert (own.memory[which][1::2] == 1).all()
        own.put(f"seen{turn}", b"")
    own.hear("initiator", b"over")


def expanded_initiator(own: End) -> None:
    own.agent.add_remote_agent(own.get("metadata"))
    own.agent.make_connection("target")
    here = [own.agent.prep_xfer_dlist("NIXL_INIT_AGENT", own.blocks(which), "DRAM") for which in range(2)]
    there = [own.agent.prep_xfer_dlist("target", own.told_blocks(which)) for which in range(2)]
    even = np.arange(0, BLOCKS, 2, dtype=np.int32)
    handles = [
        own.agent.make_prepped_xfer("WRITE", here[which], even, there[which], even, b"WRITE_%d" % which)
        for which in range(2)
    ]
    for turn in range(2):  # the same handles again
        for which in range(2):
            own.memory[which][:] = 10 * turn + which + 5
        states = [own.agent.transfer(handle) for handle in handles]
        for handle, state in zip(handles, states, strict=True):
            own.finish(handle, state)
        own.get(f"seen{turn}")
    for handle in (*handles, *here, *there):
        handle.release()
    own.agent.send_notif("target", b"over")
    own.get("ended")


def partial_target(own: End) -> None:
    part = own.agent.get_partial_agent_metadata
    for which in range(2):
        own.tell_blocks(which)
    own.put("first", part(own.kept[0], True, ["LACUNA"]))
    own.get("refused")
    own.put("second", part(own.kept[1], False, ["LACUNA"]))
    own.hear("initiator", b"both")
    for which in range(2):
        assert (own.memory[which] == which + 5).all()


def partial_initiator(own: End) -> None:
    descs = [own.told_blocks(which) for which in range(2)]
    assert not own.agent.check_remote_metadata("target", descs[0])
    own.agent.add_remote_agent(own.get("first"))
    assert own.agent.check_remote_metadata("target", descs[0])
    assert not own.agent.check_remote_metadata("target", descs[1])
    for which in range(2):
        own.memory[which][:] = which + 5
    for which, text in enumerate((b"one", b"both")):
        local = own.agent.get_xfer_descs(own.blocks(which), "DRAM")
        if which == 1:
            try:
                own.agent.initialize_xfer("WRITE", local, descs[1], "target", text)
            except Exception as error:
                own.put("refused", type(error).__name__.encode())
            else:
                raise AssertionError("memory that was not told is reached")
            own.agent.add_remote_agent(own.get("second"))
        handle = own.agent.initialize_xfer("WRITE", local, descs[which], "target", text)
        own.finish(handle, own.agent.transfer(handle))
        own.agent.release_xfer_handle(handle)
    own.get("ended")


FLOWS = {
    "basic": (basic_target, basic_initiator),
    "expanded": (expanded_target, expanded_initiator),
    "partial": (partial_target, partial_initiator),
}


def main() -> None:
    flow, role, folder, nic = sys.argv[1:]
    own = End(role, Path(folder), nic)
    FLOWS[flow][role == "initiator"](own)
    if role == "target":
        own.put("ended", b"")
    print(flow, role, "passed", flush=True)
    os._exit(0)  # NIXL's own libraries do not all survive the end of an interpreter


if __name__ == "__main__":
    main()
