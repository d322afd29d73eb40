"""What `lacuna bench messages` measures, and what it comes to: rows of every contender, and a summary of ratios."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from lacuna.bench.result import BenchResult, geomean_of, worst_of
from lacuna.split_half import fastest as fastest_by_half
from lacuna.split_half import judged, regret
from lacuna.worker.grouping import grouped
from lacuna.worker.protocol import read

LARGE = 32 << 10
"""Bytes of payload from which a DDTBench row counts as large."""

CONTIGUOUS = {"latency_8B": 8, "bandwidth_1MiB": 1 << 20, "bandwidth_64MiB": 64 << 20}
"""The figures of contiguous messages, by their bytes."""

OURS = "lacuna"
_FORCED = "forced_"


@dataclass(frozen=True)
class MessageRow:
    """One contender of one case, in the job of one MPI. Times are of one message, in microseconds."""

    mpi: str
    suite: str
    """contiguous, ddtbench, ai"""
    family: str
    case: str
    payload_bytes: int
    blocks: int
    competitor: str
    """lacuna, mpi_contiguous, mpi_datatype, hand, forced"""
    loop: str
    """By hand: the faster of its loops, elements or memcpy; forced: the best way; else empty."""
    latency_us: float
    ci_low_us: float
    ci_high_us: float
    ratio: float
    """Lacuna's time over this one's, round by round in the same two processes; below 1 Lacuna is faster. Over the best
    that is forced: of medians of the rounds that did not choose it."""
    ratio_low: float
    ratio_high: float
    rounds: int


@dataclass
class Messages(BenchResult):
    """A run."""

    rows: list[MessageRow] = field(default_factory=list)

    def summary(self) -> dict[str, Any]:
        """The figures against the fastest of all MPIs, and under `by_mpi` those against each. What was not measured is
        missing."""
        by_mpi = {mpi.name: _figures([r for r in self.rows if r.mpi == mpi.name], "mpi") for mpi in self.mpis}
        return _figures(self.rows, "best_mpi") | {"by_mpi": by_mpi}

    def rows_of(self, suite: str, competitor: str) -> list[MessageRow]:
        return [r for r in self.rows if r.suite == suite and r.competitor == competitor]


def fastest(rows: Iterable[MessageRow]) -> list[MessageRow]:
    """Of each case the row of the MPI with which it takes the least time. Its ratio was measured in that MPI's job."""
    cases = grouped(rows, lambda row: (row.suite, row.case)).values()
    return [min(of_all_mpis, key=lambda row: row.latency_us) for of_all_mpis in cases]


def _figures(rows: Sequence[MessageRow], against: str) -> dict[str, Any]:
    def of(suite: str, competitor: str) -> list[MessageRow]:
        return fastest(r for r in rows if r.suite == suite and r.competitor == competitor)

    found: dict[str, Any] = {}
    names: dict[str, str] = {}
    contiguous = {r.payload_bytes: r for r in of("contiguous", "mpi_contiguous")}
    for name, size in CONTIGUOUS.items():
        if size in contiguous:
            row = contiguous[size]
            found[f"{name}_vs_{against}"] = row.ratio
            names[name] = row.mpi
    hand = of("ddtbench", "hand")
    found |= _geomean("ddtbench_large_vs_hand_geomean", [r for r in hand if r.payload_bytes >= LARGE])
    found |= _geomean("ddtbench_small_vs_hand_geomean", [r for r in hand if r.payload_bytes < LARGE])
    found |= worst_of("ddtbench_vs_hand_worst", hand, lambda r: r.ratio_low)
    found |= _geomean("ddtbench_vs_datatype_geomean", of("ddtbench", "mpi_datatype"))
    found |= _geomean("ai_vs_hand_geomean", of("ai", "hand"))
    found |= _geomean("ai_vs_datatype_geomean", of("ai", "mpi_datatype"))
    forced = [r for r in rows if r.competitor == "forced"]  # of all MPIs' jobs
    found |= _geomean("vs_forced_geomean", forced) | worst_of("vs_forced_worst", forced, lambda r: r.ratio)
    return found | ({"best_mpi": names} if against == "best_mpi" else {})


def _geomean(name: str, rows: Sequence[MessageRow]) -> dict[str, float]:
    return geomean_of(name, [r.ratio for r in rows])


def rows_from(answer: dict[str, Any], mpi: str) -> list[MessageRow]:
    """The rows of one answer of lacuna-message-bench. Of the loops by hand the fastest stays."""
    found: dict[str, MessageRow] = {}
    forced = {str(c["name"]): c for c in answer["contenders"] if str(c["name"]).startswith(_FORCED)}
    for contender in answer["contenders"]:
        name, loop = str(contender["name"]), ""
        if name in forced:
            continue
        if name.startswith("hand_"):
            name, _, loop = name.partition("_")
        times = {"latency_us": contender["us"], "ci_low_us": contender["low"], "ci_high_us": contender["high"]}
        said = {**answer, **contender, **times, "mpi": mpi, "competitor": name, "loop": loop}
        row = read(MessageRow, said, "row")
        if name not in found or row.ratio > found[name].ratio:
            found[name] = row
    rows = list(found.values())
    return [*rows, _best_forced(found[OURS], forced, answer)] if forced else rows


def _best_forced(ours: MessageRow, forced: dict[str, dict[str, Any]], answer: dict[str, Any]) -> MessageRow:
    halves = {str(c["name"]): (float(c["half_us"][0]), float(c["half_us"][1])) for c in answer["contenders"]}
    best = fastest_by_half(forced, halves)
    ratios = [a / b for a, b in zip(judged((OURS, OURS), halves), judged(best, halves), strict=True)]
    name, one = min(forced.items(), key=lambda item: float(item[1]["us"]))
    return replace(
        ours,
        competitor="forced",
        loop=name.removeprefix(_FORCED),
        latency_us=float(one["us"]),
        ci_low_us=float(one["low"]),
        ci_high_us=float(one["high"]),
        ratio=regret((OURS, OURS), best, halves),
        ratio_low=min(ratios),
        ratio_high=max(ratios),
    )
