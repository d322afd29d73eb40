"""`lacuna guide --mpi`: the program that times an MPI's ways, what is made of its lines, the command, the profile."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

import pytest
from conftest import PATIENCE, wait_for
from made_up_ways import LINE_NS, VERSION, Line, Play, honest, player, text, time_of
from typer.testing import CliRunner

from lacuna import _core
from lacuna.bench.messages import between_ranks
from lacuna.cli import guide
from lacuna.cli.app import app
from lacuna.guide.run_record import Guide
from lacuna.mpi import ways, ways_profile, ways_table
from lacuna.mpi.installations import MpiInstallation
from lacuna.mpi.ways import (
    BYTES,
    CELLS,
    CHUNKED,
    CHUNKS,
    CONTIGUOUS,
    RUNS,
    SERVING,
    SIZES,
    Measured,
    WaysError,
    WrongBytesError,
)


@pytest.fixture
def play(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Play:
    return player(tmp_path, monkeypatch)


def measured(installation: MpiInstallation, silence: float = PATIENCE) -> Measured:
    return ways.measure(installation, 1, lambda _: None, silence)


def test_times_stand_by_use_form_way_bytes_and_run(play: Play) -> None:
    done: list[int] = []
    found = ways.measure(play(["a launcher's word", *honest()]), 1, done.append, PATIENCE)
    assert found.library_version == VERSION
    assert done == list(range(SIZES + 1))
    assert found.contiguous["host"] == [float(size) for size in CONTIGUOUS]
    assert found.line_times.ns == (LINE_NS,) * SIZES
    assert {(use, form): tuple(found.ns[use][form]) for use, form in SERVING} == SERVING
    for (use, form), serving in SERVING.items():
        for way in serving:
            sheet = found.ns[use][form][way]
            expected = [time_of(use, way, at[0]) if at in CELLS else 0 for at in ((b, r) for b in BYTES for r in RUNS)]
            assert sheet == expected


@pytest.mark.parametrize(
    ("version", "library"),
    [
        ("Open MPI v5.0.11, package: x", "open_mpi"),
        ("MPICH Version:\t4.0.2", "mpich_4_0"),
        ("MPICH Version:      5.0.2", "mpich"),
        ("Intel(R) MPI Library 2021.19 for Linux* OS", "intel"),
    ],
)
def test_the_library_by_what_it_says(version: str, library: str) -> None:
    assert Measured(version, {}).library == library


def spoiled(change: Callable[[list[Any]], object]) -> list[Line]:
    lines = honest()
    change(lines)
    return lines


def times(lines: list[Any]) -> Any:
    """Of the third cell."""
    return lines[3]["ns"]["send"]["listed"]


HOSTILE: dict[str, tuple[Callable[[list[Any]], object], str]] = {
    "nothing": (lambda lines: lines.clear(), "ended before the last size"),
    "no_end": (lambda lines: lines.pop(), "ended before the last size"),
    "no_version": (lambda lines: lines[0].pop("version"), "began with"),
    "other_sizes": (lambda lines: lines[0].update(cells=3), "began with"),
    "no_json": (lambda lines: lines.insert(2, '{"bytes": 12'), "no JSON object"),
    "no_number": (lambda lines: lines.insert(2, '{"bytes": NaN}'), "no JSON object"),
    "text_for_a_number": (lambda lines: times(lines).update(host="fast"), "another line than a size's"),
    "twice": (lambda lines: lines.insert(2, lines[1]), "not 256 in runs of 64"),
    "left_out": (lambda lines: lines.pop(5), "measured "),
    "no_use": (lambda lines: lines[3]["ns"].pop("bcast"), "no time of bcast, regular, host"),
    "no_way": (lambda lines: times(lines).pop("offered"), "no time of send, listed, offered for 1024 bytes"),
    "below_zero": (lambda lines: times(lines).update(packed=-1.0), "no time of send, listed, packed"),
    "zero": (lambda lines: times(lines).update(packed=0), "no time of send, listed, packed"),
    "no_contiguous": (lambda lines: lines[-2]["ns"].clear(), "no time of contiguous, regular, host"),
    "no_line": (lambda lines: lines[3].pop("line_ns"), "missing required field `line_ns`"),
    "line_of_text": (lambda lines: lines[3].update(line_ns="20"), "another line than a size's"),
    "line_below_zero": (lambda lines: lines[3].update(line_ns=-1.0), "no time of a line for 1024 bytes"),
    "line_without_end": (lambda lines: lines.insert(3, json.dumps(lines.pop(3))[:-5] + "1e999}"), "no JSON object"),
    "more": (lambda lines: lines.insert(-1, lines[1]), "did not end after the last size"),
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_a_program_that_prints_something_else(play: Play, kind: str) -> None:
    change, said = HOSTILE[kind]
    with pytest.raises(WaysError, match=f"ways under played: it .*{said}"):
        measured(play(spoiled(change)))


def test_what_a_program_says_before_it_dies(play: Play) -> None:
    with pytest.raises(WaysError, match="ended before the last size: no memory"):
        measured(play(honest()[:4], "echo 'no memory' >&2; exit 1"))
    with pytest.raises(WrongBytesError, match="a way moved wrong bytes: send of 256 bytes: wrong bytes"):
        measured(play(honest()[:4], "echo 'send of 256 bytes: wrong bytes' >&2; exit 33"))
    with pytest.raises(WaysError, match="ended with 7 after its last line"):
        measured(play(honest(), "exit 7"))


def test_a_program_that_falls_silent_is_ended(play: Play, tmp_path: Path) -> None:
    hangs = play(honest()[:4], f"echo $$ > {tmp_path}/pid; exec sleep 600")
    with pytest.raises(WaysError, match="fell silent"):
        measured(hangs, silence=0.5)
    if (tmp_path / "pid").exists():
        assert not Path(f"/proc/{(tmp_path / 'pid').read_text().strip()}").exists()


def test_what_the_user_has_set_for_programs_does_not_decide(
    play: Play, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LACUNA_MPI_WAY", "packed")
    monkeypatch.setenv("LACUNA_MPI", "off")
    measured(play(honest(), f'env > {tmp_path}/env; printf "%s " "$@" > {tmp_path}/line'))
    assert "LACUNA" not in (tmp_path / "env").read_text()
    line = (tmp_path / "line").read_text()
    assert f"LD_PRELOAD={tmp_path}/liblacuna_mpi_mpich.so LACUNA_MPI_DECODE=1" in line
    assert line.endswith("8,64,512,4096,32768 65536,262144,1048576,4194304,16777216 ")


# --- the command ------------------------------------------------------------------------------------------------------


def test_the_command_writes_the_profile_and_shows_which_way_is_best(play: Play, no_settings_of_the_user: Path) -> None:
    installation = play(honest())
    done = CliRunner().invoke(app, ["guide", "--mpi", f"mine={installation.mpicc}", "--json", "-"])
    assert done.exit_code == 0, done.output
    (file,) = no_settings_of_the_user.rglob("mpi-open_mpi.json")
    assert str(file) == _core.mpi_profile_file("open_mpi")
    _core.check_mpi_profile(str(file), "open_mpi")
    profile = json.loads(file.read_text())
    assert json.loads(done.stdout) == {"mpis": [profile]}
    head = ["schema", "bytes", "runs", "lacuna_version", "created", "command"]
    assert [*profile] == [*head, "machine", "library", "library_version", "distance", "line_ns", "ns", "thresholds"]
    assert (profile["schema"], profile["library"]) == ("lacuna-mpi-ways/4", "open_mpi")
    assert profile["machine"] == _core.machine_name()
    assert (tuple(profile["bytes"]), tuple(profile["runs"])) == (BYTES, RUNS)
    assert profile["command"] == f"lacuna guide --mpi mine={installation.mpicc}"
    assert all(
        len(sheet) == len(BYTES) * len(RUNS)
        for form in profile["ns"].values()
        for way in form.values()
        for sheet in way.values()
    )
    shown = [line.split() for line in done.stderr.splitlines() if line.startswith(("MPI_Send ", "MPI_Alltoallw "))]
    assert shown[0] == ["MPI_Send", "8", "B", "M", "M", "M", "P", "0.50", "P", "0.50", *["S", "0.25"] * 3]
    assert shown[1] == ["MPI_Alltoallw", "8", "B", *["M"] * 5, *["S", "0.25"] * 3]
    assert str(file) in done.stderr
    assert profile["thresholds"]["contiguous"]["from"] == 4194304
    assert "inter_node" not in profile["thresholds"]
    assert "Messages without gaps: through shared memory from 4 MiB on" in done.stderr


def between_hosts(size: int) -> dict[str, Any]:
    """Chunks pay from 1 MiB on, those of 256 KiB most."""
    ways = {"packed": 100.0 * size}
    for chunk in CHUNKS:
        ways[f"chunked {chunk}"] = size * (50.0 if chunk == 262144 else 60) if size >= 1 << 20 else 100.0 * size
    return {"bytes": size, "run": 512, "ns": {"send": {"regular": ways, "listed": ways}}, "line_ns": 0.0}


HOSTS = "case $* in *-hosts*) cat {folder}/between ;; *) cat {folder}/lines ;; esac"


def test_between_two_hosts(
    play: Play, tmp_path: Path, no_settings_of_the_user: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A later run without hosts keeps what was found, of the same version of the MPI. So does the profile of distant
    CPUs that is there already."""
    monkeypatch.chdir(tmp_path)  # where the program is built that both hosts run
    installation = play([], HOSTS.format(folder=tmp_path))
    cells = [between_hosts(size) for size in CHUNKED]
    told = [{"version": VERSION, "cells": len(cells)}, *cells, {"ends": len(cells)}]
    (tmp_path / "between").write_text(text(told))
    (tmp_path / "lines").write_text("")
    mpiexec = tmp_path / "mpiexec"
    mpiexec.write_text(mpiexec.read_text().replace(f"cat {tmp_path}/lines\n", "", 1))

    def guided(version: str, *options: str) -> Any:
        (tmp_path / "lines").write_text(text(honest(version)))
        done = CliRunner().invoke(app, ["guide", "--mpi", str(installation.mpicc), *options])
        assert done.exit_code == 0, done.output
        (file,) = no_settings_of_the_user.rglob("mpi-open_mpi.json")
        _core.check_mpi_profile(str(file), "open_mpi")
        return json.loads(file.read_text()), done.output

    (tmp_path / "lines").write_text(text(honest(line_ns=[200.0])))
    assert CliRunner().invoke(app, ["guide", "--mpi", str(installation.mpicc)]).exit_code == 0
    distant = Path(_core.mpi_profile_file("open_mpi", "distant"))
    before = json.loads(distant.read_text())
    profile, shown = guided(VERSION, "--hosts", "node17,node18")
    between = profile["thresholds"]["inter_node"]
    _core.check_mpi_profile(str(distant), "open_mpi")
    after = json.loads(distant.read_text())
    assert after["thresholds"].pop("inter_node") == between
    assert after == before
    assert (between["from"], between["chunk"], between["bytes"]) == (1 << 20, 262144, list(CHUNKED))
    assert "lacuna guide --hosts node17,node18 --mpi " in profile["command"]
    assert "from 1 MiB on in chunks of 256 KiB" in " ".join(shown.split())
    assert guided(VERSION)[0]["thresholds"]["inter_node"] == between
    distant.unlink()
    assert guided(VERSION)[0]["thresholds"]["inter_node"] == between
    assert "inter_node" not in guided("Open MPI v9.9.9")[0]["thresholds"]


