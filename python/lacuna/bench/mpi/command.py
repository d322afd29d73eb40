"""Runs `lacuna bench mpi`: starts the two jobs of each MPI, races case by case in all of them, writes and shows."""

from __future__ import annotations

import functools
import os
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import typer
from rich.console import Console

from lacuna import __version__, clock
from lacuna.bench import session
from lacuna.bench.messages import rows as message_rows
from lacuna.bench.mpi import page as mpi_bench_view
from lacuna.bench.mpi import programs
from lacuna.bench.mpi import rows as mpi_bench_rows
from lacuna.bench.mpi.client import Effort, MpiBench, find_bench
from lacuna.bench.mpi.programs import Programs, Task
from lacuna.bench.mpi.rows import COMMIT, LATENCY, Mpi, MpiRun, cost_of
from lacuna.bench.progress import Meter
from lacuna.mpi.applications import ApplicationError, MissingError
from lacuna.mpi.installations import Peer, PeerError
from lacuna.mpi.interposer import MpiError
from lacuna.mpi.two_hosts import Hosts, HostsError
from lacuna.mpi.two_hosts import two_hosts as two_hosts_here
from lacuna.worker.client import WorkerError
from lacuna.worker.json_lines import RowError

_SILENCE = 120.0
"""Seconds: a batch takes a second at most, but an MPI's datatype may be slow in ways that nobody has seen yet."""

QUICK_SECONDS = 300.0
SECONDS = 2400.0
_SHARE = 0.5
"""Of the time, what messages may take where programs come after them."""

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
    *,
    quick: bool,
    only: str,
    forced: bool,
    programs_too: bool,
    two_hosts: bool,
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
    line = _line(quick, only, forced, programs_too, two_hosts, rivals, budget)
    result = MpiRun(__version__, session.created(), line, _variables())
    tasks = programs.planned(far=two_hosts, pattern=only) if programs_too else []
    try:
        with session.terminable(), ExitStack() as stack:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="lacuna-")))
            with ExitStack() as messages:
                benches = _start(messages, rivals, folder, result, forced=forced)
                plan = _plan(benches, only, quick)
                if benches and not plan and not tasks:
                    raise typer.BadParameter(f"no case's name holds {only!r}", param_hint="--only")
                share = (deadline - clock.now()) * (_SHARE if tasks else 1)
                _measure(console, benches, result, plan, quick, clock.now() + share)
            hosts = _hosts(stack, result) if any(task.far for task in tasks) else None
            _run_programs(
                console,
                [t for t in tasks if hosts or not t.far],
                rivals,
                result,
                Programs(folder, hosts),
                quick,
                deadline,
            )
    except KeyboardInterrupt:
        result.interrupted = True
    _deliver(console, result, data, output)
    session.end(result.errors, interrupted=result.interrupted)


def _line(
    quick: bool,
    only: str,
    forced: bool,
    programs_too: bool,
    two_hosts: bool,
    rivals: Sequence[Peer],
    budget: float | None,
) -> str:
    line = "lacuna bench mpi" + " --quick" * quick + (f" --only {only!r}" if only else "")
    line += " --forced" * forced + " --no-programs" * (not programs_too) + " --two-hosts" * two_hosts
    line += f" --budget {budget:g}" if budget else ""
    return line + session.rivals_line(rivals)


def _variables() -> dict[str, str]:
    """Those that change what the preloaded library does, by name; not those that say where something is."""
    return {k: v for k, v in os.environ.items() if k.startswith("LACUNA_MPI") and k not in _PLACES}


def _start(
    stack: ExitStack, rivals: Sequence[Peer], folder: Path, result: MpiRun, *, forced: bool
) -> dict[str, MpiBench]:
    """All jobs: they sleep but for the one that is asked."""
    benches: dict[str, MpiBench] = {}
    for peer in rivals:
        try:
            bench = stack.enter_context(MpiBench(peer, folder, _SILENCE, forced=forced))
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


def _plan(benches: Mapping[str, MpiBench], only: str, quick: bool) -> list[int | None]:
    """The cases by index; None is the commit."""
    if not benches:
        return []
    cases = next(iter(benches.values())).hello["cases"]
    plan: list[int | None] = [*message_rows.planned(cases, quick=quick, pattern=only)]
    return [None, *plan] if only.lower() in _COMMIT_NAME else plan


def _measure(
    console: Console,
    benches: dict[str, MpiBench],
    result: MpiRun,
    plan: Sequence[int | None],
    quick: bool,
    deadline: float,
) -> None:
    if not plan:
        return
    cases = next(iter(benches.values())).hello["cases"]
    pace = _QUICK if quick else _FULL
    with Meter(console, len(plan), deadline - clock.now(), "cases") as meter:
        for done, case in enumerate(plan):
            meter.advance(done, len(plan), deadline - clock.now())
            name = _COMMIT_NAME if case is None else str(cases[case]["name"])
            if clock.now() > deadline or not benches:
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
        meter.advance(len(plan), len(plan), deadline - clock.now())


def _race(bench: MpiBench, mpi: str, result: MpiRun, case: int, of: Mapping[str, Any], pace: _Pace) -> None:
    small = of["suite"] == "contiguous"
    raced = bench.race(case, pace.latency if small else pace.case)
    if small:
        result.costs.append(cost_of(mpi, LATENCY, *(raced.samples[side, "reference"] for side in (False, True))))
    else:
        result.rows += mpi_bench_rows.rows_from(of, mpi, raced.samples)
        result.forced += mpi_bench_rows.forced_from(of, mpi, raced.samples)
    result.left_out += [f"{mpi}: {of['name']}: {refused}" for refused in raced.refused]


def _commit(bench: MpiBench, mpi: str, result: MpiRun) -> None:
    times = bench.commits(_COMMITS, _COMMIT_TURNS, _COMMIT_BLOCKS)
    result.costs.append(cost_of(mpi, COMMIT, times[False], times[True]))


def _hosts(stack: ExitStack, result: MpiRun) -> Hosts | None:
    try:
        return stack.enter_context(two_hosts_here())
    except HostsError as e:
        result.errors.append(f"two hosts: {e}")
        return None


def _run_programs(
    console: Console,
    tasks: Sequence[Task],
    rivals: Sequence[Peer],
    result: MpiRun,
    runner: Programs,
    quick: bool,
    deadline: float,
) -> None:
    names = {mpi.called: mpi.name for mpi in result.mpis}
    peers = [peer for peer in rivals if peer.name in names]
    if not tasks or not peers:
        return

    def going() -> bool:
        return clock.now() < deadline

    with Meter(console, len(tasks), deadline - clock.now(), "programs") as meter:
        for done, task in enumerate(tasks):
            meter.advance(done, len(tasks), deadline - clock.now())
            for peer in peers:
                if not going():
                    result.left_out.append(f"{names[peer.name]}: {task.name}")
                    continue
                try:
                    pace = programs.QUICK if quick else programs.FULL
                    result.programs += runner.race(task, names[peer.name], peer, pace, going)
                except MissingError as e:
                    result.left_out.append(f"{names[peer.name]}: {task.name}: {e}")
                except ApplicationError as e:
                    result.errors.append(f"{names[peer.name]}: {task.name}: {e}")
        meter.advance(len(tasks), len(tasks), deadline - clock.now())


def _deliver(console: Console, result: MpiRun, data: Path | None, output: Path | None) -> None:
    draw = functools.partial(mpi_bench_view.write, result)
    files = session.deliver(console, result.to_json(), data, output, "mpi.json", draw)
    mpi_bench_view.show(console, result)
    session.show_written(console, files)
