"""Runs `lacuna bench copy`: finds the contenders, measures, writes and shows."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from pathlib import Path

import typer
from rich.console import Console

from lacuna import __version__, clock
from lacuna.bench import session
from lacuna.bench.copies import page as copies_view
from lacuna.bench.copies import rows as copies
from lacuna.bench.copies.client import CopyBench
from lacuna.bench.copies.rows import Copies
from lacuna.bench.progress import Meter
from lacuna.mpi.installations import Peer
from lacuna.worker.client import WorkerError

_SILENCE = 120.0
"""Seconds: the largest row with the slowest MPI takes a few."""

_MILLISECONDS = 30.0
_QUICK_MILLISECONDS = 10.0


def run(
    *,
    quick: bool,
    only: str,
    mpi: Sequence[str],
    no_mpi: bool,
    data: Path | None,
    output: Path | None,
    budget: float,
) -> None:
    """The whole command; ends with the status that its help documents."""
    deadline = clock.now() + budget
    rivals = [] if no_mpi else session.rivals(mpi)
    session.prepare_json(data)
    if output:
        session.prepare(output)
    console = session.console(to_stderr=session.is_stdout(data))
    result: Copies | None = None
    failure: WorkerError | None = None
    try:
        with session.terminable(), CopyBench(_SILENCE) as bench:
            hello = bench.hello
            cases = copies.planned(hello, quick=quick, pattern=only)
            if not cases:
                raise typer.BadParameter(f"no layout's name holds {only!r}", param_hint="--only")
            result = Copies(
                __version__,
                session.created(),
                _line(quick, only, rivals, no_mpi),
                cpu=str(hello["machine"]["cpu"]),
                kernel=str(hello["machine"]["kernel"]),
                instruction_set=str(hello["instruction_set"]),
                compiler=str(hello["compiler"]),
            )
            plan = copies.Plan(cases, _QUICK_MILLISECONDS if quick else _MILLISECONDS, deadline)
            rows = len(cases) * len(copies.OPERATIONS) * len(copies.CACHES)
            with Meter(console, rows, deadline - clock.now(), "rows") as meter:

                def advance(done: int, planned: int) -> None:
                    meter.advance(done, planned, deadline - clock.now())

                copies.measure(result, bench, rivals, plan, _SILENCE, advance)
    except KeyboardInterrupt:
        if result is None:
            raise typer.Exit(session.INTERRUPTED) from None
        result.interrupted = True
    except WorkerError as e:
        failure = e
    if result is not None:
        _deliver(console, result, data, output)
    _finish(result, failure)


def _line(quick: bool, only: str, rivals: Sequence[Peer], no_mpi: bool) -> str:
    line = "lacuna bench copy" + " --quick" * quick + (f" --only {only!r}" if only else "")
    return line + " --no-mpi" * no_mpi + session.rivals_line(rivals)


def _deliver(console: Console, result: Copies, data: Path | None, output: Path | None) -> None:
    draw = functools.partial(copies_view.write, result)
    files = session.deliver(console, result.to_json(), data, output, "copy.json", draw)
    copies_view.show(console, result)
    session.show_written(console, files)


def _finish(result: Copies | None, failure: WorkerError | None) -> None:
    if failure is not None:
        session.fail(str(failure))
    if result is not None:
        session.end(result.errors, interrupted=result.interrupted)
