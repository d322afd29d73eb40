"""A layout that was drawn: as the bench is told of it, as a Layout of Lacuna's, and as views of NumPy's."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lacuna import Layout

Memory = NDArray[np.uint8]

_TYPES = {1: "u1", 2: "u2", 4: "u4", 8: "u8", 16: "c16"}


def dtype_of(element: int) -> np.dtype[Any]:
    """Numbers where NumPy has some of that size, else bytes of no type."""
    return np.dtype(_TYPES.get(element, f"V{element}"))


@dataclass(frozen=True)
class Nest:
    """Elements in loops, outermost first. Offsets and strides are in bytes."""

    element: int
    offset: int
    counts: tuple[int, ...]
    strides: tuple[int, ...]

    @property
    def size(self) -> int:
        return self.element * math.prod(self.counts)

    @property
    def bounds(self) -> tuple[int, int]:
        """The first byte, and the one behind the last."""
        last = [(count - 1) * stride for count, stride in zip(self.counts, self.strides, strict=True)]
        low, high = sum(min(s, 0) for s in last), sum(max(s, 0) for s in last)
        return self.offset + low, self.offset + high + self.element

    def described(self) -> dict[str, object]:
        loops = list(zip(self.counts, self.strides, strict=True))
        return {"element": self.element, "offset": self.offset, "loops": loops}

    def layout(self) -> Layout:
        """Without the offset."""
        return Layout.strided(self.element, self.counts, self.strides)

    def view(self, memory: Memory, base: int) -> NDArray[Any]:
        return np.ndarray(self.counts, dtype_of(self.element), memory, base + self.offset, self.strides)


@dataclass(frozen=True, eq=False)
class Blocks:
    """Blocks of elements, by a list. Places and lengths count elements; one length stands for all."""

    element: int
    places: NDArray[np.int32]
    lengths: NDArray[np.int32]

    offset = 0

    @property
    def size(self) -> int:
        blocks = len(self.places) * int(self.lengths[0]) if len(self.lengths) == 1 else int(self.lengths.sum())
        return self.element * blocks

    @property
    def bounds(self) -> tuple[int, int]:
        return int(self.places.min()) * self.element, int((self.places + self.lengths).max()) * self.element

    def described(self) -> dict[str, object]:
        return {
            "element": self.element,
            "offset": 0,
            "list": self.places.tolist(),
            "lengths": self.lengths.tolist(),
        }

    def layout(self) -> Layout:
        element = Layout.bytes(self.element)
        if len(self.lengths) == 1:
            return Layout.indexed_block(int(self.lengths[0]), self.places, element)
        return Layout.indexed(self.lengths, self.places, element)


@dataclass(frozen=True, eq=False)
class DrawnSide:
    """Memory of `span` bytes; the packed stream has the parts one after another."""

    span: int
    base: int
    parts: tuple[Nest | Blocks, ...]

    @property
    def size(self) -> int:
        return sum(part.size for part in self.parts)

    @property
    def is_dense(self) -> bool:
        part = self.parts[0]
        return isinstance(part, Nest) and len(self.parts) == 1 and part.strides == (part.element,)

    def described(self) -> dict[str, object]:
        return {"span": self.span, "base": self.base, "nests": [part.described() for part in self.parts]}

    def layout(self) -> Layout:
        if len(self.parts) == 1 and self.parts[0].offset == 0:
            return self.parts[0].layout()
        offsets = [part.offset for part in self.parts]
        return Layout.struct([1] * len(self.parts), offsets, [part.layout() for part in self.parts])


def side_of(parts: Sequence[Nest | Blocks], span: int = 0) -> DrawnSide:
    """With memory from the first byte to the last, and to `span` bytes where that is more."""
    low = min(part.bounds[0] for part in parts)
    high = max(part.bounds[1] for part in parts)
    return DrawnSide(max(high - min(low, 0), span), max(-low, 0), tuple(parts))


def dense_side(size: int, element: int) -> DrawnSide:
    return side_of([Nest(element, 0, (size // element,), (element,))])


@dataclass(frozen=True, eq=False)
class DrawnCase:
    """What is packed from `scattered` and unpacked to it, and goes from there to `other`, or the other way round."""

    family: str
    name: str
    element: int
    """Bytes of one; 0 where there are several sizes."""
    scattered: DrawnSide
    other: DrawnSide
    backwards: bool = False
    """Layout to layout goes from `other` to `scattered`."""
    caches: tuple[str, ...] = ("warm",)
    operations: tuple[str, ...] = ("pack", "unpack", "transpack")

    def sides(self, operation: str) -> tuple[DrawnSide, DrawnSide]:
        """Where the bytes come from, and where they go."""
        dense = dense_side(self.scattered.size, 1)
        if operation == "pack":
            return self.scattered, dense
        if operation == "unpack":
            return dense, self.scattered
        return (self.other, self.scattered) if self.backwards else (self.scattered, self.other)

    def described(self, operation: str) -> dict[str, object]:
        source, target = self.sides(operation)
        return {"name": self.name, "kind": self.family, "send": source.described(), "receive": target.described()}