@pytest.mark.parametrize("hosts", ["node17", "a,b,c", "a,a", ","])
def test_hosts_that_are_not_two(play: Play, hosts: str) -> None:
    done = CliRunner().invoke(app, ["guide", "--mpi", str(play(honest()).mpicc), "--hosts", hosts])
    assert done.exit_code == 2
    assert "names no two hosts" in " ".join(done.output.split())


def test_a_chunk_that_pays_nowhere() -> None:
    times = {way: [100.0] * len(CHUNKED) for way in ("packed", *(f"chunked {chunk}" for chunk in CHUNKS))}
    assert ways_profile.between_nodes(times)["from"] is None


def test_the_variable_names_another_file(play: Play, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LACUNA_MPI_PROFILE", str(tmp_path / "new" / "mine.json"))
    done = CliRunner().invoke(app, ["guide", "--quick", "--mpi", str(play(honest()).mpicc)])
    assert done.exit_code == 0, done.output
    assert json.loads((tmp_path / "new" / "mine.json").read_text())["library"] == "open_mpi"


@pytest.mark.parametrize(
    ("lines", "status", "said"),
    [
        (honest()[:9], 1, "ended before the last size"),
        (spoiled(lambda lines: lines[1]["ns"]["send"]["regular"].update(host=2e6)), 1, "wait for CPUs"),
    ],
    ids=["incomplete", "busy"],
)
def test_no_profile_of_what_is_no_good(
    play: Play, no_settings_of_the_user: Path, lines: list[Line], status: int, said: str
) -> None:
    done = CliRunner().invoke(app, ["guide", "--mpi", str(play(lines).mpicc)])
    assert (done.exit_code, list(no_settings_of_the_user.rglob("mpi-*"))) == (status, [])
    assert said in " ".join(done.output.split())


@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGTERM])
def test_interrupted(play: Play, tmp_path: Path, no_settings_of_the_user: Path, ending: signal.Signals) -> None:
    installation = play(honest()[:9], f"touch {tmp_path}/begun; exec sleep 600")
    line = [sys.executable, "-m", "lacuna", "guide", "--mpi", str(installation.mpicc)]
    running = subprocess.Popen(line, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env={**os.environ})
    wait_for("the program runs", (tmp_path / "begun").exists, running)
    running.send_signal(ending)
    assert running.wait(PATIENCE) == 130
    assert not list(no_settings_of_the_user.rglob("mpi-*"))


