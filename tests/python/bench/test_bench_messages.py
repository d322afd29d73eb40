"""`lacuna bench messages`: rows and summary, how MPIs start, the client against a scripted job, and the real bench."""

from __future__ import annotations

import json
import math
import os
import shutil
import stat
import sys
from pathlib import Path
from typing import Any

import pytest
from conftest import PATIENCE
from typer.testing import CliRunner, Result

from lacuna.bench.messages.command import MessageBench, find_bench
from lacuna.bench.messages.page import MessagePresentation
from lacuna.bench.messages.rows import LARGE, MessageRow, Messages, rows_from
from lacuna.bench.race import chosen_cases
from lacuna.bench.result import Mpi
from lacuna.cli.app import app
from lacuna.mpi import installations, launch
from lacuna.mpi.installations import MpiInstallation, MpiInstallationError
from lacuna.worker.json_lines import RowError
from lacuna.worker.process import WorkerError

MIB = 1 << 20

pytestmark = pytest.mark.usefixtures("still_clock")
"""There is time for all that is measured here."""

FAULTY = Path(__file__).parents[3] / "build" / "release" / "bin" / "lacuna-faulty-message-bench"
"""With the faults that are planted; the bench that is installed has none."""


def row(
    mpi: str = "a",
    case: str = "NAS_LU_y 33x33",
    competitor: str = "hand",
    us: float = 10.0,
    ratio: float = 0.5,
    size: int = LARGE,
    suite: str = "ddtbench",
) -> MessageRow:
    return MessageRow(
        mpi, suite, case.split()[0], case, size, 33, competitor, "", us, us, us, ratio, ratio - 0.1, ratio + 0.1, 99
    )


def contiguous(mpi: str, size: int, us: float, ratio: float) -> MessageRow:
    return row(mpi, f"{size} B", "mpi_contiguous", us, ratio, size, "contiguous")


def result(*rows: MessageRow) -> Messages:
    mpis = [Mpi(name, name, f"MPI {name} 1.0", "shm") for name in dict.fromkeys(r.mpi for r in rows)]
    return Messages(
        "0.1.0", "now", "lacuna bench messages", {"cpu": "a CPU <1>"}, "AVX2", "GCC 12", mpis, rows=list(rows)
    )


# --- rows and summary -------------------------------------------------------------------------------------------------


def test_a_ratio_comes_from_the_job_of_the_fastest_mpi() -> None:
    found = result(
        contiguous("slow", 8, 0.9, 0.3),
        contiguous("quick", 8, 0.3, 0.8),
        contiguous("slow", MIB, 100.0, 0.5),
        contiguous("quick", MIB, 200.0, 0.25),
        contiguous("quick", 64 * MIB, 9e3, 1.25),
    ).summary()
    assert found["latency_8B_vs_best_mpi"] == 0.8
    assert found["bandwidth_1MiB_vs_best_mpi"] == 0.5, "of times, as all ratios"
    assert found["bandwidth_64MiB_vs_best_mpi"] == 1.25
    assert found["best_mpi"] == {"latency_8B": "quick", "bandwidth_1MiB": "slow", "bandwidth_64MiB": "quick"}
    assert found["by_mpi"]["slow"] == {"latency_8B_vs_mpi": 0.3, "bandwidth_1MiB_vs_mpi": 0.5}


def test_hand_packing_over_all_mpis_and_by_mpi() -> None:
    found = result(
        row("a", "F large", us=10, ratio=0.5, size=LARGE),
        row("b", "F large", us=20, ratio=0.1, size=LARGE),
        row("a", "G large", us=30, ratio=0.2, size=LARGE + 1),
        row("b", "G large", us=20, ratio=2.0, size=LARGE + 1),
        row("a", "F small", us=1, ratio=0.7, size=LARGE - 1),
        row("a", "F large", "mpi_datatype", 5, 0.9),
    ).summary()
    assert math.isclose(found["ddtbench_large_vs_hand_geomean"], 1.0), "0.5 of a, 2.0 of b"
    assert math.isclose(found["ddtbench_small_vs_hand_geomean"], 0.7)
    assert found["ddtbench_vs_hand_worst"] == 1.9, "the lower end of the interval"
    assert found["ddtbench_vs_hand_worst_case"] == "G large"
    assert math.isclose(found["by_mpi"]["a"]["ddtbench_large_vs_hand_geomean"], math.sqrt(0.1))
    assert math.isclose(found["by_mpi"]["b"]["ddtbench_large_vs_hand_geomean"], math.sqrt(0.2))
    assert math.isclose(found["ddtbench_vs_datatype_geomean"], 0.9)
    assert "latency_8B_vs_best_mpi" not in found
    assert "ai_vs_hand_geomean" not in found


