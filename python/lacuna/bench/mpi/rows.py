"""What `lacuna bench mpi` comes to: a row of every method of DDTBench, plain and preloaded, and a summary of ratios."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from lacuna.bench.messages.rows import LARGE
from lacuna.bench.mpi.program_rows import ProgramRow
from lacuna.bench.mpi.random_types import RandomRow
from lacuna.bench.ranks.rows import RanksRow
from lacuna.bench.result import BenchResult, geomean_of, ratio_of, ratios_of, worst_of
from lacuna.medians import median_of
from lacuna.split_half import fastest, halves_of, regret
from lacuna.worker.grouping import grouped

METHODS = ("manual", "mpi_ddt", "mpi_pack_ddt", "reference")
"""DDTBench's: loops around contiguous messages, the datatype itself, MPI_Pack and MPI_Unpack around them, and as many
contiguous bytes, neither packed nor unpacked."""

RANKS_FIGURES = ("init", "alltoallw", "isend", "dissemination")
"""Of jobs of many ranks, what the summary has the worst of."""

LATENCY = "latency_8B"
COMMIT = "commit_1000_blocks"

JUDGED = "mpi_ddt"
"""The method that the library is judged by: the datatypes."""

AUTOMATIC = "automatic"

Side = bool | str
"""Whether it is preloaded; or what the preloaded library is told to do."""

Contender = tuple[Side, str]
"""And the method; manual has two, one for each loop."""


@dataclass(frozen=True)
class MpiRow:
    """One method of one case, with one MPI. Times are of one message, half a round trip, in microseconds."""

    mpi: str
    case: str
    family: str
    payload_bytes: int
    blocks: int
    method: str
    loop: str
    """manual: the faster of its loops, elements or memcpy; else empty."""
    preloaded: bool
    latency_us: float
    ci_low_us: float
    ci_high_us: float
    bandwidth_MBps: float  # noqa: N815, the unit
    """2 * payload / round trip."""
    packing_overhead: float
    """(pack + unpack) / (communication + pack + unpack): the share of the time that is not the contiguous message's in
    the same job. Below zero where no contiguous message is as fast."""
    ratio_vs_hand: float
    """Its time over that of `manual` without preload, round by round; below 1 it is faster."""
    ratio_vs_hand_low: float
    ratio_vs_hand_high: float
    ratio_vs_host: float
    """Its time over that of the same method without preload."""
    ratio_vs_host_low: float
    ratio_vs_host_high: float
    rounds: int


@dataclass(frozen=True)
class ForcedRow:
    """What the preloaded library chose for one case's datatypes, against the best of what it can be told to do."""

    mpi: str
    case: str
    family: str
    payload_bytes: int
    blocks: int
    automatic_us: float
    ways_us: dict[str, float]
    """By what it was told (bench/mpi/client.py, FORCED)."""
    ratio: float
    """The choice's time over the best one's: of medians of the rounds that did not choose it."""
    rounds: int

    @property
    def best(self) -> str:
        return min(self.ways_us, key=lambda way: self.ways_us[way])


@dataclass(frozen=True)
class Cost:
    """What a call takes, plain and preloaded; the difference is the median of those of equal calls."""

    mpi: str
    what: str
    """latency_8B: a contiguous message of 8 bytes; commit_1000_blocks: MPI_Type_commit of so many irregular ones"""
    plain_us: float
    preloaded_us: float
    extra_us: float
    extra_low_us: float
    extra_high_us: float
    samples: int


