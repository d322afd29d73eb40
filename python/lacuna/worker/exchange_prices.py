"""Prices of exchanges among many ranks: what `lacuna-worker --messages` measures between two."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from lacuna.worker.messages import FailedError
from lacuna.worker.process import LineProcess
from lacuna.worker.protocol import Positive, member, read


@dataclass(frozen=True)
class ExchangePrices:
    """Nanoseconds, as docs/reference/files.md has them."""

    latency: Positive
    message: Positive
    large: Positive
    block: Positive
    byte: Positive


def measure(executable: Path, nic: str, milliseconds: float, silence: float) -> dict[str, float]:
    """The member `exchanges` of a profile. Raises WorkerError, and FailedError where a wrong byte came."""
    with LineProcess("the worker for exchanges", [executable, "--nic", nic, "--messages"]) as worker:
        worker.send({"exchanges": {"milliseconds": milliseconds}})
        found = worker.read(_understood, time.monotonic() + silence)
    if isinstance(found, str):
        raise FailedError(f"prices of exchanges: {found}")
    return {name: float(f"{ns:.4g}") for name, ns in asdict(found).items()}


def _understood(said: dict[str, Any]) -> ExchangePrices | str:
    if "error" in said:
        return str(said["error"])
    return read(ExchangePrices, member(said, "exchanges", "line"), "exchanges")
