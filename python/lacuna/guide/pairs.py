"""Random pairs of layouts, from a seed: what the choice is fitted on and, with other seeds, judged by.

The sides of a pair are made apart from each other, so that most are asymmetric; a quarter have the same layout on both
sides, as in a halo exchange. Payloads are 256 B to 1 MiB, blocks on average 8 B to 64 KiB, each spread evenly over
orders of magnitude.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from lacuna._core import Layout
from lacuna.units import bytes_text

_LEAST_PAYLOAD, _MOST_PAYLOAD = 256, 1 << 20
_LEAST_BLOCK, _MOST_BLOCK = 8, 64 << 10
_MOST_BLOCKS = 16384
_SAME = 0.25
"""How many of the pairs have one layout on both sides."""

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Pair:
    words: str
    send: Layout
    receive: Layout
    number: int = 0

    @property
    def name(self) -> str:
        """Two pairs may be of the same kind; no two have the same name."""
        return f"{self.number}: {self.words}"


@dataclass(frozen=True)
class _Side:
    name: str
    layout: Layout


class _Maker:
    def __init__(self, random: np.random.Generator) -> None:
        self._random = random

    def scaled(self, least: float, most: float) -> float:
        """Evenly spread over orders of magnitude."""
        return float(np.exp(self._random.uniform(np.log(least), np.log(most))))

    def block(self, payload: int) -> int:
        """A mean block size of at most _MOST_BLOCKS blocks, a multiple of eight most of the time."""
        least = max(_LEAST_BLOCK, payload // _MOST_BLOCKS)
        block = int(self.scaled(least, min(_MOST_BLOCK, max(least + 1, payload // 2))))
        return max(_LEAST_BLOCK, block // 8 * 8) if self._random.random() < 0.8 else block

    def contiguous(self, payload: int) -> _Side:
        return _Side("contiguous", Layout.bytes(payload))

    def regular(self, payload: int) -> _Side:
        """Equal blocks at one stride; what is left of the payload is a shorter block at the end."""
        block = self.block(payload)
        stride = block + int(self.scaled(8, 8 * block + 64))
        lengths = _cut(payload, np.full(payload // block + 1, block))
        return self._blocks("regular", np.arange(len(lengths)) * stride, lengths)

    def irregular(self, payload: int) -> _Side:
        """Lengths and gaps of all sizes, in the order of the addresses or in none."""
        block = self.block(payload)
        spread = self._random.uniform(0.2, 1.2)
        count = max(4, 4 * payload // block)
        lengths = np.maximum(1, (block * np.exp(self._random.normal(-(spread**2) / 2, spread, count))).astype(np.int64))
        while lengths.sum() < payload:
            lengths = np.concatenate([lengths, lengths])
        lengths = _cut(payload, lengths)
        gaps = 1 + (self._random.exponential(max(8, block), len(lengths))).astype(np.int64)
        offsets = np.concatenate([[0], np.cumsum(lengths + gaps)[:-1]])
        order = np.arange(len(lengths))
        if self._random.random() < 0.3:
            order = self._random.permutation(len(lengths))
        return self._blocks("irregular", offsets[order], lengths[order])

    def paged(self, payload: int) -> _Side:
        """Equal blocks on pages that an allocator gave out."""
        block = self.block(payload)
        lengths = _cut(payload, np.full(payload // block + 1, block))
        pages = self._random.permutation(2 * len(lengths))[: len(lengths)]
        return self._blocks("paged", pages * block, lengths)

    def face(self, payload: int) -> _Side:
        """A box of an array in three dimensions: loops in loops."""
        block = self.block(payload)
        per_plane = int(self.scaled(2, max(3, payload / block / 2)))
        stride = block + int(self.scaled(8, 4 * block + 64))
        plane = per_plane * stride + int(self.scaled(8, 4 * per_plane * stride + 64))
        count = payload // block + 1
        lengths = _cut(payload, np.full(count, block))
        index = np.arange(len(lengths))
        return self._blocks("face", index // per_plane * plane + index % per_plane * stride, lengths)

    def structs(self, payload: int) -> _Side:
        """A struct of two to four members of different lengths, again and again."""
        members = int(self._random.integers(2, 5))
        block = self.block(payload)
        lengths = np.array([max(4, int(block * self.scaled(0.25, 2.0)) // 4 * 4) for _ in range(members)])
        gaps = 4 * np.array([int(self.scaled(1, 16)) for _ in range(members)])
        places = np.concatenate([[0], np.cumsum(lengths + gaps)])
        repeats = payload // int(lengths.sum()) + 1
        offsets = (np.arange(repeats)[:, None] * places[-1] + places[None, :-1]).ravel()
        lengths = _cut(payload, np.tile(lengths, repeats))
        return self._blocks("structs", offsets[: len(lengths)], lengths)

    def _blocks(self, name: str, offsets: Ints, lengths: Ints) -> _Side:
        made = Layout.blocks(offsets.tolist(), lengths.tolist())
        return _Side(f"{name} {made.run_count} x {bytes_text(made.size // made.run_count)}", made)

    def pair(self) -> Pair:
        payload = int(self.scaled(_LEAST_PAYLOAD, _MOST_PAYLOAD)) // 8 * 8
        kinds = [self.regular, self.irregular, self.paged, self.face, self.structs, self.contiguous]
        send = kinds[int(self._random.integers(len(kinds)))](payload)
        # Two contiguous sides are no question.
        others = kinds[:-1] if send.layout.run_count == 1 else kinds
        receive = send
        if send.layout.run_count == 1 or self._random.random() >= _SAME:
            receive = others[int(self._random.integers(len(others)))](payload)
        return Pair(f"{send.name} to {receive.name}", send.layout, receive.layout)


def _cut(payload: int, lengths: Ints) -> Ints:
    """The first of these lengths, which hold the payload, as many as it takes; the last is cut."""
    ends = np.cumsum(lengths)
    last = int(np.searchsorted(ends, payload))
    kept = lengths[: last + 1].copy()
    kept[-1] -= ends[last] - payload
    return kept


def random_pairs(count: int, seed: int) -> list[Pair]:
    maker = _Maker(np.random.default_rng(seed))
    return [replace(maker.pair(), number=i) for i in range(count)]
