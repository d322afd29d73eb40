"""The clock that budgets are kept by. A test can put another one in its place, by which all that is measured takes as
long as the test says. What waits for another process waits by the real one."""

from __future__ import annotations

import time


def now() -> float:
    """Seconds since some moment."""
    return time.monotonic()


def sleep(seconds: float) -> None:
    time.sleep(seconds)
