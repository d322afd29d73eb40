"""What the tests share: made-up rows and guides, and the worker that makes up its measurements."""

from __future__ import annotations

import os
import secrets
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import one_thread  # noqa: F401, before NumPy
import pytest

from lacuna import clock
from lacuna.cli.options import worker_nic
from lacuna.guide.plan import GRID_LAYOUT
from lacuna.guide.run_record import Guide, Look
from lacuna.worker.client import Worker, find_worker
from lacuna.worker.hardware import DataPath, Indirect, Machine, Nic
from lacuna.worker.process import WorkerError
from lacuna.worker.records import (
    Cache,
    Conditions,
    Counters,
    Method,
    Probe,
    Row,
    Shape,
    Subject,
    Work,
)

# A shell's background jobs ignore Ctrl-C, and so would the programs that tests start and interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

RowMaker = Callable[..., Row]

PATIENCE = 600.0
"""Seconds that a test waits for what takes a moment: far longer than it takes on a machine that is busy otherwise."""


def wait_for(what: str, condition: Callable[[], object], of: subprocess.Popen[Any] | None = None) -> None:
    """Returns once the condition holds; fails with what was waited for. `of`: the process without which it never
    will."""
    deadline = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > deadline:
            pytest.fail(f"waited {PATIENCE:.0f} s for this: {what}")
        if of and of.poll() is not None and not condition():
            pytest.fail(f"the process ended with {of.returncode} before this: {what}")
        time.sleep(0.02)


def read_until(running: subprocess.Popen[str], text: str) -> str:
    """What the process prints up to the line with the text. Later lines may be lost."""
    assert running.stdout is not None
    limit = threading.Timer(PATIENCE, running.kill)
    limit.start()
    said = ""
    while text not in said:
        line = running.stdout.readline()
        if not line:
            pytest.fail(
                f"the process ended, or was killed after {PATIENCE:.0f} s, and never said {text!r}. It said: {said}"
            )
        said += line
    limit.cancel()
    return said


def free_address() -> str:
    """Of this machine, where nobody listens and nobody will: of its 16 million addresses any one, and none of the ports
    that the kernel hands out."""
    while True:
        host = ".".join(["127", *(str(1 + secrets.randbelow(254)) for _ in range(3))])
        port = 20_000 + secrets.randbelow(10_000)
        try:
            with socket.create_server((host, port)):
                return f"{host}:{port}"
        except OSError:
            continue  # somebody listens at that port of all addresses


MACHINE = Machine("Invented CPU <9000>", "Linux 6.1.0", 2, 32 << 10, 1 << 20, 32 << 20, 4096, 8 << 30)
NIC = Nic(
    "local",
    1024,
    512,
    256,
    4096,
    4096,
    1 << 31,
    Indirect(4096, 65536, 16, 4, 1 << 20),
    (DataPath("mapped", True, True, "a & b"), DataPath("kernel", True, True, "")),
)
METHODS = (
    Method("pack", False, ("none",), "packs"),
    Method("sgrs", False, ("none",), "gathers and scatters"),
    Method("multi_write", True, ("none", "imm"), "writes each piece"),
    Method("by_hand_elements", False, ("none",), "a loop"),
    Method("by_hand_memcpy", False, ("none",), "a memcpy for each block"),
)
COUNTERS = Counters(Work(1, 0, 16, 1, 1, 0, 0, 0, 1024), Work(0, 1, 16, 1, 1, 0, 0, 0, 2048))


def grid_subject(
    block_bytes: int = 64, block_count: int = 16, shape: Shape = "symmetric", cache: Cache = "warm"
) -> Subject:
    return Subject("grid", GRID_LAYOUT, block_bytes, block_count, block_bytes * block_count, shape, cache)


