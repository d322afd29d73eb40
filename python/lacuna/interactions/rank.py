"""One rank of `lacuna bench interactions`: `python -m lacuna.interactions.rank NAME RANK SIZE CPU`.

A line on standard input, a line on standard output:

    ▶ {"open": {"block", "count", "coarser"}, "kinds": [[cold, huge], ..]}
                                                                       ◀ {"opened": {"huge_bytes", "huge_wanted"}}
    ▶ {"turn": {"way", "trips", "both_ways", "cold", "huge", "verify"}}    ◀ {"took": {"us", "wrong"}}, or {"error"}

`kinds`: of memory, that turns will use. `way`: index into WAYS. `us`: of one message one way, or of one exchange both
ways; rank 0's. `verify`: a seed; then there is one trip, and everything that arrives is looked at, gaps too.
"""

from __future__ import annotations

import json
import mmap
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from lacuna import Layout
from lacuna.interactions.conditions import AUTOMATIC, FORCED, Subject
from lacuna.messages import Communicator, connect, wait_all

Bytes = npt.NDArray[np.uint8]

WAYS = (AUTOMATIC, *FORCED)
_HUGE = 2 << 20
_SMALLEST_CACHE, _LARGEST_CACHE = 32 << 20, 96 << 20
"""Bytes of a last-level cache that cold memory outgrows, where the system tells less, or more: a rank's memory is four
times that at most."""
_CACHE_FILE = Path("/sys/devices/system/cpu/cpu0/cache/index3/size")
_GAP = 0xA5


def cache_bytes() -> int:
    try:
        found = int(_CACHE_FILE.read_text().strip().removesuffix("K")) << 10
    except (OSError, ValueError):
        found = 0
    return min(max(found, _SMALLEST_CACHE), _LARGEST_CACHE)


