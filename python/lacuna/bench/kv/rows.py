"""What `lacuna bench kv` finds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from math import prod, sqrt
from typing import Any

from lacuna.bench.result import BenchResult, geomean_of, worst_of
from lacuna.guide.contests import is_told, told_methods
from lacuna.split_half import fastest, judged, regret
from lacuna.worker.protocol import written
from lacuna.worker.records import BY_HAND, Row, Way

DESCRIPTOR_BYTES = 32
"""Of a descriptor of NIXL: 44 MB for 1 387 520."""
RULES = {"direct": ("linked_write", "multi_write"), "packed": ("pack", "pack_write")}
"""What others do always, by the methods of Lacuna that do it: a write for each piece, packing."""


@dataclass(frozen=True)
class Described:
    """A case in full. Times in microseconds, medians."""

    case: str
    pieces: int
    piece_bytes: int
    wire_bytes: int
    """Of both layouts, as they are told to a peer."""
    list_bytes: int
    """Of a list of descriptors of one side."""
    plan_us: float
    """Both layouts from the block tables."""
    told_us: float
    """Both encoded, and decoded."""


@dataclass(frozen=True)
class Moved:
    """One way on one case."""

    way: str
    us: float
    """By the half of the rounds that did not pick it."""
    posting_us: float
    """The sender's CPU, without what it copied."""


@dataclass(frozen=True)
class KvRow:
    """A part of a case on one NIC."""

    case: str
    nic: str
    pieces: int
    bytes: int
    chosen: Moved
    direct: Moved
    packed: Moved
    loss: float
    """The choice over the better of the two rules, less 1: below 0, the choice is faster than both."""
    loss_low: float
    """The least that it loses, by the intervals of both medians."""


def row_of(case: str, nic: str, pieces: int, chosen: Way, rows: Sequence[Row]) -> KvRow:
    """Raises ValueError if the chosen way, or all of a rule, was not measured."""
    told = told_methods(rows)
    own = {row.way: row for row in rows if row.method not in BY_HAND and is_told(row, told)}
    halves = {way: row.half_us or (row.latency_us, row.latency_us) for way, row in own.items()}
    if chosen not in own:
        raise ValueError(f"{case}: {'/'.join(chosen)} was chosen, and is not among what was measured")

    def moved(picked: tuple[Way, Way]) -> Moved:
        row = own[picked[0]]
        return Moved("/".join(picked[0]), sqrt(prod(judged(picked, halves))), row.cpu_send_us - row.copy_send_us)

    found = {}
    for rule, methods in RULES.items():
        ways = [way for way in own if way[0] in methods]
        if not ways:
            raise ValueError(f"{case}: none of {', '.join(methods)} was measured")
        found[rule] = fastest(ways, halves)
    better = fastest([way for picked in found.values() for way in picked], halves)
    loss = regret((chosen, chosen), better, halves) - 1
    least = (own[chosen].ci_low_us or own[chosen].latency_us) / max(_most(own[way]) for way in better) - 1
    sent = rows[0].subject.payload_bytes
    three = moved((chosen, chosen)), moved(found["direct"]), moved(found["packed"])
    return KvRow(case, nic, pieces, sent, *three, loss, min(loss, least))


def _most(row: Row) -> float:
    return row.ci_high_us or row.latency_us


@dataclass
class KvRun(BenchResult):
    """A run."""

    described: list[Described] = field(default_factory=list)
    rows: list[KvRow] = field(default_factory=list)

    @property
    def is_empty(self) -> bool:
        return not self.described

    def summary(self) -> dict[str, Any]:
        gains = {rule: [getattr(row, rule).us / row.chosen.us for row in self.rows] for rule in RULES}
        return {
            **worst_of("wire_bytes_most", self.described, lambda d: d.wire_bytes),
            **worst_of("plan_us_most", self.described, lambda d: d.plan_us),
            **worst_of("loss_worst", self.rows, lambda row: row.loss),
            **worst_of("loss_low_worst", self.rows, lambda row: row.loss_low),
            **geomean_of("direct_over_chosen", gains["direct"]),
            **geomean_of("packed_over_chosen", gains["packed"]),
        }

    def to_json(self) -> str:
        own = vars(self) | {"described": [asdict(d) for d in self.described], "rows": [asdict(r) for r in self.rows]}
        return written({"schema": self.schema, "summary": self.summary(), **own}) + "\n"
