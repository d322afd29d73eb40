"""Exchanges among all ranks: arrays of any strides, layouts in arrays, transposes, errors."""

from __future__ import annotations

import secrets

import numpy as np
import pytest
from forked_ranks import run_ranks

import lacuna

SCHEDULES = ("automatic", "at_once", "pairwise", "forward")


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_alltoallw_moves_columns_into_rows(schedule: str) -> None:
    def program(ranks: lacuna.Communicator) -> None:
        mine = np.arange(5 * ranks.size, dtype=np.int64).reshape(5, ranks.size) + 1000 * ranks.rank
        got = np.full((ranks.size, 5), -1)
        exchange = ranks.alltoallw_init([mine[:, i] for i in range(ranks.size)], list(got), schedule=schedule)
        for _ in range(2):
            got[:] = -1
            exchange.run()
            for source in range(ranks.size):
                assert (got[source] == np.arange(5) * ranks.size + ranks.rank + 1000 * source).all()
        assert exchange.schedule == schedule or schedule == "automatic"
        assert "alltoallw" in exchange.explain()

    run_ranks(program, 3)


def test_neighbours_exchange_halos() -> None:
    def program(ranks: lacuna.Communicator) -> None:
        left, right = (ranks.rank - 1) % ranks.size, (ranks.rank + 1) % ranks.size
        field = np.full((6, 8), float(ranks.rank))
        field[:, 0] = field[:, -1] = -1
        byte = lacuna.Layout.bytes(8)
        column = lacuna.Layout.vector(6, 1, 8, byte)
        ranks.neighbor_exchange(
            [(left, field[:, 1]), (right, (field, column, 6 * 8)), (right, None)],
            [(right, field[:, -1]), (left, (field, column)), (left, None)],
        )
        assert (field[:, 0] == left).all()
        assert (field[:, -1] == right).all()
        assert (field[:, 1:-1] == ranks.rank).all()

    run_ranks(program, 3)


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_transposes(schedule: str) -> None:
    whole = np.arange(11 * 7, dtype=np.int32).reshape(11, 7)
    rows, columns = [4, 0, 7], [1, 5, 1]

    def program(ranks: lacuna.Communicator) -> None:
        start = sum(rows[: ranks.rank])
        before = np.zeros((rows[ranks.rank], 9), dtype=np.int32)[:, :7]
        before[:] = whole[start : start + rows[ranks.rank]]
        memory = np.full((columns[ranks.rank], 12), -1, dtype=np.int32)
        ranks.transpose(before, memory[:, :11], row_blocks=rows, column_blocks=columns, schedule=schedule)
        start = sum(columns[: ranks.rank])
        assert (memory[:, :11] == whole.T[start : start + columns[ranks.rank]]).all()
        assert (memory[:, 11] == -1).all()
        even = np.empty((len(np.array_split(whole.T, ranks.size)[ranks.rank]), 11), dtype=np.int32)
        ranks.transpose(np.array_split(whole, ranks.size)[ranks.rank].copy(), even)
        assert (even == np.array_split(whole.T, ranks.size)[ranks.rank]).all()

    run_ranks(program, 3)


def test_what_does_not_fit_is_an_error_everywhere() -> None:
    def program(ranks: lacuna.Communicator) -> None:
        out, into = np.zeros(10), np.full(10, 7.0)
        size = 10 if ranks.rank != 1 else 9
        with pytest.raises(ValueError, match=r"rank \d sends rank 1"):
            ranks.alltoallw([out[:size] if i == ranks.rank else out for i in range(3)], [into[:size]] * 3)
        assert (into == 7).all()
        with pytest.raises(ValueError, match="no such schedule" if ranks.rank == 2 else "rank 2 cannot take part"):
            ranks.alltoallw([None] * 3, [None] * 3, schedule="fastest" if ranks.rank == 2 else "at_once")
        with pytest.raises(ValueError, match="neighbor_exchange"):
            ranks.neighbor_exchange([], []) if ranks.rank == 0 else ranks.alltoallw([None] * 3, [None] * 3)
        ranks.alltoallw([None] * 3, [None] * 3)

    run_ranks(program, 3)


def test_who_does_not_come_is_waited_for_so_long() -> None:
    def program(ranks: lacuna.Communicator) -> None:
        if ranks.rank == 0:
            with pytest.raises(TimeoutError):
                ranks.alltoallw([None] * 2, [None] * 2, timeout=0.2)
            ranks.send(b"x", 1)
        else:
            ranks.recv(bytearray(1), 0)

    run_ranks(program, 2)


def test_a_closed_communicator_ends_its_exchanges() -> None:
    with lacuna.connect(f"exchange-alone-{secrets.token_hex(8)}", 1) as ranks:
        got = np.zeros(3)
        exchange = ranks.alltoallw_init([np.arange(3.0)], [got])
        exchange.run()
        assert (got == [0, 1, 2]).all()
    with pytest.raises(ValueError, match="closed"):
        exchange.start()