class Side:
    """Memory of one side of the messages: copies of it, of which a warm message uses the first."""

    def __init__(self, block: int, count: int, *, cold: bool, huge: bool) -> None:
        self.layout = Layout.hvector(count, 1, 3 * block, Layout.bytes(block))
        self.slot = 3 * block * count
        # Four sides' lines, two of each rank, are twice the cache together.
        self.copies = max(1, -(-cache_bytes() // (2 * block * count))) if cold else 1
        self.count, self.block = count, block
        bytes_ = self.slot * self.copies
        self._map = mmap.mmap(-1, bytes_ + _HUGE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        self._map.madvise(mmap.MADV_HUGEPAGE if huge else mmap.MADV_NOHUGEPAGE)
        whole = np.frombuffer(self._map, np.uint8)
        start = -whole.ctypes.data % _HUGE
        self.bytes: Bytes = whole[start : start + bytes_]
        self.bytes[:] = _GAP

    def offset(self, trip: int, cold: bool) -> int:
        """Of the copy for this trip. Two in a row are far apart, and all have their turn."""
        if not cold or self.copies == 1:
            return 0
        step = max(1, self.copies * 5 // 13)
        while np.gcd(step, self.copies) != 1:
            step += 1
        return trip * step % self.copies * self.slot

    def blocks(self, offset: int) -> Bytes:
        """The payload, block by block."""
        return self.bytes[offset : offset + self.slot].reshape(self.count, 3 * self.block)[:, : self.block]

    def gaps(self, offset: int) -> Bytes:
        """What lies behind each block, of this copy and of the one before it."""
        start = max(0, offset - self.slot)
        return self.bytes[start : offset + self.slot].reshape(-1, 3 * self.block)[:, self.block :]


def stream(seed: int, of: int, payload: int) -> Bytes:
    return np.random.default_rng([seed, of]).integers(0, 256, payload, np.uint8)


class Rank:
    def __init__(self, name: str, rank: int, size: int) -> None:
        self.rank = rank
        self.peers = [p for p in range(size) if (p == 0) != (rank == 0)]
        """Rank 0 has all the others, each of them has rank 0."""
        self.ways: list[Communicator] = []
        for i, way in enumerate(WAYS):
            for variable in ("LACUNA_METHOD", "LACUNA_PATH"):
                os.environ.pop(variable, None)
            os.environ |= way.variables
            self.ways.append(connect(f"{name}-{i}", size, rank=rank))
        self.trip = 0
        self.sends: dict[bool, Side] = {}
        """By whether they are in huge pages."""
        self.receives: dict[bool, list[Side]] = {}

    def open(self, subject: Subject, kinds: Sequence[Sequence[bool]]) -> dict[str, Any]:
        self.sends.clear()
        self.receives.clear()
        coarse = (subject.block * subject.coarser, subject.count // subject.coarser)
        fine = (subject.block, subject.count)
        for huge in {bool(huge) for _, huge in kinds}:
            cold = any(cold for cold, of in kinds if bool(of) == huge)
            self.sends[huge] = Side(*fine, cold=cold, huge=huge)
            self.receives[huge] = [Side(*coarse, cold=cold, huge=huge) for _ in self.peers]
        sides = [self.sends[True], *self.receives[True]] if True in self.sends else []
        return {"huge_bytes": _huge_bytes(), "huge_wanted": sum(side.bytes.nbytes for side in sides)}

    def turn(
        self, way: int, trips: int, both_ways: bool, cold: bool, huge: bool, verify: int | None = None
    ) -> dict[str, Any]:
        ranks, go = self.ways[way], self._exchange if both_ways else self._in_turn
        if verify is not None:
            return {"us": 0.0, "wrong": self._verify(ranks, go, cold, huge, verify)}
        if cold:
            self._meet()
        else:
            go(ranks, cold, huge)
        began = time.perf_counter_ns()
        for _ in range(trips):
            go(ranks, cold, huge)
        us = (time.perf_counter_ns() - began) / trips / 1e3
        return {"us": us if both_ways else us / 2, "wrong": ""}

    def _verify(self, ranks: Communicator, go: Any, cold: bool, huge: bool, seed: int) -> str:
        out, into = self.sends[huge], self.receives[huge]
        at = [side.offset(self.trip, cold) for side in (out, *into)]
        out.blocks(at[0])[:] = stream(seed, self.rank, out.block * out.count).reshape(out.count, out.block)
        for side, offset in zip(into, at[1:], strict=True):
            side.blocks(offset)[:] = _GAP
        go(ranks, cold, huge)
        for peer, side, offset in zip(self.peers, into, at[1:], strict=True):
            expected = stream(seed, peer, side.block * side.count).reshape(side.count, side.block)
            if not np.array_equal(side.blocks(offset), expected):
                return f"rank {self.rank} received other bytes than rank {peer} sent"
            if not (side.gaps(offset) == _GAP).all():
                return f"rank {self.rank} has a byte written that is in no block"
        return ""

    def _meet(self) -> None:
        """All ranks are awake."""
        word, ranks = np.zeros(1, np.uint8), self.ways[0]
        for peer in self.peers:
            if self.rank == 0:
                ranks.send(word, peer)
            ranks.recv(word, peer)
            if self.rank != 0:
                ranks.send(word, peer)

    def _in_turn(self, ranks: Communicator, cold: bool, huge: bool) -> None:
        """To the peer, and back."""
        out, into, peer = self.sends[huge], self.receives[huge][0], self.peers[0]
        here, there = out.offset(self.trip, cold), into.offset(self.trip, cold)
        self.trip += 1
        if self.rank == 0:
            ranks.send(out.bytes, peer, layout=out.layout, offset=here)
            ranks.recv(into.bytes, peer, layout=into.layout, offset=there)
        else:
            ranks.recv(into.bytes, peer, layout=into.layout, offset=there)
            ranks.send(out.bytes, peer, layout=out.layout, offset=here)

    def _exchange(self, ranks: Communicator, cold: bool, huge: bool) -> None:
        """With all peers at once."""
        out, into = self.sends[huge], self.receives[huge]
        requests = [
            ranks.irecv(side.bytes, peer, layout=side.layout, offset=side.offset(self.trip, cold))
            for peer, side in zip(self.peers, into, strict=True)
        ]
        here = out.offset(self.trip, cold)
        requests += [ranks.isend(out.bytes, peer, layout=out.layout, offset=here) for peer in self.peers]
        self.trip += 1
        wait_all(requests)


def _huge_bytes() -> int:
    """Of this process, as the kernel tells."""
    for line in Path("/proc/self/smaps_rollup").read_text().splitlines():
        if line.startswith("AnonHugePages:"):
            return int(line.split()[1]) << 10
    return 0


def main(name: str, rank: int, size: int, cpu: int) -> None:
    os.sched_setaffinity(0, {cpu})
    this = Rank(name, rank, size)
    print(json.dumps({"ready": {"pid": os.getpid()}}), flush=True)
    for line in sys.stdin:
        command = json.loads(line)
        answer: dict[str, Any]
        try:
            if "open" in command:
                answer = {"opened": this.open(Subject(**command["open"]), command["kinds"])}
            else:
                answer = {"took": this.turn(**command["turn"])}
        except Exception as e:  # whatever it is, the others go on
            answer = {"error": f"{type(e).__name__}: {e}"}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:5]))