@pytest.mark.parametrize("other", [["--nic", "local"], ["--validate"], ["--budget", "30"], ["node17"], ["--listen"]])
def test_an_mpi_is_measured_alone(play: Play, other: list[str]) -> None:
    done = CliRunner().invoke(app, ["guide", "--mpi", str(play(honest()).mpicc), *other])
    assert done.exit_code == 2
    assert "goes without --mpi" in " ".join(done.output.split())


def test_an_mpi_that_is_not_there() -> None:
    assert CliRunner().invoke(app, ["guide", "--mpi", "/nowhere/mpicc"]).exit_code == 2


@pytest.mark.parametrize(
    ("nic", "host", "budget", "measured"),
    [
        ("local", None, 120, True),
        ("local", None, 119, False),
        ("local", None, None, False),
        ("model", None, 300, False),
        ("local", "node17", 300, False),
    ],
)
def test_a_large_budget_has_time_for_the_mpi_of_the_path(
    play: Play,
    monkeypatch: pytest.MonkeyPatch,
    nic: str,
    host: str | None,
    budget: float | None,
    measured: bool,
) -> None:
    installation = play(honest())
    monkeypatch.setenv("PATH", f"{installation.mpicc.parent}:{os.environ['PATH']}")
    command = guide.GuideCommand(quick=False, budget=budget, nic=nic, host=host, regret=0.1)
    assert (command.mpi is not None) == measured


