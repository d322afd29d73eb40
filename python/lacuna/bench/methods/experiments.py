"""The experiments of the papers behind Lacuna that need no more than two processes and a NIC, as cells to measure.

Each has the id under which the documents' findings are listed, its conditions, and the finding to compare with. Those
were measured on networks of 2005 to 2019; what this machine's NIC makes of them is the question.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from lacuna.guide.plan import KIB, MIB, Cell
from lacuna.guide.run_record import Run
from lacuna.units import bytes_text
from lacuna.worker.records import Shape, Subject

MB = 1_000_000
_KEY_BLOCK = 64
_WINDOW = 8 * KIB
"""The worker fills and checks so much around a block, where the gap is larger than that."""

Remote = Literal["same", "contiguous"]
Shows = Literal["latency", "bandwidth", "split"]
"""What an experiment is about: the time, payload over time, or which part of the time went into copies."""

_PAIR = ("pack", "sgrs")
_FOUR = ("pack", "sgrs", "umr_send", "umr_write")


@dataclass(frozen=True)
class Axis:
    name: str
    unit: Literal["bytes", "blocks", "points", "rows", "columns", "entries"]

    def text(self, x: int) -> str:
        return bytes_text(x) if self.unit == "bytes" else f"{x:,}"

    def words(self, x: int) -> str:
        """The same, understandable by itself."""
        return self.text(x) if self.unit == "bytes" else f"{x:,} {self.unit}"


@dataclass(frozen=True)
class Point:
    """One cell of an experiment, and where it belongs in its tables and figures."""

    x: int
    cell: Cell
    group: str = ""
    """Points of one group are drawn in one panel, if there is more than one."""
    reference: str = ""
    """Named if the cell is no part of the contest but stands beside it for comparison."""


@dataclass(frozen=True)
class Experiment:
    id: str
    title: str
    conditions: str
    finding: str
    axis: Axis
    points: tuple[Point, ...]
    shows: Shows = "latency"
    is_race: bool = True
    """Whether the methods do the same thing, so that one of them wins."""

    @property
    def methods(self) -> tuple[str, ...]:
        return self.points[0].cell.methods

    @property
    def groups(self) -> list[str]:
        return list(dict.fromkeys(p.group for p in self.points))

    def to_json(self) -> dict[str, object]:
        return {
            "id": self.id,
            "title": self.title,
            "conditions": self.conditions,
            "finding": self.finding,
            "x": self.axis.name,
            "x_unit": self.axis.unit,
        }


@dataclass
class MethodRun(Run):
    """A run of experiments; bench.json."""

    experiments: list[Experiment] = field(default_factory=list)

    def head(self) -> dict[str, object]:
        return {**super().head(), "experiments": [e.to_json() for e in self.experiments]}


def _powers(first: int, last: int) -> list[int]:
    """The powers of two from one to the other, both included."""
    return [1 << k for k in range(first.bit_length() - 1, last.bit_length())]


def _size_text(value: int) -> str:
    """As part of a layout's name, where gaps of the documents are in units of 1000."""
    return f"{value // MB}MB" if value and value % MB == 0 else bytes_text(value).replace(" ", "")


def _blocks(
    experiment: str,
    methods: tuple[str, ...],
    block: int,
    count: int,
    gap: int,
    *,
    shape: Shape = "symmetric",
    remote: Remote = "same",
    layout: str | None = None,
) -> Cell:
    """A cell of equal blocks at equal distances. The receiver's, where the sender's differ."""
    name = layout or f"blocks_gap{_size_text(gap)}"
    if remote == "contiguous":
        name += "_to_contiguous"
    sender_blocks = count * (4 if shape == "sender_finer" else 1)
    sizes = {"block_bytes": block, "block_count": count, "gap_bytes": gap}
    return Cell(
        Subject(experiment, name, block, count, block * count, shape, "warm"),
        {"kind": "blocks", **sizes, "shape": shape, "remote": remote},
        block * count + min(gap, _WINDOW) * sender_blocks,
        required=True,
        methods=methods,
    )


def _contiguous(experiment: str, payload: int) -> Cell:
    """One block: what a plain message of that size costs."""
    return _blocks(experiment, ("pack",), payload, 1, _KEY_BLOCK, layout="contiguous")


