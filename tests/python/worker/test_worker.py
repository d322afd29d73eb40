"""The client survives every worker."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from conftest import COUNTERS, NIC, PATIENCE, grid_subject
from fake_worker import TROUBLE_AT

import lacuna.worker.process
from lacuna.guide.plan import grid_cell
from lacuna.worker.client import Worker, find_worker
from lacuna.worker.hardware import Nic
from lacuna.worker.process import WorkerError, WorkerSilentError
from lacuna.worker.protocol import SchemaError, parsed, read
from lacuna.worker.records import Row, verified_row


def changed(counter: str, value: object) -> dict[str, object]:
    """Counters of which the sender's has this value, or none."""
    send = {**asdict(COUNTERS.send), counter: value}
    return {"send": {k: v for k, v in send.items() if v is not None}, "receive": asdict(COUNTERS.receive)}


def measure_one(worker: Worker, number: int) -> int:
    """Returns the number of rows."""
    cell = grid_cell(64, 16, "symmetric", "warm", required=True)
    request: dict[str, object] = {
        "id": number,
        "layout": cell.spec,
        "cache": "warm",
        "max_samples": 10,
        "budget_ms": 1.0,
        "censor_ms": 10.0,
    }
    return sum(isinstance(answer, Row) for answer in worker.measure(request, cell.subject))


def measure_six(worker: Worker) -> int:
    """Measures six cells, so that a bad worker reaches the one at which it misbehaves. Returns the number of rows."""
    return sum(measure_one(worker, number) for number in range(TROUBLE_AT + 1))


def test_a_good_worker_measures_and_ends_by_itself(fake_worker: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lacuna.worker.process, "_FAREWELL_SECONDS", PATIENCE)
    with Worker(fake_worker, "local", PATIENCE) as worker:
        assert worker.hello.nic.name == "local"
        assert len(worker.corpus()) == 16
        assert measure_six(worker) > 0
        process = worker._process
    assert process.returncode == 0


@pytest.mark.parametrize(
    ("mood", "says"),
    [
        ("die", "killed by SIGABRT.*\nIts last words:\nassertion failed: the sky is up"),
        ("garbage", "broke the protocol.*It sent: {'not': json}"),
        ("unverified", "did not verify"),
    ],
)
def test_a_bad_worker_is_a_clear_error(
    fake_worker: Path, monkeypatch: pytest.MonkeyPatch, mood: str, says: str
) -> None:
    monkeypatch.setenv("FAKE_WORKER", mood)
    with pytest.raises(WorkerError, match=says), Worker(fake_worker, "local", PATIENCE) as worker:
        measure_six(worker)


@pytest.mark.parametrize(
    ("mood", "says", "timeout"), [("stale", "speaks protocol 0", PATIENCE), ("silent", "fell silent", 0.5)]
)
def test_a_worker_that_cannot_start_is_a_clear_error(
    fake_worker: Path, monkeypatch: pytest.MonkeyPatch, mood: str, says: str, timeout: float
) -> None:
    monkeypatch.setenv("FAKE_WORKER", mood)
    with pytest.raises(WorkerError, match=says):
        Worker(fake_worker, "local", timeout)


def measure_until_it_hangs(worker: Worker, then: Callable[[], None] = lambda: None) -> None:
    """Waits for all answers that come, however long they take. The next one does not come, and is not waited for long;
    `then` is called before."""
    for number in range(TROUBLE_AT):
        measure_one(worker, number)
    worker._timeout = 0.3
    then()
    measure_one(worker, TROUBLE_AT)


