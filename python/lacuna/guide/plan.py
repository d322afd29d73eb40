"""What a cell is; which cells the guide measures, and in which order.

A plan lists first the cells that the guide promises (`required`), then those that make it finer, each part from cheap
to expensive. When time runs short the end of the list is dropped, so what is kept is always a whole guide.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from lacuna.guide.pairs import Pair, random_pairs
from lacuna.guide.run_record import LeftOut
from lacuna.units import bytes_text
from lacuna.worker.records import SHAPES, Cache, Family, Hello, Shape, Size, Subject

KIB = 1 << 10
MIB = 1 << 20

QUICK_BLOCKS = (16, 64, 256, 1 * KIB, 4 * KIB, 16 * KIB)
QUICK_COUNTS = (4, 16, 64, 256)
QUICK_SHAPES: tuple[Shape, ...] = ("symmetric", "sender_finer")
QUICK_EXTRA_BLOCK = 64 * KIB
QUICK_MESSAGE_CAP = 4 * MIB

GRID_LAYOUT = "vector_gap2x"
"""Equal blocks at equal distances, the gap between them twice the block: the papers' layout."""

WIDE_LAYOUT = "vector_wide"
"""The same blocks as far apart as a working set of twice the last-level cache allows: the papers' 45 MB, cut to the
machine. Cold cells have it."""

FULL_BLOCKS = tuple(4**k for k in range(2, 11))  # 16 B to 1 MiB
FULL_COUNTS = tuple(4**k for k in range(7))  # 1 to 4096
FULL_MESSAGE_CAP = 64 * MIB
COLD_BLOCKS = (16, 256, 4 * KIB, 64 * KIB)
COLD_COUNTS = (16, 256)

AI_PAYLOAD = 8 * MIB
AI_PAYLOAD_LONG = 64 * MIB
"""Transfers of AI systems are cut to this: the field's move a gigabyte. The larger where the budget allows it."""

LONG_BUDGET = 240.0
NOTIFY_BUDGET = 900.0
"""Seconds from which on there is time for all notifications at all sizes."""

PAIRS_SEED = 20251
QUICK_PAIRS, FULL_PAIRS = 16, 120
"""Random pairs of layouts, which the fit needs beside the grid. The choice is judged on others, of another seed."""

KEY_STEPS = 3
"""Creating, binding and invalidating a key: what a `keys` request measures."""

QUICK_PAYLOAD = 64 * KIB
QUICK_SPAN = 8 * MIB
"""The quick plan takes of each DDTBench family the largest size within these two, else the smallest: large enough to
be no latency test, small enough that filling and checking its arrays does not eat the time."""


NOTIFY_PAYLOAD = 64 * KIB
"""Notifications differ by a microsecond. Above this size the guide measures the usual one alone: the time that the
others would take tells more elsewhere."""

COMBOS = 25
"""How many combinations of method, path and notification there are, where they are not counted."""


