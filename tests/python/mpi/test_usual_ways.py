"""The maintainer's command that makes profiles the usual times of ways."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import PATIENCE

SCRIPT = Path(__file__).resolve().parents[3] / "scripts" / "usual_ways.py"


def usual(*files: Path | str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, SCRIPT, *files], capture_output=True, text=True, timeout=PATIENCE)


def test_a_profile_as_lines_of_c(tmp_path: Path) -> None:
    profile = {
        "schema": "lacuna-mpi-ways/4",
        "library_version": "Open MPI v5.0.11",
        "distance": "distant",
        "machine": "a CPU, last-level cache 32768 KiB",
        "lacuna_version": "0.2.0",
        "created": "2026-11-28T19:00:00Z",
        "ns": {
            "send": {"listed": {"host": [190.4, 0.0, 85.26, 123456.0], "offered": [1234567.0] * 16}},
            "alltoallw": {"regular": {"offered": [9.996]}},
        },
    }
    (tmp_path / "p.json").write_text(json.dumps(profile))
    done = usual(tmp_path / "p.json")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == (
        "// Nanoseconds, by bytes, then runs, between distant CPUs: Open MPI v5.0.11; a CPU, last-level cache 32768 "
        "KiB;\n"
        "// 2026-11-28T19:00:00Z; Lacuna 0.2.0.\n"
        "// `lacuna guide --mpi` measured them, and scripts/usual_ways.py wrote them.\n"
        "sheet(MpiUse::send, true, MpiWay::host, {190, 0, 85.3, 123000});\n"
        "sheet(MpiUse::send, true, MpiWay::offered, {" + "1230000, " * 7 + "1230000,\n"
        "      " + "1230000, " * 7 + "1230000});\n"
        "sheet(MpiUse::alltoallw, false, MpiWay::offered, {10});\n"
    )


def profile_of(ns: list[float], **members: str) -> str:
    common = {"schema": "lacuna-mpi-ways/4", "library_version": "A", "lacuna_version": "0.2.0", "created": "today"}
    return json.dumps({**common, "machine": "M", "ns": {"send": {"regular": {"host": ns}}}, **members})


@pytest.fixture
def three(tmp_path: Path) -> list[Path]:
    """Profiles of one machine."""
    files = []
    for name, ns in (("a", [3.0, 0.0, 5.0]), ("b", [2.0, 0.0, 7.0]), ("c", [9.0, 0.0, 6.0])):
        files.append(tmp_path / f"{name}.json")
        files[-1].write_text(profile_of(ns))
    return files


def test_of_several_profiles_the_shortest_times(three: list[Path]) -> None:
    done = usual(*three)
    assert done.stdout.splitlines()[-1] == "sheet(MpiUse::send, false, MpiWay::host, {2, 0, 5});"
    assert "Each is the shortest of 3 runs." in done.stdout


def test_of_several_profiles_the_median_times(three: list[Path]) -> None:
    """Of two the shorter one; of one that one, of which nothing is said."""
    for files, numbers, said in ((three, "3, 0, 6", " of 3 runs"), (three[:2], "2, 0, 5", " of 2 runs")):
        done = usual("--median", *files)
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout.splitlines()[-1] == f"sheet(MpiUse::send, false, MpiWay::host, {{{numbers}}});"
        assert f"Each is the median{said}." in done.stdout
    assert usual("--median", three[0]).stdout == usual(three[0]).stdout


@pytest.mark.parametrize(("member", "other"), [("machine", "N"), ("distance", "distant"), ("library_version", "B")])
def test_profiles_that_do_not_belong_together(three: list[Path], member: str, other: str) -> None:
    three[1].write_text(profile_of([1.0, 0.0, 1.0], **{member: other}))
    for options in ([], ["--median"]):
        done = usual(*options, *three)
        assert (done.returncode, done.stdout) == (1, "")
        assert f"its {member} is '{other}', not " in done.stderr


def test_the_ways_of_messages_as_lines_of_c(tmp_path: Path) -> None:
    profile = {
        "schema": 3,
        "machine": "a CPU",
        "lacuna_version": "0.2.0",
        "created": "2026-11-29T10:00:00Z",
        "messages": {"ns": {"regular": {"eager": [190.4, 0]}, "listed": {"direct": [1234567.0]}}},
    }
    (tmp_path / "p.json").write_text(json.dumps(profile))
    done = usual(tmp_path / "p.json")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == (
        "// Nanoseconds, by bytes, then runs: a CPU; 2026-11-29T10:00:00Z; Lacuna 0.2.0.\n"
        "// `lacuna guide` measured them, and scripts/usual_ways.py wrote them.\n"
        "sheet(false, MessageWay::eager, {190, 0});\n"
        "sheet(true, MessageWay::direct, {1230000});\n"
    )


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"schema": 3}', '{"schema": "lacuna-mpi-ways/4"}'])
def test_a_file_that_is_no_profile(tmp_path: Path, text: str) -> None:
    (tmp_path / "p.json").write_text(text)
    done = usual(tmp_path / "p.json")
    assert (done.returncode, done.stdout) == (1, "")
    assert "is no profile of ways" in done.stderr
