"""`lacuna guide --validate`: runs the validation and shows it."""

from __future__ import annotations

from pathlib import Path
from typing import NoReturn

import typer
from rich.console import Console
from rich.table import Table

from lacuna import command
from lacuna._core import nic_label, profile_file
from lacuna.far import Far
from lacuna.progress import Meter
from lacuna.units import gain_text, us_text
from lacuna.validate import PAIRS, SEED, Validation, validate
from lacuna.worker import Worker, WorkerError, find_worker

_GUESS_SECONDS = 0.3
_WORST = 8


def needs_profile(nic: str) -> bool:
    return not Path(profile_file(nic)).exists()


def run(nic: str, output: Path, data: Path | None, silence: float, far: Far | None = None) -> NoReturn:
    """Ends the command."""
    console = command.console(to_stderr=command.is_stdout(data))
    console.print(f"Judging {profile_file(nic)} on {PAIRS} random pairs of layouts (seed {SEED})", soft_wrap=True)
    try:
        with (
            command.terminable(),
            Worker(find_worker(), nic, silence, (), far) as worker,
            Meter(console, PAIRS, PAIRS * _GUESS_SECONDS, "pairs") as meter,
        ):
            made = validate(worker, nic_label(nic), meter.advance)
    except KeyboardInterrupt:
        raise typer.Exit(command.INTERRUPTED) from None
    except WorkerError as e:
        command.finish(None, e)
    _show(console, made)
    from lacuna import validate_figure

    files = command.deliver(
        console, made.to_json(), data, output, "validation.json", lambda folder: validate_figure.write(made, folder)
    )
    command.show_written(console, files)
    for failure in made.failures:
        console.print(f"ERROR: {failure}", markup=False)
    raise typer.Exit(command.MEASUREMENT_FAILED if made.failures else 0)


CHECK_SECONDS = 5.0
"""Wall time of the whole command."""
_CHECK_END = 0.6
"""Of it, for what comes after measuring."""
_CHECK_SEED = 77
_CHECK_PAIRS = 200
_CHECK_MS = 30.0
_FEWEST_CHECKED = 8
HOLDS_REGRET = 1.10
HOLDS_ERROR = 0.30
"""A profile fitted in the same hour has 1.02 and 8 %, one of another state of a machine 1.10 to 1.25
(docs/guide/choosing.md)."""


def check(nic: str, started: float, data: Path | None, silence: float) -> NoReturn:
    """Whether the profile holds on this machine. Ends the command."""
    console = command.console(to_stderr=command.is_stdout(data))
    file = profile_file(nic)
    if needs_profile(nic):
        command.fail(
            f"there is no profile at {file}; `lacuna guide` makes one, LACUNA_PROFILE names one from elsewhere"
        )
    latest = started + CHECK_SECONDS - _CHECK_END
    try:
        with command.terminable(), Worker(find_worker(), nic, silence) as worker:
            made = validate(worker, nic_label(nic), lambda *_: None, _CHECK_PAIRS, _CHECK_SEED, _CHECK_MS, latest)
    except KeyboardInterrupt:
        raise typer.Exit(command.INTERRUPTED) from None
    except WorkerError as e:
        command.finish(None, e)
    command.write_json(data, made.to_json())
    for failure in made.failures:
        console.print(f"ERROR: {failure}", markup=False)
    if made.failures:
        raise typer.Exit(command.MEASUREMENT_FAILED)
    if len(made.pairs) < _FEWEST_CHECKED:
        command.fail(f"only {len(made.pairs)} pairs in {CHECK_SECONDS:.0f} s: this machine is too busy to tell")
    for warning in made.profile:
        console.print(f"warning: {warning}", markup=False, soft_wrap=True)
    head = made.head()
    regret, error = head["regret_geomean"], head["prediction_error_median"]
    found = (
        f"{len(made.pairs)} random pairs: the chosen way takes {regret:.3f} times as long as the best one, predictions "
        f"are {error:.0%} off in the median"
    )
    holds = regret <= HOLDS_REGRET and error <= HOLDS_ERROR
    verdict = f"{file} holds here." if holds else f"{file} does not hold here; run `lacuna guide` on this machine."
    limits = f"(it holds up to {HOLDS_REGRET:.2f} and {HOLDS_ERROR:.0%})"
    console.print(f"{verdict} {found} {limits}", soft_wrap=True)
    raise typer.Exit(0 if holds else command.MEASUREMENT_FAILED)


def _show(console: Console, made: Validation) -> None:
    head = made.head()
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column(style="bold")
    table.add_column()
    if not made.pairs:
        console.print("Nothing was measured.")
        return
    table.add_row("chosen over best", f"{head['regret_geomean']:.4f} on average (geometric mean)")
    table.add_row("", f"{head['regret_p95']:.3f} in the 95th percentile, {head['regret_max']:.2f} at most")
    table.add_row("predicted against measured", f"{head['prediction_error_median']:.1%} apart, median over all ways")
    if made.again:
        table.add_row("measured again", f"{made.again}, since the processes moved nearer to one another or apart")
    console.print(table)
    rules = Table("over best", "average", "95 %", "most", box=None, pad_edge=False)
    for name, found in ({"Lacuna": head} | made.rules).items():
        figures = (found["regret_geomean"], found["regret_p95"], found["regret_max"])
        rules.add_row(name, *(f"{figure:.3f}" for figure in figures), style="bold" if name == "Lacuna" else "")
    console.print(rules)
    worst = sorted(made.pairs, key=lambda p: -p.regret)[:_WORST]
    shown = Table("over best", "layouts", "chosen", "µs", "best", "µs", box=None, pad_edge=False, title="the worst")
    for pair in worst:
        shown.add_row(
            gain_text(pair.regret) if pair.regret >= 1.05 else f"{pair.regret:.2f}×",
            pair.name,
            " ".join(pair.chosen),
            us_text(pair.chosen_us),
            " ".join(pair.best),
            us_text(pair.best_us),
        )
    console.print(shown)
    for warning in made.profile:
        console.print(f"warning: {warning}", markup=False)
