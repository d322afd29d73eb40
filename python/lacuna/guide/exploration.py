"""Which random pair to measure next: the one for which a wrong choice is expected to cost most.

What is expected of a way is what its cost items say at prices fitted to the first looks, moved by what was found of
near pairs, as the library itself will move it (lacuna/guide/nearby.hpp). How far that may be off follows from how well
each measured pair is told by the others. So there are two logarithms with a spread for each two ways, and what is lost
by taking the one that is chosen is the expected improvement of the other (Jones, Schonlau, Welch 1998). It is scaled by
what choices for measured pairs, each told by the others, really lost.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from lacuna._core import Layout, PricedWays, hysteresis_of, pair_place, price_names, prior_weight, usual_prices
from lacuna.guide.calibration import layouts_of, observations
from lacuna.guide.fitting import Observation, Vector, fit, limits_text
from lacuna.guide.pairs import Pair
from lacuna.guide.plan import Cell, counted, pair_cell
from lacuna.guide.run_record import LeftOut
from lacuna.worker.records import Hello, Row, Subject, Way

BATCH = 12
"""So many pairs are chosen at once: choosing costs as much as measuring one."""
BOUND = 0.01
POOL = 400
FIRST = 1000
"""The number of the pool's first pair: no two of a run have one name."""
_FITTED_ROWS = 1500
_FEWEST_SEEN = 16
"""Fewer measured pairs say nothing of how well they tell one another."""
_MOST_GAP = 1.0
_PRIORS = 4.0
"""A pair without near ones is as uncertain as the others are; one with so many near ones half as much."""
_NOISE = 0.05
_NEVER = 1e6
"""The logarithm of a time that is too long to wait for."""
_HOPELESS = 3.0
"""A method on a path that is expected to take so many times as long as the best one is not measured."""


