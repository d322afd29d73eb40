"""The programs of `lacuna bench mpi`: their rows, what is planned, and real runs of the mini-applications."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from dataclasses import asdict
from pathlib import Path

import pytest
from conftest import PATIENCE
from mpi_ready import run_application
from typer.testing import CliRunner, Result

from lacuna.bench.mpi import programs
from lacuna.bench.mpi.program_rows import rows_from
from lacuna.bench.mpi.programs import Effort, Programs, Task
from lacuna.cli.app import app
from lacuna.mpi import mini_applications
from lacuna.mpi.applications import ApplicationError, MissingError, Program, sources
from lacuna.mpi.installations import MpiInstallation
from lacuna.mpi.launch import Launch, launch


def line(case: str, hand: float, datatype: float) -> dict[str, object]:
    return {"case": case, "ranks": 4, "bytes": 64, "hand_us": [9, hand, hand], "datatype_us": [1, datatype, datatype]}


def test_ratios_are_those_of_pairs_of_runs() -> None:
    pairs = [
        ([line("a", h, 4 * h), line("b", h, h)], [line("a", 99, h / 2), line("b", 99, h)]) for h in (2.0, 4.0, 8.0)
    ]
    a, b = rows_from("mpi", "halo", 1, pairs)
    assert (a.hand_us, a.host_us, a.lacuna_us) == (4, 16, 2)
    assert (a.ratio_vs_hand, a.ratio_vs_hand_low, a.ratio_vs_hand_high, a.ratio_vs_host) == (0.5, 0.5, 0.5, 0.125)
    assert (b.ratio_vs_hand, b.pairs, b.ranks, b.payload_bytes) == (1, 3, 4, 64)
    assert asdict(a)["case"] == "a"


def test_groups_of_the_summary() -> None:
    pairs = [([line("a", 1, 1)], [line("a", 1, 1)])]
    assert rows_from("m", "halo", 1, pairs)[0].group == "applications_4_ranks"
    assert rows_from("m", "collectives", 1, pairs)[0].group == "collectives_4_ranks"
    assert rows_from("m", "pingpong", 2, pairs)[0].group == "pingpong_two_hosts"


@pytest.mark.parametrize("other", [[], [line("b", 1, 1)]])
def test_runs_that_print_other_cases_are_an_error(other: list[dict[str, object]]) -> None:
    with pytest.raises(ValueError, match=r"same cases|shorter"):
        rows_from("mpi", "halo", 1, [([line("a", 1, 1)], other)])


def test_what_is_planned() -> None:
    assert [task.ranks for task in programs.planned(inter_node=False, pattern="COLLECT")] == [2, 4, 8]
    assert not any(task.inter_node for task in programs.planned(inter_node=False))
    assert [t.program.name for t in programs.planned(inter_node=True, pattern="pingpong")] == ["pingpong"]
    assert programs.planned(inter_node=True, pattern="no such program") == []


def test_as_many_pairs_as_there_is_time_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[bool] = []

    def run(*_: object, preload: bool, **__: object) -> list[dict[str, object]]:
        ran.append(preload)
        return [line("a", 2, 1)]

    started = Launch((), {}, "", "")
    monkeypatch.setattr(programs, "launch", lambda *_: started)
    monkeypatch.setattr(
        mini_applications, "build", lambda *_: Program(MpiInstallation("p", tmp_path), "halo", tmp_path, started)
    )
    monkeypatch.setattr(Program, "run", run)
    runner = Programs(tmp_path, None)
    task, peer, effort = Task(mini_applications.HALO, 2), MpiInstallation("p", tmp_path), Effort(3, 0.1, quick=True)
    assert runner.race(task, "m", peer, effort, lambda: True)[0].pairs == 3
    assert ran == [False, True, True, False, False, True], "neither always comes first"
    assert runner.race(task, "m", peer, effort, lambda: False)[0].pairs == 1


# --- real programs ----------------------------------------------------------------------------------------------------


def debian() -> MpiInstallation:
    mpicc = shutil.which("mpicc.openmpi")
    if mpicc is None:
        pytest.skip("no mpicc.openmpi on the PATH: the mini-applications were not run")
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("one CPU: two ranks would wait for one another")
    return MpiInstallation("debian", Path(mpicc))


ALL = (mini_applications.PINGPONG, mini_applications.COLLECTIVES, *mini_applications.APPLICATIONS)
SMALL = {"pingpong": 65536, "collectives": 4096, "halo": 256, "halo_fortran": 256, "fft2": 192, "gather": 64}


@pytest.mark.parametrize("ranks", [pytest.param(1, marks=pytest.mark.gate), 2, pytest.param(3, marks=pytest.mark.gate)])
@pytest.mark.parametrize("program", ALL, ids=lambda program: program.name)
def test_each_is_right_with_any_number_of_ranks(program: mini_applications.Mini, ranks: int, tmp_path: Path) -> None:
    """It ends with an error where a byte is wrong."""
    peer = debian()
    try:
        built = mini_applications.build(peer, program, launch(peer), tmp_path)
    except MissingError as e:
        pytest.skip(f"{program.name} was not run: {e}")
    given = {"seconds": 0.001, "largest": SMALL[program.name]}
    for preload in (False, True):
        rows = run_application(built, given, ranks=ranks, preload=preload)
        assert all(row["ranks"] == ranks and min(row["hand_us"]) > 0 for row in rows)


@pytest.mark.parametrize(
    ("file", "right", "wrong", "way"),
    [
        ("gather.c", "[i * CELL + k] = m->values[", "[i * CELL + k] = 1 + m->values[", "packed by hand"),
        ("gather.c", "MPI_Isend(m->values, 1", "MPI_Isend(m->values + 1, 1", "by datatype"),
        ("halo.c", "block->values, 1, edge->in,", "block->values + 1, 1, edge->in,", "by datatype"),
        ("collectives.c", "STRIDE + k] = *packed++", "STRIDE + k + 1] = *packed++", "packed by hand"),
    ],
)
def test_a_wrong_byte_ends_it(file: str, right: str, wrong: str, way: str, tmp_path: Path) -> None:
    peer = debian()
    folder = sources() / "examples" / "mini"
    text = (folder / file).read_text()
    assert right in text
    (tmp_path / file).write_text(text.replace(right, wrong))
    built = tmp_path / "wrong"
    line = [str(peer.mpicc), "-I", str(folder), str(tmp_path / file), str(folder / "mini.c"), "-o", str(built), "-ldl"]
    subprocess.run(line, check=True, env=peer.environment(), capture_output=True)
    program = Program(peer, "wrong", built, launch(peer))
    with pytest.raises(ApplicationError, match=f"{way}: wrong bytes"):
        program.run({"seconds": 0.001, "largest": 4096}, seconds=PATIENCE)


def test_a_number_that_is_none_is_told(tmp_path: Path) -> None:
    peer = debian()
    built = mini_applications.build(peer, mini_applications.GATHER, launch(peer), tmp_path)
    with pytest.raises(ApplicationError, match="--largest many: not a number above 0"):
        built.run({"seconds": 0.001, "largest": "many"}, seconds=PATIENCE)


def invoke(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["bench", "mpi", "--quick", *arguments])


@pytest.mark.usefixtures("still_clock")
@pytest.mark.gate
def test_the_command_writes_rows_and_a_picture(tmp_path: Path) -> None:
    peer = debian()
    done = invoke("--only", "gather, 2 ranks", "--mpi", f"debian={peer.mpicc}", "-o", str(tmp_path))
    assert done.exit_code == 0, done.output
    data = json.loads((tmp_path / "mpi.json").read_text())
    assert {row["program"] for row in data["programs"]} == {"gather"}
    assert data["summary"]["openmpi4"]["applications_2_ranks_vs_hand_geomean"] > 0
    assert (tmp_path / "mpi-programs.png").stat().st_size > 5_000
    assert "gather, 64 cells" in (tmp_path / "mpi.html").read_text()


def test_many_ranks_are_chosen_by_name() -> None:
    assert programs.planned_many(programs.MANY) == [16, 64]
    assert programs.planned_many(programs.MANY, "RANKS: 64") == [64]
    assert programs.planned_many(programs.MANY, "collectives") == []
