"""Arrays of the host for tests: types of elements, views at random, and objects that have DLPack alone."""

from __future__ import annotations

import random
from typing import Any

import numpy as np

CPU, CUDA, CUDA_HOST, ROCM_HOST, CUDA_MANAGED = 1, 2, 3, 11, 13
"""DLPack's types of devices."""

STRUCT = np.dtype([("key", "<i4"), ("point", "f8", (2,)), ("name", "S3")])

TYPES: dict[str, np.dtype[Any]] = {
    name: np.dtype(name)
    for name in (
        *("bool", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", "g", "c8", "c16", "G"),
        *(">i4", ">f8", ">c16", "M8[s]", "M8[ns]", "m8[ms]", "S1", "S5", "U1", "U3", ">U2", "V1", "V7", "V16"),
    )
}
TYPES |= {"struct": STRUCT, "aligned": np.dtype([("a", "i1"), ("b", "f8")], align=True)}

Array = np.ndarray[Any, np.dtype[Any]]


class Dlpack:
    """An array that has DLPack and nothing else, in memory that is said to be of a device."""

    def __init__(self, array: Array, device: int = CPU) -> None:
        self._array, self._device = array, device

    def __dlpack__(self, **options: Any) -> Any:
        return self._array.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return (self._device, 0)


class OldDlpack(Dlpack):
    """The same of before DLPack had versions."""

    def __dlpack__(self, stream: Any = None) -> Any:  # type: ignore[override]
        assert stream is None
        return self._array.__dlpack__()


def filled(shape: tuple[int, ...], dtype: np.dtype[Any], rng: random.Random) -> Array:
    """An array of random bytes."""
    count = int(np.prod(shape, dtype=np.int64))
    return np.frombuffer(bytearray(rng.randbytes(count * dtype.itemsize)), dtype, count).reshape(shape)


def view_of_shape(base: Array, shape: tuple[int, ...], rng: random.Random) -> Array:
    """A view of that shape, by slices of any step; `base` has as many dimensions, each at least as long."""
    index = []
    for length, most in zip(shape, base.shape, strict=True):
        step = rng.randint(1, (most - 1) // (length - 1)) if length > 1 else 1
        first = rng.randint(0, most - 1 - (length - 1) * step) if length else 0
        chosen = slice(first, first + length * step, step)
        if rng.random() < 0.3 and length:
            last = first + (length - 1) * step
            chosen = slice(last, first - step if first >= step else None, -step)
        index.append(chosen)
    return base[(*index, ...)]  # with an ellipsis a single element stays a view


def raw(array: Array) -> Array:
    """The same elements as bytes without a type, of which NumPy copies all: those between fields too."""
    return array.view(np.dtype((np.void, array.dtype.itemsize)))
