"""What `lacuna bench copy` measures, and what it comes to: rows of every contender, and a summary of ratios."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

from lacuna.bench.copies.figures import OPERATIONS, compared, family_figures, ratio_figures
from lacuna.bench.result import BenchResult
from lacuna.medians import geomean
from lacuna.worker.protocol import read

CACHES = ("warm", "cold")

FEWEST_BYTES = 1024
"""Rows of fewer bytes are judged in nanoseconds: the clock and a call are a good part of them."""

LINE = 64

DRAWN = "drawn"
"""The group of the rows whose layouts come from a seed; they have figures of their own."""


@dataclass(frozen=True)
class Against:
    """Lacuna against another: the other's time, and Lacuna's time over it within rounds with a 95 % interval."""

    name: str
    ns: float
    ratio: float
    low: float
    high: float


@dataclass
class CopyRow:
    """One layout, operation and cache state. Times are medians in nanoseconds."""

    group: str
    case: str
    kind: str
    operation: str
    cache: str
    bytes: int
    blocks: int
    lines: int
    """Cache lines of the scattered side that it touches (of the source, for transpack)."""
    rounds: int
    lacuna_ns: float
    hand: Against
    """The faster of the two loops by hand."""
    memcpy: Against
    """As many contiguous bytes."""
    limit: Against
    """The best of the loops that touch the same lines once."""
    mpi: list[Against] = field(default_factory=list)
    pack_unpack: Against | None = None
    """transpack: Lacuna's pack and unpack through a buffer."""
    two_threads: Against | None = None
    """Lacuna with two threads, from 1 MiB on."""
    element: int = 0
    """Of a layout that was drawn: bytes of an element; 0 where there are several sizes."""
    dense_side: Against | None = None
    """transpack to or from memory without gaps: Lacuna's pack or unpack of the other side."""
    numpy: Against | None = None
    torch: Against | None = None
    """Called from Python, as Lacuna is there."""

    @property
    def best_mpi(self) -> Against | None:
        return max(self.mpi, key=lambda m: m.ratio, default=None)

    @property
    def long_blocks(self) -> bool:
        return self.bytes >= LINE * self.blocks

    @property
    def is_drawn(self) -> bool:
        return self.group == DRAWN

    @property
    def judged(self) -> bool:
        return self.bytes >= FEWEST_BYTES


@dataclass
class Special:
    """Several ways to the same bytes; ratios are the first one's time over theirs."""

    case: str
    operation: str
    ways: list[Against]


@dataclass
class Copies(BenchResult):
    """A run."""

    rows: list[CopyRow] = field(default_factory=list)
    equal_typemaps: list[Special] = field(default_factory=list)
    fragments: list[Special] = field(default_factory=list)
    calls: dict[str, float] = field(default_factory=dict)
    """Nanoseconds."""

    seed: int = 0
    arrays: dict[str, str] = field(default_factory=dict)
    """NumPy, and torch where it is installed: their versions."""

    schema: ClassVar[int] = 3
    """1 had `cpu` and `kernel` instead of `machine`, and of `mpis` names and versions only, as `mpi`. 2 had no layouts
    from a seed."""

    @property
    def is_empty(self) -> bool:
        return not self.machine

    def summary(self) -> dict[str, Any]:
        """Geometric means of ratios (Lacuna's time over theirs), and the largest lower end of a ratio's interval, of
        rows of 1 KB and more. Values that were not measured are missing. Rows from a seed are judged by family."""
        judged = [r for r in self.rows if r.judged and not r.is_drawn]
        packed = {operation: [r for r in judged if r.operation == operation] for operation in OPERATIONS}
        both = packed["pack"] + packed["unpack"]
        found: dict[str, Any] = {}
        for operation in ("pack", "unpack"):
            found |= ratio_figures(f"{operation}_vs_hand", [r.hand for r in packed[operation]])
            for cache in CACHES:
                own = [r.hand for r in packed[operation] if r.cache == cache]
                found |= ratio_figures(f"{operation}_{cache}_vs_hand", own)
        found |= ratio_figures("vs_best_mpi", [best for r in both if (best := r.best_mpi)])
        for mpi in self.mpis:
            found |= ratio_figures(f"vs_{mpi.name}", [m for r in both for m in r.mpi if m.name == mpi.name])
        found |= ratio_figures("transpack_vs_pack_unpack", compared(packed["transpack"], "pack_unpack"))
        threaded = [r.two_threads for r in both if r.two_threads]
        if threaded:
            found["two_threads_speedup_geomean"] = geomean([t.ratio for t in threaded])
        found |= ratio_figures("transpack_vs_hand_pack_unpack", [r.hand for r in packed["transpack"]])
        shares = [1 / r.limit.ratio for r in both if r.long_blocks]
        if shares:
            found["limit_share_64_geomean"] = geomean([min(1.0, s) for s in shares])
            found["limit_share_64_worst"] = min(shares)
            found["limit_share_64_rows_of_85_percent"] = sum(s >= 0.85 for s in shares) / len(shares)
        if self.equal_typemaps:
            found["equal_typemaps_worst"] = max(_apart(w) for s in self.equal_typemaps for w in s.ways)
        if self.fragments:
            found["random_fragments_worst"] = max(w.low for s in self.fragments for w in s.ways)
            found["random_fragments_geomean"] = geomean([w.ratio for s in self.fragments for w in s.ways])
        small = [r.lacuna_ns - r.hand.ns for r in self.rows if not r.judged and not r.is_drawn and r.cache == "warm"]
        if small:
            found["small_rows_worst_ns_behind_hand"] = max(small)
        found |= family_figures([r for r in self.rows if r.judged and r.is_drawn])
        return found | {f"{name}_ns": ns for name, ns in self.calls.items()}


def _apart(way: Against) -> float:
    """How far two ways are apart at least, as a factor."""
    return max(way.low, 1 / way.high, 1.0)


# --- from answers to rows ---------------------------------------------------------------------------------------------


def against(contender: dict[str, Any], name: str | None = None) -> Against:
    return read(Against, {**contender, "name": name or contender["name"]}, "contender")


def special_from(row: dict[str, Any]) -> Special:
    return Special(str(row["case"]), str(row["operation"]), [against(c) for c in row["contenders"][1:]])


def row_from(row: dict[str, Any], **more: Any) -> CopyRow:
    """`more`: members that the bench does not know."""
    others: dict[str, Against] = {}
    for contender in row["contenders"][1:]:
        one = against(contender)
        if one.name not in others or one.ratio > others[one.name].ratio:  # the fastest of several loops
            others[one.name] = one
    hand = max((others[name] for name in others if name.startswith("hand")), key=lambda a: a.ratio)
    said = {**row, "lacuna_ns": row["contenders"][0]["ns"], "hand": hand, **more}
    others |= {"two_threads": others["lacuna_2_threads"]} if "lacuna_2_threads" in others else {}
    return read(CopyRow, {**said, **others}, "row")
