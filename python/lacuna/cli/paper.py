"""The `lacuna paper` commands."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn
from rich.text import Text

from lacuna import __version__
from lacuna.bench import command_exit
from lacuna.bench.delivery import Delivery
from lacuna.cli.options import (
    JsonOption,
    command_app,
    command_line,
    exit_statuses,
    find_mpis,
    mpi_option,
    output_option,
)
from lacuna.paper import fft_command, profiles
from lacuna.paper import fit as fitting
from lacuna.paper.fit import Problem, Step
from lacuna.paper.results import CHAPTERS, Chapter, Results
from lacuna.paper.sections.fft import APPLICATIONS, FftChapter
from lacuna.paper.sections.table4_findings import residuals
from lacuna.paper.simulator import Simulator
from lacuna.report.row_tables import RowTable
from lacuna.worker.protocol import written

OutputOption = Annotated[Path | None, output_option("paper", "pictures")]

MpiOption = Annotated[
    list[str] | None,
    mpi_option("An MPI to measure, by its compiler wrapper; may be repeated. Otherwise the mpicc on the PATH."),
]

QuickOption = Annotated[
    bool,
    typer.Option("--quick", help="Of the 2D FFT: smaller matrices, one round; a minute or two instead of 15 or 30."),
]

app = command_app(
    "paper", help="Reproduce the findings of the papers behind Lacuna on a modelled NIC, in virtual time."
)

_EPILOG = exit_statuses(
    "a measurement failed",
    "the simulator is missing, died or refused; what was simulated is written",
    "what was simulated is written",
    well="all is well, also where a finding does not hold, or was left out: that is said",
)


@app.callback(invoke_without_command=True, epilog=_EPILOG)
def everything(
    context: typer.Context,
    data: JsonOption = None,
    output: OutputOption = None,
    mpi: Annotated[
        list[str] | None, mpi_option("Measure f12, f13 and r5.1.1 as well, with this MPI; may be repeated.")
    ] = None,
    quick: QuickOption = False,
) -> None:
    """Reproduce the findings of the papers behind Lacuna on a modelled NIC, in virtual time: all, or one by its name.

    Lacuna's methods run as they are, on simulated processes; the bytes move and are compared. Every parameter of the
    model, and every finding, is labelled: calibrated to Table 4, from the literature, or predicted. Simulated times are
    the same on every machine.

    The two-dimensional FFT of f12, f13 and r5.1.1 is no model's: it runs on this machine, under real MPIs, with and
    without Lacuna.

    \b
    Examples:
      lacuna paper --output paper-out
      lacuna paper f21
      lacuna paper f13 --quick --mpi openmpi=/usr/bin/mpicc.openmpi
      lacuna paper fit
    """
    if context.invoked_subcommand is None:
        _run(CHAPTERS, APPLICATIONS, data, output, mpi or [], quick=quick and bool(mpi))


def _application(chapter: FftChapter) -> Callable[[list[str] | None, bool, Path | None, Path | None], None]:
    def run(
        mpi: MpiOption = None, quick: QuickOption = False, data: JsonOption = None, output: OutputOption = None
    ) -> None:
        _run([], [chapter], data, output, mpi or [], quick=quick)

    return run


def _subcommand(chapter: Chapter) -> Callable[[Path | None, Path | None], None]:
    def run(data: JsonOption = None, output: OutputOption = None) -> None:
        _run([chapter], [], data, output)

    return run


for _chapter in CHAPTERS:
    _title = f"{_chapter.title[:1].upper()}{_chapter.title[1:]}."
    app.command(_chapter.name, help=_title, epilog=_EPILOG)(_subcommand(_chapter))

for _measured in APPLICATIONS:
    app.command(_measured.name, help=f"{_measured.title}.", epilog=_EPILOG)(_application(_measured))


@app.command(epilog=_EPILOG)
def fit(
    profile: Annotated[
        str, typer.Option("--profile", metavar="NAME", help="A profile with calibrated parameters, or a file.")
    ] = profiles.PLATFORM_2,
    data: JsonOption = None,
) -> None:
    """Repeat the fit of a profile's calibrated parameters to Table 4, from their priors on.

    Prints the values beside those of the profile, the residuals of all 120 cells, and the errors of each row of the
    table by parameters that were fitted without it. Takes one to two minutes.
    """
    delivery = Delivery(data, None)
    console = delivery.console()
    with command_exit.guarded(), _simulator(console, 380, "fitting", verify=False) as (simulator, step):
        problem = Problem(simulator, profiles.load(profile), step)
        fitted = fitting.repeat(problem)
    stored = problem.values(problem.stored)
    rows = [[n, f"{stored[n]:.4g}", f"{v:.4g}", f"{v / stored[n] - 1:+.1%}"] for n, v in fitted.values.items()]
    head = ["parameter", "profile", "fitted here", "difference"]
    console.print(RowTable(head, rows, title="Parameters").on_terminal())
    console.print(residuals(fitted).on_terminal())
    console.print(f"Errors: {fitted.errors.text()}")
    console.print(f"By parameters fitted without the row: {fitted.leave_one_out.text()}")
    document = {
        "schema": 1,
        "profile": profile,
        "parameters": {n: {"profile": stored[n], "fitted": v} for n, v in fitted.values.items()},
        "errors": fitted.errors,
        "leave_one_out": fitted.leave_one_out,
        "residuals": fitted.cells(),
    }
    delivery.write_json(written(document) + "\n")


@dataclass(frozen=True)
class PaperPresentation:
    """What is shown of the results. `tables`: those of the sections, too."""

    result: Results
    tables: bool
    name: str = "paper"

    def show(self, console: Console) -> None:
        result = self.result
        for grid in (g for s in result.sections for g in s.grids if self.tables):
            console.print(grid.on_terminal())
        if result.findings:
            console.print(result.table.on_terminal())
            console.print(f"{sum(f.holds for f in result.findings)} of {len(result.findings)} findings hold.")
        for finding in result.findings:
            if not finding.holds:
                console.print(Text(f"{finding.id} does not hold ({finding.statement}): {finding.reason}."))
        for what in result.left_out:
            console.print(Text(f"Left out: {what}"))
        for error in result.errors:
            console.print(Text(f"ERROR: {error}", style="red"))

    def write(self, folder: Path) -> list[Path]:
        # Imported here: matplotlib takes half a second, which a run without pictures need not spend.
        from lacuna.paper import page

        return page.write(self.result, folder)


def _run(
    chapters: Sequence[Chapter],
    measured: Sequence[FftChapter],
    data: Path | None,
    output: Path | None,
    mpi: Sequence[str] = (),
    *,
    quick: bool = False,
) -> None:
    """All chapters go first, then what is measured: with the MPIs of `mpi`, or if that is all there is to do with the
    one on the PATH."""
    mpis = find_mpis(mpi) if mpi or not chapters else []
    names = [*(chapter.name for chapter in chapters), *(chapter.name for chapter in measured)]
    line = command_line(f"paper {names[0]}" if len(names) == 1 else "paper", mpis, quick=quick)
    results = Results(__version__, line)

    def measure(console: Console) -> None:
        if chapters:
            with _simulator(console, len(chapters), "simulating") as (simulator, step):
                for chapter in chapters:
                    results.sections.append(chapter.make(simulator))
                    step()
        if mpis or not chapters:
            fft_command.measure(console, measured, mpis, results, quick=quick)
        elif measured:
            results.left_out.append("f12, f13 and r5.1.1: they are measured with the MPIs that --mpi names")

    Delivery(data, output).run(PaperPresentation(results, tables=len(names) == 1), measure)


@contextmanager
def _simulator(console: Console, steps: int, what: str, *, verify: bool = True) -> Iterator[tuple[Simulator, Step]]:
    """A simulator, and what moves a progress bar on by a step."""
    bar = Progress(
        TextColumn(what),
        BarColumn(bar_width=50),
        TextColumn("{task.completed:.0f} of at most {task.total:.0f}"),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )
    started = time.monotonic()
    with Simulator(verify=verify) as simulator, bar:
        yield simulator, functools.partial(bar.advance, bar.add_task("", total=steps))
    if not console.is_terminal:
        console.print(f"{what} took {time.monotonic() - started:.0f} s")
