"""Two agents of NIXL in two processes, with the plug-in: what they move, by NumPy's word, and how they fail."""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import PATIENCE
from nixl_ready import environment, nixl_python, skip_without

PEER = Path(__file__).with_name("peer.py")
SIZE = 4 << 20
NICS = ("local", "ofi:tcp")

Work = dict[str, Any]


@dataclass
class Ended:
    """What two agents left."""

    states: list[str]
    initiator: np.ndarray
    target: np.ndarray | None = None
    heard: list[str] = field(default_factory=list)
    said: str = ""


@dataclass
class Agents:
    """Two agents that do what they are told."""

    python: Path
    environment: dict[str, str]
    folder: Path
    nic: str

    def run(self, work: list[Work], dies: bool = False) -> Ended:
        (self.folder / "size").write_text(str(SIZE))
        (self.folder / "work.json").write_text(json.dumps(work))
        target, initiator = (self._start(role) for role in ("target", "initiator"))
        said = initiator.communicate(timeout=PATIENCE)[0]
        if initiator.returncode != 0:
            target.kill()
        said += target.communicate(timeout=PATIENCE)[0]
        assert initiator.returncode == 0, said
        assert target.returncode == (-9 if dies else 0), said
        ended = Ended(
            json.loads((self.folder / "done.json").read_text()), np.load(self.folder / "initiator.npy"), said=said
        )
        if not dies:
            ended.target = np.load(self.folder / "target.npy")
            ended.heard = json.loads((self.folder / "heard.json").read_text())
        return ended

    def _start(self, role: str) -> subprocess.Popen[str]:
        command = [self.python, PEER, role, self.folder, self.nic]
        return subprocess.Popen(
            command,
            env=self.environment,
            text=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )


@pytest.fixture(params=NICS)
def agents(request: pytest.FixtureRequest, tmp_path: Path) -> Agents:
    skip_without(request.param)
    return Agents(nixl_python(), environment(), tmp_path, request.param)


def slots(random: np.random.Generator, count: int, length: int) -> list[list[int]]:
    """So many pieces in an order without rule, with gaps."""
    places = random.permutation(SIZE // (length * 2))[:count] * length * 2
    return [[int(place) + int(random.integers(0, length)), length] for place in places]


def strided(count: int, length: int, stride: int, at: int) -> list[list[int]]:
    return [[at + i * stride, length] for i in range(count)]


def model(works: list[Work]) -> tuple[np.ndarray, np.ndarray]:
    """The memories of the initiator and the target, as these transfers leave them one after the other."""
    memories = [np.random.default_rng(seed).integers(0, 256, SIZE, dtype=np.uint8) for seed in (2, 1)]
    for work in works:
        sides = [(memories[0], work["local"]), (memories[1], work["remote"])]
        source, destination = sides if work["operation"] == "WRITE" else sides[::-1]
        data = [source[0][at : at + length].copy() for at, length in source[1]]
        for (at, length), bytes_ in zip(destination[1], data, strict=True):
            destination[0][at : at + length] = bytes_
    return memories[0], memories[1]


def test_what_arrives_is_what_was_said_and_gaps_stay(agents: Agents) -> None:
    random = np.random.default_rng(3)
    works: list[Work] = [
        {
            "operation": "WRITE",
            "local": strided(1, 100_000, 0, 5),
            "remote": strided(1, 100_000, 0, 77),
            "notification": "one",
        },
        {
            "operation": "WRITE",
            "local": strided(3000, 64, 512, 0),
            "remote": strided(3000, 64, 128, 9),
            "notification": "strides",
        },
        {
            "operation": "READ",
            "local": strided(3000, 64, 64, 1),
            "remote": strided(3000, 64, 1000, 3),
            "notification": "read",
        },
    ]
    for operation, count, length in (("WRITE", 1, 1), ("READ", 50, 4096), ("WRITE", 20_000, 16), ("READ", 20_000, 16)):
        pieces = [slots(random, count, length) for _ in range(2)]
        works.append(
            {"operation": operation, "local": pieces[0], "remote": pieces[1], "notification": f"{operation} {count}"}
        )
    ended = agents.run([*works, {"say": "end"}])
    assert ended.states == ["DONE"] * len(works), ended.said
    assert ended.heard == [*(work["notification"] for work in works), "end"]
    expected = model(works)
    assert np.array_equal(ended.initiator, expected[0])
    assert ended.target is not None
    assert np.array_equal(ended.target, expected[1])


def test_memory_that_was_deregistered_is_an_error(agents: Agents) -> None:
    work = {"operation": "WRITE", "local": [[0, 100]], "remote": [[0, 100]]}
    ended = agents.run([{"say": "forget"}, {"wait": "forgotten"}, work, {"say": "end"}])
    assert ended.states == ["nixlInvalidParamError"], ended.said
    assert "agent target has not registered this memory, or not any more: load its metadata again" in ended.said
    assert ended.target is not None
    assert np.array_equal(ended.target, model([])[1])


def test_a_peer_that_dies_is_an_error(agents: Agents) -> None:
    work = {"operation": "WRITE", "local": [[0, 100_000]], "remote": [[0, 100_000]]}
    ended = agents.run([work, {"say": "die"}, {**work, "until": "an error"}], dies=True)
    assert ended.states[0] == "DONE"
    assert ended.states[1] == "nixlRemoteDisconnectError", ended.said