class Explorer:
    """Chooses among the pairs of a pool by what was measured so far."""

    def __init__(self, hello: Hello, pool: Callable[[], Sequence[Pair]], bound: float = BOUND) -> None:
        """`pool` is asked for once there is something to explore; it takes a second."""
        self._hello = hello
        self._nic = hello.nic
        self._make_pool = pool
        self.bound = bound
        self.expected_regret: float | None = None
        """Of a random pair: how much longer the choice takes than the best way, as a fraction. None: not known."""
        self._taken: set[int] = set()

    def begin(self, rows: Sequence[Row], cells: Sequence[Cell], message_us: float = 0.0) -> bool:
        """From first looks, with peers to which a message takes so long, where that is known; false where they are too
        few."""
        seen = observations([r for r in rows if r.subject.cache == "warm"], layouts_of(cells))
        if len(seen) < _FEWEST_SEEN:
            return False
        told = [o for own in seen.values() for o in own]
        self._ways: list[Way] = list(dict.fromkeys(o.row.way for o in told if _competes(o.row)))
        self._fitted = {f.path: f for f in fit(self._nic, told, message_us, _FITTED_ROWS)}
        self._pool = [replace(pair, number=FIRST + i) for i, pair in enumerate(self._make_pool())]
        if not self._pool:
            return False
        self._message_us = message_us
        self._hysteresis = hysteresis_of(max(f.error_median for f in self._fitted.values()))
        self._pool_places, self._pool_times, usual = self._told([(p.send, p.receive) for p in self._pool])
        self._pool_usual = np.argmin(usual, 1)
        self._places = np.empty((0, self._pool_places.shape[1]))
        self._gaps = np.empty((0, len(self._ways)))
        self._times = np.empty((0, len(self._ways)))
        self._usual = np.empty(0, dtype=np.intp)
        self._learn(seen)
        return True

    def learn(self, rows: Sequence[Row], cells: Sequence[Cell]) -> None:
        self._learn(observations(rows, layouts_of(cells)))

    def _learn(self, seen: Mapping[Subject, Sequence[Observation]]) -> None:
        pairs = [(own[0].send, own[0].receive) for own in seen.values()]
        if not pairs:
            return
        places, times, usual = self._told(pairs)
        measured = np.full(times.shape, np.nan)
        index = {way: i for i, way in enumerate(self._ways)}
        for k, own in enumerate(seen.values()):
            for o in own:
                i = index.get(o.row.way)
                if i is not None:
                    measured[k, i] = np.log(o.row.latency_us)
        usual = np.argmin(np.where(np.isnan(measured), np.inf, usual), 1)
        self._places = np.concatenate([self._places, places])
        self._times = np.concatenate([self._times, measured])
        self._usual = np.concatenate([self._usual, usual])
        self._gaps = np.concatenate([self._gaps, np.clip(measured - times, -_MOST_GAP, _MOST_GAP)])

    def _told(self, pairs: Sequence[tuple[Layout, Layout]]) -> tuple[Vector, Vector, Vector]:
        """Where each pair is; the logarithms of what each way is expected to take, biases included, in microseconds;
        and what the way is expected to take at the usual prices."""
        places = np.array([pair_place(send, receive) for send, receive in pairs])
        times = np.full((len(pairs), len(self._ways)), np.nan)
        usual = np.full(times.shape, np.inf)
        for i, (method, path, notify) in enumerate(self._ways):
            fitted = self._fitted[path]
            priced_ways = PricedWays(limits_text(self._nic))
            for send, receive in pairs:
                priced_ways.add(method, path, notify, send, receive)
            expected = priced_ways.priced([fitted.prices[name] for name in price_names()])[:, 0] / 1e3
            bias = fitted.biases.get(f"{method}/{notify}")
            times[:, i] = np.log(expected) + (priced_ways.features() @ np.array(bias) if bias else 0.0)
            usual[:, i] = priced_ways.priced(usual_prices(path, self._message_us))[:, 0]
        return places, times, usual

    def wanted(self, count: int = BATCH) -> list[Cell]:
        """The next pairs to measure; none where the expected regret is below the bound, or all were taken. Each is
        chosen as if those before it had been measured."""
        known = ~np.isnan(self._gaps)
        gaps = np.where(known, self._gaps, 0.0)
        weights = _near(self._pool_places, self._places)
        support = weights @ known
        expected = self._pool_times + (weights @ gaps) / (support + prior_weight())
        own = _near(self._places, self._places)
        np.fill_diagonal(own, 0.0)
        others = own @ known
        by_others = (own @ gaps) / (others + prior_weight())
        spread = np.array(
            [
                np.mean((gaps[k, i] - by_others[k, i]) ** 2) if (k := known[:, i]).any() else 0.05
                for i in range(len(self._ways))
            ]
        )
        scale = self._scale(self._times - self._gaps + by_others, others, spread)
        best = self._chosen(expected, self._pool_usual, support)
        regrets = scale * _regrets(expected, best, support, spread)
        self.expected_regret = float(np.mean(regrets))
        chosen: list[int] = []
        while self.expected_regret > self.bound and len(chosen) < count:
            regrets[list(self._taken)] = -1.0
            dearest = int(np.argmax(regrets))
            if regrets[dearest] < 0:
                break
            self._taken.add(dearest)
            chosen.append(dearest)
            support = support + _near(self._pool_places, self._pool_places[[dearest]])
            best = self._chosen(expected, self._pool_usual, support)
            regrets = scale * _regrets(expected, best, support, spread)
        return counted([self._cell(i, expected[i]) for i in chosen], self._hello)

    def _chosen(self, expected: Vector, usual: NDArray[np.intp], support: Vector) -> NDArray[np.intp]:
        """As the library chooses among the explored ways, for peers as they were looked at first: what is usually best,
        unless another way takes less by more than a hysteresis, which is less the more pairs near were measured by
        it."""
        times = np.where(np.isnan(expected), _NEVER, expected)
        doubted = times + np.log1p(self._hysteresis / (1 + support))
        rows = np.arange(len(times))
        doubted[rows, usual] = times[rows, usual]
        return np.asarray(np.argmin(doubted, 1), dtype=np.intp)

    def _cell(self, i: int, expected: Vector) -> Cell:
        """Without what is hopeless."""
        behind: dict[tuple[str, str], float] = {}
        for (method, path, _), times in zip(self._ways, np.exp(expected - np.nanmin(expected)), strict=True):
            behind[method, path] = min(behind.get((method, path), np.inf), float(times))
        hopeless = [LeftOut(m, p, round(times, 2)) for (m, p), times in behind.items() if times > _HOPELESS]
        return pair_cell(self._pool[i], required=False, notifies=("imm", "flag")).without(tuple(hopeless))

    def _scale(self, expected: Vector, support: Vector, spread: Vector) -> float:
        """What choices for measured pairs lost over what they were expected to lose, each pair told by the others."""
        chosen = self._chosen(expected, self._usual, support)
        lost = [
            took[i] - np.nanmin(took)
            for took, i in zip(self._times, chosen, strict=True)
            if np.count_nonzero(~np.isnan(took)) > 1
        ]
        if not lost:
            return 1.0
        feared = float(np.mean(_regrets(expected, chosen, support, spread)))
        return float(np.clip(np.mean(lost) / feared, 0.2, 5.0)) if feared > 0 else 1.0


def _competes(row: Row) -> bool:
    """A write or a read without notification does not."""
    return row.notify != "none" or row.method in ("pack", "pack_pipelined", "sgrs", "umr_send", "umr_chunked")


def _near(a: Vector, b: Vector) -> Vector:
    return np.asarray(np.exp(-((a[:, None, :] - b[None, :, :]) ** 2).sum(2) / 2))


def _regrets(expected: Vector, best: NDArray[np.intp], support: Vector, spread: Vector) -> Vector:
    """Of each pair what is expected to be lost by the way that is chosen, as a logarithm."""
    from scipy.special import ndtr

    doubt = _PRIORS * prior_weight()
    sd = np.sqrt(spread * (doubt / (support + doubt) + _NOISE))
    mean = np.where(np.isnan(expected), _NEVER, expected)
    rows = np.arange(len(mean))
    joint = np.sqrt(sd**2 + sd[rows, best][:, None] ** 2)
    apart = (mean - mean[rows, best][:, None]) / joint
    improvement = joint * (np.exp(-(apart**2) / 2) / sqrt(2 * np.pi) - apart * ndtr(-apart))
    improvement[rows, best] = 0.0
    return np.asarray(improvement.max(1))
