"""The examples verify themselves under every MPI, plain and preloaded, and find an exchange that is wrong."""

from __future__ import annotations

import hashlib
import re
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from conftest import PATIENCE
from mpi_ready import run, run_application
from rich.console import Console

from lacuna.mpi import applications
from lacuna.mpi.applications import ApplicationError, MissingError, Program
from lacuna.mpi.installations import MpiInstallation
from lacuna.mpi.launch import launch
from lacuna.paper import fft_command, fft_runs
from lacuna.paper.fft_runs import Effort, Plan
from lacuna.paper.results import Results
from lacuna.paper.sections.fft import FftChapter, f13

MPIS = ("mpich5", "openmpi5", "openmpi4-debian", "impi")
OF_GATE = ("openmpi4-debian", "impi")
SPOILED = Path(__file__).resolve().parents[2] / "examples" / "spoiled"
FLAGS = ("-O1",)

ARGUMENTS: dict[str, dict[str, object]] = {
    "fft2d": {"n": "10,65,520", "repetitions": 3},  # the last one is checked by rows
    "stencil2d": {
        "n": 700,
        "steps": 3,
    },  # columns of 5.6 KB, which are offered with every MPI but those of MPICH's kind
    "faces3d": {"n": 36, "repetitions": 2},  # faces of 10 KB, which are offered
}
VARIANTS = {
    "fft2d": ["none", "send", "recv", "both", "native"],
    "stencil2d": ["datatype", "native"],
    "faces3d": ["datatype", "native"],
}


def fingerprint(peer: MpiInstallation) -> str:
    """Of all that a program is compiled from."""
    sources = applications.sources()
    files = sorted(file for part in ("examples", "include") for file in (sources / part).rglob("*") if file.is_file())
    made = hashlib.sha256(f"{sources} {FLAGS} {peer.mpicc} {peer.mpicc.stat().st_mtime}".encode())
    for file in files:
        made.update(file.read_bytes())
    return made.hexdigest()[:16]


def build(peer: MpiInstallation, name: str) -> Program:
    """The program of an earlier run, where it was compiled from the same."""
    kept = run.BUILT / "examples" / fingerprint(peer)
    kept.mkdir(parents=True, exist_ok=True)
    built = kept / f"{name}-{peer.name}"
    if not built.exists():
        with tempfile.TemporaryDirectory(dir=kept) as folder:
            applications.build(peer, name, Path(folder), flags=FLAGS).path.replace(built)
    return Program(peer, name, built, launch(peer))


class Built:
    """Each example for each MPI, compiled when it is asked for."""

    def __init__(self) -> None:
        self._peers = {peer.name: peer for peer in run.installed("list")}
        self._made: dict[tuple[str, str], Program | ApplicationError] = {}

    def get(self, mpi: str, name: str) -> Program | ApplicationError | None:
        """None where the MPI is not here."""
        if mpi not in self._peers:
            return None
        if (mpi, name) not in self._made:
            try:
                made: Program | ApplicationError = build(self._peers[mpi], name)
            except ApplicationError as e:
                made = e
            self._made[mpi, name] = made
        return self._made[mpi, name]


@pytest.fixture(scope="module")
def built() -> Built:
    return Built()


def program(built: Built, mpi: str, name: str) -> Program:
    found = built.get(mpi, name)
    if found is None:
        pytest.skip(f"{mpi} is not here; `make peers` installs it")
    if isinstance(found, MissingError):
        pytest.skip(str(found))
    if isinstance(found, ApplicationError):
        raise found
    return found


@pytest.mark.parametrize("preload", [False, True], ids=["plain", "preloaded"])
@pytest.mark.parametrize("name", applications.NAMES)
@pytest.mark.parametrize("mpi", [pytest.param(mpi, marks=[pytest.mark.gate] if mpi in OF_GATE else []) for mpi in MPIS])
def test_verifies_itself(built: Built, mpi: str, name: str, preload: bool) -> None:
    rows = run_application(program(built, mpi, name), ARGUMENTS[name], preload=preload)
    sizes = [int(n) for n in str(ARGUMENTS[name]["n"]).split(",")]
    assert [(row["n"], row["variant"]) for row in rows] == [(n, v) for n in sizes for v in VARIANTS[name]]
    for row in rows:
        assert row["application"] == name
        assert row["ranks"] == 2
        assert all(value >= 0 for value in row["us"].values())
        check(row)


