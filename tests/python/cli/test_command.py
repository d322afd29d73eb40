"""The command from end to end against a worker that makes up its measurements: exit statuses, files, time."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
from conftest import NIC, PATIENCE, make_fake_worker
from fake_worker import TROUBLE_AT
from made_up_command import MADE_UP_TIME, ROW_KEYS, Lacuna

from lacuna import _core
from lacuna.guide.exploration import FIRST
from lacuna.guide.fitting import limits_text
from lacuna.guide.plan import FULL_PAIRS, QUICK_PAIRS


@pytest.fixture
def lacuna(fake_worker: Path, tmp_path: Path) -> Lacuna:
    return Lacuna(fake_worker, tmp_path / "new" / "results")


@dataclass
class Ended:
    """A guide that went well, and what it left."""

    lacuna: Lacuna
    ended: subprocess.CompletedProcess[str]
    config: Path
    json: Path


@pytest.fixture(scope="module")
def quick(tmp_path_factory: pytest.TempPathFactory) -> Ended:
    folder = tmp_path_factory.mktemp("quick")
    lacuna = Lacuna(make_fake_worker(folder), folder / "new" / "results", {"XDG_CONFIG_HOME": str(folder / "config")})
    data = folder / "g.json"
    ended = lacuna("guide", "--quick", "--output", str(lacuna.output), "--json", str(data))
    assert ended.returncode == 0, ended.stderr
    return Ended(lacuna, ended, folder / "config", data)


def test_quick_writes_the_contract_the_report_and_the_picture(quick: Ended) -> None:
    lacuna = quick.lacuna
    assert sorted(p.name for p in lacuna.output.iterdir()) == ["guide.json", "guide.png", "report.html"]
    data = lacuna.data
    assert data["schema"] == 1
    assert data["errors"] == []
    assert data["command"] == "lacuna guide --quick"
    assert {"created", "lacuna_version", "machine", "nic", "skips"} <= data.keys()
    assert all(row.keys() - {"reason"} == ROW_KEYS for row in data["rows"])
    grid = {
        (r["block_bytes"], r["block_count"], r["shape"])
        for r in data["rows"]
        if r["experiment"] == "grid" and r["cache"] == "warm"
    }
    assert len({key[0] for key in grid}) >= 5
    assert len({key[1] for key in grid}) >= 4
    assert len({key[2] for key in grid}) >= 2
    families = {r["layout"].split()[0] for r in data["rows"] if r["experiment"] == "ddtbench"}
    assert len(families) == 16
    pairs = {r["layout"] for r in data["rows"] if r["experiment"] == "pairs"}
    assert len([name for name in pairs if int(name.split(":")[0]) < FIRST]) == QUICK_PAIRS
    assert len(pairs) > QUICK_PAIRS  # chosen as it went
    assert all(len(r["half_us"]) == 2 for r in data["rows"])
    assert "\x1b" not in quick.ended.stdout
    *shown, written, profile, expected = quick.ended.stdout.splitlines()
    assert max(map(len, shown)) <= 120
    assert written.startswith("Written: ")
    assert profile.startswith("Lacuna chooses by ")
    assert expected.startswith("The choice is expected to take ")


def test_the_fitted_prices_become_the_profile_of_this_machine(quick: Ended, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(quick.config))
    (file,) = (quick.config / "lacuna" / "profiles").rglob("*.json")
    assert f"Lacuna chooses by {file} from now on" in quick.ended.stdout
    assert str(file) == _core.profile_file("local")
    assert _core.Guide("local", limits=limits_text(NIC)).warnings == []
    (measured,) = json.loads(file.read_text())["classes"]
    assert measured["message_us"] == pytest.approx(2.8, rel=0.05)
    assert measured["paths"].keys() == {"mapped", "slots", "kernel"}


def test_json_to_a_file_is_the_same(quick: Ended) -> None:
    assert quick.json.read_text() == (quick.lacuna.output / "guide.json").read_text()


@pytest.mark.parametrize("mood", [pytest.param("faulty", marks=pytest.mark.all), "nodata"])
@pytest.mark.gate
def test_a_run_that_tells_nothing_leaves_no_profile(lacuna: Lacuna, no_settings_of_the_user: Path, mood: str) -> None:
    lacuna("guide", "--quick", "--output", str(lacuna.output), mood=mood)
    assert bool(lacuna.data["rows"]) == (mood == "faulty")
    assert list(no_settings_of_the_user.rglob("*.json")) == []


@pytest.mark.gate
def test_default_measures_more(lacuna: Lacuna) -> None:
    ended = lacuna("guide", "--output", str(lacuna.output), "--budget", "60")
    assert ended.returncode == 0, ended.stderr
    data = lacuna.data
    assert data["command"] == "lacuna guide --budget 60"
    assert {r["shape"] for r in data["rows"]} == {"symmetric", "sender_finer", "sender_coarser"}
    assert {r["cache"] for r in data["rows"]} == {"warm", "cold"}
    assert {r["experiment"] for r in data["rows"]} == {"grid", "ddtbench", "ai", "pairs"}
    pairs = {r["layout"] for r in data["rows"] if r["experiment"] == "pairs"}
    assert len([name for name in pairs if int(name.split(":")[0]) < FIRST]) == FULL_PAIRS
    sizes = [r["payload_bytes"] for r in data["rows"] if r["experiment"] == "grid"]
    assert max(sizes) == 64 << 20
    assert {look["number"] for look in data["looks"]} >= {1, 2}
    assert any(look["left_out"] for look in data["looks"])
    assert data["repeats"]
    assert any("AI systems" in text for text in [(lacuna.output / "report.html").read_text()])
    assert "Messages between ranks that share memory: the fastest way" in ended.stdout


@pytest.mark.gate
def test_a_way_of_messages_that_fails_is_told_and_all_else_is_written(
    lacuna: Lacuna, no_settings_of_the_user: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_MESSAGES", "wrong")
    ended = lacuna("guide", "--output", str(lacuna.output), "--budget", "60")
    assert ended.returncode == 1
    assert "way narrow: byte 3 is wrong" in ended.stderr
    (file,) = no_settings_of_the_user.rglob("local.json")
    assert "messages" not in json.loads(file.read_text())


@pytest.mark.gate
def test_the_real_clock_counts_too(lacuna: Lacuna) -> None:
    """The command as users start it. How much a machine measures in the time is its own affair."""
    line = [sys.executable, "-m", "lacuna", "guide", "--quick", "--budget", "5", "--output", str(lacuna.output)]
    line += ["--timeout", f"{PATIENCE}"]
    ended = subprocess.run(
        line, env=lacuna.environment(""), capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    assert ended.returncode == 0, ended.stderr
    assert (
        len(lacuna.data["looks"]) + len(lacuna.data["unmeasured"]) > 64
    )  # each cell is measured, or said to be left out
    assert lacuna.data["seconds"] > 0


@pytest.mark.all
def test_json_to_standard_output_is_all_that_is_there(lacuna: Lacuna) -> None:
    ended = lacuna.guide("--json", "-")
    assert ended.returncode == 0, ended.stderr
    assert json.loads(ended.stdout) == lacuna.data
    assert "Fastest method" in ended.stderr


@pytest.mark.gate
def test_a_machine_that_changes_its_state_is_told(lacuna: Lacuna) -> None:
    ended = lacuna.guide(mood="moving")
    assert ended.returncode == 0, ended.stderr
    assert "The machine changed its state" in " ".join(ended.stdout.split())
    assert "The machine changed its state" in (lacuna.output / "report.html").read_text()
    looks = lacuna.data["looks"]
    assert {look["number"] for look in looks} == {1, 2}
    assert not all(look["counts"] for look in looks)


@pytest.mark.gate
def test_a_planted_fault_is_told(lacuna: Lacuna) -> None:
    ended = lacuna.guide(mood="faulty")
    assert "A fault was planted" in ended.stdout
    assert "A fault was planted" in (lacuna.output / "report.html").read_text()
    assert lacuna.data["fault"] == "slow:sgrs:50"


@pytest.mark.gate
def test_a_wrong_byte_fails_the_run_loudly_and_keeps_the_files(lacuna: Lacuna) -> None:
    ended = lacuna.guide(mood="error")
    assert ended.returncode == 1
    assert "ERROR: 3 measurements failed" in ended.stderr
    assert "byte 17 is 0x00" in ended.stderr
    data = lacuna.data
    assert {e["method"] for e in data["errors"]} == {"sgrs"}
    assert all(e["layout"].endswith(", warm") for e in data["errors"])
    assert data["rows"]
    assert "byte 17 is 0x00" in (lacuna.output / "report.html").read_text()


@pytest.mark.all
def test_what_is_wrong_in_every_look_is_told_once(lacuna: Lacuna) -> None:
    lacuna.guide(mood="wrong")
    data = lacuna.data
    assert {look["number"] for look in data["looks"]} == {1, 2}
    told = [(e["layout"], e["path"], e["notify"]) for e in data["errors"]]
    assert len(set(told)) == len(told)
    assert "sgrs" not in {r["method"] for r in data["rows"]}


def test_a_run_in_which_nothing_works_still_ends_in_order(lacuna: Lacuna) -> None:
    assert lacuna.guide(mood="nodata").returncode == 1
    assert lacuna.data["rows"] == []


@pytest.mark.parametrize(
    ("mood", "says"),
    [
        ("die", "the sky is up"),
        pytest.param("garbage", "broke the protocol", marks=pytest.mark.gate),
        pytest.param("hang", "fell silent", marks=pytest.mark.gate),  # only then the second counts
        ("unverified", "did not verify"),
    ],
)
def test_a_broken_worker_ends_the_run_and_keeps_what_was_measured(lacuna: Lacuna, mood: str, says: str) -> None:
    ended = lacuna.guide("--timeout", "1", mood=mood)
    assert ended.returncode == 3
    assert says in ended.stderr
    assert "Traceback" not in ended.stderr
    data = lacuna.data
    assert bool(data["rows"]) == (mood != "unverified")
    assert says in data["errors"][0]["message"]
    assert (lacuna.output / "report.html").exists()


@pytest.mark.parametrize("mood", ["silent", "stale"])
def test_a_worker_that_cannot_start_leaves_no_files(lacuna: Lacuna, mood: str) -> None:
    assert lacuna.guide("--timeout", "1", mood=mood).returncode == 3
    assert list(lacuna.output.iterdir()) == []


def test_a_missing_worker_is_told(lacuna: Lacuna) -> None:
    lacuna.worker = lacuna.output / "nowhere"
    for command in (("guide", "--output", str(lacuna.output)), ("info",)):
        ended = lacuna(*command)
        assert ended.returncode == 3
        assert "lacuna-worker not found" in ended.stderr


@pytest.mark.parametrize("number", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.gate)])
def test_an_interrupted_run_keeps_what_was_measured(lacuna: Lacuna, number: signal.Signals) -> None:
    with lacuna.held("guide", "--output", str(lacuna.output)) as running:
        assert running.stdout is not None
        assert running.stdout.readline().startswith("measuring")
        running.send_signal(number)
        running.communicate(timeout=PATIENCE)
    assert running.returncode == 130
    data = lacuna.data
    assert data["interrupted"] is True
    assert len(data["looks"]) == TROUBLE_AT - 1
    assert data["rows"]
    assert data["errors"] == []
    assert "interrupted" in (lacuna.output / "report.html").read_text()


@pytest.mark.all
def test_the_budget_is_kept(lacuna: Lacuna) -> None:
    """Of a plan that takes minutes, since the worker uses all the time that it is given."""
    lacuna.variables["MADE_UP_MS"] = "budget"
    ended = lacuna("guide", "--budget", "20", "--output", str(lacuna.output))
    assert ended.returncode == 0, ended.stderr
    assert lacuna.data["looks"]
    assert lacuna.data["seconds"] < 20
    assert lacuna.data["unmeasured"]
    assert "Left out for time" in ended.stdout


@pytest.mark.all
def test_old_results_are_replaced_whole(lacuna: Lacuna) -> None:
    lacuna.output.mkdir(parents=True)
    (lacuna.output / "guide.json").write_text("old")
    assert lacuna.guide().returncode == 0
    assert lacuna.data["schema"] == 1


@pytest.mark.parametrize(
    "arguments",
    [("guide", "--budget", "0"), ("guide", "--what"), ("guide", "--output", "/dev/null/x"), ("nonsense",)],
)
def test_wrong_usage_exits_with_2(lacuna: Lacuna, arguments: tuple[str, ...]) -> None:
    ended = lacuna(*arguments)
    assert ended.returncode == 2
    assert "Traceback" not in ended.stderr


def test_info_in_words_and_in_json(lacuna: Lacuna) -> None:
    assert "passive target" in lacuna("info").stdout
    hello = json.loads(lacuna("info", "--json").stdout)
    assert isinstance(hello["freed_memory_untold"], str)
    assert hello["shared_bytes"] == {"8": 256 << 20, "32": 64 << 20, "128": 16 << 20}
    assert hello["board_bytes"] == {"8": 32 << 20, "32": 8 << 20, "128": 2 << 20}
    assert "userfaultfd" in " ".join(lacuna("info").stdout.split())
    assert [p["name"] for p in hello["nic"]["paths"]] == ["mapped", "slots", "kernel"]
    assert hello["protocol"] == 1
    assert hello["devices"]["list"] == []


def test_info_without_a_device_says_so_in_a_line(lacuna: Lacuna) -> None:
    ended = lacuna("info")
    assert ended.returncode == 0
    assert "RDMA devices: no RDMA device" in ended.stdout


def test_info_shows_each_device(lacuna: Lacuna) -> None:
    shown = " ".join(lacuna("info", mood="devices").stdout.split())
    for text in (
        "RDMA device: --nic verbs:rxe0",
        "its timings say nothing about hardware",
        "1: active, Ethernet, MTU 4096 (at most 4096)",
        "port 1: RoCE, GID 1 (::ffff:10.77.0.1), MTU 4096",
        "30 advertised, 32 probed",
        "no: rxe0 is no mlx5 device",
        "type 1, 2B",
        "driver mlx5_core",
        "yes: 1,000 keys of up to 64 entries",
        "type 1; none of type 2",
        "no port of mlx5_1 is up",
    ):
        assert text in shown, text
    found = json.loads(lacuna("info", "--json", mood="devices").stdout)["devices"]["list"]
    assert [d["nic"] for d in found] == ["verbs:rxe0", "verbs:mlx5_0", "verbs:mlx5_1"]


def test_info_shows_each_provider(lacuna: Lacuna) -> None:
    assert "Providers of libfabric: NIC ofi needs libfabric" in lacuna("info").stdout
    shown = " ".join(lacuna("info", mood="devices").stdout.split())
    for text in (
        "Provider of libfabric: --nic ofi:tcp",
        "in order, several at a time",
        "one at a time: it promises no order",
        "not usable its completions carry 4 bytes",
    ):
        assert text in shown, text
    found = json.loads(lacuna("info", "--json", mood="devices").stdout)["providers"]["list"]
    assert [p["nic"] for p in found] == ["ofi:tcp", "ofi:loose", "ofi:efa"]


@pytest.mark.parametrize("command", [(), ("guide",), ("info",)])
def test_help_comes_with_an_example(lacuna: Lacuna, command: tuple[str, ...]) -> None:
    ended = lacuna(*command, "--help")
    assert ended.returncode == 0
    assert f"lacuna {command[0] if command else 'guide'}" in ended.stdout


def test_version(lacuna: Lacuna) -> None:
    ended = lacuna("--version")
    assert ended.returncode == 0
    assert ended.stdout.startswith("lacuna 0.")


@pytest.mark.all
def test_a_reader_that_leaves_early_costs_no_file(lacuna: Lacuna) -> None:
    command = [sys.executable, str(MADE_UP_TIME), "guide", "--quick", "--budget", "11", "--output", str(lacuna.output)]
    with subprocess.Popen(command, env=lacuna.environment(""), stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        running.stdout.readline()
        running.stdout.close()
        running.wait(PATIENCE)
    assert sorted(p.name for p in lacuna.output.iterdir()) == ["guide.json", "guide.png", "report.html"]
