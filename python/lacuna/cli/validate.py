"""`lacuna guide --validate` and `--check`: what the profile's choices lose, on random pairs of layouts."""

from __future__ import annotations

from pathlib import Path
from typing import NoReturn

import typer
from rich.console import Console

from lacuna._core import nic_label, profile_file
from lacuna.bench import command_exit
from lacuna.bench.delivery import Delivery
from lacuna.bench.progress import Meter
from lacuna.bench.validation.page import ValidationPresentation
from lacuna.bench.validation.validation import PAIRS, SEED, Sample, Validation, validate
from lacuna.worker.client import Worker, find_worker
from lacuna.worker.remote_host import RemoteHost
from lacuna.worker.result import begun

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
(docs/guide/choosing.md)."""


def needs_profile(nic: str) -> bool:
    return not Path(profile_file(nic)).exists()


def run(nic: str, delivery: Delivery, silence: float, remote: RemoteHost | None = None) -> NoReturn:
    """Ends the command."""
    made = _begun(nic, "lacuna guide --validate")

    def measure(console: Console) -> None:
        console.print(f"Judging {profile_file(nic)} on {PAIRS} random pairs of layouts (seed {SEED})", soft_wrap=True)
        with (
            Worker(find_worker(), nic, silence, (), remote) as worker,
            Meter(console, PAIRS, PAIRS * _GUESS_SECONDS, "pairs") as meter,
        ):
            validate(worker, made, meter.advance, Sample(PAIRS, SEED))

    delivery.run(ValidationPresentation(made), measure)
    raise typer.Exit


def check(nic: str, started: float, delivery: Delivery, silence: float) -> NoReturn:
    """Whether the profile holds on this machine. Ends the command."""
    file = profile_file(nic)
    if needs_profile(nic):
        command_exit.fail(
            f"there is no profile at {file}; `lacuna guide` makes one, LACUNA_PROFILE names one from elsewhere"
        )
    made = _begun(nic, "lacuna guide --check")
    sample = Sample(_CHECK_PAIRS, _CHECK_SEED, _CHECK_MS, started + CHECK_SECONDS - _CHECK_END)
    with command_exit.guarded(), Worker(find_worker(), nic, silence) as worker:
        validate(worker, made, lambda *_: None, sample)
    delivery.write_json(made.to_json())
    console = delivery.console()
    for error in made.errors:
        console.print(f"ERROR: {error}", markup=False)
    command_exit.end(made.errors, interrupted=False)
    if len(made.pairs) < _FEWEST_CHECKED:
        command_exit.fail(f"only {len(made.pairs)} pairs in {CHECK_SECONDS:.0f} s: this machine is too busy to tell")
    raise typer.Exit(0 if _show_verdict(console, file, made) else command_exit.MEASUREMENT_FAILED)


def _show_verdict(console: Console, file: str, made: Validation) -> bool:
    """Returns whether the profile holds."""
    for warning in made.profile:
        console.print(f"warning: {warning}", markup=False, soft_wrap=True)
    summary = made.summary()
    regret, error = summary["regret_geomean"], summary["prediction_error_median"]
    found = (
        f"{len(made.pairs)} random pairs: the chosen way takes {regret:.3f} times as long as the best one, predictions "
        f"are {error:.0%} off in the median"
    )
    holds = bool(regret <= HOLDS_REGRET and error <= HOLDS_ERROR)
    verdict = f"{file} holds here." if holds else f"{file} does not hold here; run `lacuna guide` on this machine."
    limits = f"(it holds up to {HOLDS_REGRET:.2f} and {HOLDS_ERROR:.0%})"
    console.print(f"{verdict} {found} {limits}", soft_wrap=True)
    return holds


def _begun(nic: str, command: str) -> Validation:
    made = begun(Validation, command)
    made.nic = nic_label(nic)
    return made
