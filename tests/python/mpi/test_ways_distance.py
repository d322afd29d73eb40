"""How far the CPUs were between which an MPI's ways were measured: what the guide makes of it, where it goes, and what
`lacuna explain` says."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from conftest import forget_settings
from made_up_ways import VERSION, Play, honest, player, text
from typer.testing import CliRunner

from lacuna import _core
from lacuna.cli import guide
from lacuna.cli.app import app
from lacuna.guide.run_record import Guide
from lacuna.mpi import ways_profile
from lacuna.mpi.distance import Distance, LineTimes, cpus_text
from lacuna.mpi.installations import MpiInstallation
from lacuna.mpi.ways import SIZES, Measured

NEAR_NS, DISTANT_NS = 20.0, 200.0
DISTANT, UNKNOWN = honest(line_ns=[DISTANT_NS]), honest(line_ns=[0.0])
MIXED, MOSTLY_NEAR = honest(line_ns=[NEAR_NS, DISTANT_NS]), honest(line_ns=[NEAR_NS] * (SIZES - 1) + [DISTANT_NS])
AGAIN = "The CPUs moved: some sizes were measured between near CPUs, others between distant ones. Measuring again"


@pytest.fixture
def play(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Play:
    return player(tmp_path, monkeypatch)


@pytest.mark.parametrize(
    ("ns", "distance", "line_ns", "others"),
    [
        ((), Distance.near, 0, 0),
        ((0.0, 0.0), Distance.near, 0, 0),
        ((0.0, DISTANT_NS, 0.0), Distance.distant, DISTANT_NS, 0),
        ((10.0, NEAR_NS, 30.0, DISTANT_NS), Distance.near, NEAR_NS, 1),
        ((10.0, DISTANT_NS), Distance.near, 10, 1),
        ((10.0, DISTANT_NS, DISTANT_NS + 1, 0.0), Distance.distant, DISTANT_NS, 1),
        ((58.0, 62.0), Distance.near, 58, 0),
        ((62.0, 58.0, 62.0), Distance.distant, 62, 0),
        ((58.0, 62.0, 76.0), Distance.distant, 62, 0),
        ((58.0, 58.0, 76.0), Distance.near, 58, 1),
        ((47.0, 62.0, 62.0), Distance.distant, 62, 1),
    ],
)
def test_the_distance_is_that_of_most_sizes(
    ns: tuple[float, ...], distance: Distance, line_ns: float, others: int
) -> None:
    found = LineTimes(ns)
    assert (found.distance, found.line_ns, found.others) == (distance, line_ns, others)
    assert found.doubtful == others + ns.count(0.0)


def test_a_distance_stays_unless_the_line_is_clearly_beyond_the_bound() -> None:
    found = {(ns, before): _core.distance_of(ns, before) for ns in (47, 62, 76) for before in ("", "near", "distant")}
    distant = {(62, ""), (62, "distant"), (76, ""), (76, "near"), (76, "distant")}
    assert {at for at, distance in found.items() if distance == "distant"} == distant
    with pytest.raises(ValueError, match='no distance "far"'):
        _core.distance_of(62, "far")


def test_in_words() -> None:
    assert cpus_text(Distance.near, 20.4) == "between near CPUs (a line takes 20 ns)"
    assert cpus_text(Distance.near, 0) == "between near CPUs (the time of a line is not known)"


def by_turns(play: Play, *turns: list[Any]) -> MpiInstallation:
    """An MPI whose program prints these lines by turns."""
    installation = play(turns[0])
    folder = installation.mpicc.parent
    for number, lines in enumerate(turns):
        (folder / f"turn{number}").write_text(text(lines))
    (folder / "begun").write_text("")
    mpiexec = folder / "mpiexec"
    turn = f"echo >> {folder}/begun\ncat {folder}/turn$(($(wc -l < {folder}/begun) - 1))\n"
    mpiexec.write_text(mpiexec.read_text().replace(f"cat {folder}/lines\n", turn))
    return installation


def ran(installation: MpiInstallation) -> int:
    """How often the program did."""
    return len((installation.mpicc.parent / "begun").read_text())


def guided(play: Play, *turns: list[Any]) -> tuple[str, int]:
    """What the command says, and how often the program ran."""
    installation = by_turns(play, *turns)
    done = CliRunner().invoke(app, ["guide", "--mpi", str(installation.mpicc)])
    assert done.exit_code == 0, done.output
    return " ".join(done.output.split()), ran(installation)


def profile(distance: str) -> Any:
    file = _core.mpi_profile_file("open_mpi", distance)
    _core.check_mpi_profile(file, "open_mpi")
    return json.loads(Path(file).read_text())


def test_distant_cpus_have_a_file_of_their_own(play: Play) -> None:
    shown, _ = guided(play, DISTANT)
    assert not Path(_core.mpi_profile_file("open_mpi")).exists()
    assert (profile("distant")["distance"], profile("distant")["line_ns"]) == ("distant", DISTANT_NS)
    file = _core.mpi_profile_file("open_mpi", "distant")
    assert file.endswith("/mpi-open_mpi-distant.json")
    assert "Between distant CPUs (a line takes 200 ns)" in shown
    assert f"Lacuna chooses by {file} from now on in programs of open_mpi between ranks on distant CPUs" in shown
    assert "Between near CPUs it chooses by usual times. `taskset -c A,B lacuna guide --mpi MPICC` measures" in shown
    shown, _ = guided(play, honest())
    assert (profile("near")["distance"], profile("near")["line_ns"]) == ("near", NEAR_NS)
    assert "from now on in programs of open_mpi between ranks on near CPUs" in shown
    assert "usual times" not in shown


def test_a_file_of_another_version_does_not_hold(play: Play) -> None:
    guided(play, DISTANT)
    shown, _ = guided(play, honest("Open MPI v9.9.9"))
    assert "Between distant CPUs it chooses by usual times" in shown


def test_where_cpus_move_the_ways_are_measured_again(play: Play) -> None:
    shown, runs = guided(play, MIXED, DISTANT)
    assert (runs, shown.count(AGAIN), profile("distant")["line_ns"]) == (2, 1, DISTANT_NS)
    assert "since the CPUs moved" not in shown


@pytest.mark.parametrize("turns", [[MIXED, MOSTLY_NEAR, MIXED], [MOSTLY_NEAR, MIXED, MIXED]], ids=["second", "first"])
def test_where_cpus_move_on_the_run_holds_in_which_most_sizes_agree(play: Play, turns: list[Any]) -> None:
    shown, runs = guided(play, *turns)
    assert (runs, shown.count(AGAIN)) == (3, 2)
    assert f"1 of {SIZES} sizes were measured between distant CPUs, since the CPUs moved." in shown
    assert profile("near")["line_ns"] == NEAR_NS
    assert not Path(_core.mpi_profile_file("open_mpi", "distant")).exists()


def test_lines_on_both_sides_of_the_bound_do_not_say_that_cpus_moved(play: Play) -> None:
    shown, runs = guided(play, honest(line_ns=[58, 62]), DISTANT)
    assert (runs, profile("near")["line_ns"]) == (1, 58)
    assert "CPUs moved" not in shown


def test_where_no_line_is_known_nothing_is_measured_again(play: Play) -> None:
    """As with ranks that share CPUs."""
    shown, runs = guided(play, UNKNOWN, DISTANT)
    assert (runs, profile("near")["line_ns"]) == (1, 0)
    assert "Between near CPUs (the time of a line is not known)" in shown


def test_a_later_run_of_which_no_line_is_known_does_not_count(play: Play) -> None:
    shown, runs = guided(play, MOSTLY_NEAR, UNKNOWN, UNKNOWN)
    assert (runs, profile("near")["line_ns"]) == (3, NEAR_NS)
    assert f"1 of {SIZES} sizes were measured between distant CPUs" in shown


@pytest.mark.parametrize("failed", ["", text(DISTANT[:9]), "{"], ids=["mute", "incomplete", "garbage"])
def test_a_later_run_that_fails_does_not_count(play: Play, failed: str) -> None:
    shown, runs = guided(play, MOSTLY_NEAR, [failed], [failed])
    assert (runs, profile("near")["line_ns"]) == (3, NEAR_NS)
    assert shown.count("That failed, and an earlier run holds: ways under mpi1: it ") == 2
    shown, runs = guided(play, MOSTLY_NEAR, [failed], DISTANT)
    assert (runs, profile("distant")["line_ns"]) == (3, DISTANT_NS)


def test_wrong_bytes_of_a_later_run_are_an_error(play: Play, no_settings_of_the_user: Path) -> None:
    installation = by_turns(play, MOSTLY_NEAR, DISTANT[:9], DISTANT)
    mpiexec = installation.mpicc.parent / "mpiexec"
    begun = installation.mpicc.parent / "begun"
    spoiled = "exit 33"  # MPICH's launcher may lose what ranks said
    mpiexec.write_text(mpiexec.read_text().replace("exit 0", f"if [ $(wc -l < {begun}) = 2 ]; then {spoiled}; fi"))
    done = CliRunner().invoke(app, ["guide", "--mpi", str(installation.mpicc)])
    assert "ways under mpi1: a way moved wrong bytes" in " ".join(done.output.split())
    assert (done.exit_code, ran(installation), list(no_settings_of_the_user.rglob("mpi-*"))) == (1, 2, [])


def test_a_later_run_whose_ranks_waited_for_cpus_does_not_count(play: Play) -> None:
    waited: list[Any] = json.loads(json.dumps(DISTANT))
    waited[1]["ns"]["send"]["regular"]["host"] = 2e6
    shown, runs = guided(play, MOSTLY_NEAR, waited, MIXED)
    assert (runs, profile("near")["line_ns"]) == (3, NEAR_NS)
    assert "That failed, and an earlier run holds: a short message took 2,000" in shown
    assert f"1 of {SIZES} sizes" in shown


def test_a_budget_has_time_for_one_run(
    play: Play, full_guide: Guide, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(guide.GuideCommand, "measure", lambda *_: (full_guide, None))
    monkeypatch.setattr(guide.GuideCommand, "deliver", lambda *_, **__: None)
    installation = by_turns(play, MOSTLY_NEAR, DISTANT)
    monkeypatch.setenv("PATH", f"{installation.mpicc.parent}:{os.environ['PATH']}")
    done = CliRunner().invoke(app, ["guide", "--budget", "120", "--output", str(tmp_path / "results")])
    assert done.exit_code == 0, done.output
    assert ran(installation) == 1
    assert f"1 of {SIZES} sizes were measured between distant CPUs" in " ".join(done.output.split())
    assert profile("near")["line_ns"] == NEAR_NS


def test_a_named_file_holds_for_both(play: Play, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "mine.json"
    monkeypatch.setenv("LACUNA_MPI_PROFILE", str(file))
    shown, _ = guided(play, DISTANT)
    assert json.loads(file.read_text())["distance"] == "distant"
    assert shown.endswith(f"Lacuna chooses by {file} from now on in programs of open_mpi")


def stored(distance: str, created: str, between_nodes: dict[str, Any] | None) -> None:
    found = profile(distance)
    found["created"] = created
    found["thresholds"].pop("inter_node", None)
    if between_nodes:
        found["thresholds"]["inter_node"] = between_nodes
    Path(_core.mpi_profile_file("open_mpi", distance)).write_text(json.dumps(found))


def test_what_was_found_of_two_hosts_is_kept_of_either_file(play: Play) -> None:
    """Which CPUs of a node were measured says nothing of two hosts."""
    first, second = {"from": 1 << 20, "chunk": 1 << 18}, {"from": None, "chunk": 1 << 17}
    near = Measured(VERSION, {}, line_times=LineTimes((NEAR_NS,)))
    assert ways_profile.kept_between_nodes(near) is None
    guided(play, DISTANT)
    stored("distant", "2026-11-28T10:00:00Z", first)
    assert ways_profile.kept_between_nodes(near) == first
    guided(play, honest())
    assert profile("near")["thresholds"]["inter_node"] == first
    stored("near", "2026-11-28T09:00:00Z", second)
    assert ways_profile.kept_between_nodes(near) == first
    stored("near", "2026-11-28T11:00:00Z", second)
    assert ways_profile.kept_between_nodes(near) == second
    stored("near", "2026-11-28T11:00:00Z", None)
    assert ways_profile.kept_between_nodes(near) == first
    assert ways_profile.kept_between_nodes(Measured("Open MPI v9.9.9", {})) is None


# --- lacuna explain ---------------------------------------------------------------------------------------------------


def explained(*options: str) -> tuple[dict[str, Any], str]:
    done = CliRunner().invoke(app, ["explain", "vector(512, 1, 8, double)", "--json", "-", *options])
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)["mpi"], done.stderr


def test_explain_says_of_which_distance_it_speaks(monkeypatch: pytest.MonkeyPatch) -> None:
    """The usual times of both differ."""
    near, shown = explained("--mpi", "open_mpi")
    assert near["open_mpi"]["distance"] == "near"
    assert "In a program of Open MPI, two ranks of a node, preloaded, between near CPUs (by usual times" in shown
    distant, shown = explained("--mpi", "open_mpi", "--distance", "distant")
    assert distant["open_mpi"]["distance"] == "distant"
    assert "preloaded, between distant CPUs (by usual times" in shown
    assert near["open_mpi"]["uses"]["send"]["ns"] != distant["open_mpi"]["uses"]["send"]["ns"]
    monkeypatch.setenv("LACUNA_MPI_DISTANCE", "distant")
    assert explained("--mpi", "open_mpi")[0] == distant
    assert explained("--mpi", "open_mpi", "--distance", "near")[0] == near


def test_explain_speaks_of_what_was_measured(play: Play) -> None:
    guided(play, DISTANT)
    found, shown = explained()
    assert found["open_mpi"]["distance"] == "distant"
    assert found["open_mpi"]["file"] == _core.mpi_profile_file("open_mpi", "distant")
    assert "preloaded, between distant CPUs (as measured here)" in shown
    assert explained("--distance", "near")[0]["open_mpi"]["file"] == ""
    guided(play, honest())
    assert explained()[0]["open_mpi"]["file"] == _core.mpi_profile_file("open_mpi")
    assert explained("--distance", "distant")[0] == found


def test_ranks_that_share_cpus_count_as_near(play: Play, monkeypatch: pytest.MonkeyPatch) -> None:
    """As in the program, where no time of a line says anything then."""
    guided(play, DISTANT)
    assert explained("--ranks", "4096")[0]["open_mpi"]["distance"] == "near"
    assert explained("--ranks", "4096", "--distance", "distant")[0]["open_mpi"]["distance"] == "distant"
    monkeypatch.setenv("LACUNA_MPI_DISTANCE", "distant")
    assert explained("--ranks", "4096")[0]["open_mpi"]["distance"] == "distant"


def test_no_setting_of_the_user_decides_in_a_test(monkeypatch: pytest.MonkeyPatch) -> None:
    kept = "LACUNA_MPI_LIB_DIR"
    for name in ("PROFILE", "DISTANCE", "WAY", "OFFER", "OFFER_CONTIGUOUS", "COLLECTIVES", "LIB_DIR"):
        monkeypatch.setenv(f"LACUNA_MPI_{name}", "1")
    monkeypatch.setenv("LACUNA_MPI", "off")
    forget_settings(monkeypatch)
    assert [name for name in os.environ if name.startswith("LACUNA_MPI")] == [kept]


def test_distances_that_are_none(monkeypatch: pytest.MonkeyPatch) -> None:
    line = ["explain", "vector(512, 1, 8, double)", "--mpi", "open_mpi"]
    assert CliRunner().invoke(app, [*line, "--distance", "far"]).exit_code == 2
    monkeypatch.setenv("LACUNA_MPI_DISTANCE", "far")
    done = CliRunner().invoke(app, line)
    assert done.exit_code == 2
    assert "LACUNA_MPI_DISTANCE is 'far'; it may be near or distant" in " ".join(done.output.split())
