"""Times of the ways in which messages travel between ranks that share memory: what `lacuna-worker --messages` takes."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from lacuna._core import Layout, message_axes, same_class
from lacuna.worker.process import LineProcess, WorkerError
from lacuna.worker.protocol import Positive, SchemaError, member, read

AXES: dict[str, dict[str, list[int]]] = message_axes()
"""By way the sizes and run lengths at which it is measured."""
BYTES, RUNS = AXES["wide"]["bytes"], AXES["wide"]["runs"]
FORMS = ("regular", "listed")
CELLS = tuple((size, run) for size in BYTES for run in RUNS if run <= size)
MAY_LACK = "direct"
"""The way that a system may not have."""

_PASSES = 3
"""Over the cells that found the ranks nearer to one another, or further apart, than most did."""

_SILENCE = 30.0

Progress = Callable[[int], None]
"""Told how many cells are done."""


class FailedError(Exception):
    """A way moved a wrong byte, or failed; the text says which."""


class MovedError(Exception):
    """The ranks moved nearer to one another and apart all the time, so no times belong together."""


@dataclass(frozen=True)
class Cell:
    """What the worker says of one."""

    bytes: int
    run: int
    message_us: Positive
    ns: dict[str, dict[str, Positive]]


class MessagesWorker(LineProcess):
    """One running worker, which forks into two ranks."""

    def __init__(self, executable: Path, silence: float) -> None:
        super().__init__("the worker for messages", [executable, "--messages"])
        self._silence = silence

    def measure(self, size: int, run: int, milliseconds: float) -> Cell:
        """Raises FailedError where a way failed, WorkerError where the worker is gone."""
        self.send({"bytes": size, "run": run, "milliseconds": milliseconds})
        found = self.read(_understood, time.monotonic() + self._silence)
        if isinstance(found, str):
            raise FailedError(f"ways of messages: {found}")
        if (found.bytes, found.run) != (size, run):
            raise WorkerError(f"{self._name} measured {found.bytes} bytes in runs of {found.run}, not {size} of {run}")
        return found

    def measure_given(self, layout: Layout, ways: Sequence[str], milliseconds: float) -> dict[str, float]:
        """Nanoseconds of a message of that layout by each of these ways, for so many milliseconds each; no byte of it
        lies before its base. Raises as measure()."""
        self.send({"wire": bytes(layout.wire()).hex(), "ways": list(ways), "milliseconds": milliseconds * len(ways)})
        found = self.read(_of_given, time.monotonic() + self._silence)
        if isinstance(found, str):
            raise FailedError(f"ways of messages: {found}")
        if missing := [way for way in ways if way not in found.ns]:
            raise WorkerError(f"{self._name} has no time of {', '.join(missing)}")
        return dict(found.ns)


@dataclass(frozen=True)
class _Given:
    ns: dict[str, Positive]


def _of_given(said: dict[str, Any]) -> _Given | str:
    return str(said["error"]) if "error" in said else read(_Given, member(said, "given", "line"), "given")


def _understood(said: dict[str, Any]) -> Cell | str:
    if "error" in said:
        return str(said["error"])
    cell = read(Cell, member(said, "cell", "line"), "cell")
    for form in FORMS:
        for way in _ways_of(cell.bytes, cell.run):
            if way not in cell.ns.get(form, {}) and way != MAY_LACK:
                raise SchemaError(f"no time of {form}, {way}")
    return cell


def _ways_of(size: int, run: int) -> list[str]:
    return [way for way, axes in AXES.items() if size in axes["bytes"] and run in axes["runs"]]


def measure(executable: Path, milliseconds: float, silence: float, told: Progress) -> dict[str, Any]:
    """The member `messages` of a profile: each way forced in turn, for so many milliseconds a cell.

    Raises WorkerError, FailedError and MovedError.
    """
    found: dict[tuple[int, int], Cell] = {}
    missing = list(CELLS)
    with MessagesWorker(executable, silence) as worker:
        for _ in range(_PASSES):
            for size, run in missing:
                told(len(CELLS) - len(missing) + missing.index((size, run)))
                found[size, run] = worker.measure(size, run, milliseconds)
            usual = median(cell.message_us for cell in found.values())
            missing = [at for at, cell in found.items() if not same_class(cell.message_us, usual)]
            if not missing:
                return document(found)
    raise MovedError(f"{len(missing)} of {len(CELLS)} cells found the ranks nearer to one another, or further apart")


def measure_ways(executable: Path, layout: Layout, ways: dict[str, dict[str, Any]], milliseconds: float) -> None:
    """Enters into those of `lacuna._core.message_ways()` that can be, as `measured_us`, what a message takes. Raises
    WorkerError and FailedError."""
    can = [way for way, of in ways.items() if "refused" not in of]
    with MessagesWorker(executable, _SILENCE) as worker:
        for way, ns in worker.measure_given(layout, can, milliseconds).items():
            ways[way]["measured_us"] = ns / 1e3


def document(found: dict[tuple[int, int], Cell]) -> dict[str, Any]:
    """As a profile has it. A way that was not there in some cell is left out."""
    ns: dict[str, dict[str, list[float]]] = {form: {} for form in FORMS}
    for form in FORMS:
        for way, axes in AXES.items():
            places = [(size, run) for size in axes["bytes"] for run in axes["runs"]]
            times = [_short(found[at].ns[form].get(way, 0.0)) if at in found else 0.0 for at in places]
            if all(ns > 0 for ns, at in zip(times, places, strict=True) if at in found):
                ns[form][way] = times
    return {"bytes": BYTES, "runs": RUNS, "ns": ns}


def _short(ns: float) -> float:
    return float(f"{ns:.4g}")