def test_after_the_guide_the_mpi_of_the_path(
    play: Play,
    full_guide: Guide,
    tmp_path: Path,
    no_settings_of_the_user: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def delivered(*_: object, **__: object) -> None:
        assert not list(no_settings_of_the_user.rglob("mpi-*"))

    monkeypatch.setattr(guide.GuideCommand, "measure", lambda *_: (full_guide, None))
    monkeypatch.setattr(guide.GuideCommand, "deliver", delivered)
    monkeypatch.setenv("PATH", f"{play(honest()).mpicc.parent}:{os.environ['PATH']}")
    line = ["guide", "--budget", "120", "--output", str(tmp_path / "results")]
    done = CliRunner().invoke(app, line)
    assert done.exit_code == 0, done.output
    (profile,) = no_settings_of_the_user.rglob("mpi-*.json")
    assert f"Lacuna chooses by {profile} from now on in programs of open_mpi" in done.output
    profile.unlink()
    play(honest()[:9])
    done = CliRunner().invoke(app, line)
    assert done.exit_code == 1
    assert "ended before the last size" in done.output
    assert not profile.exists()
    play(honest()).mpicc.with_name("mpiexec").write_text("#!/bin/sh\necho slurm 23\n")
    done = CliRunner().invoke(app, line)
    assert done.exit_code == 0, done.output
    assert "No ways of MPI programs were measured: mpicc: " in done.output


def test_what_was_measured_before_an_interruption_is_kept(
    full_guide: Guide, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole: list[bool] = []

    def interrupted(*_: object) -> NoReturn:
        raise KeyboardInterrupt

    def delivered(_command: object, _console: object, result: Guide, *_: object, **said: bool) -> None:
        whole.append(said["whole"] and not result.interrupted)

    monkeypatch.setattr(guide.GuideCommand, "measure", lambda *_: (full_guide, None))
    monkeypatch.setattr(guide.GuideCommand, "deliver", delivered)
    monkeypatch.setattr(between_ranks.exchange_prices, "measure", lambda *_: {})
    monkeypatch.setattr(between_ranks.messages, "measure", interrupted)
    line = ["guide", "--budget", "60", "--output", str(tmp_path / "results")]
    done = CliRunner().invoke(app, line)
    assert done.exit_code == 130, done.output
    assert whole == [True]
    assert "No ways of messages were measured: interrupted" in done.output


def test_the_way_that_is_chosen_is_clearly_better() -> None:
    assert ways_table.best({"host": 100, "packed": 96, "offered": 200}) == ("host", 1.0)
    assert ways_table.best({"host": 100, "packed": 90, "offered": 80}) == ("offered", 0.8)
    assert ways_table.best({"host": 100, "packed": 120}) == ("host", 1.0)
