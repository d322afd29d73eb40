"""The guide between two machines: places, secrets, and two commands that find one another on this one."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import typer
from conftest import NIC, PATIENCE, free_address, read_until, wait_for
from made_up_command import MADE_UP_TIME

from lacuna import _core
from lacuna.guide.fitting import limits_text
from lacuna.guide.run_record import read_guide
from lacuna.worker.client import find_worker
from lacuna.worker.process import WorkerError
from lacuna.worker.remote_host import RemoteHost, place, read_secret

SECRET = "of the two who measure"


class Two:
    """Runs the command as either side; `worker` is the fake one, or none for the real one. The clock is made up."""

    def __init__(self, worker: Path | None, output: Path) -> None:
        self.worker = worker
        self.output = output
        self.address = free_address()
        self.variables: dict[str, str] = {}

    def line(self, *arguments: str) -> list[str]:
        return [sys.executable, str(MADE_UP_TIME), "guide", *arguments]

    def environment(self, secret: str = SECRET, mood: str = "") -> dict[str, str]:
        worker = {"LACUNA_WORKER": str(self.worker)} if self.worker else {}
        given = {"LACUNA_SECRET": secret} if secret else {}
        kept = {k: v for k, v in os.environ.items() if not k.startswith("LACUNA_SECRET")}
        return {**kept, **worker, **given, "FAKE_WORKER": mood, **self.variables}

    @contextmanager
    def listening(self, *arguments: str, secret: str = SECRET, mood: str = "") -> Iterator[subprocess.Popen[str]]:
        with subprocess.Popen(
            self.line("--listen", self.address, *arguments),
            env=self.environment(secret, mood),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            process_group=0,
        ) as running:
            try:
                yield running
            finally:
                running.kill()

    def guide(self, *arguments: str, secret: str = SECRET, mood: str = "") -> subprocess.CompletedProcess[str]:
        """Too short to fit a profile, if the arguments say nothing else: that takes the longest."""
        line = self.line("--quick", "--output", str(self.output))
        line += arguments if "--budget" in arguments else ["--budget", "11", *arguments]
        environment = self.environment(secret, mood)
        return subprocess.run(line, env=environment, capture_output=True, text=True, timeout=PATIENCE, check=False)


@pytest.fixture
def two(fake_worker: Path, tmp_path: Path) -> Two:
    return Two(fake_worker, tmp_path / "results")


@pytest.mark.parametrize(
    ("text", "default", "found"),
    [
        ("node17", "", "node17:18517"),
        ("node17:5000", "", "node17:5000"),
        ("10.0.0.2", "", "10.0.0.2:18517"),
        ("[::1]:5000", "", "[::1]:5000"),
        ("[::1]", "", "[::1]:18517"),
        ("fe80::1", "", "[fe80::1]:18517"),
        ("", "0.0.0.0", "0.0.0.0:18517"),
        (":5000", "0.0.0.0", "0.0.0.0:5000"),
    ],
)
def test_places(text: str, default: str, found: str) -> None:
    assert place(text, "HOST", default) == found


@pytest.mark.parametrize("text", ["node17:", "node17:0", "node17:65536", "node17:http", ":5000", "", "[]:5000", "a:+5"])
def test_what_is_no_place(text: str) -> None:
    with pytest.raises(typer.BadParameter):
        place(text, "HOST")


def test_the_secret_comes_from_the_environment_or_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "secret"
    file.write_text(SECRET + "\n")
    file.chmod(0o600)
    monkeypatch.delenv("LACUNA_SECRET", raising=False)
    monkeypatch.setenv("LACUNA_SECRET_FILE", str(file))
    assert read_secret() == SECRET
    monkeypatch.setenv("LACUNA_SECRET", "another one, of the user")
    assert read_secret() == "another one, of the user"
    assert "another one" not in repr(RemoteHost("node17:1", read_secret()))


@pytest.mark.parametrize(
    ("content", "mode", "says"),
    [
        (SECRET, 0o644, "others can read it; chmod 600"),
        ("short", 0o600, "16 bytes or more"),
        ("", 0o600, "two machines need a secret"),
        (None, 0o600, "cannot read"),
        ("with\0zero, which no environment has", 0o600, "is no text"),
    ],
)
def test_what_is_no_secret(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: str | None, mode: int, says: str
) -> None:
    file = tmp_path / "secret"
    if content is not None:
        file.write_text(content)
        file.chmod(mode)
    monkeypatch.delenv("LACUNA_SECRET", raising=False)
    monkeypatch.setenv("LACUNA_SECRET_FILE", str(file))
    with pytest.raises(typer.BadParameter, match=says):
        read_secret()


@pytest.mark.gate
def test_the_side_with_the_host_measures_and_writes(two: Two) -> None:
    with two.listening() as other:
        ended = two.guide(two.address)
        said, errors = other.communicate(timeout=PATIENCE)
    assert ended.returncode == 0, ended.stderr
    assert other.returncode == 0, errors
    guide = read_guide(two.output / "guide.json")
    assert guide.peer
    assert guide.peer.address == two.address
    assert guide.command == f"lacuna guide --quick --budget 11 {two.address}"
    assert {look.number for look in guide.looks} == {1, 2}  # by two workers, of one visit
    assert "between two machines" in (two.output / "report.html").read_text()
    assert f"Listening at {two.address}" in said
    assert "Measuring with 127.0.0.1:2" in said
    assert "Served 127.0.0.1:2 for" in said
    assert SECRET not in ended.stdout + said


@pytest.mark.all
def test_the_side_with_the_host_may_start_first(two: Two, tmp_path: Path) -> None:
    alone = tmp_path / "alone"
    two.variables["FAKE_WORKER_ALONE"] = str(alone)
    line = two.line("--budget", "11", "--output", str(two.output), two.address)
    with subprocess.Popen(line, env=two.environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE) as running:
        wait_for("the first side finds nobody", alone.exists, running)
        with two.listening() as other:
            running.communicate(timeout=PATIENCE)
            other.communicate(timeout=PATIENCE)
    assert running.returncode == 0
    assert other.returncode == 0


def test_another_secret_is_told_on_both_sides(two: Two) -> None:
    with two.listening() as other:
        ended = two.guide(two.address, secret="one that the other does not know")
        said = read_until(other, "Refused")
        other.send_signal(signal.SIGINT)
        _, errors = other.communicate(timeout=PATIENCE)
    assert ended.returncode == 3
    assert "another secret" in ended.stderr
    assert "Refused 127.0.0.1:1: the other side has another secret" in said
    assert other.returncode == 130
    assert "Interrupted" in errors
    assert list(two.output.iterdir()) == []


def test_nobody_listens(two: Two) -> None:
    two.variables["FAKE_WORKER_CALLS"] = "0.2"
    ended = two.guide(two.address)
    assert ended.returncode == 3
    assert two.address in ended.stderr


def test_nobody_comes(two: Two) -> None:
    with two.listening("--timeout", "1") as other:
        _, errors = other.communicate(timeout=PATIENCE)
    assert other.returncode == 3
    assert "no machine came within 1 s" in errors


@pytest.mark.gate
def test_a_listener_that_dies_ends_the_guide(two: Two) -> None:
    with two.listening() as other:
        ended = two.guide(two.address, mood="kills")
        _, errors = other.communicate(timeout=PATIENCE)
    assert ended.returncode == 3
    assert "peer_lost" in ended.stderr
    assert other.returncode == 3
    assert "killed by SIGABRT" in errors
    data = json.loads((two.output / "guide.json").read_text())
    assert data["rows"]
    assert data["errors"]


@pytest.mark.gate
def test_ctrl_c_on_one_side_ends_the_other(two: Two, tmp_path: Path) -> None:
    held = tmp_path / "held"
    two.variables["FAKE_WORKER_HELD"] = str(held)
    line = two.line("--output", str(two.output), two.address)
    with (
        two.listening() as other,
        subprocess.Popen(line, env=two.environment(mood="held"), stdout=subprocess.PIPE, text=True) as running,
    ):
        wait_for("the worker measures its fifth cell", held.exists, running)
        running.send_signal(signal.SIGINT)
        running.communicate(timeout=PATIENCE)
        other.communicate(timeout=PATIENCE)
    assert running.returncode == 130
    assert json.loads((two.output / "guide.json").read_text())["interrupted"] is True


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--listen", "--quick"), "--quick"),
        (("--listen", "--json", "-"), "--json"),
        (("--listen", "--output", "lacuna-guide"), "--output"),
        (("--listen", "--regret", "0.1"), "--regret"),
        (("--listen", "--nic", "model"), "simulated"),
        (("node17", "--nic", "model"), "simulated"),
        (("node17", "--nic", "verbs:none", "--validate"), "Measure first"),
        (("node17:99999",), "65535"),
    ],
)
def test_wrong_usage(two: Two, arguments: tuple[str, ...], says: str) -> None:
    ended = subprocess.run(
        two.line(*arguments), env=two.environment(), capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    assert ended.returncode == 2
    assert says in ended.stderr
    assert "Traceback" not in ended.stderr


def test_no_secret_is_wrong_usage(two: Two) -> None:
    ended = two.guide(two.address, secret="")
    assert ended.returncode == 2
    assert "LACUNA_SECRET" in ended.stderr


@pytest.mark.all
def test_a_device_in_software_is_told(two: Two) -> None:
    ended = two.guide(mood="soft")
    assert ended.returncode == 0, ended.stderr
    for text in (" ".join(ended.stdout.split()), (two.output / "report.html").read_text()):
        assert "its timings say nothing about hardware" in text
    assert read_guide(two.output / "guide.json").nic.emulated


@pytest.mark.gate
def test_the_profile_is_found_again_by_the_name_of_the_device(two: Two, no_settings_of_the_user: Path) -> None:
    with two.listening("--nic", "verbs:rxe0") as other:
        assert two.guide("--budget", "13", "--nic", "verbs:rxe0", two.address).returncode == 0
        other.communicate(timeout=PATIENCE)
    (file,) = no_settings_of_the_user.rglob("*.json")
    assert file.name == "verbs-rxe0.json"
    assert str(file) == _core.profile_file("verbs:rxe0")
    assert _core.Guide("verbs:rxe0", limits=limits_text(NIC)).warnings == []
    assert json.loads(file.read_text())["peers"] == "another machine"


# --- the real worker ---


@pytest.fixture
def real(tmp_path: Path) -> Two:
    try:
        find_worker()
    except WorkerError as e:
        pytest.skip(str(e))
    return Two(None, tmp_path / "results")


def test_nic_local_has_no_second_machine(real: Two) -> None:
    with real.listening() as other:
        read_until(other, "Listening at")
        ended = real.guide(real.address)
        _, errors = other.communicate(timeout=PATIENCE)
    for returncode, text in ((ended.returncode, ended.stderr), (other.returncode, errors)):
        assert returncode == 3
        assert "connects processes of one machine only" in text


def test_the_real_handshake_refuses_another_secret(real: Two) -> None:
    with real.listening() as other:
        assert read_until(other, "Listening at").startswith("NIC local")
        ended = real.guide(real.address, secret="one that the other does not know")
        host, _, port = real.address.partition(":")
        strangers = [socket.create_connection((host, int(port))) for _ in range(3)]
        strangers[0].sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n" * 20)
        said = read_until(other, "not the request of a")
        other.send_signal(signal.SIGINT)
        other.communicate(timeout=PATIENCE)
    assert ended.returncode == 3
    assert "the other side has another secret" in ended.stderr
    assert "the other side has another secret" in said
    assert other.returncode == 130


@pytest.mark.gate
def test_nobody_listens_for_the_real_worker(real: Two) -> None:
    ended = real.guide(real.address)
    assert ended.returncode == 3
    assert "Does `lacuna guide --listen` run there" in ended.stderr


def test_a_nic_that_is_not_there_does_not_listen(real: Two) -> None:
    with real.listening("--nic", "nonsense") as other:
        _, errors = other.communicate(timeout=PATIENCE)
    assert other.returncode == 3
    assert 'no NIC "nonsense"' in errors