def _stencil(experiment: str, methods: tuple[str, ...], points: int, point_bytes: int) -> Cell:
    count, payload = (points + 1) // 2, points * point_bytes
    layout = f"stencil_{points}x{point_bytes}B"
    return Cell(
        Subject(experiment, layout, payload // count, count, payload, "symmetric", "warm"),
        {"kind": "stencil", "points": points, "point_bytes": point_bytes},
        payload + _WINDOW * count,
        required=True,
        methods=methods,
    )


def _keys(experiment: str, entries: int) -> Cell:
    payload = entries * _KEY_BLOCK
    return Cell(
        Subject(experiment, f"list_{_KEY_BLOCK}B", _KEY_BLOCK, entries, payload, "symmetric", "warm"),
        {"entries": entries},
        payload,
        required=True,
        methods=("create_key", "bind_key", "invalidate_key"),
        verb="keys",
    )


def _sweep(
    experiment: str,
    methods: tuple[str, ...],
    sizes: Iterable[int],
    count: int,
    gap: int,
    *,
    shape: Shape = "symmetric",
    remote: Remote = "same",
) -> tuple[Point, ...]:
    """One count of blocks of many sizes."""
    return tuple(Point(b, _blocks(experiment, methods, b, count, gap, shape=shape, remote=remote)) for b in sizes)


def _counts(experiment: str, methods: tuple[str, ...], blocks: Iterable[int]) -> tuple[Point, ...]:
    """Many counts of blocks of a few sizes, with gaps of twice the block."""
    return tuple(
        Point(n, _blocks(experiment, methods, b, n, 2 * b, layout="blocks_gap2x"), group=f"blocks of {bytes_text(b)}")
        for b in blocks
        for n in _powers(16, 512)
    )


_BLOCK = Axis("block size", "bytes")
_COUNT = Axis("number of blocks", "blocks")

_MATRIX_ROW = 4096 * 4 + 64
"""Bytes from one row of the matrix of S2 to the next."""


EXPERIMENTS = (
    Experiment(
        "F17a",
        "pack against sgrs: small blocks far apart",
        "30 blocks of 2 B to 1 KiB, 45 MB between two of them, the same on both sides. The documents' gap was their "
        "last-level cache; here the same blocks are used again and again, and stay in the caches",
        "pack is faster below 128 B, sgrs from there on",
        _BLOCK,
        _sweep("F17a", _PAIR, _powers(2, KIB), 30, 45 * MB),
    ),
    Experiment(
        "F17b",
        "pack against sgrs: large blocks far apart",
        "30 blocks of 2 KiB to 1 MiB, 45 MB between two of them, the same on both sides",
        "sgrs is faster throughout; at 1 MiB pack takes 3.2 times as long",
        _BLOCK,
        _sweep("F17b", _PAIR, _powers(2 * KIB, MIB), 30, 45 * MB),
    ),
    Experiment(
        "F18",
        "pack against sgrs: bandwidth",
        "30 blocks of 2 KiB to 1 MiB, 45 MB between two of them, the same on both sides; one transfer at a time",
        "at 1 MiB pack reaches a third of the bandwidth of sgrs",
        _BLOCK,
        _sweep("F18", _PAIR, _powers(2 * KIB, MIB), 30, 45 * MB),
        shows="bandwidth",
    ),
    Experiment(
        "F19",
        "where the time goes: copies and the rest",
        "30 blocks of 2 B to 1 KiB, 45 MB between two of them, the same on both sides; beside them pack of one "
        "contiguous block of the same payload, which is a plain message",
        "the time of the copies is flat up to 128 B and doubles with the size from 256 B on; what sgrs takes exceeds a "
        "plain message only for small blocks",
        _BLOCK,
        _sweep("F19", _PAIR, _powers(2, KIB), 30, 45 * MB)
        + tuple(Point(b, _contiguous("F19", 30 * b), reference="pack of one block") for b in _powers(2, KIB)),
        shows="split",
    ),
    Experiment(
        "F20",
        "what a key for many blocks costs",
        f"one key over a list of 4 to 32,768 blocks of {_KEY_BLOCK} B; verified by a transfer through it",
        "creating a key is expensive, binding it cheap; both are nearly flat up to 2,048 entries and then grow, to "
        "some 3,500 µs",
        Axis("entries of the key", "entries"),
        tuple(Point(n, _keys("F20", n)) for n in (4, 16, 64, 256, *_powers(1024, 32768))),
        is_race=False,
    ),
    Experiment(
        "F21",
        "keys for many blocks, against pack and sgrs",
        "16 blocks of 4 B to 4 KiB, 45 MB between two of them, the same on both sides",
        "pack is best below 128 B, umr_write above, whose receiver has nothing to do; sgrs and umr_send are equal",
        _BLOCK,
        _sweep("F21", _FOUR, _powers(4, 4 * KIB), 16, 45 * MB),
    ),
    Experiment(
        "F22",
        "keys for many blocks; the sender's are finer",
        "16 blocks of 4 B to 4 KiB at the receiver, 64 of a quarter of the size at the sender, 45 MB between two",
        "as with equal blocks; umr_write gains 3 to 5 µs",
        _BLOCK,
        _sweep("F22", _FOUR, _powers(4, 4 * KIB), 16, 45 * MB, shape="sender_finer"),
    ),
    Experiment(
        "F23",
        "keys for more and more blocks",
        "16 to 512 blocks of 1 KiB and of 64 KiB, with gaps of twice the block, the same on both sides; keys are lists "
        "of all blocks, unless --strided-keys is given",
        "with few blocks all are close; with many the umr methods collapse, at 1 KiB to less than pack",
        _COUNT,
        _counts("F23", (*_FOUR, "umr_chunked", "pack_pipelined"), (KIB, 64 * KIB)),
    ),
    Experiment(
        "F24",
        "a stencil in two dimensions",
        "the cross of a stencil of 5 to 57 points, so 3 to 29 blocks, in an array with rows of 1000 points of 4, 8, 64 "
        "and 512 B (the documents do not give the size)",
        "umr_write is best below 21 points, pack above",
        Axis("points of the stencil", "points"),
        tuple(
            Point(n, _stencil("F24", _FOUR, n, size), group=f"points of {size} B")
            for size in (4, 8, 64, 512)
            for n in (5, 9, 13, 21, 29, 37, 45, 57)
        ),
    ),
    Experiment(
        "F25",
        "a face of an array in three dimensions",
        "the z face of n × n × n doubles as in NAS_MG, n from 4 to 128: n - 2 blocks of n - 2 doubles, 16 B apart",
        "umr_write is best below 32 × 32, sgrs above",
        Axis("rows of the array", "rows"),
        tuple(
            Point(n, _blocks("F25", _FOUR, (n - 2) * 8, n - 2, 16, layout=f"face_{n}x{n}"))
            for n in (4, 8, 16, 32, 64, 128)
        ),
    ),
    Experiment(
        "R5.2.1",
        "one-sided writes into one buffer",
        "30 blocks of 2 B to 1 MiB, 20 MB between two of them, to one contiguous buffer; every notification. The "
        "documents show the bandwidth too: it is in the file",
        "pack_write is best up to 128 B, gather_write from there to 1 KiB; the three that do not copy meet from 8 KiB "
        "on, and at 32 KiB take half the time of pack_write",
        _BLOCK,
        _sweep(
            "R5.2.1",
            ("pack_write", "gather_write", "linked_write", "multi_write"),
            _powers(2, MIB),
            30,
            20 * MB,
            remote="contiguous",
        ),
    ),
    Experiment(
        "R5.3.1",
        "keys for many blocks, at a smaller gap",
        "16 blocks of 128 B to 1 MiB, 16 MB between two of them, the same on both sides",
        "the umr methods are poor at 128 B, then equal to sgrs, and all are better than pack",
        _BLOCK,
        _sweep("R5.3.1", _FOUR, _powers(128, MIB), 16, 16 * MB),
    ),
    Experiment(
        "R5.3.2",
        "keys for many blocks; the sender's are coarser",
        "16 blocks of 128 B to 64 KiB at the receiver, 8 of twice the size at the sender, 16 MB between two of them",
        "the umr methods are ahead of pack from 512 B at the sender on; umr_write is 1 to 5 µs ahead of umr_send",
        _BLOCK,
        _sweep("R5.3.2", _FOUR, _powers(128, 64 * KIB), 16, 16 * MB, shape="sender_coarser"),
    ),
    Experiment(
        "R5.3.3",
        "block size by number of blocks",
        "16 to 512 blocks of 256 B, 4 KiB and 64 KiB, with gaps of twice the block, the same on both sides; keys are "
        "lists of all blocks, unless --strided-keys is given",
        "umr_write is ahead of sgrs up to some 40 to 70 blocks and falls behind with more; at 256 B pack and sgrs are "
        "equal, and sgrs is ahead with larger blocks",
        _COUNT,
        _counts("R5.3.3", _FOUR, (256, 4 * KIB, 64 * KIB)),
    ),
    Experiment(
        "S2",
        "columns of a matrix: sgrs against multi_write",
        "1 to 4096 columns of a matrix of 128 rows and 4096 columns of 4-byte integers, so 128 blocks; one transfer at "
        "a time",
        "sgrs has up to 62 % less latency than multi_write and up to five times its bandwidth",
        Axis("columns", "columns"),
        tuple(
            Point(
                n,
                _blocks(
                    "S2", ("sgrs", "multi_write", "pack"), 4 * n, 128, _MATRIX_ROW - 4 * n, layout="matrix_128x4096"
                ),
            )
            for n in _powers(1, 4096)
        ),
    ),
)
"""In the order of the documents."""


_THIN = 3


def thinned(experiments: Sequence[Experiment]) -> list[Experiment]:
    """A third of the sizes of each experiment, evenly over the range and with the largest."""

    def thin(experiment: Experiment) -> Experiment:
        kept = set(sorted({p.x for p in experiment.points}, reverse=True)[::_THIN])
        return replace(experiment, points=tuple(p for p in experiment.points if p.x in kept))

    return [thin(experiment) for experiment in experiments]


def cells(experiments: Sequence[Experiment]) -> list[Cell]:
    """What to measure. Required is what a thinned run would measure; the rest makes it finer."""
    required = {p.cell.subject for e in thinned(experiments) for p in e.points}
    return [replace(p.cell, required=p.cell.subject in required) for e in experiments for p in e.points]
