"""Which cells the guide measures, and in which order.

A plan lists first the cells that the guide promises (`required`), then those that make it finer, each part from cheap
to expensive. When time runs short the end of the list is dropped, so what is kept is always a whole guide.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from lacuna.schema import SHAPES, Cache, Family, Shape, Subject
from lacuna.units import bytes_text

KIB = 1 << 10
MIB = 1 << 20

QUICK_BLOCKS = (16, 64, 256, 1 * KIB, 4 * KIB, 16 * KIB)
QUICK_COUNTS = (4, 16, 64, 256)
QUICK_SHAPES: tuple[Shape, ...] = ("symmetric", "sender_finer")
QUICK_EXTRA_BLOCK = 64 * KIB
QUICK_MESSAGE_CAP = 4 * MIB

GRID_LAYOUT = "vector_gap2x"
"""Equal blocks at equal distances, the gap between them twice the block: the seeds' layout."""

FULL_BLOCKS = tuple(4**k for k in range(2, 11))  # 16 B to 1 MiB
FULL_COUNTS = tuple(4**k for k in range(7))  # 1 to 4096
FULL_MESSAGE_CAP = 16 * MIB
COLD_BLOCKS = (16, 256, 4 * KIB, 64 * KIB)
COLD_COUNTS = (16, 256)

QUICK_PAYLOAD = 64 * KIB
QUICK_SPAN = 8 * MIB
"""The quick plan takes of each DDTBench family the largest size within these two, else the smallest: large enough to
be no latency test, small enough that filling and checking its arrays does not eat the time."""


@dataclass(frozen=True)
class Cell:
    """One layout pair in one cache state; the worker measures all methods on it, interleaved."""

    subject: Subject
    spec: dict[str, object]
    """The layout in the worker's words."""
    span_bytes: int
    """How much memory one side's arrays cover."""
    required: bool

    @property
    def label(self) -> str:
        s = self.subject
        if s.experiment == "ddtbench":
            return f"{s.layout}, {s.cache}"
        return f"{bytes_text(s.block_bytes)} × {s.block_count}, {s.shape}, {s.cache}"

    @property
    def transfer_ms(self) -> float:
        """A guess, before anything is measured, of one transfer by a decent method: 2 us, 4 GB/s, and 30 ns a block
        (between the 5 ns of a copy in cache and the 500 ns of an iovec). It only shares out the time."""
        s = self.subject
        return (4.0 if s.cache == "cold" else 1.0) * (2e-3 + s.payload_bytes / 4e6 + s.block_count * 3e-5)

    @property
    def round_ms(self) -> float:
        """The same for one transfer by every combination of method, path and notification, which are about 25."""
        return 25 * self.transfer_ms

    @property
    def setup_ms(self) -> float:
        """The same for what comes before measuring: filling the arrays and checking one transfer by every method."""
        return 2.0 + 2 * self.round_ms + self.span_bytes / 1e5


def grid_cell(block_bytes: int, block_count: int, shape: Shape, cache: Cache, *, required: bool) -> Cell:
    return Cell(
        Subject("grid", GRID_LAYOUT, block_bytes, block_count, block_bytes * block_count, shape, cache),
        {"kind": "grid", "block_bytes": block_bytes, "block_count": block_count, "shape": shape},
        3 * block_bytes * block_count,
        required,
    )


def ddtbench_cell(family: Family, index: int, *, required: bool) -> Cell:
    size = family.sizes[index]
    average = max(1, round(size.payload_bytes / max(1, size.blocks)))
    return Cell(
        Subject(
            "ddtbench", f"{family.name} {size.dims}", average, size.blocks, size.payload_bytes, "symmetric", "warm"
        ),
        {"kind": "ddtbench", "name": family.name, "size": index},
        size.span_bytes,
        required,
    )


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
    return _ordered(cells)


def full(corpus: Sequence[Family]) -> list[Cell]:
    """Three shapes warm, a part of the symmetric ones cold, and every size of each DDTBench family that fits."""
    cells = [
        grid_cell(b, n, s, "warm", required=b in QUICK_BLOCKS and n in QUICK_COUNTS)
        for s in SHAPES
        for b in FULL_BLOCKS
        for n in FULL_COUNTS
        if b * n <= FULL_MESSAGE_CAP and not (s == "sender_coarser" and n < 2)
    ]
    cells += [grid_cell(b, n, "symmetric", "cold", required=b < 64 * KIB) for b in COLD_BLOCKS for n in COLD_COUNTS]
    cells += [
        ddtbench_cell(family, i, required=i == middle_size(family))
        for family in corpus
        for i in range(len(family.sizes))
    ]
    return _ordered(cells)


def _ordered(cells: Iterable[Cell]) -> list[Cell]:
    return sorted(cells, key=lambda cell: (not cell.required, cell.setup_ms + cell.round_ms))
