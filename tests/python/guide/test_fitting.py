"""Prices from measurements: those that made the times are found again, whatever disturbs a few of them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from lacuna._core import bias_limit, price_names, usual_prices
from synthetic import ONE_PATH, WAYS, Vector, billed, features, observed, some_pairs

from lacuna import _core
from lacuna.guide.fitting import Fitted, fit, fit_path, limits_text
from lacuna.guide.pairs import Pair

pytestmark = pytest.mark.check

NOISE = 0.03
SEEN, UNSEEN = some_pairs(120, 1), some_pairs(40, 2)
FAR = 3.0
"""Ways farther behind the best of their pair are of no interest."""


def hidden_prices(seed: int = 5) -> list[float]:
    """Prices that are up to three times the usual ones, or a third; caches are as large as they are."""
    random = np.random.default_rng(seed)
    usual = dict(zip(price_names(), usual_prices("mapped", 2.7), strict=True))
    return [
        us * (1.0 if name.endswith("_bytes") else float(np.exp(random.uniform(-np.log(3), np.log(3)))))
        for name, us in usual.items()
    ]


def disturbed(times: Vector, outliers: float = 0.0) -> Vector:
    random = np.random.default_rng(6)
    factor = np.exp(random.normal(0, NOISE, len(times)))
    factor[random.random(len(times)) < outliers] *= 20
    return times * factor[:, None]


def predicted(fitted: Fitted, pairs: list[Pair]) -> Vector:
    """What the library expects: a way's bill and its bias."""
    own = billed(pairs, list(fitted.prices.values()))[:, 0]
    most = np.log(bias_limit())
    for i, x in enumerate(features(pairs)):
        method, _, notify = WAYS[i % len(WAYS)]
        own[i] *= np.exp(np.clip(x @ np.array(fitted.biases[f"{method}/{notify}"]), -most, most))
    return own


@dataclass(frozen=True)
class Fits:
    clean: Fitted
    wild: Fitted


@pytest.fixture(scope="module")
def fits() -> Fits:
    times = billed(SEEN, hidden_prices())
    clean, wild = (observed(SEEN, disturbed(times, outliers)) for outliers in (0.0, 0.02))
    return Fits(fit_path(ONE_PATH, "mapped", clean, 2.7), fit_path(ONE_PATH, "mapped", wild, 2.7))


def errors(fitted: Fitted) -> Vector:
    """On pairs that the fit has not seen, of ways that matter."""
    truth = billed(UNSEEN, hidden_prices())[:, 0]
    best = truth.reshape(-1, len(WAYS)).min(axis=1).repeat(len(WAYS))
    found: Vector = np.abs(predicted(fitted, UNSEEN) / truth - 1)[truth < FAR * best]
    return found


def test_times_of_unseen_pairs_are_known_to_a_few_percent(fits: Fits) -> None:
    assert np.median(errors(fits.clean)) < 0.03
    assert np.percentile(errors(fits.clean), 90) < 0.10


def test_the_usual_prices_would_be_far_off(fits: Fits) -> None:
    truth, usual = billed(UNSEEN, hidden_prices())[:, 0], billed(UNSEEN, usual_prices("mapped", 2.7))[:, 0]
    assert np.median(np.abs(usual / truth - 1)) > max(0.1, 5 * np.median(errors(fits.clean)))


def test_a_few_wild_rows_hardly_matter(fits: Fits) -> None:
    assert np.median(errors(fits.wild)) < np.median(errors(fits.clean)) + 0.02
    assert np.percentile(errors(fits.wild), 90) < 0.12


def test_the_errors_are_those_of_the_rows(fits: Fits) -> None:
    assert len(fits.clean.errors) == len(SEEN) * len(WAYS)
    assert fits.clean.error_median < 1.5 * NOISE
    assert fits.clean.error_p90 < 4 * NOISE
    assert fits.wild.errors.min() < -0.9  # an outlier stays one


def test_prices_stay_above_zero(fits: Fits) -> None:
    assert list(fits.clean.prices) == price_names()
    assert all(price > 0 for price in fits.wild.prices.values())


def skewed(method: str, times: float) -> Fitted:
    """A fit to exact times, but that one method takes so many times as long as its bill says."""
    exact = billed(SEEN, usual_prices("mapped", 2.7))
    slow = np.array([way[0] == method for way in WAYS] * len(SEEN))
    exact[slow] *= times
    return fit_path(ONE_PATH, "mapped", observed(SEEN, exact), 2.7)


