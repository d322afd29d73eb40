"""Prices from measurements: what each path asks for what transfers do.

A robust least squares of the logarithms of predicted over measured times, so that 1 µs and 100 ms count alike and a
disturbed row counts little. Prices stay positive, since their logarithms are fitted; each is held to the usual one by a
regularisation so weak that it decides only what few rows tell. Rows of methods far behind the best count less: what
matters is where one method gives way to another.

What a way's cost items do not know is put into its bias: the logarithm of measured over expected time as a sum over a
few features of the pair, by a ridge regression that gives outliers little weight.

Nothing but rows and a NIC's limits goes in, for a simulated NIC too.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lacuna._core import Layout, PricedWays, bias_limit, price_names, usual_prices
from lacuna.worker.grouping import grouped
from lacuna.worker.hardware import Nic
from lacuna.worker.protocol import written
from lacuna.worker.records import Row

Vector = NDArray[np.float64]

REGULARISATION = 0.2
"""A price that is a factor of e from the usual one costs as much as one row that is wrong by 20 %. Among thousands of
rows it decides only what none of them tells; among a few hundred it keeps a price that few of them tell from nothing
(at 0.06 one choice in 200 took 10 to 28 times as long as the best)."""
_SCALE = 0.15
"""Rows that are wrong by more count less than their square."""
_CPU_WEIGHT = 0.25
_CPU_FLOOR_NS = 100.0
"""CPU times below this are noise of the clock."""
_FAR_POWER = 0.7
_LEAST_WEIGHT = 0.1
"""A row of a method that takes `b` times as long as the best weighs b ** -0.7, and at least this."""
_ROUNDS = 25
MOST_ROWS = 3000
"""Of a path: more cost time and tell no more. Half of them are those nearest to the best, the others are spread evenly
over the rest: what a way costs far from where it is good says what its parts cost."""

_FIRST_ROWS = 1000
"""Of random pairs, for a fit that tells where to begin."""

_RIDGE = 5.0
"""So many rows that say that a coefficient is nothing."""
_BIAS_ROUNDS = 6
_FEWEST_FOR_BIAS = 12


@dataclass(frozen=True)
class Observation:
    """One verified measurement of a way to move a pair of layouts."""

    row: Row
    send: Layout
    receive: Layout
    behind: float
    """How many times as long as the best of its pair."""
    weight: float = 1.0


@dataclass(frozen=True)
class Fitted:
    """A path's prices and biases, and how far they are from the rows."""

    path: str
    prices: dict[str, float]
    biases: dict[str, list[float]]
    """Of "method/notify": a coefficient for each feature."""
    errors: Vector
    """Of each row: predicted over measured, less one."""

    @property
    def error_median(self) -> float:
        return float(np.median(np.abs(self.errors)))

    @property
    def error_p90(self) -> float:
        return float(np.percentile(np.abs(self.errors), 90))

    def to_json(self) -> dict[str, object]:
        return {
            "prices": {name: _short(value) for name, value in self.prices.items()},
            "biases": {name: [_short(value) for value in bias] for name, bias in self.biases.items()},
            "error_median": round(self.error_median, 4),
            "error_p90": round(self.error_p90, 4),
            "rows": len(self.errors),
        }


def _short(value: float) -> float:
    return float(f"{value:.5g}")


def limits_text(nic: Nic) -> str:
    return written(nic, indent=0)


def fit_path(
    nic: Nic, path: str, observed: Sequence[Observation], message_us: float = 0.0, most_rows: int = MOST_ROWS
) -> Fitted:
    rows = _chosen_rows(observed, most_rows)
    usual = np.log(usual_prices(path, message_us))
    fit = _Fit(nic, rows, usual)
    # A sum has several valleys, and from the usual prices a fit may end in a high one: of a NIC four times as fast it
    # found 0.002 ns for a byte instead of 0.022. Random pairs, which are few of each kind, lead out of it.
    first = [usual, _Fit(nic, _chosen_rows([r for r in rows if r.weight > 1], _FIRST_ROWS), usual).solve(usual)]
    x = fit.solve(min(first, key=fit.cost))
    priced_ways, measured, weight = fit.priced_ways, fit.measured, fit.weight
    expected = priced_ways.priced(list(np.exp(x)))[:, 0]
    biases, factors = _bias(rows, priced_ways.features(), np.log(measured[:, 0] / expected), weight)
    prices = dict(zip(price_names(), map(float, np.exp(x)), strict=True))
    return Fitted(path, prices, biases, expected * factors / measured[:, 0] - 1)