def ddtbench_subject(layout: str = "NAS_MG_x 130x66x66", payload_bytes: int = 32768, blocks: int = 4096) -> Subject:
    return Subject("ddtbench", layout, payload_bytes // blocks, blocks, payload_bytes, "symmetric", "warm")


def row(
    subject: Subject,
    method: str,
    latency_us: float,
    *,
    path: str = "mapped",
    notify: str = "none",
    half_width: float | None = 0.01,
    censored: bool = False,
    behind: float | None = None,
) -> Row:
    """A row whose intervals are its times plus and minus `half_width` (a fraction), or none."""
    low, high, level = None, None, None
    if half_width is not None and not censored:
        low, high, level = latency_us * (1 - half_width), latency_us * (1 + half_width), 0.95
    return Row(
        subject=subject,
        nic="local",
        method=method,
        path=path,
        notify=notify,
        latency_us=latency_us,
        ci_low_us=low,
        ci_high_us=high,
        ci_level=level,
        cpu_send_us=latency_us,
        cpu_recv_us=latency_us / 2,
        copy_send_us=latency_us / 4,
        copy_recv_us=latency_us / 8,
        counters=COUNTERS,
        samples=1 if censored else 100,
        censored=censored,
        reason="one transfer took longer than censor_ms" if censored else None,
        behind=behind,
        behind_low=behind * (1 - half_width) if behind and half_width is not None else None,
        behind_high=behind * (1 + half_width) if behind and half_width is not None else None,
        visits=1 if censored else 12,
    )


QUIET = Probe(2.8, 7.0, 7.0)
FAR = Probe(9.3, 7.0, 7.0)
"""Two states of a machine: two cores that share a cache, and two that do not."""


def look(subject: Subject, probe: Probe = QUIET, *, number: int = 1, at: float = 0.0, counts: bool = True) -> Look:
    return Look(subject, number, at, Conditions((probe, probe), 1, 0.0, 20.0, 30.0), (), counts)


def guide(*rows: Row) -> Guide:
    return Guide("0.1.0", "2030-01-02T03:04:05Z", "lacuna guide --quick", MACHINE, NIC, METHODS, list(rows))


@pytest.fixture(autouse=True)
def no_settings_of_the_user(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """No test reads or writes what the user has set or measured, nor does a command that a test starts."""
    folder = tmp_path_factory.mktemp("config")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(folder))
    forget_settings(monkeypatch)
    return folder


def forget_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    """Deletes what decides, but not LACUNA_MPI_LIB_DIR, which says where the libraries under test are."""
    decide = {"LACUNA_PROFILE", "LACUNA_METHOD", "LACUNA_PATH", "LACUNA_WAY", "LACUNA_LEARN"}
    for name in list(os.environ):
        if name in decide or (name.startswith("LACUNA_MPI") and name != "LACUNA_MPI_LIB_DIR"):
            monkeypatch.delenv(name)


@pytest.fixture
def full_guide() -> Guide:
    """A guide with everything in it: ties, a censored row, rows without an interval, a cell that was not measured."""
    rows = []
    for block in (16, 256, 4096):
        for count in (4, 64, 1024):
            if (block, count) == (4096, 1024):
                continue
            subject = grid_subject(block, count)
            payload = block * count
            rows.append(row(subject, "pack", 1 + payload / 4000))
            rows.append(row(subject, "by_hand_elements", 1.1 + payload / 4000))
            rows.append(row(subject, "by_hand_memcpy", 1.2 + payload / 3000))
            rows.append(row(subject, "pack", 3 + payload / 4000, path="kernel", half_width=None))
            rows.append(row(subject, "sgrs", 0.99 + payload / 8000 + count * 0.002))
            rows.append(row(subject, "multi_write", 0.5 + count * 0.1))
            rows.append(row(subject, "multi_write", 0.8 + count * 0.1, notify="imm"))
            rows.append(row(subject, "multi_write", 20_000, path="kernel", notify="imm", censored=True))
    for layout, payload, blocks in (("NAS_MG_x 130x66x66", 32768, 4096), ("FFT2 256 on 2", 524288, 32768)):
        subject = ddtbench_subject(layout, payload, blocks)
        rows += [row(subject, "pack", 50.0), row(subject, "sgrs", 20.0, half_width=None)]
        rows += [row(subject, "by_hand_elements", 55.0), row(subject, "by_hand_memcpy", 50.0, path="kernel")]
        rows.append(row(subject, "multi_write", 9e4, notify="imm", censored=True))
    made = guide(*rows)
    made.looks = [look(subject, at=float(i)) for i, subject in enumerate(dict.fromkeys(r.subject for r in rows))]
    return made


def make_fake_worker(folder: Path) -> Path:
    """An executable that speaks the protocol; FAKE_WORKER in the environment sets its mood."""
    script = Path(__file__).with_name("fake_worker.py")
    starter = folder / "lacuna-worker"
    starter.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{script}" "$@"\n')
    starter.chmod(0o755)
    return starter


@pytest.fixture
def fake_worker(tmp_path: Path) -> Path:
    return make_fake_worker(tmp_path)


@pytest.fixture
def still_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """The clock of budgets stands: whatever is measured in this process, there is time for it."""
    monkeypatch.setattr(clock, "now", lambda: 0.0)


@pytest.fixture
def simulated() -> Iterator[Worker]:
    """A worker on the simulated NIC."""
    try:
        executable = find_worker()
    except WorkerError as e:
        pytest.skip(str(e))
    with Worker(executable, worker_nic("model"), PATIENCE) as worker:
        yield worker
