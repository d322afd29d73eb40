"""What the commands that measure have in common: how they start, how they are interrupted, how they end."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType
from typing import Annotated, Any, Generic, NoReturn, TypeVar

import typer
from rich.console import Console

from lacuna import clock, peers, run
from lacuna.explore import Explorer
from lacuna.far import Far
from lacuna.paper import profiles
from lacuna.peers import Peer, PeerError
from lacuna.plan import Cell
from lacuna.progress import Meter
from lacuna.record import Run
from lacuna.run import Again
from lacuna.store import write_whole
from lacuna.worker import Worker, WorkerError, find_worker

MEASUREMENT_FAILED = 1
ENVIRONMENT = 3
INTERRUPTED = 130

NO_MPI = "no MPI was found: there is no mpicc on the PATH. --mpi MPICC names one (scripts/peers.sh installs four)"

_PIPE_WIDTH = 120

NicOption = Annotated[
    str,
    typer.Option(
        "--nic",
        metavar="NAME",
        help="The NIC: local; verbs:DEVICE, an RDMA device (docs/start/rdma.md); model or model:PLATFORM, a simulated "
        "one (docs/design/model.md). `lacuna info` describes it.",
    ),
]

JsonOption = Annotated[
    Path | None,
    typer.Option(
        "--json",
        metavar="FILE",
        help="Write the data here as well; - is standard output, and messages go to standard error then.",
        show_default=False,
    ),
]


def output_option(name: str) -> Any:
    """For a command that writes NAME.json, a page and a picture."""
    files = f"Write {name}.json, {name}.html and {name}.png here; made if it is not there."
    return typer.Option("--output", "-o", metavar="DIR", help=files, show_default=False)


Result = TypeVar("Result", bound=Run)


@dataclass(frozen=True)
class Pace:
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


@dataclass(frozen=True)
class Outcome(Generic[Result]):
    """What a run left behind, however it ended."""

    result: Result | None
    failure: WorkerError | None


def measure(
    console: Console,
    nic: str,
    pace: Pace,
    deadline: float,
    prepare: Callable[[Worker], tuple[Result, list[Cell]]],
    options: Sequence[str] = (),
    far: Far | None = None,
    at_last: Callable[[Worker], None] | None = None,
    explorer: Callable[[Worker], Explorer] | None = None,
) -> Outcome[Result]:
    """Runs a worker through the plan that `prepare` makes for it. Keeps what was measured, whatever ends the run.
    `far`: the receiver is there. `at_last`: something more to ask of the worker, not of the result. `explorer`: makes
    what chooses further cells."""
    result: Result | None = None

    def start() -> Worker:
        return Worker(find_worker(), nic, pace.silence, options, far)

    try:
        with terminable(), start() as worker:
            result, cells = prepare(worker)
            with Meter(console, len(cells), deadline - clock.now()) as meter:
                again = None
                if pace.second_looks:
                    explores = explorer(worker) if explorer else None
                    again = Again(pace.second_looks, pace.most_looks, start, explores, pace.explored if explores else 0)
                run.measure(worker, cells, result, deadline, pace.max_samples, meter.advance, again)
            if at_last:
                with suppress(WorkerError):
                    at_last(worker)
    except KeyboardInterrupt:
        if result is None:
            raise typer.Exit(INTERRUPTED) from None
        result.interrupted = True
    except WorkerError as e:
        return Outcome(result, e)
    return Outcome(result, None)


def is_simulated(nic: str) -> bool:
    return nic == "model" or nic.startswith("model:")


def worker_nic(nic: str) -> str:
    """The name that the worker takes: a simulated platform by its file, so that it is found from anywhere."""
    if not is_simulated(nic):
        return nic
    name = nic.removeprefix("model").removeprefix(":") or profiles.PLATFORM_2
    if "/" in name:
        return nic
    try:
        return f"model:{profiles.load(name).path}"
    except WorkerError as e:
        raise typer.BadParameter(str(e), param_hint="--nic") from e


def rivals(wanted: Sequence[str]) -> list[Peer]:
    """The MPIs that --mpi names."""
    try:
        return peers.find(wanted)
    except PeerError as e:
        raise typer.BadParameter(str(e), param_hint="--mpi") from e


def rivals_line(rivals: Sequence[Peer]) -> str:
    """What names them on a command line."""
    return "".join(f" --mpi {peer.name}={peer.mpicc}" for peer in rivals)


def created() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def console(*, to_stderr: bool = False) -> Console:
    """Standard output, or standard error where that holds data: as wide as the terminal, or wide enough for the
    tables in a pipe."""
    console = Console(highlight=False, stderr=to_stderr)
    return console if console.is_terminal else Console(highlight=False, stderr=to_stderr, width=_PIPE_WIDTH)


def is_stdout(file: Path | None) -> bool:
    return file == Path("-")


def prepare_json(file: Path | None) -> None:
    """Finds out before measuring whether --json can be written."""
    if file is None or is_stdout(file):
        return
    prepare(file.parent, "--json")
    if file.is_dir():
        raise typer.BadParameter(f"{file} is a directory", param_hint="--json")


def write_json(file: Path | None, text: str) -> None:
    if is_stdout(file):
        sys.stdout.write(text)
        sys.stdout.flush()
    elif file:
        write_whole(file, text)


def deliver(
    console: Console, text: str, data: Path | None, output: Path | None, name: str, draw: Callable[[Path], list[Path]]
) -> list[Path]:
    """Writes the data first, as --json and as `name` of --output, whatever may happen to the pictures that `draw` makes
    there. Returns the files."""
    write_json(data, text)
    files = [data] if data and not is_stdout(data) else []
    if output:
        files.append(output / name)
        write_whole(files[-1], text)
        with console.status("drawing the report"):
            files += draw(output)
    return files


def show_written(console: Console, files: Sequence[Path]) -> None:
    if files:
        console.print("Written: " + ", ".join(str(f) for f in files), soft_wrap=True)


def prepare(directory: Path, option: str = "--output") -> None:
    """Finds out before measuring, not after, whether the results can be written."""
    probe = directory / ".lacuna-probe"
    try:
        directory.mkdir(parents=True, exist_ok=True)
        probe.touch()
        probe.unlink()
    except OSError as e:
        raise typer.BadParameter(f"cannot write to {directory}: {e.strerror}", param_hint=option) from e


@contextmanager
def terminable() -> Iterator[None]:
    """SIGTERM, by which batch systems announce the end of a job, acts like Ctrl-C: what was measured is kept."""

    def interrupt(_signal: int, _frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def fail(text: str) -> NoReturn:
    """Ends a command that lacks what it needs."""
    Console(stderr=True, highlight=False, soft_wrap=True).print(f"ERROR: {text}", markup=False)
    raise typer.Exit(ENVIRONMENT)


def end(errors: Sequence[str], *, interrupted: bool) -> None:
    """Ends a command that has told what went wrong; returns if nothing did."""
    if interrupted:
        raise typer.Exit(INTERRUPTED)
    if errors:
        raise typer.Exit(MEASUREMENT_FAILED)


def finish(result: Run | None, failure: WorkerError | None, *, written: bool = True) -> NoReturn:
    """Says loudly what went wrong, and ends with the status that --help documents."""
    errors = Console(stderr=True, highlight=False, soft_wrap=True)
    status = 0
    if result and result.errors and not failure:
        errors.print(f"\n[bold red]ERROR: {len(result.errors)} measurements failed.[/] The first of them:")
        for error in result.errors[:5]:
            errors.print(f"  {error}", markup=False)
        status = MEASUREMENT_FAILED
    if failure:
        errors.print("\n[bold red]ERROR:[/]", end=" ")
        errors.print(str(failure), markup=False)
        status = ENVIRONMENT
    if result and result.interrupted:
        errors.print(f"\n[bold]Interrupted.[/] What was measured is {'written' if written else 'shown'}.")
        status = INTERRUPTED
    raise typer.Exit(status)
