"""Runs `lacuna bench scale`: each schedule among more and more simulated ranks."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rich.console import Console

from lacuna import clock
from lacuna._core import simulate_scale
from lacuna.bench.race import cases_in_time
from lacuna.paper.profiles import PLATFORM_2, Profile, load
from lacuna.paper.scale.rows import SCHEDULES, ScaleRow, ScaleRun
from lacuna.units import bytes_text

RANKS = (2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)
QUICK_RANKS = (4, 16, 64)
BLOCKS = (8, 64, 512, 4096, 32768)
QUICK_BLOCKS = (8, 512)
NODES = 16
"""At most: fewer ranks have a node each."""

_MOST_MEMORY = 3 << 30
"""Bytes of this machine's memory for the blocks of all ranks, or for what they store and forward."""
_MOST_FORWARDED = 8 << 10
"""Longer blocks are never forwarded by choice: they would wait for receivers log2(ranks) times."""
_MOST_WAITING = 1 << 14
"""Messages of all ranks that wait for their receivers: each has connections and staging of its own."""
_EAGER = 8 << 10
_MOST_TWICE = 256
"""With more ranks a direct exchange takes so long to simulate that it is simulated by one of the two schedules that are
alike up to _EAGER: the choice takes at_once there."""
_SECONDS = 900.0


@dataclass(frozen=True)
class Case:
    ranks: int
    bytes: int
    schedule: str

    @property
    def ranks_per_node(self) -> int:
        return -(-self.ranks // NODES)

    @property
    def nodes(self) -> int:
        return -(-self.ranks // self.ranks_per_node)

    @property
    def name(self) -> str:
        return f"{self.ranks} ranks, {bytes_text(self.bytes)}, {self.schedule}"

    def senseless(self) -> str:
        """Why it is not worth while; empty: it is."""
        blocks = 4 * self.ranks**2 * self.bytes  # sent and received, half of it gaps
        if blocks > _MOST_MEMORY:
            return f"the blocks of all ranks take {bytes_text(blocks)} of this machine's memory"
        stored = self.ranks**2 * self.bytes * (2 + self.ranks.bit_length() // 2)
        if self.schedule == "forward":
            if self.bytes > _MOST_FORWARDED:
                return f"blocks of more than {bytes_text(_MOST_FORWARDED)} are never forwarded by choice"
            if blocks + stored > 2 * _MOST_MEMORY:
                return f"what all ranks store takes {bytes_text(stored)} of this machine's memory"
        elif self.schedule == "pairwise" and self.bytes <= _EAGER and self.ranks > _MOST_TWICE:
            return f"up to {bytes_text(_EAGER)} it is never chosen; it sends {self.ranks**2} messages, as at_once does"
        elif self.bytes > _EAGER and self.ranks**2 > _MOST_WAITING:
            return f"{self.ranks**2} messages that wait for their receivers have {4 * self.ranks**2} queue pairs"
        return ""


def cases(ranks: Sequence[int], blocks: Sequence[int]) -> Iterator[Case]:
    """Few ranks first, so that a run that is cut short has all sizes."""
    for n in sorted(set(ranks)):
        for block in sorted(set(blocks)):
            yield from (Case(n, block, schedule) for schedule in SCHEDULES)


@dataclass(frozen=True)
class ScaleRace:
    """What is asked for, and where it goes."""

    result: ScaleRun
    ranks: Sequence[int]
    blocks: Sequence[int]
    profile: Profile
    deadline: float

    def __call__(self, console: Console) -> None:
        self.result.profile = self.profile.name
        worth: list[Case] = []
        for case in cases(self.ranks, self.blocks):
            if why := case.senseless():
                self.result.skipped.append(f"{case.name}: {why}")
            else:
                worth.append(case)
        for case in cases_in_time(console, self.result, worth, lambda case: case.name, self.deadline, "exchanges"):
            self._run(case)

    def _run(self, case: Case) -> None:
        began = time.perf_counter()
        try:
            said = simulate_scale(str(self.profile.path), case.ranks, case.ranks_per_node, case.bytes, case.schedule)
        except (ValueError, ConnectionError, MemoryError, TimeoutError) as e:
            self.result.errors.append(f"{case.name}: {e}")
            return
        self.result.rows.append(
            ScaleRow(
                ranks=case.ranks,
                nodes=case.nodes,
                bytes=case.bytes,
                schedule=case.schedule,
                us=said["us"],
                expected_us=said["expected_us"].get(case.schedule, 0.0),
                chosen=said["automatic"] == case.schedule,
                messages=said["messages"],
                message_bytes=said["bytes"],
                not_ready=said["not_ready"],
                connections=said["connections"],
                registered=said["registered"],
                allocated=said["allocated"],
                wall_s=time.perf_counter() - began,
            )
        )


def race(
    result: ScaleRun,
    quick: bool,
    ranks: Sequence[int] | None,
    blocks: Sequence[int] | None,
    budget: float | None,
) -> ScaleRace:
    """What a user asked for; the rest is usual."""
    return ScaleRace(
        result,
        ranks or (QUICK_RANKS if quick else RANKS),
        blocks or (QUICK_BLOCKS if quick else BLOCKS),
        load(PLATFORM_2),
        clock.now() + (budget or _SECONDS),
    )
