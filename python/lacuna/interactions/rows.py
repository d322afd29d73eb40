"""What `lacuna bench interactions` finds, and what it comes to: how much the way that is best where nothing is special
loses where something is."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from math import prod, sqrt
from statistics import median
from typing import Any

from lacuna.halves import fastest, halves_of, judged, regret
from lacuna.interactions.conditions import AUTOMATIC, condition
from lacuna.medians import geomean, median_of

SCHEMA = 1
MATTERS = 1.03
"""Mean loss from which on a condition matters to the choice: what the choice itself may lose (docs/choosing.md)."""

Samples = Mapping[tuple[str, str], Sequence[float]]
"""Microseconds by condition and way; the i-th of all ways of one condition are of one round."""


@dataclass(frozen=True)
class Row:
    """A way under a condition. `us`: of a message one way, or of an exchange with all peers."""

    nic: str
    case: str
    payload_bytes: int
    condition: str
    way: str
    us: float
    low: float
    high: float
    half_us: tuple[float, float]
    """Medians of every other round, one to choose by, the other to judge by; of times over the mean of all ways in the
    same round."""
    rounds: int


@dataclass(frozen=True)
class Effect:
    """What a condition does to one case."""

    nic: str
    case: str
    condition: str
    than: str
    slower: float
    """The best way's time over that of the best way without it; both ways it is of twice as many messages."""
    best: str
    best_without: str
    loss: float
    """The time of the way that is best without it over that of the one that is best with it."""
    automatic: float
    """What Lacuna chooses by itself over the best that is forced; 0 where that was not measured."""
    automatic_without: float


@dataclass
class Interactions:
    """A run."""

    lacuna_version: str
    created: str
    command: str
    machine: str = ""
    rows: list[Row] = field(default_factory=list)
    effects: list[Effect] = field(default_factory=list)
    skipped: dict[str, str] = field(default_factory=dict)
    """Conditions that cannot be had here, and why."""
    refused: list[str] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    interrupted: bool = False

    def without(self, why: str, names: Sequence[str]) -> None:
        """Conditions that turned out not to be there."""
        self.skipped |= dict.fromkeys(names, why)
        self.rows = [r for r in self.rows if r.condition not in names]
        self.effects = [e for e in self.effects if e.condition not in names]

    def to_json(self) -> str:
        return json.dumps({"schema": SCHEMA, "summary": self.summary(), **asdict(self)}, indent=1) + "\n"

    def summary(self) -> dict[str, dict[str, dict[str, Any]]]:
        """By NIC and condition."""
        found: dict[str, dict[str, dict[str, Any]]] = {}
        for nic in dict.fromkeys(e.nic for e in self.effects):
            of = [e for e in self.effects if e.nic == nic]
            names = dict.fromkeys(e.condition for e in of)
            found[nic] = {name: _summary([e for e in of if e.condition == name]) for name in names}
        return found


def _summary(effects: Sequence[Effect]) -> dict[str, Any]:
    losses = [e.loss for e in effects]
    automatic = [e.automatic for e in effects if e.automatic]
    worst = max(effects, key=lambda e: e.loss)
    return {
        "cases": len(effects),
        "slower_median": round(median(e.slower for e in effects), 3),
        "other_best": sum(e.best != e.best_without for e in effects),
        "loss_geomean": round(geomean(losses), 4),
        "loss_max": round(worst.loss, 3),
        "loss_max_case": worst.case,
        **({"automatic_geomean": round(geomean(automatic), 4)} if automatic else {}),
        "matters": geomean(losses) >= MATTERS,
        "handled": condition(effects[0].condition).handled,
    }


def rows_from(nic: str, case: str, payload: int, samples: Samples) -> list[Row]:
    rows = []
    levelled = _levelled(samples)
    for (name, way), times in samples.items():
        us = median_of(times)
        halves = halves_of(levelled[name, way])
        rows.append(Row(nic, case, payload, name, way, us.value, us.low, us.high, halves, len(times)))
    return rows


def _levelled(samples: Samples) -> dict[tuple[str, str], list[float]]:
    """As if all rounds of a condition were alike: a machine changes its state between them, and what slows a round
    slows all its ways."""
    found = {}
    for name in dict.fromkeys(name for name, _ in samples):
        of = {key: times for key, times in samples.items() if key[0] == name}
        rounds = [geomean(times) for times in zip(*of.values(), strict=True)]
        usual = median(rounds)
        for key, times in of.items():
            found[key] = [us / level * usual for us, level in zip(times, rounds, strict=True)]
    return found


def effects_of(rows: Sequence[Row]) -> list[Effect]:
    """Of one case's rows. The best is chosen by one half of the rounds and timed by the other, and the other way round,
    so that luck is not taken for merit."""
    times: dict[str, dict[str, Row]] = {}
    for row in rows:
        times.setdefault(row.condition, {})[row.way] = row
    found = []
    for name, ways in times.items():
        base = times.get(condition(name).than)
        if base is None or name == condition(name).than:
            continue
        if forced := [way for way in ways if way in base and way != AUTOMATIC.name]:
            found.append(_effect(name, forced, ways, base))
    return found


def _effect(name: str, forced: Sequence[str], ways: Mapping[str, Row], base: Mapping[str, Row]) -> Effect:
    here, there = ({way: row.half_us for way, row in of.items()} for of in (ways, base))
    best, best_without = fastest(forced, here), fastest(forced, there)
    chosen = (AUTOMATIC.name, AUTOMATIC.name)
    one = ways[forced[0]]
    return Effect(
        one.nic,
        one.case,
        name,
        condition(name).than,
        sqrt(prod(judged(best, here)) / prod(judged(best_without, there))),
        min(forced, key=lambda way: ways[way].us),
        min(forced, key=lambda way: base[way].us),
        regret(best_without, best, here),
        regret(chosen, best, here) if AUTOMATIC.name in here else 0.0,
        regret(chosen, best_without, there) if AUTOMATIC.name in there else 0.0,
    )
