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
