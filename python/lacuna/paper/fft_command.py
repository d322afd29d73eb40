"""Runs the chapters of `lacuna paper` that are measured on this machine's MPIs, into the results."""

from __future__ import annotations

import functools
import tempfile
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from lacuna.mpi import applications
from lacuna.mpi.installations import NO_MPI, MpiInstallation
from lacuna.paper import fft_runs
from lacuna.paper.fft_runs import Runs
from lacuna.paper.results import Results
from lacuna.paper.sections.fft import FULL, QUICK, FftChapter


def measure(
    console: Console,
    chapters: Sequence[FftChapter],
    installations: Sequence[MpiInstallation],
    results: Results,
    *,
    quick: bool,
) -> None:
    """What cannot be measured here is in `left_out`, what failed in `errors`."""
    lacking = NO_MPI if not installations else applications.missing(fft_runs.NAME)
    if lacking:
        results.left_out += [f"{chapter.name}: {lacking}" for chapter in chapters]
        return
    effort = QUICK if quick else FULL
    with tempfile.TemporaryDirectory(prefix="lacuna-") as folder:
        built = functools.cache(lambda installation: applications.build(installation, fft_runs.NAME, Path(folder)))
        for chapter in chapters:
            plans = chapter.quick if quick else chapter.full
            for plan, make in zip(plans, chapter.sections, strict=True):
                runs = Runs()
                try:
                    fft_runs.measure(console, installations, plan, effort, built, runs)
                finally:  # an interruption leaves what was measured
                    results.fft += runs.rows
                    results.errors += runs.errors
                    results.left_out += [f"{chapter.name}: {what}" for what in dict.fromkeys(runs.left_out)]
                    if runs.rows:
                        results.sections.append(make(runs, plan))
