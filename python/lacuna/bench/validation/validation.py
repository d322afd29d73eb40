"""Judges the choice: over random pairs of layouts that no fit has seen, how much longer the chosen way takes than the
best one.

The best is picked on one half of a pair's visits and timed on the other, and the other way round, so that a way that
was lucky once is not the one to reach. The chosen way is timed on the same halves.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import inf, prod, sqrt
from statistics import median
from typing import Any

from lacuna import clock
from lacuna._core import Guide
from lacuna.bench.result import BenchResult
from lacuna.bench.validation.pair_measurement import measure_pair
from lacuna.guide.baselines import RULES, Ruled, regret_figures, ruled
from lacuna.guide.campaign import Progress
from lacuna.guide.contests import is_told, told_methods
from lacuna.guide.fitting import limits_text
from lacuna.guide.pairs import Pair, random_pairs
from lacuna.medians import geomean
from lacuna.split_half import fastest, judged, regret
from lacuna.worker.client import Worker
from lacuna.worker.protocol import written_in_lines
from lacuna.worker.records import BY_HAND, Failure, Row, Way

PAIRS = 500
SEED = 7
BUDGET_MS = 120.0
_TRIES = 3
"""Of a pair whose peers moved while it was measured: what was measured then are some ways in one state and others in
another. The last one counts in any case; failures are told of all."""


@dataclass(frozen=True)
class Sample:
    """Random pairs, and how long they are measured."""

    count: int = PAIRS
    seed: int = SEED
    budget_ms: float = BUDGET_MS
    """Of a pair."""
    latest: float = inf
    """On the clock of budgets."""


@dataclass(frozen=True)
class Judged:
    """One pair. Times in microseconds, of the halves that did not pick."""

    name: str
    payload_bytes: int
    message_us: float
    """By which the class of the peers was told before it was measured; 0 where it is not measured."""
    chosen: Way
    predicted_us: float
    chosen_us: float
    best: Way
    best_us: float
    regret: float
    rules: dict[str, Ruled]
    """By the names of baselines.RULES, where they say something."""
    errors: tuple[float, ...]
    """Of each way: predicted over measured, less one."""

    def to_json(self) -> dict[str, object]:
        return {
            "name": self.name,
            "payload_bytes": self.payload_bytes,
            "message_us": self.message_us,
            "chosen": "/".join(self.chosen),
            "predicted_us": round(self.predicted_us, 4),
            "chosen_us": round(self.chosen_us, 4),
            "best": "/".join(self.best),
            "best_us": round(self.best_us, 4),
            "regret": round(self.regret, 4),
            "rules": {name: ["/".join(found.way), round(found.regret, 4)] for name, found in self.rules.items()},
            "prediction_error_median": round(median(map(abs, self.errors)), 4) if self.errors else None,
        }


@dataclass
class Validation(BenchResult):
    """A run."""

    nic: str = ""
    profile: list[str] = field(default_factory=list)
    """What is doubtful about it."""
    pairs: list[Judged] = field(default_factory=list)
    seed: int = SEED
    again: int = 0
    """Measurements that were repeated, since the peers moved meanwhile."""

    @property
    def regrets(self) -> list[float]:
        return [p.regret for p in self.pairs]

    @property
    def regret_geomean(self) -> float:
        return geomean(self.regrets)

    def regrets_of(self, rule: str) -> list[float]:
        return [p.rules[rule].regret for p in self.pairs if rule in p.rules]

    @property
    def rules(self) -> dict[str, dict[str, float]]:
        """Of each rule what the head has of the choice."""
        return {rule.name: regret_figures(found) for rule in RULES if (found := self.regrets_of(rule.name))}

    @property
    def place(self) -> str:
        return self.nic

    def summary(self) -> dict[str, Any]:
        errors = [abs(e) for p in self.pairs for e in p.errors]
        return {
            **regret_figures(self.regrets),
            "prediction_error_median": round(median(errors), 4) if errors else None,
            "rules": self.rules,
        }

    def to_json(self) -> str:
        """The figures come first, beside the other members."""
        own = {"seed": self.seed, "measured_again": self.again, "profile_warnings": self.profile}
        all_have = {"created": self.created, "lacuna_version": self.lacuna_version, "command": self.command}
        head = {"schema": self.schema, **all_have, "nic": self.nic, **self.summary(), **own, "errors": self.errors}
        return written_in_lines(head, {"pairs": [pair.to_json() for pair in self.pairs]})


def validate(worker: Worker, made: Validation, progress: Progress, sample: Sample) -> None:
    """Measures the pairs of a sample and judges each choice, as many as there is time for. Raises WorkerError."""
    pairs = random_pairs(sample.count, sample.seed)
    made.seed = sample.seed
    made.profile = list(Guide(made.nic, limits=limits_text(worker.hello.nic)).warnings)
    began = clock.now()
    for i, pair in enumerate(pairs):
        if clock.now() >= sample.latest:
            break
        for tried in range(_TRIES):
            made.again += tried > 0
            measured = measure_pair(worker, pair, i + 1, sample.budget_ms, notifies=("imm", "flag"))
            made.errors += map(str, measured.failures)
            if not measured.moved or clock.now() >= sample.latest:
                break
        guide = Guide(made.nic, message_us=measured.message_us, limits=limits_text(worker.hello.nic))
        try:
            judged = judge(guide, pair, measured.rows, measured.message_us)
        except ValueError as e:
            made.errors.append(str(Failure(str(e), pair.name)))
        else:
            made.pairs += [judged] if judged else []
        progress(i + 1, sample.count, (clock.now() - began) / (i + 1) * (sample.count - i - 1))


def judge(guide: Guide, pair: Pair, rows: Sequence[Row], message_us: float = 0.0) -> Judged | None:
    """The choice for one pair against what was measured of it; None where nothing was."""
    told = told_methods(rows)
    halves = {
        r.way: r.half_us or (r.latency_us, r.latency_us) for r in rows if r.method not in BY_HAND and is_told(r, told)
    }
    if not halves:
        return None
    choice = guide.choose(pair.send, pair.receive)
    chosen: Way = (choice["method"], choice["path"], choice["notify"])
    if chosen not in halves:
        raise ValueError(f"{pair.name}: {'/'.join(chosen)} was chosen, and is not among what was measured")
    _, candidates = guide.explain(pair.send, pair.receive)
    predicted = {(c["method"], c["path"], c["notify"]): c["predicted_us"] for c in candidates if "predicted_us" in c}
    best = fastest(halves, halves)
    return Judged(
        pair.name,
        pair.send.size,
        message_us,
        chosen,
        predicted[chosen],
        sqrt(halves[chosen][0] * halves[chosen][1]),
        best[0],
        sqrt(prod(judged(best, halves))),
        regret((chosen, chosen), best, halves),
        ruled(pair, halves),
        tuple(predicted[way] / sqrt(a * b) - 1 for way, (a, b) in halves.items() if way in predicted),
    )
