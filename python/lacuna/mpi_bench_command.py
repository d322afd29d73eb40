"""Runs `lacuna bench mpi`: starts the two jobs of each MPI, races case by case in all of them, writes and shows."""

from __future__ import annotations

import functools
import os
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import typer
from rich.console import Console

from lacuna import __version__, command, message_rows, mpi_bench_rows, mpi_bench_view
from lacuna.lines import RowError
from lacuna.mpi import MpiError
from lacuna.mpi_bench_rows import COMMIT, LATENCY, Mpi, MpiRun, cost_of
from lacuna.mpi_bench_worker import Effort, MpiBench, find_bench
from lacuna.peers import Peer, PeerError
from lacuna.progress import Meter
from lacuna.worker import WorkerError

_SILENCE = 120.0
"""Seconds: a batch takes a second at most, but an MPI's datatype may be slow in ways that nobody has seen yet."""

QUICK_SECONDS = 120.0
SECONDS = 1200.0

_PLACES = ("LACUNA_MPI_LIB_DIR", "LACUNA_MPI_BENCH")

_COMMITS = 200
_COMMIT_TURNS = 4
_COMMIT_BLOCKS = 1000
_COMMIT_NAME = f"commit of {_COMMIT_BLOCKS} blocks"


@dataclass(frozen=True)
class _Pace:
    case: Effort
    latency: Effort
    """Of the 8 bytes: nanoseconds are asked for, so there are more rounds."""


_QUICK = _Pace(Effort(100, 9), Effort(0, 300))
_FULL = _Pace(Effort(600, 21), Effort(0, 600, 600))


def run(
    *, quick: bool, only: str, mpi: Sequence[str], data: Path | None, output: Path | None, budget: float | None
) -> None:
    """The whole command; ends with the status that its help documents."""
    deadline = time.monotonic() + (budget or (QUICK_SECONDS if quick else SECONDS))
    rivals = command.rivals(mpi)
    command.prepare_json(data)
    if output:
        command.prepare(output)
    console = command.console(to_stderr=command.is_stdout(data))
    if not rivals:
        command.fail(command.NO_MPI)
    try:
        find_bench()
    except WorkerError as e:
        command.fail(str(e))
    result = MpiRun(__version__, command.created(), _line(quick, only, rivals, budget), _variables())
    try:
        with command.terminable(), ExitStack() as stack:
            benches = _start(stack, rivals, result)
            if benches:
                _measure(console, benches, result, only, quick, deadline)
    except KeyboardInterrupt:
        result.interrupted = True
    _deliver(console, result, data, output)
    command.end(result.errors, interrupted=result.interrupted)


def _line(quick: bool, only: str, rivals: Sequence[Peer], budget: float | None) -> str:
    line = "lacuna bench mpi" + " --quick" * quick + (f" --only {only!r}" if only else "")
    line += f" --budget {budget:g}" if budget else ""
    return line + command.rivals_line(rivals)


def _variables() -> dict[str, str]:
    """Those that change what the preloaded library does, by name; not those that say where something is."""
    return {k: v for k, v in os.environ.items() if k.startswith("LACUNA_MPI") and k not in _PLACES}


def _start(stack: ExitStack, rivals: Sequence[Peer], result: MpiRun) -> dict[str, MpiBench]:
    """All jobs: they sleep but for the one that is asked."""
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="lacuna-")))
    benches: dict[str, MpiBench] = {}
    for peer in rivals:
        try:
            bench = stack.enter_context(MpiBench(peer, folder, _SILENCE))
        except (PeerError, MpiError, WorkerError) as e:
            result.errors.append(f"{peer.name} could not be measured: {e}")
            continue
        hello = bench.hello
        version = " ".join(str(hello["mpi"]).split())
        name = mpi_bench_rows.name_of(version, peer.name)
        name = peer.name if name in benches else name
        benches[name] = bench
        result.machine = dict(hello["machine"])
        result.instruction_set, result.compiler = str(hello["instruction_set"]), str(hello["compiler"])
        result.mpis.append(Mpi(name, peer.name, version, bench.transport, str(bench.library)))
    return benches


def _measure(
    console: Console, benches: dict[str, MpiBench], result: MpiRun, only: str, quick: bool, deadline: float
) -> None:
    cases = next(iter(benches.values())).hello["cases"]
    plan: list[int | None] = [*message_rows.planned(cases, quick=quick, pattern=only)]
    if only.lower() in _COMMIT_NAME:
        plan.insert(0, None)
    if not plan:
        raise typer.BadParameter(f"no case's name holds {only!r}", param_hint="--only")
    pace = _QUICK if quick else _FULL
    with Meter(console, len(plan), deadline - time.monotonic(), "cases") as meter:
        for done, case in enumerate(plan):
            meter.advance(done, len(plan), deadline - time.monotonic())
            name = _COMMIT_NAME if case is None else str(cases[case]["name"])
            if time.monotonic() > deadline or not benches:
                result.left_out.append(name)
                continue
            for mpi, bench in list(benches.items()):  # close in time, so that they see the same machine
                try:
                    if case is None:
                        _commit(bench, mpi, result)
                    else:
                        _race(bench, mpi, result, case, cases[case], pace)
                except (RowError, WorkerError) as e:
                    result.errors.append(f"{mpi}: {name}: {e}")
                    if isinstance(e, WorkerError):
                        benches.pop(mpi).close()
        meter.advance(len(plan), len(plan), deadline - time.monotonic())


def _race(bench: MpiBench, mpi: str, result: MpiRun, case: int, of: Mapping[str, Any], pace: _Pace) -> None:
    small = of["suite"] == "contiguous"
    raced = bench.race(case, pace.latency if small else pace.case)
    if small:
        result.costs.append(cost_of(mpi, LATENCY, *(raced.samples[side, "reference"] for side in (False, True))))
    else:
        result.rows += mpi_bench_rows.rows_from(of, mpi, raced.samples)
    result.left_out += [f"{mpi}: {of['name']}: {refused}" for refused in raced.refused]


def _commit(bench: MpiBench, mpi: str, result: MpiRun) -> None:
    times = bench.commits(_COMMITS, _COMMIT_TURNS, _COMMIT_BLOCKS)
    result.costs.append(cost_of(mpi, COMMIT, times[False], times[True]))


def _deliver(console: Console, result: MpiRun, data: Path | None, output: Path | None) -> None:
    draw = functools.partial(mpi_bench_view.write, result)
    files = command.deliver(console, result.to_json(), data, output, "mpi.json", draw)
    mpi_bench_view.show(console, result)
    command.show_written(console, files)