@dataclass(frozen=True)
class Cell:
    """One layout pair in one cache state; the worker measures all methods on it, interleaved."""

    subject: Subject
    spec: dict[str, object]
    """The layout in the worker's words; for `keys` what they are to stand for."""
    touched_bytes: int
    """How much of its memory one side has to fill and check: its arrays, or windows around far blocks."""
    required: bool
    methods: tuple[str, ...] = ()
    """Only these are measured; all, if there are none. The same for notifications, of the one-sided methods."""
    notifies: tuple[str, ...] = ()
    verb: Literal["measure", "keys"] = "measure"
    combos: int = COMBOS
    leave_out: tuple[LeftOut, ...] = ()

    def ask(self, censor_ms: float) -> dict[str, object]:
        """The members of the request that say what to measure."""
        if self.verb == "keys":
            return self.spec
        chosen = {"methods": self.methods, "notifies": self.notifies}
        return {
            "layout": self.spec,
            "cache": self.subject.cache,
            "censor_ms": censor_ms,
            **{name: list(names) for name, names in chosen.items() if names},
            **({"leave_out": [[out.method, out.path] for out in self.leave_out]} if self.leave_out else {}),
        }

    def without(self, left_out: tuple[LeftOut, ...]) -> Cell:
        """The same cell with less to measure."""
        each = 1 if self.notifies else 2  # combinations of a method on a path, roughly
        return replace(self, leave_out=left_out, combos=max(1, self.combos - each * len(left_out)))

    @property
    def label(self) -> str:
        s = self.subject
        if s.experiment in ("ddtbench", "ai", "pairs"):
            return f"{s.layout}, {s.cache}"
        blocks = f"{bytes_text(s.block_bytes)} × {s.block_count}, {s.shape}, {s.cache}"
        return blocks if s.experiment == "grid" else f"{s.experiment}: {s.layout}, {blocks}"

    @property
    def transfer_ms(self) -> float:
        """A guess, before anything is measured, of one transfer by a decent method: 2 us, 4 GB/s, and 30 ns a block,
        cold 100 (between the 5 ns of a copy in cache and the 500 ns of an iovec). It only shares out the time."""
        s = self.subject
        return 2e-3 + s.payload_bytes / 4e6 + s.block_count * (1e-4 if s.cache == "cold" else 3e-5)

    @property
    def round_ms(self) -> float:
        """The same for one transfer by every combination of method, path and notification."""
        return self.combos * self.transfer_ms

    @property
    def setup_ms(self) -> float:
        """The same for what comes before measuring: filling the arrays and checking one transfer by every method."""
        flushed_ms = 15.0 if self.subject.cache == "cold" else 0.0
        return 5.0 + 2 * self.round_ms + self.combos * self.touched_bytes / 6e6 + flushed_ms

    @property
    def visit_transfers(self) -> int:
        """How many transfers in a row the worker makes of such a size."""
        ms = self.transfer_ms
        return 8 if ms < 0.05 else 5 if ms < 0.5 else 3 if ms < 5 else 1


def counted(cells: Iterable[Cell], hello: Hello) -> list[Cell]:
    """The cells with their combinations counted (what this worker will try for each of them), in order again."""
    paths = max(1, sum(path.available for path in hello.nic.paths))

    def combos(cell: Cell) -> int:
        if cell.verb == "keys":
            return KEY_STEPS
        chosen = [m for m in hello.methods if not cell.methods or m.name in cell.methods]
        return paths * sum(
            not m.one_sided or not cell.notifies or notify in cell.notifies for m in chosen for notify in m.notifies
        )

    return ordered(replace(cell, combos=max(1, combos(cell))) for cell in cells)


def notifies_for(payload_bytes: int) -> tuple[str, ...]:
    return ("flag",) if payload_bytes > NOTIFY_PAYLOAD else ()


def with_all_notifications(cells: Iterable[Cell]) -> list[Cell]:
    return [replace(cell, notifies=()) for cell in cells]


def grid_cell(block_bytes: int, block_count: int, shape: Shape, cache: Cache, *, required: bool) -> Cell:
    payload = block_bytes * block_count
    layout = GRID_LAYOUT if cache == "warm" else WIDE_LAYOUT
    return Cell(
        Subject("grid", layout, block_bytes, block_count, payload, shape, cache),
        {"kind": "grid", "block_bytes": block_bytes, "block_count": block_count, "shape": shape},
        3 * payload,
        required,
        notifies=notifies_for(payload),
    )


