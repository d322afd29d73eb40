"""Tensors of any strides: layouts, copies, messages; of torch where it is, else objects that have DLPack alone."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import PATIENCE
from forked_ranks import run_ranks
from host_arrays import Dlpack, view_of_shape

import lacuna
from lacuna import distributed, kv

Array = np.ndarray[Any, np.dtype[Any]]


class StandIn:
    """What has DLPack, as torch's tensors have it, and the methods that the tests use."""

    @staticmethod
    def of(array: Array) -> Any:
        return Dlpack(array)


class Torch:
    @staticmethod
    def of(array: Array) -> Any:
        torch = pytest.importorskip("torch", reason="torch is not installed")
        # A view of the same memory; torch takes no negative strides from NumPy.
        return torch.from_numpy(array)


@pytest.fixture(params=[StandIn, Torch], ids=["dlpack", "torch"])
def tensors(request: pytest.FixtureRequest) -> Any:
    if request.param is Torch:
        pytest.importorskip("torch", reason="torch is not installed")
    return request.param


def drawn(rng: random.Random, shape: tuple[int, ...], dtype: str = "f4") -> Array:
    """A view of any strides but negative ones, in any order of its dimensions."""
    order = rng.sample(range(len(shape)), len(shape))
    room = np.zeros([2 * shape[d] + 1 for d in order], dtype)
    view = view_of_shape(room, tuple(shape[d] for d in order), rng)
    view = view[tuple(slice(None, None, -1) if step < 0 else slice(None) for step in view.strides)]
    ordered: Array = view.transpose([order.index(d) for d in range(len(shape))])
    return ordered


@pytest.mark.parametrize("seed", range(30))
def test_layouts_and_copies_of_any_strides(tensors: Any, seed: int) -> None:
    rng = random.Random(seed)
    shape = tuple(rng.randint(1, 7) for _ in range(rng.randint(1, 5)))
    source, target = drawn(rng, shape), drawn(rng, shape)
    source[...] = np.arange(source.size).reshape(shape)
    assert lacuna.Layout.of(tensors.of(source)) == lacuna.Layout.of(source)
    lacuna.copy(tensors.of(target), tensors.of(source))
    assert np.array_equal(target, source)
    assert lacuna.Layout.of(source).pack(tensors.of(source)) == source.tobytes()


def test_messages_as_torch_distributed_has_them(tensors: Any) -> None:
    def program(ranks: lacuna.Communicator) -> None:
        dist = distributed.ProcessGroup(ranks)
        other = 1 - dist.get_rank()
        assert dist.get_world_size() == 2
        rng = random.Random(7 + dist.get_rank())
        mine, theirs = (np.arange(60.0).reshape(3, 4, 5) + 100 * rank for rank in (dist.get_rank(), other))
        out, into = drawn(rng, (3, 4, 5), "f8"), drawn(rng, (3, 4, 5), "f8")
        out[...] = mine
        if dist.get_rank() == 0:
            dist.send(tensors.of(out), dst=1, tag=3)
            assert dist.recv(tensors.of(into), tag=4) == 1
        else:
            assert dist.recv(tensors.of(into), src=0, tag=3) == 0
            dist.send(tensors.of(out), dst=0, tag=4)
        assert np.array_equal(into, theirs)
        into[...] = 0
        works = dist.batch_isend_irecv(
            [
                distributed.P2POp(dist.isend, tensors.of(out), other),
                distributed.P2POp(dist.irecv, tensors.of(into), other),
            ]
        )
        assert all(work.wait() for work in works)
        assert np.array_equal(into, theirs)
        assert dist.isend(tensors.of(out[0, 0]), other, 9).wait()
        work = dist.irecv(tensors.of(into[0, 0]), None, 9)
        while not work.is_completed():
            pass

    run_ranks(program, 2)


def test_caches_and_block_tables_of_tensors(tensors: Any) -> None:
    arrays = [np.random.default_rng(i).integers(0, 99, (2, 9, 4, 2, 8), np.int16) for i in range(2)]
    other = [np.zeros((9, 2, 4, 2, 8), np.int16) for _ in range(2)]
    source = kv.Cache([tensors.of(a) for a in arrays], "vllm:flash_attn")
    target = kv.Cache([tensors.of(a) for a in other], "vllm:flashinfer")
    tables = np.array([[3, 1, 8], [2, 7, 0]], np.int32)
    read, written = (tables[0], tables[1]) if tensors is StandIn else (tensors.of(tables[0]), tensors.of(tables[1]))
    kv.copy(target, written, source, read, 12)
    assert all(np.array_equal(a[:, tables[0]], b[tables[1]].swapaxes(0, 1)) for a, b in zip(arrays, other, strict=True))


def test_types_that_numpy_has_not() -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed")
    a = torch.arange(24, dtype=torch.bfloat16).reshape(4, 6)
    b = torch.zeros(6, 4, dtype=torch.bfloat16)
    lacuna.copy(b.t(), a)
    assert torch.equal(b.t(), a)
    with pytest.raises(TypeError, match="bfloat16"):
        lacuna.copy(b.to(torch.float16).t(), a)
    with pytest.raises(BufferError):
        lacuna.copy(torch.zeros(3, requires_grad=True), torch.zeros(3))


QUICKSTART = """
import sys, torch, lacuna.distributed

with lacuna.distributed.init_process_group(sys.argv[1], rank=int(sys.argv[2]), world_size=2) as dist:
    weights = torch.full((3, 4), float(dist.get_rank()))
    if dist.get_rank() == 0:
        weights[:, 1] = torch.tensor([7.0, 8.0, 9.0])
        dist.send(weights[:, 1], dst=1)
    else:
        dist.recv(weights.t()[2], src=0)
        print(weights.tolist())
"""


def test_torch_between_two_processes(tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="torch is not installed")
    lines = [[sys.executable, "-c", QUICKSTART, f"torch-{tmp_path}", str(rank)] for rank in range(2)]
    ranks = [subprocess.Popen(line, stdout=subprocess.PIPE, text=True) for line in lines]
    said = [rank.communicate(timeout=PATIENCE)[0] for rank in ranks]
    assert said == ["", "[[1.0, 1.0, 7.0, 1.0], [1.0, 1.0, 8.0, 1.0], [1.0, 1.0, 9.0, 1.0]]\n"]


def test_ranks_meet_as_torchrun_says(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(ValueError, match="RANK of the environment is no number"):
        distributed.init_process_group()
    monkeypatch.setenv("RANK", "0")
    monkeypatch.setenv("WORLD_SIZE", "1")
    with pytest.raises(ValueError, match="needs an address"):
        distributed.init_process_group()
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "1")
    monkeypatch.setenv("MASTER_PORT", f"{tmp_path}")
    with distributed.init_process_group() as alone:
        assert (alone.get_rank(), alone.get_world_size()) == (0, 1)
