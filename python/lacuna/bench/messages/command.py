"""Runs `lacuna bench messages`: starts a job of each MPI, measures case by case in all of them, writes and shows."""

from __future__ import annotations

import functools
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import typer
from rich.console import Console

from lacuna import __version__, clock
from lacuna.bench import session
from lacuna.bench.messages import page as message_view
from lacuna.bench.messages import rows as message_rows
from lacuna.bench.messages.client import MessageBench, find_bench
from lacuna.bench.messages.rows import Messages, Mpi
from lacuna.bench.progress import Meter
from lacuna.mpi.installations import Peer, PeerError
from lacuna.worker.client import WorkerError
from lacuna.worker.json_lines import RowError

_SILENCE = 120.0
"""Seconds: 64 MiB take a hundredth of one, and a slow datatype a few."""

QUICK_SECONDS = 55.0
SECONDS = 900.0


@dataclass(frozen=True)
class Effort:
    """What one case in one job gets."""

    milliseconds: float
    fewest: int


_QUICK = Effort(100, 9)
_FULL = Effort(600, 21)


def run(
    *,
    quick: bool,
    only: str,
    forced: bool,
    mpi: Sequence[str],
    data: Path | None,
    output: Path | None,
    budget: float | None,
) -> None:
    """The whole command; ends with the status that its help documents."""
    deadline = clock.now() + (budget or (QUICK_SECONDS if quick else SECONDS))
    rivals = session.rivals(mpi)
    session.prepare_json(data)
    if output:
        session.prepare(output)
    console = session.console(to_stderr=session.is_stdout(data))
    if not rivals:
        session.fail(session.NO_MPI)
    try:
        find_bench()
    except WorkerError as e:
        session.fail(str(e))
    result = Messages(__version__, session.created(), _line(quick, only, forced, rivals, budget))
    try:
        with session.terminable(), ExitStack() as stack:
            jobs = _start(stack, rivals, result)
            if jobs:
                _measure(console, jobs, result, only, quick, forced, deadline)
    except KeyboardInterrupt:
        result.interrupted = True
    _deliver(console, result, data, output)
    session.end(result.errors, interrupted=result.interrupted)


def _line(quick: bool, only: str, forced: bool, rivals: Sequence[Peer], budget: float | None) -> str:
    line = "lacuna bench messages" + " --quick" * quick + (f" --only {only!r}" if only else "")
    line += " --forced" * forced
    line += f" --budget {budget:g}" if budget else ""
    return line + session.rivals_line(rivals)


def _start(stack: ExitStack, rivals: Sequence[Peer], result: Messages) -> dict[str, MessageBench]:
    """All jobs: they sleep but for the one that is asked."""
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="lacuna-")))
    jobs: dict[str, MessageBench] = {}
    for peer in rivals:
        try:
            job = stack.enter_context(MessageBench(peer, folder, _SILENCE))
        except (PeerError, WorkerError) as e:
            result.errors.append(f"{peer.name} could not be measured: {e}")
            continue
        jobs[peer.name] = job
        hello = job.hello
        result.machine = dict(hello["machine"])
        result.instruction_set, result.compiler = str(hello["instruction_set"]), str(hello["compiler"])
        result.mpis.append(Mpi(peer.name, " ".join(str(hello["mpi"]).split()), job.transport))
    return jobs


def _measure(
    console: Console,
    jobs: dict[str, MessageBench],
    result: Messages,
    only: str,
    quick: bool,
    forced: bool,
    deadline: float,
) -> None:
    cases = next(iter(jobs.values())).hello["cases"]
    plan = message_rows.planned(cases, quick=quick, pattern=only)
    if not plan:
        raise typer.BadParameter(f"no case's name holds {only!r}", param_hint="--only")
    effort = _QUICK if quick else _FULL
    with Meter(console, len(plan), deadline - clock.now(), "cases") as meter:
        for done, case in enumerate(plan):
            meter.advance(done, len(plan), deadline - clock.now())
            if clock.now() > deadline or not jobs:
                result.left_out.append(str(cases[case]["name"]))
                continue
            ask = {"measure": case, "milliseconds": effort.milliseconds, "fewest": effort.fewest, "forced": forced}
            _measure_case(jobs, result, str(cases[case]["name"]), ask)
        meter.advance(len(plan), len(plan), deadline - clock.now())


def _measure_case(jobs: dict[str, MessageBench], result: Messages, case: str, ask: dict[str, float]) -> None:
    """The same case in every job, one after the other: close in time, so that they see the same machine."""
    for mpi, job in list(jobs.items()):
        try:
            answer = job.ask(**ask)
        except RowError as e:
            result.errors.append(f"{mpi}: {case}: {e}")
        except WorkerError as e:
            result.errors.append(f"{mpi}: {case}: {e}")
            del jobs[mpi]
        else:
            result.rows += message_rows.rows_from(answer, mpi)
            result.left_out += [f"{mpi}: {case}: {refused}" for refused in answer["refused"]]


def _deliver(console: Console, result: Messages, data: Path | None, output: Path | None) -> None:
    draw = functools.partial(message_view.write, result)
    files = session.deliver(console, result.to_json(), data, output, "messages.json", draw)
    message_view.show(console, result)
    session.show_written(console, files)
