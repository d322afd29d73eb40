"""A rank of random reshards over NIXL, which NIXL's Python runs with Lacuna's package, tests/python
and scripts in PYTHONPATH: no test.

    reshard_peer.py RANK RANKS FOLDER NIC

Each rank compares what its arrays hold with a naive reference, and writes FOLDER/RANK.done.
"""

from __future__ import annotations

import json
import os
import random
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
from drawn_shardings import drawn_sides, laid_out, naive_part
from nixl import nixl_agent, nixl_agent_config
from nixl_bench import PATIENCE, Letters

import lacuna
from lacuna.resharding import over_nixl

PLANS, TURNS = 12, 2


class Rank(Letters):
    def __init__(self, rank: int, ranks: int, folder: Path, nic: str) -> None:
        self.rank, self.ranks, self.folder = rank, ranks, folder
        self.agent = nixl_agent(f"rank{rank}", nixl_agent_config(backends=[]))
        self.agent.create_backend("LACUNA", {"nic": nic})
        self.heard: Counter[tuple[str, bytes]] = Counter()

    def registered(self, array: Any) -> Any:
        """The array, whose memory others may reach."""
        room = array
        while room.base is not None:
            room = room.base
        self.agent.register_memory([(room.ctypes.data, room.nbytes, 0, "")], "DRAM")
        return array

    def together(self, what: str, data: bytes = b"") -> list[bytes]:
        """What each rank says, once all have said it."""
        self.put(f"{self.rank}.{what}", data)
        return [self.get(f"{rank}.{what}") for rank in range(self.ranks)]

    def hear(self, plan: lacuna.resharding.Execution, text: bytes) -> None:
        """Until each rank that writes to this one has said that it is done."""
        expected = {f"rank{pair.source}" for pair in plan.receives(self.rank) if pair.source != self.rank}
        deadline = time.monotonic() + PATIENCE
        while any(self.heard[name, text] == 0 for name in expected):
            for name, texts in self.agent.get_new_notifs().items():
                self.heard.update((name, one) for one in texts)
            assert time.monotonic() < deadline, f"no {text!r} from all of {expected}"


def drawn(rng: random.Random, ranks: int) -> tuple[list[Any], tuple[int, ...]]:
    shape = tuple(rng.randint(1, 30) for _ in range(rng.randint(1, 3)))
    return drawn_sides(rng, ranks, shape), shape


def main() -> None:
    rank, ranks, folder, nic = sys.argv[1:]
    own = Rank(int(rank), int(ranks), Path(folder), nic)
    rng = random.Random(7)  # the same draws on all ranks
    made, places = [], []
    for _ in range(PLANS):
        sides, shape = drawn(rng, own.ranks)
        plan = lacuna.reshard(*sides, shape, itemsize=8)
        whole = np.arange(np.prod(shape, dtype=int)).reshape(shape)
        parts = [naive_part(s, whole, own.rank) if own.rank in s.mesh.ranks else None for s in sides]
        arrays = [None if p is None else own.registered(laid_out(p, random.Random(own.rank))) for p in parts]
        made.append((plan, sides, whole, arrays))
        place = None if arrays[1] is None else over_nixl.place_of(plan, own.rank, f"rank{rank}", arrays[1])
        places.append(place)
    for number, metadata in enumerate(own.together("metadata", own.agent.get_agent_metadata())):
        if number != own.rank:
            own.agent.add_remote_agent(metadata)
    told = [json.loads(text) for text in own.together("places", json.dumps(places).encode())]
    for i, (plan, sides, whole, (source, target)) in enumerate(made):
        known = {r: over_nixl.Place(*told[r][i]) for r in range(own.ranks) if told[r][i] is not None}
        note = f"plan {i}".encode()
        writes = over_nixl.Writes(plan, own.agent, own.rank, source, known, notification=note, own_target=target)
        for turn in range(TURNS):
            if source is not None:
                source[...] = naive_part(sides[0], whole + turn * 1000, own.rank)
            own.together(f"ready{i}.{turn}")
            writes.run()
            own.hear(plan, note)
            if target is not None:
                assert np.array_equal(target, naive_part(sides[1], whole + turn * 1000, own.rank)), (i, turn)
            own.heard.clear()
            own.together(f"looked{i}.{turn}")
        writes.release()
    own.put(f"{rank}.done", b"")
    own.together("end")
    os._exit(0)  # NIXL's own libraries do not all survive the end of an interpreter


if __name__ == "__main__":
    main()
