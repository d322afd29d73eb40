"""A plan carried out by NIXL: each rank writes its parts into the other ranks' arrays, with an agent of its own.

    place = over_nixl.place_of(plan, rank, agent.name, target)   on each rank of the target; told to all of the source
    writes = over_nixl.Writes(plan, agent, rank, source, places) on each rank of the source
    writes.run()

Memory is registered and metadata loaded by the program, as for any transfer of NIXL. Any backend will do; `LACUNA`
finds the strides of the lists again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from lacuna import _core, arrays
from lacuna.resharding.execution import Execution
from lacuna.resharding.plan import Pair
from lacuna.resharding.spans import Term

Numbers = npt.NDArray[np.int64]
Table = npt.NDArray[np.uint64]


class Place(NamedTuple):
    """Where a rank's target array is: what the ranks that write into it have to know."""

    agent: str
    address: int
    strides: tuple[int, ...]
    """In bytes."""
    device: int = 0


def place_of(plan: Execution, rank: int, agent: str, target: Any, device: int = 0) -> Place:
    """Of a rank's part of the target. Raises ValueError if the array is not that."""
    for pair in plan.receives(rank)[:1]:
        plan.strides_of(pair, target, of_source=False)
    address, _, _, strides = _core.memory_of(target, "target")
    return Place(agent, address, tuple(strides), device)


def descriptors(plan: Execution, pair: Pair, source: Place, target: Place) -> tuple[Table, Table]:
    """Of a pair: two tables with a row (address, length, device) for each piece that is contiguous on both sides, as
    NIXL's `get_xfer_descs` takes them. They have as many rows as there are pieces: that is NIXL's way."""
    found = [_pieces(box, source.strides, target.strides, plan.itemsize) for box in pair.boxes]
    lengths = np.concatenate([lengths for _, _, lengths in found])
    tables = []
    for side, place in enumerate((source, target)):
        table = np.empty((len(lengths), 3), np.uint64)
        starts = np.concatenate([one[side] for one in found])
        table[:, 0] = (starts + place.address).astype(np.uint64)
        table[:, 1], table[:, 2] = lengths, place.device
        tables.append(table)
    return tables[0], tables[1]


class Writes:
    """What one rank writes to the others, prepared once and carried out as often as wanted."""

    def __init__(
        self,
        plan: Execution,
        agent: Any,
        rank: int,
        source: Any,
        places: Mapping[int, Place],
        *,
        memory: str = "DRAM",
        notification: bytes = b"resharded",
        backends: Sequence[str] = ("LACUNA",),
        own_target: Any = None,
    ) -> None:
        """`agent` is a `nixl_agent` that has loaded the other agents' metadata; `places` has each rank that this one
        sends to. `own_target`: the array into which the rank's own part is copied, where it is in both meshes. Each
        target's agent gets `notification` from each that writes into it. Raises ValueError (an array that is not the
        rank's part, a rank without a place) and what NIXL raises."""
        self._agent, self._handles, self._own = agent, [], None  # type: Any, list[Any], Any
        for pair in plan.sends(rank):
            strides = plan.strides_of(pair, source, of_source=True)
            if pair.target == rank:
                self._own = _own_copy(plan, pair, source, own_target)
                continue
            if pair.target not in places:
                raise ValueError(f"rank {rank} writes to rank {pair.target}, whose place was not given")
            there = places[pair.target]
            here = Place("", _core.memory_of(source, "source")[0], strides)
            tables = descriptors(plan, pair, here, there)
            local, remote = (agent.get_xfer_descs(table, memory) for table in tables)
            self._handles.append(
                agent.initialize_xfer("WRITE", local, remote, there.agent, notification, list(backends))
            )

    def start(self) -> None:
        """Posts all of them. Raises RuntimeError if one fails, and what NIXL raises."""
        if self._own is not None:
            self._own()
        self._states = [self._agent.transfer(handle) for handle in self._handles]
        self.done()

    def done(self) -> bool:
        """Whether all bytes are there. Raises as `start`."""
        check = self._agent.check_xfer_state
        pairs = zip(self._states, self._handles, strict=True)
        self._states = [check(handle) if state == "PROC" else state for state, handle in pairs]
        if "ERR" in self._states:
            raise RuntimeError("a transfer of NIXL failed; its log says why")
        return all(state == "DONE" for state in self._states)

    def run(self) -> None:
        """Until all bytes are there. Raises as `start`."""
        self.start()
        while not self.done():
            pass

    def release(self) -> None:
        """What NIXL holds for them."""
        for handle in self._handles:
            self._agent.release_xfer_handle(handle)
        self._handles.clear()


def _own_copy(plan: Execution, pair: Pair, source: Any, target: Any) -> Any:
    layouts = [
        plan.layout(pair, of_source=of_source, strides=plan.strides_of(pair, array, of_source=of_source))
        for array, of_source in ((target, False), (source, True))
    ]
    return lambda: arrays.copy(target, source, target_layout=layouts[0], source_layout=layouts[1])


def _pieces(
    box: Sequence[Sequence[Term]], source: Sequence[int], target: Sequence[int], itemsize: int
) -> tuple[Numbers, Numbers, Numbers]:
    """Of a box: offsets in either array, and lengths in bytes; neighbours that touch in both are one piece. The
    dimension that is the fastest in the source is the innermost."""
    order = sorted(range(len(box)), key=lambda d: -abs(source[d]))
    here, there = np.zeros(1, np.int64), np.zeros(1, np.int64)
    lengths = np.full(1, itemsize, np.int64)
    for number, d in enumerate(order):
        whole = number == len(order) - 1 and source[d] == target[d] == itemsize
        starts = [_starts(term, whole) for term in box[d]]
        own, other = (np.concatenate([pair[side] for pair in starts]) for side in range(2))
        here = (here[:, None] + own * source[d]).ravel()
        there = (there[:, None] + other * target[d]).ravel()
        if whole:
            spans = np.concatenate([np.full(term.times, term.length * itemsize, np.int64) for term in box[d]])
            lengths = np.tile(spans, len(here) // len(spans))
    if len(lengths) != len(here):
        lengths = np.full(len(here), itemsize, np.int64)
    ends = (here[1:] != here[:-1] + lengths[:-1]) | (there[1:] != there[:-1] + lengths[:-1])
    first = np.flatnonzero(np.concatenate(([True], ends)))
    return here[first], there[first], np.add.reduceat(lengths, first)


def _starts(term: Term, whole: bool) -> tuple[Numbers, Numbers]:
    """The indices of a term's elements, or of its first elements, in either array."""
    turns = np.arange(term.times, dtype=np.int64)[:, None]
    within = np.zeros(1, np.int64) if whole else np.arange(term.length, dtype=np.int64)
    own = term.source + turns * term.source_step + within
    return own.ravel(), (term.target + turns * term.target_step + within).ravel()
