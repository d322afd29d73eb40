#!/usr/bin/env python3
"""The lacuna command by a made-up clock: what fits into a budget does not depend on the machine, nor on what else runs.

On this clock each request to the worker takes as long as MADE_UP_MS in the environment says, or all the time that the
request allows if it says "budget"; everything else takes no time. The worker itself has as long as it needs: it is
given up as silent only in the moods of the fake one in which it never answers.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from fake_worker import MODE, TROUBLE_AT

from lacuna import clock
from lacuna.cli import guide
from lacuna.cli.app import main
from lacuna.worker.client import Worker

PATIENCE = 600.0
"""Seconds of the real clock."""
MS = os.environ.get("MADE_UP_MS") or "40"


class MadeUp:
    """Seconds pass only when somebody says so."""

    def __init__(self) -> None:
        self._now = 0.0

    def now(self) -> float:
        return self._now

    def sleep(self, seconds: float) -> None:
        self._now += seconds


def install(made_up: MadeUp) -> None:
    measure = Worker.measure

    def measured(
        self: Worker, request: dict[str, Any], subject: Any, latest: float = float("inf"), verb: str = "measure"
    ) -> Iterator[Any]:
        del latest  # the made-up clock stands still during a request
        given = self._timeout
        self._timeout = given if MODE == "hang" and request["id"] == TROUBLE_AT else PATIENCE
        try:
            yield from measure(self, request, subject, verb=verb)
        finally:
            self._timeout = given
            made_up.sleep((request["budget_ms"] if MS == "budget" else float(MS)) / 1e3)

    def soon(self: Worker) -> float:
        return time.monotonic() + (self._timeout if MODE == "silent" else PATIENCE)

    clock.now, clock.sleep = made_up.now, made_up.sleep
    guide.FULL = replace(guide.FULL, silence=PATIENCE)  # by which a listener is waited for, too
    Worker.measure, Worker._soon = measured, soon  # type: ignore[method-assign]


if __name__ == "__main__":
    install(MadeUp())
    main()