@dataclass
class MpiRun(BenchResult):
    """A run."""

    variables: dict[str, str] = field(default_factory=dict)
    """Those of the environment that change what the preloaded library does."""
    rows: list[MpiRow] = field(default_factory=list)
    forced: list[ForcedRow] = field(default_factory=list)
    costs: list[Cost] = field(default_factory=list)
    programs: list[ProgramRow] = field(default_factory=list)
    seed: int = 0
    """Of the random types."""
    random: list[RandomRow] = field(default_factory=list)
    ranks: list[RanksRow] = field(default_factory=list)
    """Jobs of many ranks, as `lacuna bench ranks` has them."""

    def summary(self) -> dict[str, dict[str, Any]]:
        """The figures of each MPI. What was not measured is missing."""
        return {mpi.name: self._figures(mpi.name) for mpi in self.mpis}

    def judged(self, mpi: str = "", method: str = JUDGED) -> list[MpiRow]:
        """What the library is judged by: a method with it, the datatypes above all, with one MPI or with all."""
        return [r for r in self.rows if r.method == method and r.preloaded and mpi in ("", r.mpi)]

    def _figures(self, mpi: str) -> dict[str, Any]:
        rows = self.judged(mpi)
        found: dict[str, Any] = {}
        found |= geomean_of("large_vs_hand_geomean", [r.ratio_vs_hand for r in rows if r.payload_bytes >= LARGE])
        found |= geomean_of("small_vs_hand_geomean", [r.ratio_vs_hand for r in rows if r.payload_bytes < LARGE])
        found |= worst_of("vs_hand_worst", rows, lambda r: r.ratio_vs_hand_low)
        found |= geomean_of("vs_host_geomean", [r.ratio_vs_host for r in rows])
        found |= worst_of("vs_host_worst", rows, lambda r: r.ratio_vs_host_low)
        forced = [r for r in self.forced if r.mpi == mpi]
        found |= geomean_of("vs_forced_geomean", [r.ratio for r in forced])
        found |= worst_of("vs_forced_worst", forced, lambda r: r.ratio)
        for name, method in (("pack", "mpi_pack_ddt"), ("contiguous", "reference")):
            found |= geomean_of(f"{name}_vs_host_geomean", [r.ratio_vs_host for r in self.judged(mpi, method)])
        for cost in (cost for cost in self.costs if cost.mpi == mpi):
            if cost.what == LATENCY:
                found["latency_8B_extra_ns"] = cost.extra_us * 1e3
            else:
                found["commit_us_1000_blocks"] = {"plain": cost.plain_us, "preloaded": cost.preloaded_us}
        programs = (row for row in self.programs if row.mpi == mpi)
        for group, members in grouped(programs, lambda row: row.group).items():
            found |= geomean_of(f"{group}_vs_hand_geomean", [r.ratio_vs_hand for r in members])
            found |= geomean_of(f"{group}_vs_host_geomean", [r.ratio_vs_host for r in members])
        many = [r for r in self.ranks if r.mpi == mpi]
        if many:
            found |= {f"ranks_{name}_worst": max(r.ratio(f"{name}_s") for r in many) for name in RANKS_FIGURES}
        drawn = [r for r in self.random if r.mpi == mpi]
        found |= geomean_of("random_vs_host_geomean", [r.ratio_vs_host for r in drawn])
        found |= worst_of("random_vs_host_worst", drawn, lambda r: r.ratio_vs_host_low)
        if drawn:
            found["random_not_slower"] = sum(r.ratio_vs_host_low <= 1 for r in drawn) / len(drawn)
        return found


def name_of(version: str, called: str) -> str:
    """How the summary calls an MPI: by kind and major version, openmpi5; one that is not known as it was called."""
    if "Intel(R) MPI" in version:
        return "intelmpi"
    if found := re.match(r"(Open MPI|MPICH)\b\D*(\d+)\.", version):
        return found[1].replace(" ", "").lower() + found[2]
    return called


# --- from samples to rows ---------------------------------------------------------------------------------------------


def rows_from(case: Mapping[str, Any], mpi: str, samples: Mapping[Contender, Sequence[float]]) -> list[MpiRow]:
    """The rows of a race: microseconds of each contender, by round. What is refused without preload has none."""
    methods: dict[tuple[bool, str], Sequence[float]] = {}
    loops: dict[tuple[bool, str], str] = {}
    for (preloaded, name), times in samples.items():
        if isinstance(preloaded, str):
            continue
        method, _, loop = name.partition("_") if name.startswith("manual_") else (name, "", "")
        key = (preloaded, method)
        if key not in methods or median_of(times).value < median_of(methods[key]).value:
            methods[key], loops[key] = times, loop
    rows = []
    for (preloaded, method), times in methods.items():
        if (False, method) not in methods:
            continue
        own = median_of(times)
        rows.append(
            MpiRow(
                **_of_case(case, mpi),
                method=method,
                loop=loops[preloaded, method],
                preloaded=preloaded,
                latency_us=own.value,
                ci_low_us=own.low,
                ci_high_us=own.high,
                bandwidth_MBps=int(case["payload_bytes"]) / own.value,
                packing_overhead=1 - ratio_of(methods[preloaded, "reference"], times).value,
                **ratios_of(times, methods[False, "manual"], methods[False, method]),
                rounds=len(times),
            )
        )
    return rows


def forced_from(case: Mapping[str, Any], mpi: str, samples: Mapping[Contender, Sequence[float]]) -> list[ForcedRow]:
    """A row, where anything was forced."""
    ways = {side: times for (side, method), times in samples.items() if method == JUDGED and isinstance(side, str)}
    ours = ways.pop(AUTOMATIC, None)
    if not ways or ours is None:
        return []

    halves = {way: halves_of(times) for way, times in {**ways, AUTOMATIC: ours}.items()}
    return [
        ForcedRow(
            **_of_case(case, mpi),
            automatic_us=median_of(ours).value,
            ways_us={way: median_of(times).value for way, times in ways.items()},
            ratio=regret((AUTOMATIC, AUTOMATIC), fastest(ways, halves), halves),
            rounds=len(ours),
        )
    ]


def _of_case(case: Mapping[str, Any], mpi: str) -> dict[str, Any]:
    """The members that all rows of a case have."""
    own = {name: case[name] for name in ("family", "payload_bytes", "blocks")}
    return {"mpi": mpi, "case": str(case["name"]), **own}


def cost_of(mpi: str, what: str, plain: Sequence[float], preloaded: Sequence[float]) -> Cost:
    """`plain` and `preloaded`: microseconds of equal calls."""
    extra = median_of(b - a for a, b in zip(plain, preloaded, strict=True))
    times = [median_of(values).value for values in (plain, preloaded)]
    return Cost(mpi, what, times[0], times[1], extra.value, extra.low, extra.high, len(plain))
