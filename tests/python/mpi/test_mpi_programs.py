"""MPI programs do the same with Lacuna loaded before their MPI as without it: data, statuses, errors, and they end.

The programs are in tests/mpi, and tests/mpi/run.py runs one of them by hand.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import PATIENCE
from mpi_ready import Ready, program, run

from lacuna.mpi.installations import MpiInstallation
from lacuna.mpi.launch import Launch, launch

OFTEN = ("openmpi5", "mpich5")
OTHERS = ("openmpi4-debian", "mpich4-debian", "impi", "mpich5-abi")
MPIS = (*OFTEN, *(pytest.param(mpi, marks=pytest.mark.gate) for mpi in OTHERS))


def pairs() -> Iterator[object]:
    """Each program with each MPI; before tier all, of those that matter less with one."""
    for each in run.programs():
        third = OTHERS[zlib.crc32(each.name.encode()) % len(OTHERS)]
        for mpi in (*OFTEN, *OTHERS):
            marks = [] if mpi in OFTEN else [pytest.mark.gate if mpi == third else pytest.mark.all]
            yield pytest.param(mpi, each, id=f"{mpi}-{each.name}", marks=marks)


@pytest.fixture(scope="module")
def found() -> dict[str, MpiInstallation]:
    return {peer.name: peer for peer in run.installed()}


@pytest.fixture(scope="module", params=MPIS)
def mpi(request: pytest.FixtureRequest, found: dict[str, MpiInstallation]) -> Ready:
    if request.param not in found:
        pytest.skip(f"{request.param} is not here; `make peers` installs it")
    peer = found[request.param]
    return Ready(peer, launch(peer), run.BUILT)


@pytest.mark.parametrize(("mpi", "program"), list(pairs()), indirect=["mpi"])
def test_does_the_same_as_without(mpi: Ready, program: run.Program) -> None:
    mpi.compare(program, mpi.build(program.source))


def test_the_library_takes_part(mpi: Ready) -> None:
    """Programs in which it leaves everything to the MPI would pass as well."""
    reuse = program("reuse")
    done = mpi.preloaded(reuse, mpi.build(reuse.source), {"LACUNA_MPI_REPORT": "1"})
    assert ": offered, " in done.err
    assert ": accepted, " in done.err


ONCE = (
    "types",
    "errors",
    *(pytest.param(name, marks=pytest.mark.gate) for name in ("edges", "persistent", "threads", "patterns-halo")),
)


@pytest.mark.parametrize("decode", ["2", pytest.param("", marks=pytest.mark.gate)])
@pytest.mark.parametrize("name", ONCE)
def test_leaves_first_uses_to_the_mpi(mpi: Ready, name: str, decode: str) -> None:
    """As it does unless told otherwise: a receive whose type is not decoded may still get what is offered."""
    once = program(name)
    mpi.compare(once, mpi.build(once.source), {"LACUNA_MPI_DECODE": decode, "LACUNA_MPI_OFFER": "254"})


DIRECT = (
    "errors",
    "types",
    *(
        pytest.param(name, marks=pytest.mark.gate)
        for name in ("edges", "persistent", "threads", "patterns-halo", "progress-both_first", "progress-chain")
    ),
)


@pytest.mark.parametrize("name", DIRECT)
def test_copies_directly(mpi: Ready, name: str) -> None:
    """Whatever is longer than a descriptor, and wherever the receiver is there in time; with a report of it."""
    variables = {
        "LACUNA_PATH": "kernel",
        "LACUNA_MPI_OFFER": "254",
        "LACUNA_MPI_OFFER_CONTIGUOUS": "254",
        "LACUNA_MPI_REPORT": "1",
    }
    direct = program(name)
    mpi.compare(direct, mpi.build(direct.source), variables)


def test_direct_copies_are_reported(mpi: Ready) -> None:
    types = program("types")
    wait = str(int(PATIENCE * 1e6))  # a receiver that has no CPU comes late
    variables = {
        "LACUNA_PATH": "kernel",
        "LACUNA_MPI_OFFER": "254",
        "LACUNA_MPI_REPORT": "1",
        "LACUNA_MPI_PATIENCE": wait,
    }
    done = mpi.preloaded(types, mpi.build(types.source), variables)
    if "does without path kernel" in done.err:
        pytest.skip("this system lets no process copy out of another one's memory")
    assert "offered, copied directly, " in done.err
    assert "accepted, copied directly, " in done.err


@pytest.mark.parametrize("name", DIRECT)
def test_chooses_by_itself(mpi: Ready, name: str) -> None:
    """By the usual prices of its MPI, which leave some messages and collectives to the MPI, and by how far the CPUs
    are, which it measures meanwhile."""
    chosen = program(name)
    mpi.compare(chosen, mpi.build(chosen.source), {"LACUNA_MPI_OFFER": "", "LACUNA_MPI_DISTANCE": ""})


def by_mpi4py(mpi: Ready, mode: str, script: str, ranks: int) -> run.Outcome:
    if mpi.peer.name in ("mpich4-debian", "mpich5-abi"):
        pytest.skip("mpi4py looks for a libmpi.so of Open MPI's or MPICH's")
    folder = str(mpi.peer.mpicc.parent.parent / "lib")
    variables = {
        "LACUNA_MPI": mode,
        "MPI4PY_MPIABI": "openmpi" if mpi.peer.name.startswith("openmpi") else "mpich",
        "LD_LIBRARY_PATH": os.pathsep.join(filter(None, [folder, os.environ.get("LD_LIBRARY_PATH")])),
    }
    return mpi.compare(run.Program(run.HERE, str(run.HERE / script), ranks), Path(sys.executable), variables, variables)


@pytest.mark.parametrize("mode", ["full", *(pytest.param(mode, marks=pytest.mark.gate) for mode in ("pack", "off"))])
def test_mpi4py(mpi: Ready, mode: str) -> None:
    """It looks for functions that its MPI may lack, and finds the library's, whatever that takes."""
    assert by_mpi4py(mpi, mode, "mpi4py_program.py", 2).out.count("threads: True") == 2