def test_the_document() -> None:
    document = json.loads(result(row(), contiguous("b", 8, 0.3, 0.8)).to_json())
    assert document["schema"] == 1
    assert document["mpis"][0] == {
        "name": "a",
        "called": "a",
        "version": "MPI a 1.0",
        "transport": "shm",
        "preload": "",
    }
    assert {"created", "lacuna_version", "machine", "summary", "errors", "left_out", "interrupted"} <= set(document)
    wanted = {"mpi", "suite", "case", "payload_bytes", "competitor", "latency_us", "ci_low_us", "ci_high_us"}
    assert wanted | {"ratio", "ratio_low", "ratio_high", "rounds"} <= set(document["rows"][0])
    assert json.loads(result().to_json())["summary"] == {"best_mpi": {}, "by_mpi": {}}


def contender(name: str, us: float, ratio: float) -> dict[str, Any]:
    times = {"us": us, "low": us, "high": us}
    return {"name": name, **times, "ratio": ratio, "ratio_low": ratio, "ratio_high": ratio}


ANSWER = {
    "suite": "ddtbench",
    "family": "F",
    "case": "F 1",
    "payload_bytes": 4096,
    "blocks": 7,
    "rounds": 12,
    "refused": [],
    "contenders": [
        contender("lacuna", 1.0, 1.0),
        contender("mpi_datatype", 4.0, 0.25),
        contender("hand_elements", 2.0, 0.5),
        contender("hand_memcpy", 1.25, 0.8),
    ],
}


def test_the_faster_loop_is_the_one_by_hand() -> None:
    found = {r.competitor: r for r in rows_from(ANSWER, "a")}
    assert list(found) == ["lacuna", "mpi_datatype", "hand"]
    assert (found["hand"].loop, found["hand"].latency_us, found["hand"].ratio) == ("memcpy", 1.25, 0.8)
    assert (found["lacuna"].loop, found["lacuna"].ratio, found["lacuna"].rounds) == ("", 1.0, 12)


def test_the_best_that_is_forced_is_judged_by_the_rounds_that_did_not_choose_it() -> None:
    answer = ANSWER | {
        "contenders": [
            *(c | {"half_us": [1.0, 1.0]} for c in ANSWER["contenders"]),
            contender("forced_sgrs", 1.5, 0.7) | {"half_us": [0.5, 4.0]},
            contender("forced_path kernel", 2.0, 0.5) | {"half_us": [2.0, 2.0]},
        ]
    }
    found = {r.competitor: r for r in rows_from(answer, "a")}
    forced = found["forced"]
    assert (forced.loop, forced.latency_us) == ("sgrs", 1.5)
    # The first half chooses sgrs, which takes 4 in the second; the second half the path, which takes 2 in the first.
    assert forced.ratio == pytest.approx((1 / 4 * 1 / 2) ** 0.5)
    summary = result(*found.values()).summary()
    assert summary["vs_forced_geomean"] == pytest.approx(forced.ratio)
    assert summary["vs_forced_worst_case"] == forced.case


