"""Prices of exchanges among many ranks: what `lacuna-worker --messages` measures between two."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from lacuna.worker.messages import FailedError
from lacuna.worker.process import LineProcess
from lacuna.worker.protocol import Positive, member, read

_LEAST = 2.0**-10
"""What the worker says of a price that its times leave nothing for."""


class WaitedError(Exception):
    """More work took no more time, so the ranks had to wait for CPUs: the times say nothing."""


@dataclass(frozen=True)
class ExchangePrices:
    """Nanoseconds, as docs/reference/files.md has them."""

    latency: Positive
    message: Positive
    large: Positive
    block: Positive
    byte: Positive


def measure(executable: Path, nic: str, milliseconds: float, silence: float) -> dict[str, float]:
    """The member `exchanges` of a profile. Raises WorkerError, WaitedError, and FailedError where a wrong byte came."""
    found = ask(executable, nic, milliseconds, silence)
    for name in ("latency", "message", "byte"):
        if getattr(found, name) <= _LEAST:
            raise WaitedError(f"by the times {name} costs nothing, so the ranks had to wait for CPUs")
    return {name: float(f"{ns:.4g}") for name, ns in asdict(found).items()}


def ask(executable: Path, nic: str, milliseconds: float, silence: float) -> ExchangePrices:
    """What the worker says. Raises WorkerError and FailedError."""
    with LineProcess("the worker for exchanges", [executable, "--nic", nic, "--messages"]) as worker:
        worker.send({"exchanges": {"milliseconds": milliseconds}})
        found = worker.read(_understood, time.monotonic() + silence)
    if isinstance(found, str):
        raise FailedError(f"prices of exchanges: {found}")
    return found


def _understood(said: dict[str, Any]) -> ExchangePrices | str:
    if "error" in said:
        return str(said["error"])
    return read(ExchangePrices, member(said, "exchanges", "line"), "exchanges")
