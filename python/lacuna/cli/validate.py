"""`lacuna guide --validate` and `--check`: what the profile's choices lose, on random pairs of layouts."""

from __future__ import annotations

from pathlib import Path
from typing import NoReturn

import typer
from rich.console import Console

from lacuna._core import nic_label, profile_file
from lacuna.bench import session
from lacuna.bench.delivery import Delivery, show_written
from lacuna.bench.progress import Meter
from lacuna.bench.validation import terminal
from lacuna.bench.validation.validation import PAIRS, SEED, Progress, Sample, Validation, validate
from lacuna.worker.client import Worker, find_worker
from lacuna.worker.process import WorkerError
from lacuna.worker.remote_host import RemoteHost

OPTION = typer.Option(
    "--validate",
    help="Judge the profile's choices on 500 random pairs of layouts that it was not fitted to. Measures and "
    "fits first if this NIC has no profile.",
)
CHECK_OPTION = typer.Option(
    "--check",
    help="Say within 5 s whether the profile holds on this machine, also one that was made on another of its "
    "kind. Changes nothing.",
)

_GUESS_SECONDS = 0.3
"""Of a pair."""

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
(docs/choosing.md)."""


def needs_profile(nic: str) -> bool:
    return not Path(profile_file(nic)).exists()


def run(nic: str, delivery: Delivery, silence: float, remote: RemoteHost | None = None) -> NoReturn:
    """Ends the command."""
    console = delivery.console()
    console.print(f"Judging {profile_file(nic)} on {PAIRS} random pairs of layouts (seed {SEED})", soft_wrap=True)
    with Meter(console, PAIRS, PAIRS * _GUESS_SECONDS, "pairs") as meter:
        made = _validated(nic, silence, remote, Sample(PAIRS, SEED), meter.advance)
    terminal.show(console, made)

    def draw(folder: Path) -> list[Path]:
        # Imported here: matplotlib takes half a second, which a run without pictures need not spend.
        from lacuna.bench.validation import picture

        return picture.write(made, folder)

    show_written(console, delivery.write(console, made.to_json(), "validation.json", draw))
    _show_failures(console, made)
    raise typer.Exit


def check(nic: str, started: float, delivery: Delivery, silence: float) -> NoReturn:
    """Whether the profile holds on this machine. Ends the command."""
    console = delivery.console()
    file = profile_file(nic)
    if needs_profile(nic):
        session.fail(
            f"there is no profile at {file}; `lacuna guide` makes one, LACUNA_PROFILE names one from elsewhere"
        )
    sample = Sample(_CHECK_PAIRS, _CHECK_SEED, _CHECK_MS, started + CHECK_SECONDS - _CHECK_END)
    made = _validated(nic, silence, None, sample, lambda *_: None)
    delivery.write_json(made.to_json())
    _show_failures(console, made)
    if len(made.pairs) < _FEWEST_CHECKED:
        session.fail(f"only {len(made.pairs)} pairs in {CHECK_SECONDS:.0f} s: this machine is too busy to tell")
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
    raise typer.Exit(0 if holds else session.MEASUREMENT_FAILED)


def _validated(nic: str, silence: float, remote: RemoteHost | None, sample: Sample, progress: Progress) -> Validation:
    try:
        with session.terminable(), Worker(find_worker(), nic, silence, (), remote) as worker:
            return validate(worker, nic_label(nic), progress, sample)
    except KeyboardInterrupt:
        raise typer.Exit(session.INTERRUPTED) from None
    except WorkerError as e:
        session.fail(str(e))


def _show_failures(console: Console, made: Validation) -> None:
    """Ends the command where something failed."""
    for failure in made.failures:
        console.print(f"ERROR: {failure}", markup=False)
    session.end(made.failures, interrupted=False)
