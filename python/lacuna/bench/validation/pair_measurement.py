"""Measures every way to move one pair of layouts."""

from __future__ import annotations

from dataclasses import dataclass, field

from lacuna._core import Layout
from lacuna.guide.noise_check import moved
from lacuna.guide.pairs import Pair
from lacuna.guide.plan import pair_cell
from lacuna.worker.client import Worker, find_worker
from lacuna.worker.records import BY_HAND, Conditions, Failure, Row, Way

SILENCE = 30.0
BUDGET_MS = 400.0
CENSOR_MS = 100.0
_SAMPLES = 400


@dataclass
class Measured:
    rows: list[Row] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)
    message_us: float = 0.0
    """What the worker's message took before it measured; 0 where it has none."""
    moved: bool = False
    """Whether the peers came nearer to one another meanwhile, or went apart: then the ways do not compare."""

    @property
    def times(self) -> dict[Way, float]:
        """Microseconds."""
        return {r.way: r.latency_us for r in self.rows if r.method not in BY_HAND}


def measure_pair(
    worker: Worker, pair: Pair, number: int, budget_ms: float, *, cold: bool = False, notifies: tuple[str, ...] = ()
) -> Measured:
    """Raises WorkerError."""
    cell = pair_cell(pair, required=True, cold=cold)
    request = {"id": number, **cell.ask(CENSOR_MS), "max_samples": _SAMPLES, "budget_ms": budget_ms}
    request["notifies"] = list(notifies)
    found = Measured()
    for answer in worker.measure(request, cell.subject):
        if isinstance(answer, Row):
            found.rows.append(answer)
        elif isinstance(answer, Failure):
            found.failures.append(answer)
        elif isinstance(answer, Conditions) and answer.probes:
            found.message_us = answer.probes[0].message_us
            found.moved = moved(answer.probes)
    return found


def measure(nic: str, pair: Pair, *, cold: bool = False) -> Measured:
    """With a worker of its own. Raises WorkerError."""
    with Worker(find_worker(), nic, SILENCE) as worker:
        return measure_pair(
            worker, Pair(pair.words, _from_zero(pair.send), _from_zero(pair.receive)), 1, BUDGET_MS, cold=cold
        )


def _from_zero(layout: Layout) -> Layout:
    """The same layout where no byte lies before the base: the worker's buffers begin there."""
    low = layout.true_lower_bound
    return Layout.hindexed([1], [-low], layout) if low < 0 else layout
