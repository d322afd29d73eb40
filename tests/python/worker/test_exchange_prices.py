"""Prices of exchanges: what the worker says of them, and the member of a profile that this comes to."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import pytest
from conftest import PATIENCE
from fake_messages import EXCHANGES
from synthetic import ONE_PATH

from lacuna import _core
from lacuna.guide.fitting import limits_text
from lacuna.worker import exchange_prices
from lacuna.worker.client import find_worker
from lacuna.worker.messages import FailedError
from lacuna.worker.process import WorkerError


def real_worker() -> Path:
    try:
        return find_worker()
    except WorkerError as e:
        pytest.skip(str(e))


def check_profile_with(exchanges: dict[str, float], file: Path) -> None:
    head = {"schema": 3, "nic": "local", "peers": "same machine", "machine": "a machine", "lacuna_version": "0.2.0"}
    file.write_text(json.dumps({**head, "created": "today", "classes": [], "exchanges": exchanges}))
    assert _core.Guide(limits=limits_text(ONE_PATH), profile=str(file)).warnings == []


def test_what_was_measured_is_the_member_of_a_profile(fake_worker: Path, tmp_path: Path) -> None:
    found = exchange_prices.measure(fake_worker, "local", 1.0, PATIENCE)
    assert found == {**EXCHANGES, "latency": 700.5, "message": 150.2, "byte": 0.1235}
    check_profile_with(found, tmp_path / "p.json")


@pytest.mark.parametrize(
    ("mood", "kind", "says"),
    [
        ("exchange_wrong", FailedError, "byte 3 is wrong"),
        ("exchange_few", WorkerError, "required field `large`"),
        ("exchange_free", WorkerError, "> 0.0 - at `exchanges.large`"),
        ("exchange_waits", exchange_prices.WaitedError, "latency costs nothing"),
    ],
)
def test_a_worker_that_misbehaves(
    fake_worker: Path, monkeypatch: pytest.MonkeyPatch, mood: str, kind: type[Exception], says: str
) -> None:
    monkeypatch.setenv("FAKE_MESSAGES", mood)
    with pytest.raises(kind, match=says):
        exchange_prices.measure(fake_worker, "local", 1.0, PATIENCE)


def test_the_real_worker_measures_what_a_profile_may_have(tmp_path: Path) -> None:
    found = asdict(exchange_prices.ask(real_worker(), "local", 1.0, PATIENCE))
    assert found.keys() == EXCHANGES.keys()
    check_profile_with(found, tmp_path / "p.json")


def test_on_the_model_prices_are_the_same_every_time() -> None:
    first, second = (exchange_prices.measure(real_worker(), "model", 1.0, PATIENCE) for _ in range(2))
    assert first == second
    # What the platform asks at least: a propagation, and the send engine's part of a message
    assert first["latency"] > 1000
    assert first["message"] > 200
