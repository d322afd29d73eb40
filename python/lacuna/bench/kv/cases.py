"""The cases: shapes of public threads, in full and in part. The blocks that an allocator gave out are a permutation
from a seed, and half of a cache's blocks belong to others."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lacuna._core import Layout

Table = NDArray[np.int32]
Sides = tuple[Layout, Layout]

_KIB = 1 << 10
_STRIDES = 128
_PAGE = 16
"""Tokens."""


@dataclass(frozen=True)
class Case:
    name: str
    thread: str
    what: str
    piece_bytes: int
    """Contiguous on both sides."""
    pieces: int
    """In full."""
    unit: int
    """Pieces come in groups of so many."""
    tables: Callable[[int], tuple[Table, Table]]
    """The block tables of so many pieces."""
    layouts: Callable[[int, tuple[Table, Table]], Sides]

    def within(self, payload_bytes: int) -> int:
        """How many pieces fit; one group at least."""
        fitting = min(self.pieces, payload_bytes // self.piece_bytes) // self.unit
        return max(1, fitting) * self.unit


def _table(count: int, seed: int) -> Table:
    return np.random.default_rng(seed).permutation(2 * count)[:count].astype(np.int32)


def _tables(pieces_of_block: int) -> Callable[[int], tuple[Table, Table]]:
    return lambda pieces: (_table(pieces // pieces_of_block, 1), _table(pieces // pieces_of_block, 2))


def _no_tables(_: int) -> tuple[Table, Table]:
    return np.zeros(0, np.int32), np.zeros(0, np.int32)


def _strides(pieces: int, _: tuple[Table, Table]) -> Sides:
    """128 strides, as of 64 layers with K and V apart: slices of 512 B of rows of 4 KiB to rows of 1 KiB."""
    rows = pieces // _STRIDES

    def side(stride: int) -> Layout:
        one = Layout.hvector(rows, 1, stride, Layout.bytes(512))
        places = [i * (rows * stride + 64 * _KIB) for i in range(_STRIDES)]
        return Layout.struct([1] * _STRIDES, places, [one] * _STRIDES)

    return side(4 * _KIB), side(_KIB)


def _paged(block: int) -> Callable[[int, tuple[Table, Table]], Sides]:
    return lambda _, tables: (Layout.paged(block, tables[0]), Layout.paged(block, tables[1]))


def _heads(slice_bytes: int, others: int) -> Callable[[int, tuple[Table, Table]], Sides]:
    """One of `others` slices of each token, in pages of 16 tokens, to pages that have nothing else."""

    def make(_: int, tables: tuple[Table, Table]) -> Sides:
        row = others * slice_bytes
        page = Layout.hvector(_PAGE, 1, row, Layout.bytes(slice_bytes))
        source = Layout.indexed_block(1, tables[0], Layout.resized(page, 0, _PAGE * row))
        return source, Layout.paged(_PAGE * slice_bytes, tables[1])

    return make


def _bulk(_: int, __: tuple[Table, Table]) -> Sides:
    return Layout.bytes(64 << 20), Layout.bytes(64 << 20)


CASES = (
    Case(
        "nixl#1978 strides",
        "https://github.com/ai-dynamo/nixl/pull/1978",
        "1 387 520 pieces of 512 B in 128 strides",
        512,
        1_387_520,
        _STRIDES,
        _no_tables,
        _strides,
    ),
    Case(
        "sglang#40500 head slices",
        "https://github.com/sgl-project/sglang/pull/40500",
        "1.71 million slices of 512 B, an eighth of each token, from pages to pages",
        512,
        1_710_000 // _PAGE * _PAGE,
        _PAGE,
        _tables(_PAGE),
        _heads(512, 8),
    ),
    Case(
        "Mooncake#4242 bulk",
        "https://github.com/kvcache-ai/Mooncake/issues/4242",
        "one region",
        64 << 20,
        1,
        1,
        _no_tables,
        _bulk,
    ),
    Case(
        "Mooncake#4242 paged",
        "https://github.com/kvcache-ai/Mooncake/issues/4242",
        "32 000 blocks of 16 KiB, from pages to pages",
        16 * _KIB,
        32_000,
        1,
        _tables(1),
        _paged(16 * _KIB),
    ),
    Case(
        "Mooncake#4242 head slices",
        "https://github.com/kvcache-ai/Mooncake/issues/4242",
        "slices of 2 KiB, a quarter of each token, from pages to pages",
        2 * _KIB,
        160_000,
        _PAGE,
        _tables(_PAGE),
        _heads(2 * _KIB, 4),
    ),
    Case(
        "page tables of 200 000",
        "the goal of this bench: a table on each side, of one token a page",
        "200 000 tokens of 1 KiB, from pages to pages",
        _KIB,
        200_000,
        1,
        _tables(1),
        _paged(_KIB),
    ),
)
