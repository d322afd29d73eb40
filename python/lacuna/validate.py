"""Judges the choice: over random pairs of layouts that no fit has seen, how much longer the chosen way takes than the
best one.

The best is picked on one half of a pair's visits and timed on the other, and the other way round, so that a way that
was lucky once is not the one to reach. The chosen way is timed on the same halves.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import exp, log, sqrt
from statistics import median
from typing import Any

import numpy as np

from lacuna._core import Guide
from lacuna.analysis import is_told, told_methods
from lacuna.fitting import limits_text
from lacuna.measuring import Way, measure_pair
from lacuna.pairs import Pair, random_pairs
from lacuna.schema import BY_HAND, Failure, Row
from lacuna.worker import Worker

PAIRS = 200
SEED = 7
BUDGET_MS = 120.0

_SMALL_BLOCK = 128
_FEW_BLOCKS = 60
"""Table 3's borders: 128 B, and the middle of its 60 ± 30 blocks."""


Halves = Mapping[Way, tuple[float, float]]
"""What each way took, by either half of its visits."""


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
    table3: Way | None
    table3_regret: float | None
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
            "table3": "/".join(self.table3) if self.table3 else None,
            "table3_regret": round(self.table3_regret, 4) if self.table3_regret else None,
            "prediction_error_median": round(median(map(abs, self.errors)), 4) if self.errors else None,
        }


@dataclass
class Validation:
    nic: str
    profile: list[str]
    """What is doubtful about it."""
    pairs: list[Judged]
    failures: list[Failure]
    seed: int = SEED

    @property
    def regrets(self) -> list[float]:
        return [p.regret for p in self.pairs]

    @property
    def regret_geomean(self) -> float:
        return geomean(self.regrets)

    @property
    def table3_regret_geomean(self) -> float:
        return geomean([p.table3_regret for p in self.pairs if p.table3_regret])

    def head(self) -> dict[str, Any]:
        errors = [abs(e) for p in self.pairs for e in p.errors]
        table3 = [p.table3_regret for p in self.pairs if p.table3_regret]
        return {
            "nic": self.nic,
            "regret_geomean": round(self.regret_geomean, 5) if self.pairs else None,
            "regret_p95": round(float(np.percentile(self.regrets, 95)), 4) if self.pairs else None,
            "regret_max": round(max(self.regrets), 4) if self.pairs else None,
            "prediction_error_median": round(median(errors), 4) if errors else None,
            "table3_regret_geomean": round(geomean(table3), 4) if table3 else None,
            "seed": self.seed,
            "profile_warnings": self.profile,
        }

    def to_json(self) -> str:
        head = json.dumps(self.head(), indent=1).removesuffix("\n}")
        pairs = ",\n".join(f"  {json.dumps(p.to_json())}" for p in self.pairs)
        return f'{head},\n "pairs": [\n{pairs}\n ]\n}}\n'


def geomean(values: Sequence[float]) -> float:
    return exp(sum(map(log, values)) / len(values)) if values else float("nan")


def validate(
    worker: Worker, nic: str, progress: Callable[[int, int, float], None], count: int = PAIRS, seed: int = SEED
) -> Validation:
    """Measures `count` pairs and judges each choice. Raises WorkerError."""
    pairs = random_pairs(count, seed)
    made = Validation(nic, list(Guide(nic, limits=limits_text(worker.hello.nic)).warnings), [], [], seed)
    began = time.monotonic()
    for i, pair in enumerate(pairs):
        measured = measure_pair(worker, pair, i + 1, BUDGET_MS, notifies=("imm", "flag"))
        made.failures += measured.failures
        guide = Guide(nic, message_us=measured.message_us, limits=limits_text(worker.hello.nic))
        try:
            judged = judge(guide, pair, measured.rows, measured.message_us)
        except ValueError as e:
            made.failures.append(Failure(str(e), pair.name))
        else:
            made.pairs += [judged] if judged else []
        progress(i + 1, count, (time.monotonic() - began) / (i + 1) * (count - i - 1))
    return made


def judge(guide: Guide, pair: Pair, rows: Sequence[Row], message_us: float = 0.0) -> Judged | None:
    """The choice for one pair against what was measured of it; None where nothing was."""
    told = told_methods(rows)
    halves = {
        (r.method, r.path, r.notify): r.half_us or (r.latency_us, r.latency_us)
        for r in rows
        if r.method not in BY_HAND and is_told(r, told)
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
    table3 = table3_way(pair, halves)

    def regret(ways: Sequence[Way]) -> float:
        """Of ways that the first and the second half have picked, timed on the second and the first."""
        return sqrt(halves[ways[0]][1] / halves[best[0]][1] * (halves[ways[1]][0] / halves[best[1]][0]))

    return Judged(
        pair.name,
        pair.send.size,
        message_us,
        chosen,
        predicted[chosen],
        sqrt(halves[chosen][0] * halves[chosen][1]),
        best[0],
        sqrt(halves[best[0]][1] * halves[best[1]][0]),
        regret((chosen, chosen)),
        table3[0] if table3 else None,
        regret(table3) if table3 else None,
        tuple(predicted[way] / sqrt(a * b) - 1 for way, (a, b) in halves.items() if way in predicted),
    )


def table3_of(block_bytes: float, blocks: int) -> str:
    """The method that Table 3 of the documents names."""
    if blocks < _FEW_BLOCKS:
        return "umr_write"
    return "pack" if block_bytes < _SMALL_BLOCK else "sgrs"


def fastest(ways: Iterable[Way], halves: Halves) -> tuple[Way, Way]:
    """By the first half, and by the second."""
    ways = list(ways)
    return min(ways, key=lambda way: halves[way][0]), min(ways, key=lambda way: halves[way][1])


def table3_way(pair: Pair, halves: Halves) -> tuple[Way, Way] | None:
    """For the side with more blocks. It knows neither paths nor notifications: whichever suit its method best are
    taken, picked on either half."""
    blocks = max(pair.send.run_count, pair.receive.run_count)
    own = [way for way in halves if way[0] == table3_of(pair.send.size / blocks, blocks)]
    if not own:
        return None
    return fastest(own, halves)
