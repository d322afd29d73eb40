"""The examples as programs of an MPI: compiled by its own wrapper, started by its launcher, plain or with Lacuna loaded
before them. What they print is read; they verify what they report, and end with an error where it is wrong."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import lacuna
from lacuna.mpi.installations import MpiInstallation, run_tool
from lacuna.mpi.interposer import abi_of, preload_library, preloaded
from lacuna.mpi.launch import Launch, end_launcher, launch

NAMES = ("fft2d", "stencil2d", "faces3d")

_LIBRARIES = {"fft2d": ("fftw3",)}
"""What a program needs besides MPI and Lacuna, by pkg-config's names."""


T = TypeVar("T")


class ApplicationError(Exception):
    """A program cannot be compiled, did not end, or found its result to be wrong; the text says which."""


class LateError(ApplicationError):
    """It did not end in the time that it had."""


class MissingError(ApplicationError):
    """What it needs is not installed."""


@dataclass(frozen=True)
class Program:
    """A compiled example, and how its MPI starts it."""

    installation: MpiInstallation
    name: str
    path: Path
    started: Launch
    interpreter: tuple[str, ...] = ()
    """What runs it: of a script, Python."""

    def run(
        self, arguments: Mapping[str, object], *, ranks: int = 2, preload: bool = False, seconds: float = 600.0
    ) -> list[dict[str, Any]]:
        """The lines that it printed. Raises ApplicationError; MpiError where there is no library to preload."""
        started = self.started.of(ranks)
        # The program's alone: the launchers are programs too.
        front: list[str] = []
        library = None
        if preload:
            library = preload_library(abi_of(started.version))
            front = ["env", f"LD_PRELOAD={preloaded(library, started.environment)['LD_PRELOAD']}"]
        given = [part for name, value in arguments.items() for part in (f"--{name}", str(value))]
        title = f"{self.name} under {self.installation.name}{' with Lacuna preloaded' if preload else ''}"
        said = _run(
            [*started.line, *front, *self.interpreter, str(self.path), *given], started.environment, title, seconds
        )
        try:
            rows = [json.loads(line) for line in said.splitlines() if line.startswith("{")]
        except ValueError as e:
            raise ApplicationError(f"{title} printed what is no JSON: {e}") from e
        for loaded in (str(row["send_in"]) for row in rows):  # what the loader does not take is only a line on stderr
            if library and loaded != library.name:
                raise ApplicationError(f"{title}: {library} was not loaded: MPI_Send is in {loaded}")
            if not library and loaded.startswith("liblacuna_mpi"):
                raise ApplicationError(f"{title}: MPI_Send is in {loaded}; LD_PRELOAD names it already")
        if not rows:
            raise ApplicationError(f"{title} printed nothing")
        return rows


def by_turns(run: Callable[[bool], T], turn: int) -> tuple[T, T]:
    """A plain run and a preloaded one, whichever comes first in this turn: `run(preload)`."""
    found = {preload: run(preload) for preload in ((False, True) if turn % 2 == 0 else (True, False))}
    return found[False], found[True]


def missing(name: str) -> str | None:
    """What the program needs that is not installed, in words; None where all is there."""
    for library in _LIBRARIES.get(name, ()):
        try:
            flags_of(library)
        except MissingError as e:
            return str(e)
    return None


def build(
    installation: MpiInstallation,
    name: str,
    folder: Path,
    instead: Mapping[str, Path] | None = None,
    flags: Sequence[str] = ("-O3", "-march=native"),
) -> Program:
    """Compiles an example into `folder`. `instead`: other files for those of its sources that have these names.

    Raises ApplicationError with what the compiler said, MpiInstallationError where the MPI has no launcher."""
    started = launch(installation)
    place = sources()
    include, library = (place, place / "include"), place / "lib"
    own = {source.name: source for source in sorted((place / "examples" / name).glob("*.cpp"))}
    if not own:
        raise ApplicationError(f"there is no example {name} in {place / 'examples'}")
    # All in one go: reading the headers of MPI and of the standard library is most of the work.
    text = "".join(f'#include "{source}"\n' for source in {**own, **(instead or {})}.values())
    needed = [flag for library in _LIBRARIES.get(name, ()) for flag in flags_of(library)]
    built = folder / f"{name}-{installation.name}"
    wrapper = installation.beside("mpicxx")
    if not os.access(wrapper, os.X_OK):
        raise MissingError(f"{installation.name}: there is no {wrapper.name} beside {installation.mpicc}")
    line = [str(wrapper), *flags, "-std=c++20", "-Wall", "-Wextra", "-pthread", "-x", "c++", "-"]
    line += [*(f"-I{place}" for place in include), "-o", str(built), *needed]
    line += [f"-L{library}", "-llacuna", f"-Wl,-rpath,{library}", "-ldl"]
    installation.compile(name, line, ApplicationError, text=text)
    return Program(installation, name, built, started)


def sources() -> Path:
    """The folder of the package where the examples are. Raises MissingError."""
    for folder in map(Path, lacuna.__path__):
        if (folder / "examples").is_dir() and (folder / "lib" / "liblacuna.so").exists():
            return folder
    raise MissingError("this package was installed without the examples")


def flags_of(library: str) -> list[str]:
    """Of the compiler and the linker."""
    done = run_tool(["pkg-config", "--cflags", "--libs", library], MissingError)
    if done.returncode != 0:
        raise MissingError(f"{library} is not installed (Debian: lib{library}-dev): {done.stderr.strip()}")
    return done.stdout.split()


def _run(line: Sequence[str], environment: Mapping[str, str], title: str, seconds: float) -> str:
    """What it printed. No process stays behind, however it ends."""
    with tempfile.TemporaryFile("w+", errors="replace") as out, tempfile.TemporaryFile("w+", errors="replace") as err:
        process = subprocess.Popen(
            line, stdin=subprocess.DEVNULL, stdout=out, stderr=err, env=dict(environment), start_new_session=True
        )
        code: int | None = None
        try:
            with contextlib.suppress(subprocess.TimeoutExpired):
                code = process.wait(seconds)
        finally:
            end_launcher(process, 5)
        out.seek(0)
        err.seek(0)
        if code == 0:
            return out.read()
        said = err.read().strip()[-800:]
        if code is None:
            raise LateError(f"{title} took longer than {seconds:.0f} s: {said}")
        raise ApplicationError(f"{title} ended with {code}: {said}")
