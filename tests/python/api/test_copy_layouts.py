"""lacuna.copy() of layouts within arrays: against a loop over their runs, and what it refuses."""

from __future__ import annotations

import random

import numpy as np
import pytest

import lacuna
from lacuna import Layout

pytestmark = pytest.mark.check


def places(layout: Layout) -> list[int]:
    return [offset + i for offset, length in layout.runs() for i in range(length)]


def drawn(rng: random.Random, blocks: int, block: int, room: int) -> Layout:
    """Blocks at places of their own, in any order."""
    return Layout.hindexed_block(block, [at * block for at in rng.sample(range(room), blocks)], Layout.bytes(1))


@pytest.mark.parametrize("seed", range(40))
def test_a_copy_moves_the_bytes_of_the_layouts_and_no_others(seed: int) -> None:
    rng = random.Random(seed)
    blocks, block = rng.randint(1, 200), rng.choice([1, 4, 12, 64, 100])
    read, written = drawn(rng, blocks, block, 2 * blocks), drawn(rng, block, blocks, 2 * block)
    source = np.frombuffer(rng.randbytes(2 * blocks * block + 24), np.uint8)
    target = np.frombuffer(bytearray(rng.randbytes(2 * blocks * block + 40)), np.uint8)
    expected = target.copy()
    expected[np.array(places(written)) + 40] = source[np.array(places(read)) + 24]
    lacuna.copy(
        target,
        source,
        target_layout=written,
        target_offset=40,
        source_layout=read,
        source_offset=24,
        threads=rng.randint(1, 2),
    )
    assert np.array_equal(target, expected)


def test_one_side_may_be_the_array_itself() -> None:
    table, taken = np.arange(60, dtype=np.int32).reshape(10, 6), np.zeros((2, 6), np.float32)
    rows = Layout.paged(24, [7, 2])
    lacuna.copy(taken, table, source_layout=rows)
    assert np.array_equal(taken.view(np.int32), table[[7, 2]])
    lacuna.copy(table, taken, target_layout=Layout.paged(24, [0, 1]))
    assert np.array_equal(table[[0, 1]], table[[7, 2]])


def test_pages_of_one_array_move_within_it() -> None:
    """As a cache that is put in order: the spans meet, and the bytes do not."""
    pages = np.arange(40, dtype=np.int64).reshape(10, 4)
    expected = pages.copy()
    expected[[1, 3]] = pages[[8, 2]]
    lacuna.copy(pages, pages, target_layout=Layout.paged(32, [1, 3]), source_layout=Layout.paged(32, [8, 2]))
    assert np.array_equal(pages, expected)
    with pytest.raises(ValueError, match="some bytes are in both"):
        lacuna.copy(pages, pages, target_layout=Layout.paged(32, [1, 3]), source_layout=Layout.paged(32, [3, 2]))
    assert np.array_equal(pages, expected)


def test_what_cannot_be_is_refused() -> None:
    source, target = np.zeros(64, np.uint8), np.zeros(64, np.uint8)
    with pytest.raises(ValueError, match="covers bytes 60 to 68 of the target, which has bytes 0 to 64"):
        lacuna.copy(target, source, target_layout=Layout.bytes(8), target_offset=60, source_layout=Layout.bytes(8))
    with pytest.raises(ValueError, match="16"):
        lacuna.copy(target, source, target_layout=Layout.bytes(8), source_layout=Layout.bytes(16))
    with pytest.raises(ValueError, match="names some bytes twice"):
        lacuna.copy(target, source, target_layout=Layout.paged(8, [1, 1]), source_layout=Layout.bytes(16))
    with pytest.raises(ValueError, match="give source_layout or target_layout"):
        lacuna.copy(target, source, source_offset=8)
