"""How the commands run a campaign of the worker's, `lacuna guide` and `lacuna bench methods`, and how that ends."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import NoReturn, TypeVar

import typer
from rich.console import Console

from lacuna import clock
from lacuna.bench import command_exit
from lacuna.bench.progress import Meter
from lacuna.guide import campaign
from lacuna.guide.campaign import SecondLooks
from lacuna.guide.exploration import Explorer
from lacuna.guide.plan import Cell
from lacuna.guide.run_record import Run
from lacuna.worker.client import Worker, find_worker
from lacuna.worker.process import WorkerError
from lacuna.worker.remote_host import RemoteHost

Measured = TypeVar("Measured", bound=Run)


@dataclass(frozen=True)
class Effort:
    """How long a run takes by default, in seconds, and how carefully it measures."""

    budget: float
    """Wall time of the whole command."""
    reserve: float
    """The part of it that goes to start-up, tables and report."""
    silence: float
    max_samples: int
    second_looks: float = 0.0
    """The part of the measuring time that is kept for second looks at cells."""
    explored: float = 0.0
    """The part that is kept for cells which an explorer chooses, if there is one."""
    most_looks: int = 2
    most_reserved: float = 0.5
    """Of a shorter run, the part that goes to start-up, tables and report."""

    def deadline(self, started: float, budget: float | None) -> float:
        """When measuring has to end: the wall time, or what the user allows instead, less what comes after."""
        total = budget or self.budget
        return started + max(1.0, total - min(self.reserve, self.most_reserved * total))


def measure(
    console: Console,
    nic: str,
    effort: Effort,
    deadline: float,
    prepare: Callable[[Worker], tuple[Measured, list[Cell]]],
    options: Sequence[str] = (),
    remote: RemoteHost | None = None,
    at_last: Callable[[Worker], None] | None = None,
    explorer: Callable[[Worker], Explorer] | None = None,
) -> tuple[Measured | None, WorkerError | None]:
    """Runs a worker through the plan that `prepare` makes for it. Returns what was measured, and what ended the run.
    `remote`: the receiver is there. `at_last`: something more to ask of the worker, not of the result. `explorer`:
    makes what chooses further cells."""
    result: Measured | None = None

    def start() -> Worker:
        return Worker(find_worker(), nic, effort.silence, options, remote)

    try:
        with command_exit.terminable(), start() as worker:
            result, cells = prepare(worker)
            with Meter(console, len(cells), deadline - clock.now()) as meter:
                again = None
                if effort.second_looks:
                    explores = explorer(worker) if explorer else None
                    explored = effort.explored if explores else 0
                    again = SecondLooks(effort.second_looks, effort.most_looks, start, explores, explored)
                campaign.measure(worker, cells, result, deadline, effort.max_samples, meter.advance, again)
            if at_last:
                with suppress(WorkerError):
                    at_last(worker)
    except KeyboardInterrupt:
        if result is None:
            raise typer.Exit(command_exit.INTERRUPTED) from None
        result.interrupted = True
    except WorkerError as e:
        return result, e
    return result, None


def finish(result: Run | None, failure: WorkerError | None, *, written: bool = True) -> NoReturn:
    """Says loudly what went wrong, and ends with the status that --help documents."""
    errors = Console(stderr=True, highlight=False, soft_wrap=True)
    status = 0
    if result and result.errors and not failure:
        errors.print(f"\n[bold red]ERROR: {len(result.errors)} measurements failed.[/] The first of them:")
        for error in result.errors[:5]:
            errors.print(f"  {error}", markup=False)
        status = command_exit.MEASUREMENT_FAILED
    if failure:
        errors.print("\n[bold red]ERROR:[/]", end=" ")
        errors.print(str(failure), markup=False)
        status = command_exit.ENVIRONMENT
    if result and result.interrupted:
        errors.print(f"\n[bold]Interrupted.[/] What was measured is {'written' if written else 'shown'}.")
        status = command_exit.INTERRUPTED
    raise typer.Exit(status)
