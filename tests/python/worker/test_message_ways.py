"""Ways of messages: what the worker says of them, and the member of a profile that this comes to."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
from conftest import PATIENCE
from fake_messages import BESIDE

from lacuna import _core
from lacuna.bench.messages.ways_table import fastest
from lacuna.worker import messages
from lacuna.worker.client import find_worker
from lacuna.worker.messages import AXES, BYTES, CELLS, FORMS, RUNS
from lacuna.worker.process import WorkerError


def measured(fake_worker: Path) -> dict[str, object]:
    return messages.measure(fake_worker, 1.0, PATIENCE, lambda _done: None)


def test_what_was_measured_is_the_member_of_a_profile(fake_worker: Path) -> None:
    told: list[int] = []
    found = messages.measure(fake_worker, 1.0, PATIENCE, told.append)
    assert told == list(range(len(CELLS)))
    assert (found["bytes"], found["runs"]) == (BYTES, RUNS)
    for form in FORMS:
        assert found["ns"][form].keys() == AXES.keys()
        for way, sheet in found["ns"][form].items():
            places = [(size, run) for size in AXES[way]["bytes"] for run in AXES[way]["runs"]]
            assert [ns > 0 for ns in sheet] == [run <= size for size, run in places]
    start, byte = BESIDE["narrow"]
    at = BYTES.index(4096) * len(RUNS) + RUNS.index(64)
    assert found["ns"]["listed"]["narrow"][at] == pytest.approx(start + byte * 4096, rel=1e-3)
    best = [fastest(found, "regular", size, 4096) for size in BYTES]
    assert best[:2] == ["", ""]
    assert best[2:] == ["eager", "wide", "wide", "wide", "wide", "direct", "direct", "direct"]


def test_a_system_without_direct_copies_has_no_times_of_them(
    fake_worker: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_MESSAGES", "copies_not")
    found = messages.measure(fake_worker, 1.0, PATIENCE, lambda _done: None)
    assert found["ns"]["regular"].keys() == AXES.keys() - {"direct"}


def test_cells_that_found_the_ranks_elsewhere_are_measured_again(
    fake_worker: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_MESSAGES", "strays")
    told: list[int] = []
    messages.measure(fake_worker, 1.0, PATIENCE, told.append)
    assert told == [*range(len(CELLS)), *range(len(CELLS) - 3, len(CELLS))]
    monkeypatch.setenv("FAKE_MESSAGES", "moving")
    with pytest.raises(messages.MovedError, match="cells found the ranks nearer"):
        measured(fake_worker)


@pytest.mark.parametrize(
    ("mood", "kind", "says"),
    [
        ("wrong", messages.FailedError, "way narrow: byte 3 is wrong"),
        ("dies", WorkerError, "the worker for messages died"),
        ("garbage", WorkerError, "broke the protocol"),
        ("few", WorkerError, "no time of listed, wide"),
        ("other", WorkerError, "not 4096 of 64"),
    ],
)
def test_a_worker_that_misbehaves(
    fake_worker: Path, monkeypatch: pytest.MonkeyPatch, mood: str, kind: type[Exception], says: str
) -> None:
    monkeypatch.setenv("FAKE_MESSAGES", mood)
    with pytest.raises(kind, match=says):
        measured(fake_worker)


def test_the_real_worker_measures_what_a_profile_may_have() -> None:
    try:
        worker = find_worker()
    except WorkerError as e:
        pytest.skip(str(e))
    with messages.MessagesWorker(worker, PATIENCE) as running:
        for size, run in ((512, 8), (16384, 64), (65536, 65536)):
            cell = running.measure(size, run, 1.0)
            for form in FORMS:
                assert {"wide", "narrow", "passed", "rendezvous"} <= cell.ns[form].keys() <= AXES.keys()
                assert ("eager" in cell.ns[form]) == (size <= 16384)
                assert all(math.isfinite(ns) for ns in cell.ns[form].values())
        with pytest.raises(messages.FailedError, match="100 bytes in runs of 64"):
            running.measure(100, 64, 1.0)
        assert running.measure(512, 512, 1.0).bytes == 512, "the worker goes on"


def test_a_profile_with_messages_can_be_read(fake_worker: Path, tmp_path: Path) -> None:
    head = {"schema": 3, "nic": "local", "peers": "same machine", "machine": "a machine", "lacuna_version": "0.2.0"}
    profile = {**head, "created": "today", "classes": [], "messages": measured(fake_worker)}
    (tmp_path / "p.json").write_text(json.dumps(profile))
    _core.check_profile(str(tmp_path / "p.json"))
