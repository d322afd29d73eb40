"""An agent of NIXL in a process of its own, which NIXL's Python runs (scripts/peers.sh nixl): no test.

    peer.py target FOLDER NIC       has memory, and does what its notifications say
    peer.py initiator FOLDER NIC    does what FOLDER/work.json says, and writes FOLDER/done.json

The two tell one another their metadata by files of FOLDER. Each leaves its memory in FOLDER/ROLE.npy.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from pathlib import Path

import numpy as np
from nixl import nixl_agent, nixl_agent_config

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "scripts"))
from nixl_bench import Letters

PATIENCE = 120.0


class Agent(Letters):
    """An agent with one registration, and what it needs to talk to another one."""

    def __init__(self, role: str, folder: Path, nic: str, size: int) -> None:
        self.role, self.folder = role, folder
        self.agent = nixl_agent(role, nixl_agent_config(backends=[]))
        self.agent.create_backend("LACUNA", {"nic": nic})
        self.memory = np.random.default_rng(1 if role == "target" else 2).integers(0, 256, size, dtype=np.uint8)
        self.base = self.memory.ctypes.data
        self.registered = self.agent.register_memory([(self.base, size, 0, "")], "DRAM")

    def tell(self) -> None:
        self.put(f"{self.role}.base", str(self.base).encode())
        self.put(f"{self.role}.metadata", self.agent.get_agent_metadata())

    def keep(self) -> None:
        np.save(self.folder / f"{self.role}.npy", self.memory)

    def descriptors(self, base: int, pieces: list[list[int]]) -> object:
        table = np.zeros((len(pieces), 3), dtype=np.uint64)
        table[:, :2] = np.array(pieces, dtype=np.uint64).reshape(-1, 2)
        table[:, 0] += np.uint64(base)
        return self.agent.get_xfer_descs(table, "DRAM")


def target(own: Agent) -> None:
    own.tell()
    heard: list[str] = []
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        for text in own.agent.get_new_notifs().get("initiator", []):
            heard.append(text.decode())
            if text == b"forget":
                own.agent.deregister_memory(own.registered)
                own.put("forgotten", b"")
            elif text == b"die":
                os.kill(os.getpid(), signal.SIGKILL)
            elif text == b"end":
                own.keep()
                own.put("heard.json", json.dumps(heard).encode())
                return
        time.sleep(0.001)
    sys.exit("the target heard no end")


def move(own: Agent, work: dict, base: int) -> str:
    """How a transfer ended: DONE, or what is wrong."""
    local = own.descriptors(own.base, work["local"])
    remote = own.descriptors(base, work["remote"])
    try:
        handle = own.agent.initialize_xfer(
            work["operation"], local, remote, "target", work.get("notification", "").encode()
        )
        state = own.agent.transfer(handle)
        deadline = time.monotonic() + PATIENCE
        while state == "PROC" and time.monotonic() < deadline:
            state = own.agent.check_xfer_state(handle)
        duration, margin, _ = own.agent.estimate_xfer_cost(handle)
        assert duration > 0
        assert margin > 0
        own.agent.release_xfer_handle(handle)
    except Exception as error:  # NIXL has a class for each status
        return type(error).__name__
    return str(state)


def initiator(own: Agent) -> None:
    own.tell()
    own.agent.add_remote_agent(own.get("target.metadata"))
    base = int(own.get("target.base"))
    ended = []
    for work in json.loads((own.folder / "work.json").read_text()):
        if "say" in work:
            own.agent.send_notif("target", work["say"].encode())
        elif "wait" in work:
            own.get(work["wait"])
        else:
            ended.append(move(own, work, base))
            while work.get("until") and ended[-1] == "DONE":
                ended[-1] = move(own, work, base)
    own.keep()
    own.put("done.json", json.dumps(ended).encode())


def main() -> None:
    role, folder, nic = sys.argv[1:]
    own = Agent(role, Path(folder), nic, int((Path(folder) / "size").read_text()))
    (target if role == "target" else initiator)(own)
    os._exit(0)  # NIXL's own libraries do not all survive the end of an interpreter


if __name__ == "__main__":
    main()