def test_mpi4py_reshards(mpi: Ready) -> None:
    assert by_mpi4py(mpi, "full", "mpi4py_reshard.py", 4).out.count("right") == 12


SPAWNS = {"OMPI_MCA_btl": "^openib", "I_MPI_FABRICS": "shm:ofi", "FI_PROVIDER": "tcp"}
"""What MPIs need to reach processes that they did not start with."""


def test_spawned_processes(mpi: Ready) -> None:
    """Their messages are the MPI's own, and those within their world are not."""
    spawns = run.Program(run.HERE / "spawned" / "spawned.c", "", 1)
    mpi.compare(spawns, mpi.build(spawns.source), SPAWNS, SPAWNS)


@pytest.mark.parametrize("who", [pytest.param("sender", marks=pytest.mark.all), "receiver"])
@pytest.mark.parametrize("how", ["kill", *(pytest.param(how, marks=pytest.mark.all) for how in ("exit", "abort"))])
def test_a_death_ends_the_job(mpi: Ready, how: str, who: str) -> None:
    """As it does without the library, and nothing stays behind: ranks that outlive the other one never end by
    themselves."""
    death = run.Program(run.HERE / "deaths" / "death.c", f"{how} {who}", 2)
    built = mpi.build(death.source)
    mpi.plain(death, built, wanted=run.ends_early)
    mpi.preloaded(death, built, wanted=run.ends_early)


@pytest.mark.parametrize("ranks", [pytest.param(16, marks=pytest.mark.gate), pytest.param(64, marks=pytest.mark.all)])
@pytest.mark.parametrize("how", ["kill", *(pytest.param(how, marks=pytest.mark.all) for how in ("exit", "abort"))])
def test_a_death_among_many_ends_the_job(mpi: Ready, how: str, ranks: int) -> None:
    """More ranks than CPUs, all of which send to all: none waits for the dead one's memory, and none stays behind."""
    death = run.Program(run.HERE / "deaths" / "many.c", how, ranks)
    built = mpi.build(death.source)
    mpi.plain(death, built, wanted=run.ends_early)
    mpi.preloaded(death, built, wanted=run.ends_early)


def test_a_rank_without_the_library_ends_the_job(mpi: Ready) -> None:
    """The others wait for it no longer than they are told to, and say why they end."""
    edges = program("edges")
    wrapped = run.Program(edges.source, str(mpi.build(edges.source)), 2)
    variables = {"LACUNA_TEST_PRELOAD": str(run.library(mpi.peer)), "LACUNA_MPI_WAIT": "2"}
    done = run.run(mpi.started, wrapped, run.HERE / "one_rank.sh", None, variables)
    assert run.ends_early(done), done.text()
    assert "All ranks are to be started with its library (LD_PRELOAD), or none" in done.err


