"""An MPI that is ready to run the programs of tests/mpi, with Lacuna and without."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from conftest import PATIENCE

from lacuna.mpi.applications import LateError, Program
from lacuna.mpi.installations import MpiInstallation
from lacuna.mpi.launch import Launch

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "mpi"))

import run

Variables = dict[str, str]


@dataclass(frozen=True)
class Ready:
    """An MPI, how it starts ranks, and where its programs are built. What it cannot do by itself skips a test."""

    peer: MpiInstallation
    started: Launch
    folder: Path

    def build(self, source: Path) -> Path:
        try:
            return run.build(self.peer, source, self.folder)
        except run.CannotError as e:
            pytest.skip(str(e))

    def plain(
        self,
        program: run.Program,
        built: Path,
        variables: Variables | None = None,
        wanted: Callable[[run.Outcome], bool] = run.ends_well,
    ) -> run.Outcome:
        try:
            return run.run_plain(self.started, program, built, variables, wanted)
        except run.HostFailsError as e:
            pytest.skip(f"{self.peer.name}, {program.name}: {e}")

    def preloaded(
        self,
        program: run.Program,
        built: Path,
        variables: Variables | None = None,
        wanted: Callable[[run.Outcome], bool] = run.ends_well,
        plain_variables: Variables | None = None,
    ) -> run.Outcome:
        """Fails if it does not end as it should, unless the MPI by itself does so neither."""
        done = run.run(self.started, program, built, run.library(self.peer), variables)
        if not wanted(done):
            try:
                run.doubt(done, self.started, program, built, plain_variables, wanted)
            except run.HostFailsError as e:
                pytest.skip(f"{self.peer.name}, {program.name}: {e}")
            pytest.fail(f"preloaded: {done.text()}", pytrace=False)
        return done

    def compare(
        self,
        program: run.Program,
        built: Path,
        variables: Variables | None = None,
        plain_variables: Variables | None = None,
        options: str = "",
    ) -> run.Outcome:
        """The run with the library; fails if it is not like the one without. `options`: of tests/mpi/run.py, to do it
        again. Without `plain_variables` what is remembered takes the place of a plain run, but in tier all."""
        whole = os.environ.get("LACUNA_TIER", "all") == "all" or plain_variables is not None
        plain = self.plain(program, built, plain_variables) if whole else None
        preloaded = self.preloaded(program, built, variables, plain_variables=plain_variables)
        if plain is None:
            if run.agrees(self.peer, program, built, preloaded, options):
                return preloaded
            plain = self.plain(program, built)
        elif plain_variables is None and run.agrees(self.peer, program, built, plain, options) is False:
            pytest.fail(f"{self.peer.name}, {program.name}: tests/mpi/plain_outcomes.json has another outcome")
        if why := run.failure(plain, preloaded, "preloaded"):
            again = f"python tests/mpi/run.py {options}--mpi {self.peer.name} --only {program.name}"
            pytest.fail(f"{why}\nagain: {again}", pytrace=False)
        return preloaded


def run_application(
    application: Program, given: Mapping[str, object], *, ranks: int = 2, preload: bool = False
) -> list[dict[str, Any]]:
    """What it printed. Skips where the MPI hangs by itself."""
    try:
        return application.run(given, ranks=ranks, preload=preload, seconds=PATIENCE)
    except LateError:
        for _ in range(run.DOUBT_RUNS if preload else run.PLAIN_TRIES - 1):
            try:
                again = application.run(given, ranks=ranks, seconds=PATIENCE)
            except LateError as e:
                pytest.skip(f"the MPI hangs by itself: {e}")
        if preload:
            raise
        return again


def program(name: str) -> run.Program:
    return next(program for program in run.programs() if program.name == name)