def test_a_run_cut_short_has_seen_every_family() -> None:
    cases = [{"suite": "contiguous", "family": "", "name": f"{n} B", "payload_bytes": n} for n in (8, 64 * MIB)]
    for family in ("F", "G"):
        sizes = (MIB // 2, 10 * MIB, 100, 10)
        cases += [{"suite": "ddtbench", "family": family, "name": f"{family} {n}", "payload_bytes": n} for n in sizes]

    def chosen(*, quick: bool, pattern: str = "") -> list[int]:
        return chosen_cases(cases, quick=quick, pattern=pattern)

    assert chosen(quick=False) == [0, 1, 3, 7, 2, 6, 4, 8, 5, 9]
    assert chosen(quick=True) == [0, 1, 2, 6, 5, 9], "the largest of 1 MiB at most, the smallest"
    assert chosen(quick=True, pattern="g 1") == [7, 8, 9]
    assert chosen(quick=False, pattern="contiguous 8") == [0]
    assert chosen(quick=True, pattern="no such") == []


def test_a_page_and_a_picture_of_what_there_is(tmp_path: Path) -> None:
    whole = result(
        *(row(m, c, k) for m in ("a", "b") for c in ("F<1> x", "G y") for k in ("lacuna", "mpi_datatype", "hand")),
        *(row(m, "8 B", k, size=8, suite="contiguous") for m in ("a", "b") for k in ("lacuna", "mpi_contiguous")),
    )
    whole.errors.append("a < b moved wrong bytes")
    files = MessagePresentation(whole).write(tmp_path)
    assert [f.name for f in files] == ["messages.html", "messages.png"]
    page = files[0].read_text()
    assert "F&lt;1&gt; x" in page
    assert "a &lt; b moved wrong bytes" in page
    assert MessagePresentation(result()).write(tmp_path) == [tmp_path / "messages.html"]


# --- how MPIs start ---------------------------------------------------------------------------------------------------


def script(file: Path, body: str) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(body)
    file.chmod(file.stat().st_mode | stat.S_IXUSR)
    return file


def fake_mpi(folder: Path, says: str, suffix: str = "") -> MpiInstallation:
    script(folder / "bin" / f"mpiexec{suffix}", f"#!/bin/sh\necho '{says}'\n")
    return MpiInstallation("fake", script(folder / "bin" / f"mpicc{suffix}", "#!/bin/sh\n"))


@pytest.mark.parametrize(
    ("says", "option", "transport"),
    [
        ("mpiexec.openmpi (OpenRTE) 4.1.4", "--bind-to", "pml ob1, btl self,vader"),
        ("mpiexec (Open MPI) 5.0.11", "--bind-to", "pml ob1, btl self,sm"),
        ("HYDRA build details:", "-n", "ch4, shared memory"),
        ("Intel(R) MPI Library for Linux* OS, Version 2021.19.0", "-hosts", "I_MPI_FABRICS shm"),
    ],
)
def test_mpis_start_two_processes_through_shared_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, says: str, option: str, transport: str
) -> None:
    for name in ("OMPI_MCA_pml", "OMPI_MCA_btl", "I_MPI_FABRICS"):
        monkeypatch.delenv(name, raising=False)
    found = launch.launch(fake_mpi(tmp_path, says, ".own"))
    assert found.line[0] == str(tmp_path / "bin" / "mpiexec.own")
    assert found.line[1] == option
    assert found.line[-2:] == ("-n", "2")
    assert found.transport == transport


def test_what_the_caller_has_set_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMPI_MCA_pml", "ucx")
    found = launch.launch(fake_mpi(tmp_path, "mpiexec (Open MPI) 5.0.11"))
    assert found.environment["OMPI_MCA_pml"] == "ucx"
    assert "pml ucx" in found.transport


def test_mpis_that_cannot_start(tmp_path: Path) -> None:
    with pytest.raises(MpiInstallationError, match="no MPI known here"):
        launch.launch(fake_mpi(tmp_path, "something else 7.1"))
    (tmp_path / "bin" / "mpiexec").unlink()
    with pytest.raises(MpiInstallationError, match="no mpiexec beside"):
        launch.launch(MpiInstallation("fake", tmp_path / "bin" / "mpicc"))


# --- the client, against a scripted job -------------------------------------------------------------------------------

