"""Measurements that follow bills: times of random pairs at prices that a test knows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
from conftest import METHODS, NIC, guide, look, row
from lacuna._core import PricedWays, usual_prices
from numpy.typing import NDArray

from lacuna.guide.fitting import Observation, limits_text
from lacuna.guide.pairs import Pair, random_pairs
from lacuna.guide.plan import Cell, pair_cell
from lacuna.guide.run_record import Guide
from lacuna.worker.records import Method, Probe, Row, Subject, Way

Vector = NDArray[np.float64]

ONE_PATH = replace(NIC, paths=NIC.paths[:1])
"""As quick to fit as a NIC can be."""
SUBJECT = Subject("pairs", "some pair", 64, 1, 64, "symmetric", "warm")
WAYS: tuple[Way, ...] = (
    ("pack", "mapped", "none"),
    ("pack_write", "mapped", "flag"),
    ("gather_write", "mapped", "imm"),
    ("sgrs", "mapped", "none"),
    ("umr_write", "mapped", "flag"),
    ("multi_write", "mapped", "flag"),
)


def billed(pairs: Sequence[Pair], prices: Sequence[float], ways: Sequence[Way] = WAYS) -> Vector:
    """A row for each way to move each pair: latency, CPU time of sender and receiver, in microseconds."""
    bills = PricedWays(limits_text(ONE_PATH))
    for pair in pairs:
        for method, path, notify in ways:
            bills.add(method, path, notify, pair.send, pair.receive)
    return np.asarray(bills.priced(list(prices))) / 1e3


def features(pairs: Sequence[Pair], ways: Sequence[Way] = WAYS) -> Vector:
    bills = PricedWays(limits_text(ONE_PATH))
    for pair in pairs:
        for method, path, notify in ways:
            bills.add(method, path, notify, pair.send, pair.receive)
    return np.asarray(bills.features())


def observed(pairs: Sequence[Pair], times: Vector, ways: Sequence[Way] = WAYS) -> list[Observation]:
    made = []
    for i, pair in enumerate(pairs):
        own = times[i * len(ways) : (i + 1) * len(ways)]
        best = own[:, 0].min()
        for way, us in zip(ways, own, strict=True):
            made.append(Observation(timed(SUBJECT, way, us), pair.send, pair.receive, behind=float(us[0] / best)))
    return made


def timed(subject: Subject, way: Way, us: Vector) -> Row:
    """`us`: latency, CPU time of sender and receiver."""
    method, path, notify = way
    measured = row(subject, method, float(us[0]), path=path, notify=notify)
    return replace(measured, cpu_send_us=float(us[1]), cpu_recv_us=float(us[2]))


def run_of(
    pairs: Sequence[Pair],
    message_us: Callable[[int], float] = lambda _: 2.7,
    prices: Callable[[int], Sequence[float]] = lambda _: usual_prices("mapped", 2.7),
) -> tuple[Guide, list[Cell]]:
    """A run over pairs of one path: what a message took around each, and at which prices it moved."""
    methods = (*METHODS, Method("umr_write", True, ("none", "imm", "flag"), ""))
    cells = [pair_cell(pair, required=True) for pair in pairs]
    made = replace(guide(), nic=ONE_PATH, methods=methods)
    for i, (pair, cell) in enumerate(zip(pairs, cells, strict=True)):
        made.rows += [timed(cell.subject, way, us) for way, us in zip(WAYS, billed([pair], prices(i)), strict=True)]
        made.looks.append(look(cell.subject, Probe(message_us(i), 7.0, 7.0), at=float(i)))
    return made, cells


def some_pairs(count: int, seed: int = 1) -> list[Pair]:
    return random_pairs(count, seed)
