"""Drives the worker through a plan and keeps what it learns, whatever interrupts it."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace

from lacuna.budget import Grant, Pacer
from lacuna.plan import Cell
from lacuna.schema import Failure, Row, Run, Skip
from lacuna.worker import Worker, WorkerError, WorkerSilentError

_GRACE_SECONDS = 2.0
"""How far the last cell may run over before it is cut off. The guess of its set-up can be wrong by so much."""

Progress = Callable[[int, float], None]
"""Told after each cell: how many cells are done, and how many seconds are left."""


def measure(
    worker: Worker,
    cells: Sequence[Cell],
    result: Run,
    deadline: float,
    max_samples: int,
    progress: Progress,
) -> None:
    """Measures the cells until `deadline` on the monotonic clock and adds to the result what is learned, line by line,
    so that an exception (Ctrl-C, a dead worker) loses nothing that has arrived."""
    pacer = Pacer(cells, deadline, time.monotonic)
    started = time.monotonic()
    try:
        for i, cell in enumerate(cells):
            grant = pacer.grant()
            if grant is None:
                result.unmeasured.append(f"{cell.label}: no time left for it")
            else:
                _measure_cell(worker, i, cell, result, grant, deadline + _GRACE_SECONDS, max_samples)
                pacer.spent(cell)
            progress(i + 1, pacer.left_seconds)
    except OutOfTimeError as e:
        result.unmeasured.append(str(e))
        result.unmeasured += [f"{cell.label}: no time left for it" for cell in cells[i + 1 :]]
    except WorkerError as e:
        result.errors.append(Failure(str(e), cells[i].label))
        raise
    finally:
        result.seconds = time.monotonic() - started


class OutOfTimeError(Exception):
    """The run reached its end within a cell."""


def _measure_cell(
    worker: Worker, number: int, cell: Cell, result: Run, grant: Grant, latest: float, max_samples: int
) -> None:
    request: dict[str, object] = {
        "id": number,
        **cell.ask(round(grant.censor_ms, 3)),
        "max_samples": max_samples,
        "budget_ms": round(grant.budget_ms, 3),
    }
    try:
        for answer in worker.measure(request, cell.subject, latest, cell.verb):
            match answer:
                case Row():
                    result.rows.append(answer)
                case Skip():
                    result.skips[answer] = result.skips.get(answer, 0) + 1
                case Failure():
                    result.errors.append(replace(answer, layout=cell.label))
    except WorkerSilentError as e:
        if time.monotonic() >= latest:
            raise OutOfTimeError(f"{cell.label}: cut off at the end of the time") from e
        raise