JOB = """#!{python}
import json, os, socket, sys, time
if "--version" in sys.argv:
    sys.exit(print("HYDRA build details:"))
def start(rank):
    s = socket.socket(socket.AF_UNIX)
    s.connect(sys.argv[-2])
    f = s.makefile("rw")
    def say(x): print(x if isinstance(x, str) else json.dumps(x), file=f, flush=True)
    say({{"hello": {{**HELLO, "rank": rank, "pid": os.getpid()}}}})
    return f, say
HELLO = {hello!r}
ANSWER = {answer!r}
"""

HELLO = {
    "version": "0.1.0",
    "mpi": "MPICH Version:      9.9",
    "instruction_set": "AVX2",
    "compiler": "GCC 12",
    "machine": {"cpu": "a CPU"},
    "cases": [{"suite": "ddtbench", "family": "F", "name": f"F {i}", "payload_bytes": 4096} for i in range(3)],
}

WILLING = """
(f0, say0), (f1, say1) = start(0), start(1)
for line in f0:
    f1.readline()
    say1({"row": {}})
    say0({"error": "hand moved wrong bytes to rank 0"} if '"measure": 2' in line else {"row": ANSWER})
"""


@pytest.fixture
def job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> MpiInstallation:
    """An MPI whose mpiexec is a script that plays both ranks; `play` writes it."""
    bench = script(tmp_path / "lacuna-message-bench", "#!/bin/sh\n")
    monkeypatch.setenv("LACUNA_MESSAGE_BENCH", str(bench))
    monkeypatch.setattr(installations, "shim_source", lambda: tmp_path / "mpi_shim.c")
    return MpiInstallation("played", script(tmp_path / "bin" / "mpicc", "#!/bin/sh\n"))


def play(job: MpiInstallation, body: str) -> None:
    head = JOB.format(python=sys.executable, hello=HELLO, answer=ANSWER)
    script(job.mpicc.with_name("mpiexec"), head + body)


def test_rows_errors_and_a_farewell(job: MpiInstallation, tmp_path: Path) -> None:
    play(job, WILLING)
    with MessageBench(job, tmp_path, PATIENCE) as bench:
        assert bench.hello["rank"] == 0
        assert bench.ask(measure=1)["case"] == "F 1"
        with pytest.raises(RowError, match="wrong bytes"):
            bench.ask(measure=2)
        assert bench.ask(measure=1)["case"] == "F 1"


@pytest.mark.parametrize(
    ("body", "said", "silence"),
    [
        ("sys.exit('no slots')", "did not start: no slots", PATIENCE),
        ("start(0); start(1); sys.exit('a segmentation fault')", "died: a segmentation fault", PATIENCE),
        ("a = start(0); b = start(1); b[0].readline(); b[1]('garbage'); time.sleep(3600)", "no JSON", PATIENCE),
        ("a = start(0); b = start(1); b[0].readline(); b[1]({}); time.sleep(3600)", "sent no row", PATIENCE),
        ("a = start(0); b = start(1); time.sleep(3600)", "fell silent", 0.5),
    ],
)
def test_a_job_that_does_not_do_as_agreed(
    job: MpiInstallation, tmp_path: Path, body: str, said: str, silence: float
) -> None:
    play(job, body)
    with pytest.raises(WorkerError, match=said), MessageBench(job, tmp_path, silence) as bench:
        bench.ask(measure=0)


# --- the command ------------------------------------------------------------------------------------------------------


def invoke(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["bench", "messages", *arguments])


def test_no_mpi_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    done = invoke("--quick")
    assert done.exit_code == 3
    assert "no MPI was found" in done.stderr


def test_wrong_usage(job: MpiInstallation) -> None:
    assert invoke("--mpi", "/nowhere/mpicc").exit_code == 2
    play(job, WILLING)
    assert invoke("--mpi", f"played={job.mpicc}", "--only", "no such case").exit_code == 2


