"""The `lacuna` command."""

from __future__ import annotations

import io
import json
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType
from typing import Annotated, NoReturn

import typer
from rich.console import Console

from lacuna import __version__, plan, run, tables
from lacuna.progress import Meter
from lacuna.schema import PROTOCOL, Guide, Hello
from lacuna.store import write_whole
from lacuna.worker import Worker, WorkerError, find_worker

MEASUREMENT_FAILED = 1
ENVIRONMENT = 3
INTERRUPTED = 130

_PIPE_WIDTH = 120


@dataclass(frozen=True)
class _Pace:
    """How long a run takes by default, in seconds, and how carefully it measures."""

    budget: float
    """Wall time of the whole command; the promises are 20 s and 90 s, on two slow cores."""
    reserve: float
    """The part of it that goes to start-up, tables and report."""
    silence: float
    max_samples: int


_QUICK = _Pace(budget=15, reserve=3, silence=6, max_samples=200)
_FULL = _Pace(budget=75, reserve=6, silence=20, max_samples=400)

app = typer.Typer(
    name="lacuna",
    help="Moves data that has gaps, by the fastest way that this machine offers, and says which way that is.",
    epilog="Start with: lacuna guide --quick",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)

NicOption = Annotated[
    str, typer.Option("--nic", metavar="NAME", help="The NIC to measure; `lacuna info` describes it.")
]


def main() -> None:
    """The entry point."""
    for stream in (sys.stdout, sys.stderr):
        # A terminal that knows no µ gets a question mark, not a traceback.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    app(prog_name="lacuna")


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"lacuna {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    _: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and end.")
    ] = False,
) -> None:
    pass


@app.command()
def guide(
    quick: Annotated[bool, typer.Option("--quick", help="A coarser guide within 20 s instead of 90 s.")] = False,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="DIR", help="Where the files go; made if it is not there.")
    ] = Path("lacuna-guide"),
    budget: Annotated[
        float | None,
        typer.Option(
            "--budget",
            metavar="SECONDS",
            min=5,
            help="Wall time of the whole command; cells that do not fit are left out. [default: 75, with --quick 15]",
            show_default=False,
        ),
    ] = None,
    nic: NicOption = "local",
    timeout: Annotated[
        float | None,
        typer.Option(
            "--timeout",
            metavar="SECONDS",
            min=0.1,
            help="Give up when the worker is silent for so long. [default: 20, with --quick 6]",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Measure every method on this machine and write the guide: for this block size and count, use this method.

    Two processes on two cores move layouts of many block sizes and counts, and those of DDTBench, by every method on
    every path of the NIC. Each is verified. The result is shown here and written to DIR:

    \b
      guide.json    every measurement
      report.html   maps, curves, tables; needs no network
      guide.png     the guide as one picture

    \b
    Examples:
      lacuna guide --quick
      lacuna guide --budget 300 --output results/node17

    \b
    Exit status:
      0    all is well
      1    a method moved a wrong byte or failed; the files are written and name it
      2    wrong usage
      3    the worker is missing, died or fell silent; what was measured is written
      130  interrupted by Ctrl-C or SIGTERM; what was measured is written
    """
    started = time.monotonic()
    pace = _QUICK if quick else _FULL
    deadline = started + max(1.0, (budget or pace.budget) - pace.reserve)
    _prepare(output)
    console = _console()
    result: Guide | None = None
    failure: WorkerError | None = None
    try:
        with _terminable(), Worker(find_worker(), nic, timeout or pace.silence) as worker:
            result = _new_guide(worker.hello, quick=quick, budget=budget, nic=nic)
            corpus = worker.corpus()
            cells = plan.counted(plan.quick(corpus) if quick else plan.full(corpus), worker.hello)
            with Meter(console, len(cells), deadline - time.monotonic()) as meter:
                run.measure(worker, cells, result, deadline, pace.max_samples, meter.advance)
    except KeyboardInterrupt:
        if result is None:
            raise typer.Exit(INTERRUPTED) from None
        result.interrupted = True
    except WorkerError as e:
        failure = e
    if result is not None:
        _deliver(console, result, output)
    _finish(result, failure)


@app.command()
def info(
    nic: NicOption = "local",
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")] = False,
) -> None:
    """Show this machine, the NIC's paths and limits, and the methods.

    \b
    Examples:
      lacuna info
      lacuna info --json | jq .nic.max_sge

    Exit status: 0, 2 for wrong usage, 3 if the worker is missing or fails.
    """
    try:
        with Worker(find_worker(), nic, _FULL.silence) as worker:
            hello = worker.hello
    except WorkerError as e:
        _finish(None, e)
    if as_json:
        print(json.dumps({"protocol": PROTOCOL, **asdict(hello)}, indent=2))
    else:
        tables.show_info(_console(), hello)


def _console() -> Console:
    """Standard output: as wide as the terminal, or wide enough for the tables in a pipe."""
    console = Console(highlight=False)
    return console if console.is_terminal else Console(highlight=False, width=_PIPE_WIDTH)


def _prepare(directory: Path) -> None:
    """Finds out before measuring, not after, whether the results can be written."""
    probe = directory / ".lacuna-probe"
    try:
        directory.mkdir(parents=True, exist_ok=True)
        probe.touch()
        probe.unlink()
    except OSError as e:
        raise typer.BadParameter(f"cannot write to {directory}: {e.strerror}", param_hint="--output") from e


def _new_guide(hello: Hello, *, quick: bool, budget: float | None, nic: str) -> Guide:
    command = "lacuna guide" + " --quick" * quick
    if budget is not None:
        command += f" --budget {budget:g}"
    if nic != "local":
        command += f" --nic {nic}"
    created = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return Guide(__version__, created, command, hello.machine, hello.nic, hello.methods)


@contextmanager
def _terminable() -> Iterator[None]:
    """SIGTERM, by which batch systems announce the end of a job, acts like Ctrl-C: what was measured is kept."""

    def interrupt(_signal: int, _frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _deliver(console: Console, result: Guide, output: Path) -> None:
    """Writes the data first, whatever may happen to the pictures; shows the tables last, to a reader who may leave."""
    data = output / "guide.json"
    write_whole(data, result.to_json())
    with console.status("drawing the report"):
        # Imported here: matplotlib takes half a second, which `lacuna info` need not spend.
        from lacuna import report

        files = [data, *report.write(result, output)]
    tables.show(console, result)
    console.print("Written: " + ", ".join(str(f) for f in files), soft_wrap=True)


def _finish(result: Guide | None, failure: WorkerError | None) -> NoReturn:
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
        errors.print("\n[bold]Interrupted.[/] What was measured is written.")
        status = INTERRUPTED
    raise typer.Exit(status)