def tool_of(ready: Ready) -> Path:
    built = ready.folder / ready.peer.name / "libcount_tool.so"
    built.parent.mkdir(parents=True, exist_ok=True)
    source = run.HERE / "tools" / "count.c"
    line = [str(ready.peer.mpicc), "-O1", "-w", "-shared", "-fPIC", str(source), "-o", str(built)]
    subprocess.run(line, env=ready.peer.environment(), check=True, capture_output=True)
    return built


def counts(done: run.Outcome) -> list[str]:
    """What the tool says of each rank."""
    assert run.ends_well(done), done.text()
    return sorted(re.findall(r"^tool: .*", done.err, re.MULTILINE))


def test_a_tool_that_is_loaded_first_sees_all_calls(mpi: Ready) -> None:
    """As it does without Lacuna. One that is loaded behind does not, and the report names it."""
    edges, tool = program("edges"), tool_of(mpi)
    built = mpi.build(edges.source)
    ours = run.library(mpi.peer)
    report = {"LACUNA_MPI_REPORT": "1"}

    def start(*preloads: Path) -> run.Outcome:
        return run.run(mpi.started, edges, built, Path(":".join(map(str, preloads))), report)

    alone, first, behind = start(tool), start(tool, ours), start(ours, tool)
    assert len(counts(alone)) == edges.ranks
    assert counts(first) == counts(alone)
    assert first.out == alone.out == behind.out
    assert ": offered, " in first.err
    assert "is loaded behind" not in first.err
    assert run.ends_well(behind)
    assert re.search(r"^lacuna: rank 0; \S*libcount_tool.so is loaded behind Lacuna", behind.err, re.MULTILINE)


def test_what_ranks_say_comes_whole(mpi: Ready, tmp_path: Path) -> None:
    """As the launcher hands it on, lines of one rank are cut by another's: it reads 4 KiB or so at a time."""
    speaks = tmp_path / "speaks.sh"
    speaks.write_text("#!/bin/sh\nyes \"$(printf '%0999d' 0)\" | head -n 300 >&2\n")
    speaks.chmod(0o755)
    done = run.run(mpi.started, run.Program(speaks, "", 4), speaks, None)
    assert run.ends_well(done), done.text()
    assert [len(line) for line in done.err.splitlines() if "0000" in line] == [999] * 4 * 300


def test_failures_are_noticed() -> None:
    plain = run.Outcome(0, "a\nb\n", "", 1.0, "")
    assert run.failure(plain, plain, "other") is None
    assert "+c" in (run.failure(plain, run.Outcome(0, "a\nc\n", "", 1.0, ""), "other") or "")
    assert "ended with 1" in (run.failure(plain, run.Outcome(1, "WRONG x\n", "", 1.0, ""), "other") or "")
    late = run.failure(plain, run.Outcome(None, "", "", 60.0, "rank 0 gave up", running=1), "other") or ""
    assert f"longer than {run.SECONDS:.0f} s, with 1 processes of ranks left" in late
    assert "gave up" in late


def made_up_runs(monkeypatch: pytest.MonkeyPatch, *outcomes: run.Outcome) -> list[Path | None]:
    """These are the next ones; returns a list to which each adds what was preloaded."""
    preloads: list[Path | None] = []
    coming = iter(outcomes)

    def next_one(_started: object, _program: object, _built: object, preload: Path | None, *_: object) -> run.Outcome:
        preloads.append(preload)
        return next(coming)

    monkeypatch.setattr(run, "run", next_one)
    monkeypatch.setattr(run, "library", lambda _: Path("liblacuna_mpi.so"))
    return preloads


GOOD, BAD = run.Outcome(0, "a\n", "", 1.0, ""), run.Outcome(1, "", "no such luck", 1.0, "")
HANGS, LAUNCHER_HANGS = run.Outcome(None, "", "", 1.0, "", running=2), run.Outcome(None, "", "", 1.0, "")
SOME = run.Program(Path("some.c"), "", 2)
NOWHERE = Path("nowhere")


@pytest.fixture
def nobody(monkeypatch: pytest.MonkeyPatch) -> Ready:
    monkeypatch.setenv("LACUNA_TIER", "all")
    return Ready(MpiInstallation("some", NOWHERE), Launch((), {}, "", ""), NOWHERE)