def test_a_missing_bench_is_told(job: MpiInstallation, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LACUNA_MESSAGE_BENCH", "/nowhere/bench")
    done = invoke("--mpi", str(job.mpicc))
    assert done.exit_code == 3
    assert "/nowhere/bench" in done.stderr


def test_wrong_bytes_end_with_1_and_the_rest_is_written(job: MpiInstallation, tmp_path: Path) -> None:
    play(job, WILLING)
    done = invoke("--mpi", f"played={job.mpicc}", "--json", str(tmp_path / "m.json"))
    assert done.exit_code == 1, done.output
    data = json.loads((tmp_path / "m.json").read_text())
    assert data["errors"] == ["played: F 2: hand moved wrong bytes to rank 0"]
    (mpi,) = data["mpis"]
    assert (mpi["name"], mpi["version"], mpi["transport"]) == ("played", "MPICH Version: 9.9", "ch4, shared memory")
    assert len(data["rows"]) == 6


def test_an_mpi_that_dies_leaves_the_others_measured(job: MpiInstallation, tmp_path: Path) -> None:
    play(job, WILLING.replace("say1({", "sys.exit('lost') if '\"measure\": 1' in line else say1({"))
    other = tmp_path / "other" / "bin"
    other.mkdir(parents=True)
    script(other / "mpicc", "#!/bin/sh\n")
    shutil.copy(job.mpicc.with_name("mpiexec"), other)
    play(job, WILLING.replace("wrong bytes", "other bytes"))
    done = invoke(
        "--mpi", f"dies={other / 'mpicc'}", "--mpi", f"played={job.mpicc}", "--json", str(tmp_path / "m.json")
    )
    assert done.exit_code == 1, done.output
    data = json.loads((tmp_path / "m.json").read_text())
    assert "dies: F 1: lacuna-message-bench under dies died: lost" in data["errors"]
    assert [r["case"] for r in data["rows"] if r["competitor"] == "lacuna"] == ["F 1"] * 3


# --- the real bench ---------------------------------------------------------------------------------------------------


def require_mpi() -> None:
    if not installations.find([]):
        pytest.skip("no mpicc on the PATH: messages were not compared")
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("one CPU: two ranks would wait for one another")
    find_bench()


@pytest.mark.parametrize("pattern", ["contiguous 1 KiB", "33x33", "ai context_parallel_1to8 1792"])
def test_a_few_real_cases_if_there_is_an_mpi(tmp_path: Path, pattern: str) -> None:
    require_mpi()
    done = invoke("--quick", "--only", pattern, "-o", str(tmp_path))
    assert done.exit_code == 0, done.output
    data = json.loads((tmp_path / "messages.json").read_text())
    assert data["errors"] == []
    assert data["mpis"][0]["version"]
    found = {r["competitor"] for r in data["rows"]}
    assert found == ({"lacuna", "mpi_contiguous"} if "contiguous" in pattern else {"lacuna", "mpi_datatype", "hand"})
    assert all(r["latency_us"] > 0 and r["ratio_low"] <= r["ratio"] <= r["ratio_high"] for r in data["rows"])
    assert (tmp_path / "messages.png").stat().st_size > 5_000


def test_every_way_that_can_be_forced(tmp_path: Path) -> None:
    require_mpi()
    done = invoke("--quick", "--forced", "--only", "NAS_LU_y 408x408", "-o", str(tmp_path))
    assert done.exit_code == 0, done.output
    data = json.loads((tmp_path / "messages.json").read_text())
    (forced,) = (r for r in data["rows"] if r["competitor"] == "forced")
    assert forced["loop"]
    assert data["summary"]["vs_forced_geomean"] == pytest.approx(forced["ratio"]), "of one row"


@pytest.mark.parametrize("competitor", ["lacuna", "mpi_datatype", "hand_memcpy"])
@pytest.mark.parametrize("fault", ["corrupt", "gap"])
def test_a_wrong_byte_in_the_data_or_in_a_gap_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: str, competitor: str
) -> None:
    require_mpi()
    monkeypatch.setenv("LACUNA_MESSAGE_BENCH", str(FAULTY))
    monkeypatch.setenv("LACUNA_TEST_FAULT", f"{fault}:{competitor}")
    done = invoke("--quick", "--only", "NAS_LU_y 33x33", "--json", str(tmp_path / "m.json"))
    assert done.exit_code == 1, done.output
    errors = json.loads((tmp_path / "m.json").read_text())["errors"]
    assert errors == [f"mpicc: NAS_LU_y 33x33: {competitor} moved wrong bytes to rank 0"]
