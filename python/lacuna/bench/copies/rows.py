"""What `lacuna bench copy` measures, and what it comes to: rows of every contender, and a summary of ratios."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from lacuna import clock
from lacuna.bench.copies.client import CopyBench
from lacuna.medians import geomean
from lacuna.mpi.installations import Peer, PeerError
from lacuna.worker.client import WorkerError
from lacuna.worker.json_lines import RowError

OPERATIONS = ("pack", "unpack", "transpack")
CACHES = ("warm", "cold")

FEWEST_BYTES = 1024
"""Rows of fewer bytes are judged in nanoseconds: the clock and a call are a good part of them."""

LINE = 64


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

    @property
    def best_mpi(self) -> Against | None:
        return max(self.mpi, key=lambda m: m.ratio, default=None)

    @property
    def long_blocks(self) -> bool:
        return self.bytes >= LINE * self.blocks

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
class Copies:
    """A run."""

    lacuna_version: str
    created: str
    command: str
    cpu: str
    kernel: str
    instruction_set: str
    compiler: str
    mpi: dict[str, str] = field(default_factory=dict)
    """Name to library version, of those that were measured."""
    rows: list[CopyRow] = field(default_factory=list)
    equal_typemaps: list[Special] = field(default_factory=list)
    fragments: list[Special] = field(default_factory=list)
    calls: dict[str, float] = field(default_factory=dict)
    """Nanoseconds."""
    left_out: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    interrupted: bool = False

    def to_json(self) -> str:
        return json.dumps({"summary": self.summary(), **asdict(self)}, indent=1) + "\n"

    def summary(self) -> dict[str, Any]:
        """Geometric means of ratios (Lacuna's time over theirs), and the largest lower end of a ratio's interval, of
        rows of 1 KB and more. Values that were not measured are missing."""
        judged = [r for r in self.rows if r.judged]
        packed = {operation: [r for r in judged if r.operation == operation] for operation in OPERATIONS}
        both = packed["pack"] + packed["unpack"]
        found: dict[str, Any] = {}
        for operation in ("pack", "unpack"):
            found |= _figures(f"{operation}_vs_hand", [r.hand for r in packed[operation]])
            for cache in CACHES:
                own = [r.hand for r in packed[operation] if r.cache == cache]
                found |= _figures(f"{operation}_{cache}_vs_hand", own)
        found |= _figures("vs_best_mpi", [best for r in both if (best := r.best_mpi)])
        for name in self.mpi:
            found |= _figures(f"vs_{name}", [m for r in both for m in r.mpi if m.name == name])
        found |= _figures("transpack_vs_pack_unpack", [r.pack_unpack for r in packed["transpack"] if r.pack_unpack])
        threaded = [r.two_threads for r in both if r.two_threads]
        if threaded:
            found["two_threads_speedup_geomean"] = geomean([t.ratio for t in threaded])
        found |= _figures("transpack_vs_hand_pack_unpack", [r.hand for r in packed["transpack"]])
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
        small = [r.lacuna_ns - r.hand.ns for r in self.rows if not r.judged and r.cache == "warm"]
        if small:
            found["small_rows_worst_ns_behind_hand"] = max(small)
        return found | {f"{name}_ns": ns for name, ns in self.calls.items()}


def _figures(name: str, found: Sequence[Against]) -> dict[str, float]:
    if not found:
        return {}
    return {
        f"{name}_geomean": geomean([a.ratio for a in found]),
        f"{name}_worst": max(a.low for a in found),
        f"{name}_worst_median": max(a.ratio for a in found),
    }


def _apart(way: Against) -> float:
    """How far two ways are apart at least, as a factor."""
    return max(way.low, 1 / way.high, 1.0)


# --- the run ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Plan:
    """What to measure: cases by their index, and how long."""

    cases: Sequence[int]
    milliseconds: float
    deadline: float


def planned(hello: dict[str, Any], *, quick: bool, pattern: str = "") -> list[int]:
    """The cases that the bench offers, all of them or a sixth of them spread over all kinds."""
    names = [case["name"] for case in hello["cases"]]
    chosen = [i for i, name in enumerate(names) if pattern.lower() in name.lower()]
    if not quick or pattern:
        return chosen
    seen: dict[str, int] = {}
    kept = []
    for i in chosen:
        kind = hello["cases"][i]["kind"]
        seen[kind] = seen.get(kind, 0) + 1
        if seen[kind] % 6 == 1:
            kept.append(i)
    return kept


def measure(
    result: Copies,
    bench: CopyBench,
    peers: Sequence[Peer],
    plan: Plan,
    silence: float,
    advance: Callable[[int, int], None],
) -> None:
    """Fills the result. Rows that do not fit the time are listed; a wrong byte is an error and the run goes on."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="lacuna-")))
        rivals = dict(_rivals(result, stack, peers, folder, silence))
        cells = [(case, op, cache) for case in plan.cases for op in OPERATIONS for cache in CACHES]
        for done, (case, operation, cache) in enumerate(cells):
            advance(done, len(cells))
            name = f"{bench.hello['cases'][case]['name']}, {operation}, {cache}"
            if clock.now() > plan.deadline:
                result.left_out.append(name)
                continue
            ask = {"measure": case, "operation": operation, "cache": cache, "milliseconds": plan.milliseconds}
            try:
                row = _row(bench.ask(**ask))
            except RowError as e:
                result.errors.append(str(e))
                continue
            for peer, other in rivals.items():
                try:
                    row.mpi.append(_against(other.ask(**ask)["contenders"][1], peer))
                except RowError as e:
                    result.errors.append(f"{peer}: {name}: {e}")
            result.rows.append(row)
        advance(len(cells), len(cells))
        _specials(result, bench, plan)


def _rivals(
    result: Copies, stack: ExitStack, peers: Sequence[Peer], folder: Path, silence: float
) -> Iterator[tuple[str, CopyBench]]:
    for peer in peers:
        try:
            shim = peer.shim(folder)
            other = stack.enter_context(CopyBench(silence, shim, peer.environment()))
        except (PeerError, WorkerError) as e:
            result.errors.append(f"{peer.name} could not be measured: {e}")
            continue
        result.mpi[peer.name] = str(other.hello["mpi"])
        yield peer.name, other


def _specials(result: Copies, bench: CopyBench, plan: Plan) -> None:
    if clock.now() > plan.deadline:
        result.left_out.append("equal typemaps, fragments and calls")
        return
    pace = {"milliseconds": 3 * plan.milliseconds}
    try:
        for i, _ in enumerate(bench.hello["equivalents"]):
            for operation in ("pack", "unpack"):
                result.equal_typemaps.append(_special(bench.ask(equivalent=i, operation=operation, **pace), first=1))
        for case in plan.cases[:: max(1, len(plan.cases) // 12)]:
            for operation in ("pack", "unpack"):
                result.fragments.append(_special(bench.ask(fragments=case, operation=operation, **pace), first=1))
        for contender in bench.ask(calls=True, **pace)["contenders"]:
            result.calls[str(contender["name"]).replace(" ", "_")] = float(contender["ns"])
    except RowError as e:
        result.errors.append(str(e))


def _against(contender: dict[str, Any], name: str | None = None) -> Against:
    return Against(
        name or str(contender["name"]),
        float(contender["ns"]),
        float(contender["ratio"]),
        float(contender["low"]),
        float(contender["high"]),
    )


def _special(row: dict[str, Any], first: int) -> Special:
    return Special(str(row["case"]), str(row["operation"]), [_against(c) for c in row["contenders"][first:]])


def _row(row: dict[str, Any]) -> CopyRow:
    others: dict[str, Against] = {}
    for contender in row["contenders"][1:]:
        one = _against(contender)
        if one.name not in others or one.ratio > others[one.name].ratio:  # the fastest of several loops
            others[one.name] = one
    hand = max((others[name] for name in others if name.startswith("hand")), key=lambda a: a.ratio)
    return CopyRow(
        group=str(row["group"]),
        case=str(row["case"]),
        kind=str(row["kind"]),
        operation=str(row["operation"]),
        cache=str(row["cache"]),
        bytes=int(row["bytes"]),
        blocks=int(row["blocks"]),
        lines=int(row["lines"]),
        rounds=int(row["rounds"]),
        lacuna_ns=float(row["contenders"][0]["ns"]),
        hand=hand,
        memcpy=others["memcpy"],
        limit=others["limit"],
        pack_unpack=others.get("pack_unpack"),
        two_threads=others.get("lacuna_2_threads"),
    )