@pytest.mark.parametrize("by_itself", [BAD, HANGS, LAUNCHER_HANGS], ids=["fails", "hangs", "launcher_hangs"])
def test_an_mpi_that_fails_by_itself_is_no_failure(
    nobody: Ready, monkeypatch: pytest.MonkeyPatch, by_itself: run.Outcome
) -> None:
    made_up_runs(monkeypatch, by_itself, by_itself)
    with pytest.raises(pytest.skip.Exception, match="some: the MPI fails by itself, without Lacuna"):
        nobody.compare(SOME, NOWHERE)
    made_up_runs(monkeypatch, by_itself, GOOD, GOOD)
    nobody.compare(SOME, NOWHERE)  # once is not always
    made_up_runs(monkeypatch, GOOD, HANGS, GOOD, GOOD, by_itself)
    with pytest.raises(pytest.skip.Exception, match="fails by itself too, without Lacuna, in try 3"):
        nobody.compare(SOME, NOWHERE)


def test_what_fails_with_the_library_alone_is_a_failure(nobody: Ready, monkeypatch: pytest.MonkeyPatch) -> None:
    for bad in (BAD, HANGS):
        preloads = made_up_runs(monkeypatch, GOOD, bad, *[GOOD] * run.DOUBT_RUNS)
        with pytest.raises(pytest.fail.Exception, match="preloaded: "):
            nobody.compare(SOME, NOWHERE)
        assert preloads[1] is not None
        assert preloads.count(None) == 1 + run.DOUBT_RUNS
    made_up_runs(monkeypatch, GOOD, run.Outcome(0, "b\n", "", 1.0, ""))
    with pytest.raises(pytest.fail.Exception, match="preloaded printed something else"):
        nobody.compare(SOME, NOWHERE)
    left = run.Outcome(9, "", "", 1.0, "", remains=("process 17",))
    made_up_runs(monkeypatch, left, *[BAD] * run.DOUBT_RUNS)
    with pytest.raises(pytest.fail.Exception, match="left behind: process 17"):
        nobody.preloaded(SOME, NOWHERE, wanted=run.ends_early)


def test_what_is_remembered_takes_the_place_of_a_plain_run(
    nobody: Ready, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    here = run.Program(tmp_path / "some.c", "", 2)
    here.source.write_text("a program")
    monkeypatch.setattr(run.remembered, "_mpi", lambda _: "some MPI")
    entry = run.remembered.entry(NOWHERE, here.source, "", 2, "a\n")
    monkeypatch.setattr(run.remembered, "entries", lambda: {"some some": entry})
    monkeypatch.setenv("LACUNA_TIER", "gate")
    preloads = made_up_runs(monkeypatch, GOOD)
    assert nobody.compare(here, NOWHERE) is GOOD
    assert None not in preloads
    made_up_runs(monkeypatch, run.Outcome(0, "b\n", "", 1.0, ""), GOOD)
    with pytest.raises(pytest.fail.Exception, match="preloaded printed something else"):
        nobody.compare(here, NOWHERE)
    here.source.write_text("another program")
    preloads = made_up_runs(monkeypatch, GOOD, GOOD)
    nobody.compare(here, NOWHERE)
    assert None in preloads


def test_in_the_last_tier_what_is_remembered_is_checked(
    nobody: Ready, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    here = run.Program(tmp_path / "some.c", "", 2)
    here.source.write_text("a program")
    monkeypatch.setattr(run.remembered, "_mpi", lambda _: "some MPI")
    entry = run.remembered.entry(NOWHERE, here.source, "", 2, "b\n")
    monkeypatch.setattr(run.remembered, "entries", lambda: {"some some": entry})
    made_up_runs(monkeypatch, GOOD, GOOD)
    with pytest.raises(pytest.fail.Exception, match="has another outcome"):
        nobody.compare(here, NOWHERE)


def test_a_launcher_that_hangs_alone_is_the_mpis_fault(nobody: Ready, monkeypatch: pytest.MonkeyPatch) -> None:
    made_up_runs(monkeypatch, GOOD, LAUNCHER_HANGS)
    with pytest.raises(pytest.skip.Exception, match="launcher hangs, though all ranks have ended"):
        nobody.compare(SOME, NOWHERE)
