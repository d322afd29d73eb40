"""What all ranks of a communicator do together, as an object; and how arrays become blocks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from lacuna import _core
from lacuna._core import Layout, Ongoing, Ranks

Block = Any
"""An array, (array, layout), (array, layout, offset in bytes), or None for no bytes."""


class Exchange:
    """An exchange that can be started again and again. Its arrays are kept as long as it is. One that is under way when
    it goes is given up, as if this rank were gone."""

    def __init__(self, ongoing: Ongoing) -> None:
        self._ongoing = ongoing

    def start(self) -> None:
        """Begins, without waiting. The arrays must not be changed or read until it is done."""
        self._ongoing.start()

    def test(self) -> bool:
        """Moves on; whether it is done. Raises as `Communicator.alltoallw`."""
        return self._ongoing.test()

    def wait(self, timeout: float | None = None) -> None:
        """Waits until it is done, so many seconds at most. Raises as `Communicator.alltoallw`."""
        self._ongoing.wait(-1.0 if timeout is None else max(timeout, 0.0))

    def run(self, timeout: float | None = None) -> None:
        """Starts it, and waits."""
        self.start()
        self.wait(timeout)

    @property
    def schedule(self) -> str | None:
        """What the ranks agreed on; None before."""
        return self._ongoing.schedule

    def explain(self) -> str:
        """The exchange as this rank has it, the schedule, and why it."""
        return self._ongoing.explain()


def exchange(
    ranks: Ranks,
    sends: Iterable[tuple[int, Block]],
    receives: Iterable[tuple[int, Block]],
    schedule: str,
    window: int,
    *,
    everyone: bool,
) -> Exchange:
    """`everyone`: there is one block to each rank and from each, in their order."""
    out, into = ([_block(rank, block) for rank, block in blocks] for blocks in (sends, receives))
    return Exchange(_core.exchange(ranks, out, into, everyone, schedule, window))


def transpose(
    ranks: Ranks,
    before: Any,
    after: Any,
    row_blocks: Sequence[int] | None,
    column_blocks: Sequence[int] | None,
    schedule: str,
    window: int,
) -> Exchange:
    own_rows, columns, element, leading_before = _rows("before", before)
    own_columns, rows, other, leading_after = _rows("after", after)
    if element != other:
        raise ValueError(f"before has elements of {element} bytes, and after of {other}")
    row_list = list(row_blocks) if row_blocks is not None else _even(rows, ranks.size)
    column_list = list(column_blocks) if column_blocks is not None else _even(columns, ranks.size)
    # The shapes are what bounds the memory, so they have to be what the blocks say.
    for name, blocks, own in (("before", row_list, own_rows), ("after", column_list, own_columns)):
        if len(blocks) != ranks.size or blocks[ranks.rank] != own:
            raise ValueError(f"{name} has {own} rows; rank {ranks.rank} of {ranks.size} has the blocks {blocks}")
    sizes = [rows, columns, element, leading_before, leading_after]
    return Exchange(_core.transpose(ranks, before, after, sizes, row_list, column_list, schedule, window))


def _block(rank: int, block: Block) -> tuple[int, Any, Layout | None, int]:
    if isinstance(block, tuple):
        array, layout, *offset = block
        if len(offset) > 1:
            raise ValueError("a block is an array, (array, layout), or (array, layout, offset)")
        return rank, array, layout, int(offset[0]) if offset else 0
    return rank, block, None, 0


def _rows(name: str, array: Any) -> tuple[int, int, int, int]:
    """Rows, columns, bytes of an element, and elements from one row to the next."""
    view = memoryview(array)
    if view.ndim != 2:
        raise ValueError(f"{name} has {view.ndim} dimensions; rows and columns are needed")
    assert view.shape is not None
    assert view.strides is not None
    rows, columns = view.shape
    step, side = view.strides
    if columns > 1 and side != view.itemsize:
        raise ValueError(f"elements of a row of {name} are {side} bytes apart; they have to lie side by side")
    if rows <= 1:
        return rows, columns, view.itemsize, columns
    if step % view.itemsize or step < columns * view.itemsize:
        raise ValueError(f"rows of {name} are {step} bytes apart; that is no whole number of elements, or too few")
    return rows, columns, view.itemsize, step // view.itemsize


def _even(n: int, ranks: int) -> list[int]:
    return [n // ranks + (1 if i < n % ranks else 0) for i in range(ranks)]