class _Fit:
    """Rows, and how far prices are from them."""

    def __init__(self, nic: Nic, rows: Sequence[Observation], usual: Vector) -> None:
        self.priced_ways = PricedWays(limits_text(nic))
        for r in rows:
            self.priced_ways.add(*r.row.way, r.send, r.receive, r.row.subject.cache == "cold")
        times = [(r.row.latency_us, r.row.cpu_send_us, r.row.cpu_recv_us) for r in rows]
        self.measured = np.array(times).reshape(-1, 3) * 1e3
        self.weight = np.maximum(_LEAST_WEIGHT, np.array([max(1.0, r.behind) for r in rows]) ** -_FAR_POWER)
        self.weight *= np.array([r.weight for r in rows])
        self._usual = usual

    def residuals(self, x: Vector) -> Vector:
        priced = self.priced_ways.priced(list(np.exp(x)))
        latency = np.log(priced[:, 0] / self.measured[:, 0])
        cpu = np.log((priced[:, 1:] + _CPU_FLOOR_NS) / (self.measured[:, 1:] + _CPU_FLOOR_NS))
        weighted = _CPU_WEIGHT * (self.weight[:, None] * cpu).ravel()
        return np.concatenate([self.weight * latency, weighted, REGULARISATION * (x - self._usual)])

    def cost(self, x: Vector) -> float:
        """What solve() makes small: as a square where it is small, as a length where it is large."""
        return float(np.sum(np.sqrt(1 + (self.residuals(x) / _SCALE) ** 2) - 1))

    def solve(self, start: Vector) -> Vector:
        # Imported here: it takes half a second, which commands that fit nothing need not spend.
        from scipy.optimize import least_squares

        found = least_squares(
            self.residuals,
            start,
            loss="soft_l1",
            f_scale=_SCALE,
            diff_step=1e-3,
            bounds=(self._usual - 7, self._usual + 7),
            max_nfev=_ROUNDS,
        )
        return np.asarray(found.x)


def _chosen_rows(observed: Sequence[Observation], most: int) -> list[Observation]:
    if len(observed) <= most:
        return list(observed)
    order = sorted(observed, key=lambda r: r.behind)
    half = most // 2
    spread = np.linspace(half, len(order) - 1, most - half).astype(int)
    return order[:half] + [order[i] for i in spread]


def _bias(
    rows: Sequence[Observation], features: Vector, gap: Vector, weight: Vector
) -> tuple[dict[str, list[float]], Vector]:
    """Of each way with enough rows its coefficients, and for each row the factor that follows."""
    most = np.log(bias_limit())
    biases: dict[str, list[float]] = {}
    factors = np.ones(len(rows))
    names = np.array([f"{r.row.method}/{r.row.notify}" for r in rows])
    for name in dict.fromkeys(names.tolist()):
        own = np.flatnonzero(names == name)
        if len(own) < _FEWEST_FOR_BIAS:
            continue
        x, y, w = features[own], gap[own], weight[own]
        bias: Vector = np.zeros(x.shape[1])
        for _ in range(_BIAS_ROUNDS):
            robust = w / np.maximum(1.0, np.abs(y - x @ bias) / _SCALE)
            normal = x.T @ (x * robust[:, None]) + _RIDGE * np.eye(x.shape[1])
            bias = np.asarray(np.linalg.solve(normal, x.T @ (robust * y)), dtype=np.float64)
        biases[name] = [float(c) for c in bias]
        factors[own] = np.exp(np.clip(x @ bias, -most, most))
    return biases, factors


def fit(nic: Nic, rows: Iterable[Observation], message_us: float = 0.0, most_rows: int = MOST_ROWS) -> list[Fitted]:
    """Each path that has rows. `message_us`: what a message takes between these peers. `most_rows`: of a path."""
    by_path = grouped(rows, lambda observed: observed.row.path)
    return [fit_path(nic, path, observed, message_us, most_rows) for path, observed in by_path.items()]
