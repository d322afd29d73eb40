"""Messages from Python: arrays of all kinds, requests, errors, and how processes meet."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import pickle
import secrets
import signal
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from conftest import PATIENCE, free_address
from host_arrays import CPU, CUDA, CUDA_HOST, CUDA_MANAGED, ROCM_HOST, Dlpack

import lacuna
from lacuna import Communicator

Program = Callable[[Communicator], None]


def _run(program: Program, options: dict[str, Any], rank: int, wrong: Any) -> None:
    try:
        with lacuna.connect(rank=rank, **options) as ranks:
            program(ranks)
    except BaseException as e:
        wrong.put(f"rank {rank}: {type(e).__name__}: {e}")


def run(program: Program, size: int = 2, **options: Any) -> None:
    """The program in so many processes; fails with what any of them raised."""
    context = multiprocessing.get_context("fork")
    wrong = context.SimpleQueue()
    options = {"address": f"test-{secrets.token_hex(8)}", "size": size, "timeout": PATIENCE, **options}
    processes = [context.Process(target=_run, args=(program, options, rank, wrong)) for rank in range(size)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(PATIENCE)
        process.kill()
        assert process.exitcode == 0, f"a rank did not end, or not in order, within {PATIENCE:.0f} s"
    found = []
    while not wrong.empty():
        found.append(wrong.get())
    assert found == []


def test_arrays_of_all_kinds() -> None:
    def program(ranks: Communicator) -> None:
        cube = np.arange(60 * 70 * 80, dtype=np.float64).reshape(60, 70, 80)
        views = [cube, cube[::2, 3:50, ::-3], cube.T, cube[:, 0, 0], cube[5:5], np.float32(3) * np.ones(5, np.float32)]
        views += [np.zeros(7, dtype=[("a", "i1"), ("b", "f8")]), np.array(5)]
        for tag, view in enumerate(views):
            if ranks.rank == 0:
                ranks.send(view, 1, tag)
            else:
                got = np.zeros_like(view, order="F")
                status = ranks.recv(got, 0, tag)
                assert (status.source, status.tag, status.bytes) == (0, tag, view.nbytes)
                assert np.array_equal(got, view)
        if ranks.rank == 0:
            ranks.send(b"seven bytes", 1, 100)
            ranks.send(memoryview(bytearray(range(100)))[::5], 1, 101)
            ranks.send(cube, 1, 102, layout=lacuna.Layout.vector(10, 8, 24, lacuna.Layout.bytes(1)), offset=16)
        else:
            text = bytearray(11)
            ranks.recv(text, 0, 100)
            assert text == b"seven bytes"
            small = np.zeros(20, np.uint8)
            ranks.recv(small, 0, 101)
            assert small.tolist() == list(range(0, 100, 5))
            picked = np.zeros(10)
            ranks.recv(picked, 0, 102)
            assert picked.tolist() == [2.0 + 3 * i for i in range(10)]

    run(program)


def test_dlpack() -> None:
    def program(ranks: Communicator) -> None:
        grid = np.arange(120, dtype=np.int32).reshape(10, 12)
        part = lacuna.Layout.vector(3, 4, 8, lacuna.Layout.bytes(1))
        for tag, device in enumerate((CPU, CUDA_HOST, ROCM_HOST, CUDA_MANAGED)):
            if ranks.rank == 0:
                ranks.send(Dlpack(grid[::3, ::2], device), 1, tag)
                ranks.send(Dlpack(grid, device), 1, tag, layout=part, offset=48)
            else:
                got = np.zeros((4, 6), np.int32)
                ranks.recv(Dlpack(got, device), 0, tag)
                assert np.array_equal(got, grid[::3, ::2])
                picked = np.zeros(3, np.int32)
                ranks.recv(picked, 0, tag)
                assert picked.tolist() == [12, 14, 16]
        with pytest.raises(TypeError, match="device"):
            ranks.send(Dlpack(grid, CUDA), 1 - ranks.rank)
        with pytest.raises(TypeError, match="buffer protocol"):
            ranks.send(object(), 1 - ranks.rank)
        with pytest.raises(ValueError, match="covers bytes 400 to 500 of the array, which has bytes 0 to 480"):
            ranks.send(Dlpack(grid), 1 - ranks.rank, layout=lacuna.Layout.bytes(100), offset=400)
        with pytest.raises(BufferError):
            ranks.recv(b"read-only", 1 - ranks.rank)

    run(program)


def test_objects_are_refused() -> None:
    def program(ranks: Communicator) -> None:
        peer = 1 - ranks.rank
        held = np.array([None, {}])
        for array in (held, memoryview(held), np.zeros(2, [("a", "i4"), ("b", object)])):
            for call in (
                lambda array=array: ranks.send(array, peer),
                lambda array=array: ranks.recv(array, peer),
                lambda array=array: ranks.expose(array),
                lambda array=array: ranks.register_memory(array),
                lambda array=array: ranks.alltoallw([array] * 2, [array] * 2),
            ):
                with pytest.raises(TypeError, match="the array holds Python objects"):
                    call()

    run(program)


def test_requests() -> None:
    def program(ranks: Communicator) -> None:
        peer = 1 - ranks.rank
        out = [np.full(50_000, 10 * ranks.rank + i, np.int64) for i in range(8)]
        into = [np.zeros(50_000, np.int64) for _ in range(8)]
        receives = [ranks.irecv(into[i], peer, i) for i in range(8)]
        sends = [ranks.isend(out[i], peer, i) for i in reversed(range(8))]
        first = lacuna.wait_any(receives)
        assert receives[first].test()
        assert [s.tag for s in lacuna.wait_all(receives)] == list(range(8))
        assert [s.bytes for s in lacuna.wait_all(sends)] == [400_000] * 8
        for i, array in enumerate(into):
            assert (array == 10 * peer + i).all()
        assert receives[0].wait().tag == 0  # again
        never = ranks.irecv(into[0], peer, 99)
        assert not never.test()
        assert never.cancel()
        with pytest.raises(ValueError, match="cancelled"):
            never.wait()
        assert ranks.probe(peer, 98) is None
        last = ranks.isend(out[0], peer, 77)
        while (found := ranks.probe()) is None:
            pass
        assert (found.source, found.tag, found.bytes) == (peer, 77, 400_000)
        ranks.recv(into[0])
        last.wait()
        assert "stream" in ranks.statistics()
        what = lacuna.Layout.bytes(100_000)
        assert "stream" in ranks.explain(what, what, peer)

    run(program)
    run(program, progress_thread=True)


def test_puts_and_gets() -> None:
    def program(ranks: Communicator) -> None:
        grid = np.zeros((100, 100))
        if ranks.rank == 1:
            exposed = ranks.expose(grid)
            ranks.send(pickle.dumps(exposed).ljust(1000), 0)
            ranks.recv(np.zeros(1), 0)  # it is over
            assert (grid[:, 3] == 7).all()
            assert grid.sum() == 700
            ranks.withdraw(exposed)
            return
        text = bytearray(1000)
        ranks.recv(text, 1)
        there = pickle.loads(text)
        assert (there.rank, there.bytes) == (1, grid.nbytes)
        column = lacuna.Layout.vector(100, 8, 800, lacuna.Layout.bytes(1))
        ranks.put(np.full(100, 7.0), there, 24, layout=column)
        everything = np.zeros((100, 100), order="F")
        ranks.get(everything, there)
        assert (everything[:, 3] == 7).all()
        with pytest.raises(ValueError, match="exposed"):
            ranks.put(np.zeros(2), there, grid.nbytes - 8)
        ranks.send(np.zeros(1), 1)

    run(program)


def test_memory_that_is_registered_by_hand_stays() -> None:
    def program(ranks: Communicator) -> None:
        grid = np.zeros((100, 100))
        number = ranks.register_memory(grid)
        with pytest.raises(ValueError, match=r"resize|referenc"):
            grid.resize(200, 100)  # its memory is in use
        ranks.deregister_memory(number)
        with pytest.raises(ValueError, match="held"):
            ranks.deregister_memory(number)

    run(program)
    with pytest.raises(ValueError, match="leave_pinned_pipeline"):
        lacuna.connect("nobody", 2, registering="pin")
    with pytest.raises(ValueError, match="observe"):
        lacuna.connect("nobody", 2, learning="a lot")


def test_many_ranks() -> None:
    def program(ranks: Communicator) -> None:
        size, rank = ranks.size, ranks.rank
        received = np.zeros((size, 1000))
        requests = [ranks.irecv(received[i], i) for i in range(size)]
        requests += [ranks.isend(np.full(1000, rank, float), i) for i in range(size)]
        lacuna.wait_all(requests)
        assert (received == np.arange(size)[:, None]).all()

    run(program, size=6)


def test_errors() -> None:
    def program(ranks: Communicator) -> None:
        if ranks.rank == 0:
            ranks.send(np.zeros(10), 1)
            ranks.send(np.zeros(1), 1)
        else:
            with pytest.raises(ValueError, match="80 bytes"):
                ranks.recv(np.zeros(9))
            ranks.recv(np.zeros(1))
        with pytest.raises(ValueError, match="rank 2"):
            ranks.send(np.zeros(1), 2)
        with pytest.raises(ValueError, match="twice"):
            ranks.recv(np.lib.stride_tricks.as_strided(np.zeros(5), (5, 2), (8, 8), writeable=True))
        ranks.close()
        with pytest.raises(ValueError, match="closed"):
            ranks.send(np.zeros(1), 0)

    run(program)


def test_a_peer_that_dies_is_a_connection_error() -> None:
    """Where nobody noticed, it would wait for ever."""

    def program(ranks: Communicator) -> None:
        if ranks.rank == 0:
            os._exit(0)
        with pytest.raises(ConnectionError, match="rank 0"):
            ranks.recv(np.zeros(10), 0)

    run(program)


def test_a_second_thread_is_told() -> None:
    over = multiprocessing.get_context("fork").Event()

    def program(ranks: Communicator) -> None:
        if ranks.rank == 1:
            assert over.wait(PATIENCE)
            ranks.send(np.zeros(1), 0)
            return

        def receive() -> None:
            while True:
                with contextlib.suppress(RuntimeError):  # whichever of the two comes second is told
                    ranks.recv(np.zeros(1))
                    return

        thread = threading.Thread(target=receive)
        thread.start()
        with pytest.raises(RuntimeError, match="progress_thread"):
            progress_until(time.monotonic() + PATIENCE, ranks)
        over.set()
        thread.join()

    run(program)


def progress_until(deadline: float, ranks: Communicator) -> None:
    while time.monotonic() < deadline:
        ranks.progress()


def test_waiting_ends_with_ctrl_c() -> None:
    over = multiprocessing.get_context("fork").Event()

    def program(ranks: Communicator) -> None:
        if ranks.rank == 1:
            assert over.wait(PATIENCE)
            return
        sys.setswitchinterval(
            PATIENCE
        )  # so that the other thread goes on when this one waits in recv(), and not before
        interrupt = threading.Thread(target=interrupt_soon)
        with pytest.raises(KeyboardInterrupt):  # noqa: PT012, the thread must not come earlier
            interrupt.start()
            ranks.recv(np.zeros(1), 1)
        interrupt.join()
        over.set()

    run(program)


def interrupt_soon() -> None:
    time.sleep(0.2)
    signal.raise_signal(signal.SIGINT)


def test_meeting_by_port_with_a_secret() -> None:
    def program(ranks: Communicator) -> None:
        array = np.full(3, ranks.rank)
        if ranks.rank == 0:
            ranks.send(array, 1)
        else:
            ranks.recv(array)
            assert (array == 0).all()

    run(program, address=free_address(), secret=secrets.token_hex(16))


def test_by_a_provider_of_libfabric() -> None:
    def program(ranks: Communicator) -> None:
        other = 1 - ranks.rank
        for side in (10, 700):  # eager, and in chunks
            mine = np.full((side, side), float(ranks.rank))
            theirs = np.full((side, side), -1.0)
            request = ranks.irecv(theirs[:, ::2], other)
            ranks.send(mine[::2].T, other)
            request.wait()
            assert (theirs[:, ::2] == other).all()
            assert (theirs[:, 1::2] == -1).all()

    try:
        lacuna.connect(f"test-{secrets.token_hex(8)}", 1, nic="ofi:tcp").close()
    except (RuntimeError, NotImplementedError) as e:
        pytest.skip(str(e))
    run(program, nic="ofi:tcp")


def test_nobody_else_comes() -> None:
    with pytest.raises(TimeoutError, match="1"):
        lacuna.connect(f"test-{secrets.token_hex(8)}", 2, timeout=0.2)
    with pytest.raises(ValueError, match="address"):
        lacuna.connect()
    with pytest.raises(ValueError, match="rank"):
        lacuna.connect("x", 2, rank=2)


class _Comm:
    """What connect() uses of an mpi4py communicator, among the threads of one process."""

    def __init__(self, rank: int, box: list[Any], barrier: threading.Barrier) -> None:
        self._rank, self._box, self._barrier = rank, box, barrier

    def Get_rank(self) -> int:  # noqa: N802
        return self._rank

    def Get_size(self) -> int:  # noqa: N802
        return self._barrier.parties

    def allgather(self, value: Any) -> list[Any]:
        return [value] * self._barrier.parties

    def bcast(self, value: Any, root: int) -> Any:
        if self._rank == root:
            self._box.append(value)
        self._barrier.wait()
        return self._box[0]


def test_meeting_through_mpi() -> None:
    box: list[Any] = []
    barrier = threading.Barrier(3)
    ranks: list[Communicator | None] = [None] * 3

    def connect(rank: int) -> None:
        ranks[rank] = lacuna.connect(comm=_Comm(rank, box, barrier), progress_thread=True)

    threads = [threading.Thread(target=connect, args=(i,)) for i in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    made = [r for r in ranks if r is not None]
    assert [r.rank for r in made] == [0, 1, 2]
    made[0].send(np.arange(4), 2)
    got = np.zeros(4, int)
    made[2].recv(got, 0)
    assert got.tolist() == [0, 1, 2, 3]
    closing = [threading.Thread(target=r.close) for r in made]
    for thread in closing:
        thread.start()
    for thread in closing:
        thread.join()