def ai_cell(family: Family, most_payload: int, *, required: bool) -> Cell:
    size = family.sizes[0]
    average = max(1, size.payload_bytes // max(1, size.blocks))
    spec = {"kind": "ai", "name": family.name, "most_payload": most_payload}
    return _suite_cell("ai", family, size, average, spec, 2 * size.payload_bytes, required)


def ddtbench_cell(family: Family, index: int, *, required: bool) -> Cell:
    size = family.sizes[index]
    average = max(1, round(size.payload_bytes / max(1, size.blocks)))
    spec = {"kind": "ddtbench", "name": family.name, "size": index}
    return _suite_cell("ddtbench", family, size, average, spec, size.span_bytes, required)


def _suite_cell(
    suite: str, family: Family, size: Size, block: int, spec: dict[str, object], touched: int, required: bool
) -> Cell:
    payload = size.payload_bytes
    subject = Subject(suite, f"{family.name} {size.dims}", block, size.blocks, payload, "symmetric", "warm")
    return Cell(subject, spec, touched, required, notifies=notifies_for(payload))


def pair_cell(pair: Pair, *, required: bool, cold: bool = False, notifies: tuple[str, ...] | None = None) -> Cell:
    """Any two layouts. `notifies`: other than what is usual for the payload."""
    blocks = max(1, pair.send.run_count, pair.receive.run_count)
    wires = {"send": bytes(pair.send.wire()).hex(), "receive": bytes(pair.receive.wire()).hex()}
    payload = pair.send.size
    return Cell(
        Subject("pairs", pair.name, payload // blocks, blocks, payload, "symmetric", "cold" if cold else "warm"),
        {"kind": "pair", "name": pair.name, **wires},
        max(pair.send.true_extent, pair.receive.true_extent),
        required,
        notifies=notifies_for(payload) if notifies is None else notifies,
    )


def pair_cells(count: int, *, required: bool = True) -> list[Cell]:
    """What the fit learns asymmetric and irregular layouts from. With all notifications by which the receiver learns of
    the end, since these are chosen among."""
    pairs = random_pairs(count, PAIRS_SEED)
    return [
        pair_cell(pair, required=required, notifies=("imm", "flag") if pair.send.size > NOTIFY_PAYLOAD else ())
        for pair in pairs
    ]


def middle_size(family: Family) -> int:
    """The index of the size that stands for the family in the quick plan."""
    by_payload = sorted(range(len(family.sizes)), key=lambda i: family.sizes[i].payload_bytes)
    fitting = [
        i
        for i in by_payload
        if family.sizes[i].payload_bytes <= QUICK_PAYLOAD and family.sizes[i].span_bytes <= QUICK_SPAN
    ]
    return fitting[-1] if fitting else by_payload[0]


def quick(corpus: Sequence[Family]) -> list[Cell]:
    """Two shapes, warm, and one size of each DDTBench family."""
    cells = [
        grid_cell(b, n, s, "warm", required=True) for b in QUICK_BLOCKS for n in QUICK_COUNTS for s in QUICK_SHAPES
    ]
    cells += [
        grid_cell(QUICK_EXTRA_BLOCK, n, s, "warm", required=False)
        for n in QUICK_COUNTS
        for s in QUICK_SHAPES
        if QUICK_EXTRA_BLOCK * n <= QUICK_MESSAGE_CAP
    ]
    cells += [ddtbench_cell(family, middle_size(family), required=True) for family in corpus]
    cells += pair_cells(QUICK_PAIRS, required=False)
    return ordered(cells)


def full(corpus: Sequence[Family], ai: Sequence[Family] = (), most_payload: int = AI_PAYLOAD) -> list[Cell]:
    """Three shapes warm and cold, every size of each DDTBench family, and the transfers of AI systems."""
    promised: dict[Cache, tuple[tuple[int, ...], tuple[int, ...]]] = {
        "warm": (QUICK_BLOCKS, QUICK_COUNTS),
        "cold": (COLD_BLOCKS, COLD_COUNTS),
    }
    cells = [
        grid_cell(b, n, s, cache, required=b in blocks and n in counts and b * n <= QUICK_MESSAGE_CAP)
        for cache, (blocks, counts) in promised.items()
        for s in SHAPES
        for b, n in _full_grid(s)
    ]
    cells += [
        ddtbench_cell(family, i, required=i == middle_size(family))
        for family in corpus
        for i in range(len(family.sizes))
    ]
    cells += [ai_cell(family, most_payload, required=True) for family in ai]
    cells += pair_cells(FULL_PAIRS)
    return ordered(cells)


SIMULATED_PAYLOAD = 4 * MIB


def simulated(cells: Iterable[Cell]) -> list[Cell]:
    """What is worth asking of a simulated NIC: its CPUs' caches have no memory, so nothing is cold; and large transfers
    take long. All notifications, since a world costs the same for each."""
    return with_all_notifications(
        cell for cell in cells if cell.subject.cache == "warm" and cell.subject.payload_bytes <= SIMULATED_PAYLOAD
    )


def _full_grid(shape: Shape) -> list[tuple[int, int]]:
    return [
        (b, n)
        for b in FULL_BLOCKS
        for n in FULL_COUNTS
        if b * n <= FULL_MESSAGE_CAP and not (shape == "sender_coarser" and n < 2)
    ]


def ordered(cells: Iterable[Cell]) -> list[Cell]:
    """Required before optional, each part from cheap to expensive."""
    return sorted(cells, key=lambda cell: (not cell.required, cell.setup_ms + cell.round_ms))