def check(row: dict[str, Any]) -> None:
    checked = row["verified"]
    if row["application"] == "fft2d":
        assert checked["error"] < 1e-11
        assert checked["rows"] == (row["n"] if row["n"] <= 512 else 6)
    elif row["application"] == "stencil2d":
        assert checked["cells"] == row["n"] ** 2
    else:
        assert checked["cells"] == 2 * (row["n"] + 2) * (row["n"] + 3) * (row["n"] + 4)


@pytest.fixture(scope="module")
def some_mpi(built: Built) -> str:
    for mpi in MPIS:
        if isinstance(built.get(mpi, "faces3d"), Program):
            return mpi
    pytest.skip("there is no MPI; `make peers` installs four")


one_group = pytest.mark.xdist_group("mpi")
"""With the tests of each MPI: a program is compiled once."""


def told(program: Program, arguments: Mapping[str, object]) -> str:
    """Why it failed. MPICH's launcher loses what a rank that aborts has printed, one time in eight."""
    for _ in range(20):
        with pytest.raises(ApplicationError) as failed:
            program.run(arguments, seconds=PATIENCE)
        if not str(failed.value).endswith(": "):
            break
    return str(failed.value)


@one_group
@pytest.mark.parametrize("name", applications.NAMES)
def test_blocks_need_not_be_even(built: Built, some_mpi: str, name: str) -> None:
    small = {"fft2d": {"n": 17}, "stencil2d": {"n": 17, "steps": 4}, "faces3d": {"n": 3}}[name]
    rows = run_application(program(built, some_mpi, name), small, ranks=3, preload=True)
    assert [row["variant"] for row in rows] == VARIANTS[name]


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("fft2d", "an exchange did not move every element to its place"),
        ("stencil2d", "native: .* cells are not those of one process"),
        ("faces3d", "native: 1 cells do not hold what they must"),
    ],
)
@pytest.mark.gate
@one_group
def test_a_wrong_exchange_is_found(built: Built, some_mpi: str, name: str, said: str, tmp_path: Path) -> None:
    right = program(built, some_mpi, name)
    spoiled = applications.build(right.installation, name, tmp_path, {"native.cpp": SPOILED / f"{name}.cpp"}, FLAGS)
    n = {"fft2d": 24, "stencil2d": 24, "faces3d": 4}[name]
    assert re.search(said, told(spoiled, {"n": n, "variant": "native"}))


@one_group
def test_wrong_usage_is_told(built: Built, some_mpi: str) -> None:
    assert "fastest is no variant" in told(program(built, some_mpi, "stencil2d"), {"n": 8, "variant": "fastest"})


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> FftChapter:
    plan = Plan((32, 64))
    monkeypatch.setattr(fft_command, "QUICK", Effort(rounds=2, repetitions=3, seconds=1, budget=PATIENCE))
    return FftChapter("f13", "four variants", (plan,), (plan,), (f13,))


@pytest.mark.usefixtures("still_clock")
@pytest.mark.gate
@one_group
def test_the_paper_runs_it(built: Built, some_mpi: str, quick: FftChapter, monkeypatch: pytest.MonkeyPatch) -> None:
    made = program(built, some_mpi, "fft2d")
    monkeypatch.setattr(applications, "build", lambda *_: made)
    results = Results("0", "test")
    fft_command.measure(Console(quiet=True), [quick], [made.installation], results, quick=True)
    assert results.errors == results.left_out == []
    assert len(results.fft) == 2 * 2 * 2 * len(fft_runs.VARIANTS)  # rounds, sides, sizes
    assert [f.id for f in results.findings] == ["F13", "F13", "F13, Lacuna"]


def test_what_is_missing_is_said(quick: FftChapter, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    results = Results("0", "test")
    fft_command.measure(Console(quiet=True), [quick], [], results, quick=True)
    monkeypatch.setenv("PATH", "/bin:/usr/bin")
    monkeypatch.setenv("PKG_CONFIG_LIBDIR", str(tmp_path))
    fft_command.measure(
        Console(quiet=True), [quick], [MpiInstallation("some", Path("/none/mpicc"))], results, quick=True
    )
    assert not results.sections
    assert "f13: no MPI was found" in results.left_out[0]
    assert "f13: fftw3 is not installed" in results.left_out[1]