def test_a_hanging_worker_is_given_up_and_killed(fake_worker: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_WORKER", "hang")
    worker = Worker(fake_worker, "local", PATIENCE)
    with pytest.raises(WorkerSilentError), worker:
        measure_until_it_hangs(worker)
    assert worker._process.poll() == -signal.SIGKILL


def test_a_worker_that_does_not_end_is_killed(fake_worker: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_WORKER", "deaf")
    monkeypatch.setattr(lacuna.worker.process, "_FAREWELL_SECONDS", 0.3)
    with Worker(fake_worker, "local", PATIENCE) as worker:
        process = worker._process
    assert process.poll() == -signal.SIGKILL


def test_chatter_on_standard_error_blocks_nobody(tmp_path: Path) -> None:
    chatty = tmp_path / "lacuna-worker"
    chatty.write_text(
        f'#!/bin/sh\nexec {sys.executable} -c "import sys; sys.stderr.write(chr(120) * 10**6); sys.exit(4)"\n'
    )
    chatty.chmod(0o755)
    with pytest.raises(WorkerError, match="exited with status 4") as caught:
        Worker(chatty, "local", PATIENCE)
    assert len(str(caught.value)) < 4000


def test_a_missing_worker_says_what_to_do(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("LACUNA_WORKER", str(tmp_path / "nowhere"))
    with pytest.raises(WorkerError, match="set LACUNA_WORKER"):
        find_worker()


def test_a_worker_that_is_no_program_says_so(tmp_path: Path) -> None:
    plain = tmp_path / "lacuna-worker"
    plain.write_text("text")
    with pytest.raises(WorkerError, match="cannot start"):
        Worker(plain, "local", 1)


def test_the_client_sleeps_while_it_waits(fake_worker: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It asks the system once, and is woken by what comes: nothing."""
    monkeypatch.setenv("FAKE_WORKER", "hang")
    waits: list[float] = []

    def wait(*arguments: Any) -> Any:
        waits.append(arguments[-1])
        return ask(*arguments)

    ask = select.select
    worker = Worker(fake_worker, "local", PATIENCE)
    with pytest.raises(WorkerSilentError), worker:
        measure_until_it_hangs(worker, lambda: monkeypatch.setattr(select, "select", wait))
    assert len(waits) <= 3  # a second time, to be sure that it waited long enough
    assert waits[0] > 0


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"latency_us": 0}, "`float` > 0.0 - at `row.latency_us`"),
        ({"samples": True}, "Expected `int`, got `bool` - at `row.samples`"),
        ({"path": None}, "Expected `str`, got `null` - at `row.path`"),
        ({"payload_bytes": 1}, "moved 1 bytes instead of 1024"),
        ({"verified": False}, "did not verify"),
        ({"copy_send_us": "0"}, "Expected `float`, got `str` - at `row.copy_send_us`"),
        ({"counters": []}, "Expected `object`, got `array` - at `row.counters`"),
        ({"counters": {"send": asdict(COUNTERS.send)}}, "required field `receive` - at `row.counters`"),
        ({"counters": changed("sges", 1.5)}, "Expected `int`, got `float` - at `row.counters.send.sges`"),
        ({"counters": changed("doorbells", -1)}, "Expected `int` >= 0 - at `row.counters.send.doorbells`"),
        ({"counters": changed("bytes_copied", None)}, "required field `bytes_copied` - at `row.counters.send`"),
        ({"half_us": [1.0]}, "of length 2, got 1 - at `row.half_us`"),
        ({"censored": True}, "a censored row has no reason"),
    ],
)
def test_a_row_with_a_wrong_field_is_refused(change: dict[str, object], says: str) -> None:
    good: dict[str, object] = {
        "nic": "local",
        "method": "pack",
        "path": "mapped",
        "notify": "none",
        "payload_bytes": 1024,
        "latency_us": 1.0,
        "ci_low_us": None,
        "ci_high_us": None,
        "ci_level": None,
        "cpu_send_us": 1.0,
        "cpu_recv_us": 0,
        "copy_send_us": 0.25,
        "copy_recv_us": 0,
        "counters": asdict(COUNTERS),
        "samples": 1,
        "censored": False,
        "verified": True,
    }
    assert verified_row(good, grid_subject(), "row").latency_us == 1.0
    with pytest.raises(SchemaError, match=says):
        verified_row({**good, **change}, grid_subject(), "row")
    for name in good.keys() - {"ci_low_us", "ci_high_us", "ci_level"}:
        with pytest.raises(SchemaError, match=f"required field `{name}` - at `row`"):
            verified_row({k: v for k, v in good.items() if k != name}, grid_subject(), "row")


def test_what_is_no_number_is_no_json() -> None:
    for text in (b'{"latency_us": NaN}', b'{"latency_us": Infinity}', b"[1]", b"{"):
        with pytest.raises(SchemaError, match="no JSON object"):
            parsed(text)


def test_a_nic_tells_its_limits_or_is_refused() -> None:
    good = {**asdict(NIC), "paths": [asdict(p) for p in NIC.paths]}
    assert read(Nic, good, "nic") == NIC
    for name in ("max_sge_rd", "max_inline", "indirect"):
        with pytest.raises(SchemaError, match=f"required field `{name}` - at `nic`"):
            read(Nic, {k: v for k, v in good.items() if k != name}, "nic")
    limits = asdict(NIC.indirect)
    del limits["note"]
    for name, limit in limits.items():
        wrong = {**good, "indirect": {**asdict(NIC.indirect), name: -limit}}
        with pytest.raises(SchemaError, match=f"Expected `int` >= 0 - at `nic.indirect.{name}`"):
            read(Nic, wrong, "nic")
    with pytest.raises(SchemaError, match=r"Expected `str`, got `int` - at `nic\.indirect\.note`"):
        read(Nic, {**good, "indirect": {**asdict(NIC.indirect), "note": 7}}, "nic")


def test_no_worker_is_left_when_the_command_is_killed(fake_worker: Path) -> None:
    code = (
        "import sys, time; from pathlib import Path; from lacuna.worker.client import Worker; "
        f"w = Worker(Path(sys.argv[1]), 'local', {PATIENCE}); print(w._process.pid, flush=True); time.sleep(3600)"
    )
    with subprocess.Popen([sys.executable, "-c", code, fake_worker], stdout=subprocess.PIPE, text=True) as command:
        assert command.stdout is not None
        worker = os.pidfd_open(int(command.stdout.readline()))  # which stands for this process, and for no later one
        command.kill()
    ended, _, _ = select.select([worker], [], [], PATIENCE)
    os.close(worker)
    assert ended, f"the worker still ran {PATIENCE:.0f} s later"