def test_what_a_bill_does_not_know_is_put_into_the_bias() -> None:
    fitted = skewed("umr_write", 1.4)
    truth = billed(UNSEEN, usual_prices("mapped", 2.7))[:, 0].reshape(-1, len(WAYS))
    found = predicted(fitted, UNSEEN).reshape(-1, len(WAYS))
    bills = billed(UNSEEN, list(fitted.prices.values()))[:, 0].reshape(-1, len(WAYS))
    slow = [way[0] for way in WAYS].index("umr_write")
    truth[:, slow] *= 1.4
    assert np.median(np.abs(found[:, slow] / truth[:, slow] - 1)) < 0.06
    without = np.median(np.abs(bills[:, slow] / truth[:, slow] - 1))
    assert np.median(np.abs(found[:, slow] / truth[:, slow] - 1)) < without / 2


def test_no_bias_is_beyond_the_limit() -> None:
    fitted = skewed("umr_write", 9.0)
    exact = billed(SEEN, usual_prices("mapped", 2.7))[:, 0].reshape(-1, len(WAYS))
    slow = [way[0] for way in WAYS].index("umr_write")
    exact[:, slow] *= 9.0
    factors = (fitted.errors + 1) * exact.ravel() / billed(SEEN, list(fitted.prices.values()))[:, 0]
    assert factors.max() <= bias_limit() * (1 + 1e-9)
    assert factors.min() >= 1 / bias_limit() * (1 - 1e-9)


def test_a_way_with_few_rows_has_no_bias() -> None:
    few = some_pairs(8)
    fitted = fit_path(ONE_PATH, "mapped", observed(few, billed(few, usual_prices("mapped", 2.7))), 2.7)
    assert fitted.biases == {}


def test_prices_that_no_row_tells_are_the_usual_ones() -> None:
    few = some_pairs(12)
    usual = dict(zip(price_names(), usual_prices("mapped", 2.7), strict=True))
    times = billed(few, list(usual.values()), WAYS[:1])
    fitted = fit_path(ONE_PATH, "mapped", observed(few, times, WAYS[:1]), 2.7)
    for name in ("read", "read_flag", "cold_line", "bind", "page"):
        assert fitted.prices[name] == pytest.approx(usual[name], rel=0.02)


def test_each_path_is_fitted_for_itself_and_counted() -> None:
    few = some_pairs(12)
    rows = observed(few, billed(few, usual_prices("mapped", 2.7), WAYS[:2]), WAYS[:2])
    (only,) = fit(ONE_PATH, rows, 2.7)
    assert (only.path, len(only.errors)) == ("mapped", len(rows))
    (less,) = fit(ONE_PATH, rows, 2.7, most_rows=10)
    assert len(less.errors) == 10
    assert fit(ONE_PATH, []) == []


def test_the_json_is_what_the_library_reads(fits: Fits, tmp_path: Path) -> None:
    path = fits.clean.to_json()
    assert path.keys() == {"prices", "biases", "error_median", "error_p90", "rows"}
    names = {f"{method}/{notify}" for method, _, notify in WAYS}
    assert fits.clean.biases.keys() == names
    assert {len(bias) for bias in fits.clean.biases.values()} == {features(UNSEEN[:1]).shape[1]}
    document = {
        "schema": 3,
        "nic": "local",
        "peers": "same machine",
        "machine": "any",
        "lacuna_version": "0.1.0",
        "created": "2030-01-02T03:04:05Z",
        "classes": [{"message_us": 2.7, "paths": {"mapped": path}}],
    }
    file = tmp_path / "profile.json"
    file.write_text(json.dumps(document))
    guide = _core.Guide(limits=limits_text(ONE_PATH), profile=str(file))
    expected = predicted(fits.clean, UNSEEN[:5]).reshape(-1, len(WAYS))
    for pair, own in zip(UNSEEN[:5], expected, strict=True):
        _, candidates = guide.explain(pair.send, pair.receive)
        found = {(c["method"], c["path"], c["notify"]): c.get("predicted_us") for c in candidates}
        assert [found[way] for way in WAYS] == pytest.approx(own, rel=1e-3)


@pytest.mark.parametrize("path", ["mapped", "slots", "kernel"])
def test_usual_prices_are_those_of_the_nearest_state(path: str) -> None:
    one_core, near, far = (usual_prices(path, us) for us in (1.4, 2.7, 9.0))
    assert one_core != near != far != one_core
    assert usual_prices(path, 1.99) == one_core
    assert usual_prices(path, 2.01) == usual_prices(path, 4.99) == near
    assert usual_prices(path, 5.01) == usual_prices(path, 0.0) == far
