"""What `lacuna bench messages` measures, and what it comes to: rows of every contender, and a summary of ratios."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from lacuna.medians import geomean
from lacuna.split_half import fastest as fastest_by_half
from lacuna.split_half import judged, regret

SCHEMA = 1

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


@dataclass(frozen=True)
class Mpi:
    """One that was measured."""

    name: str
    version: str
    transport: str


@dataclass
class Messages:
    """A run."""

    lacuna_version: str
    created: str
    command: str
    machine: dict[str, Any] = field(default_factory=dict)
    instruction_set: str = ""
    compiler: str = ""
    mpis: list[Mpi] = field(default_factory=list)
    rows: list[MessageRow] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    interrupted: bool = False

    def to_json(self) -> str:
        return json.dumps({"schema": SCHEMA, "summary": self.summary(), **asdict(self)}, indent=1) + "\n"

    def summary(self) -> dict[str, Any]:
        """The figures against the fastest of all MPIs, and under `by_mpi` those against each. What was not measured is
        missing."""
        by_mpi = {mpi.name: _figures([r for r in self.rows if r.mpi == mpi.name], "mpi") for mpi in self.mpis}
        return _figures(self.rows, "best_mpi") | {"by_mpi": by_mpi}

    def rows_of(self, suite: str, competitor: str) -> list[MessageRow]:
        return [r for r in self.rows if r.suite == suite and r.competitor == competitor]


def fastest(rows: Iterable[MessageRow]) -> list[MessageRow]:
    """Of each case the row of the MPI with which it takes the least time. Its ratio was measured in that MPI's job."""
    found: dict[tuple[str, str], MessageRow] = {}
    for row in rows:
        key = (row.suite, row.case)
        if key not in found or row.latency_us < found[key].latency_us:
            found[key] = row
    return list(found.values())


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
    if hand:
        worst = max(hand, key=lambda r: r.ratio_low)
        found |= {"ddtbench_vs_hand_worst": worst.ratio_low, "ddtbench_vs_hand_worst_case": worst.case}
    found |= _geomean("ddtbench_vs_datatype_geomean", of("ddtbench", "mpi_datatype"))
    found |= _geomean("ai_vs_hand_geomean", of("ai", "hand"))
    found |= _geomean("ai_vs_datatype_geomean", of("ai", "mpi_datatype"))
    found |= _against_forced([r for r in rows if r.competitor == "forced"])
    return found | ({"best_mpi": names} if against == "best_mpi" else {})


def _against_forced(rows: Sequence[MessageRow]) -> dict[str, Any]:
    """Of all rows of all MPIs' jobs."""
    if not rows:
        return {}
    worst = max(rows, key=lambda r: r.ratio)
    found: dict[str, Any] = _geomean("vs_forced_geomean", rows)
    return found | {"vs_forced_worst": worst.ratio, "vs_forced_worst_case": worst.case}


def _geomean(name: str, rows: Sequence[MessageRow]) -> dict[str, float]:
    if not rows:
        return {}
    return {name: geomean([r.ratio for r in rows])}


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
        row = MessageRow(
            mpi,
            str(answer["suite"]),
            str(answer["family"]),
            str(answer["case"]),
            int(answer["payload_bytes"]),
            int(answer["blocks"]),
            name,
            loop,
            float(contender["us"]),
            float(contender["low"]),
            float(contender["high"]),
            float(contender["ratio"]),
            float(contender["ratio_low"]),
            float(contender["ratio_high"]),
            int(answer["rounds"]),
        )
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


# --- what is measured -------------------------------------------------------------------------------------------------

QUICK_PAYLOAD = 1 << 20


def planned(cases: Sequence[dict[str, Any]], *, quick: bool, pattern: str = "") -> list[int]:
    """The cases by their index: contiguous ones, then one of each family, then the next of each; so that a run that is
    cut short has seen every family. Quick: of each family the largest of 1 MiB at most, and the smallest."""
    families: dict[tuple[str, str], list[int]] = {}
    for i, case in enumerate(cases):
        if pattern.lower() in f"{case['suite']} {case['name']}".lower():
            families.setdefault((case["suite"], case["family"]), []).append(i)
    chosen: list[int] = []
    later: list[list[int]] = []
    for (suite, _), members in families.items():
        if suite == "contiguous":
            chosen += members
            continue
        members.sort(key=lambda i: -int(cases[i]["payload_bytes"]))
        if quick and not pattern:
            small = [i for i in members if int(cases[i]["payload_bytes"]) <= QUICK_PAYLOAD] or members[-1:]
            members = list(dict.fromkeys([small[0], small[-1]]))
        later.append(members)
    longest = max(map(len, later), default=0)
    return chosen + [members[k] for k in range(longest) for members in later if k < len(members)]
