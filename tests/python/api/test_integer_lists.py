"""Lists of integers as arguments of Layout's constructors: sequences, and arrays of every type, read as memory."""

from __future__ import annotations

import array
import collections
import ctypes
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from host_arrays import CUDA, Dlpack

from lacuna import Layout

pytestmark = pytest.mark.check

FOUR = Layout.bytes(4)
NUMBERS = [7, 1, 100, 3, 3, 90, 0, 31]

CONSTRUCTORS: dict[str, Callable[[Any], Layout]] = {
    "paged": lambda n: Layout.paged(16, n),
    "blocks offsets": lambda n: Layout.blocks(n, [2] * len(NUMBERS)),
    "blocks lengths": lambda n: Layout.blocks([200 * i for i in range(len(NUMBERS))], n),
    "indexed lengths": lambda n: Layout.indexed(n, [200 * i for i in range(len(NUMBERS))], FOUR),
    "indexed displacements": lambda n: Layout.indexed([1] * len(NUMBERS), n, FOUR),
    "hindexed lengths": lambda n: Layout.hindexed(n, [800 * i for i in range(len(NUMBERS))], FOUR),
    "hindexed displacements": lambda n: Layout.hindexed([1] * len(NUMBERS), n, FOUR),
    "indexed_block": lambda n: Layout.indexed_block(2, n, FOUR),
    "hindexed_block": lambda n: Layout.hindexed_block(2, n, FOUR),
    "struct lengths": lambda n: Layout.struct(n, [800 * i for i in range(len(NUMBERS))], [FOUR] * len(NUMBERS)),
    "struct displacements": lambda n: Layout.struct([1] * len(NUMBERS), n, [FOUR] * len(NUMBERS)),
    "subarray sizes": lambda n: Layout.subarray(
        [x + 1 for x in n] if isinstance(n, list) else n, [1] * 2, [0] * 2, FOUR
    ),
}

ARRAYS: dict[str, Callable[[Sequence[int]], Any]] = {
    **{
        name: lambda n, name=name: np.array(n, dtype=name)
        for name in ("i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", ">i2", ">i4", ">i8", ">u8", "l", "q", "O")
    },
    "strided": lambda n: np.repeat(np.array(n, "i8"), 3)[::3],
    "backwards": lambda n: np.array(n[::-1], "i8")[::-1],
    "column": lambda n: np.stack([np.array(n, "u2")] * 3, axis=1)[:, 1],
    "unaligned": lambda n: np.frombuffer(b"x" + np.array(n, "i8").tobytes(), "i8", offset=1),
    "field": lambda n: np.array([(1, x) for x in n], dtype=[("a", "i1"), ("b", "i8")])["b"],
    "read-only": lambda n: np.frombuffer(np.array(n, "i8").tobytes(), "i8"),
    "memoryview": lambda n: memoryview(np.array(n, "i4")),
    "array.array": lambda n: array.array("h", n),
    "bytearray": lambda n: bytearray(n),
    "ctypes": lambda n: (ctypes.c_uint32 * len(n))(*n),
    "big ctypes": lambda n: (ctypes.c_int64.__ctype_be__ * len(n))(*n),
    "dlpack": lambda n: Dlpack(np.array(n, "i4")),
    "dlpack strided": lambda n: Dlpack(np.repeat(np.array(n, "u8"), 2)[::2]),
    "tuple": tuple,
    "deque": collections.deque,
    "numpy integers": lambda n: [np.int32(x) for x in n],
}


@pytest.mark.parametrize("kind", ARRAYS)
@pytest.mark.parametrize("constructor", [name for name in CONSTRUCTORS if name != "subarray sizes"])
def test_an_array_is_what_its_list_is(constructor: str, kind: str) -> None:
    make = CONSTRUCTORS[constructor]
    assert make(ARRAYS[kind](NUMBERS)).runs() == make(NUMBERS).runs()


def test_shapes_and_strides_too() -> None:
    sizes, subsizes, starts = (np.array(x) for x in ([6, 8], [2, 3], [1, 1]))
    assert Layout.subarray(sizes, subsizes.astype("u1"), starts, FOUR) == Layout.subarray([6, 8], [2, 3], [1, 1], FOUR)
    assert Layout.strided(4, subsizes, sizes * 8) == Layout.strided(4, [2, 3], [48, 64])
    view = np.zeros((5, 7))[::-2, 1:]
    assert Layout.strided(8, view.shape, np.array(view.strides)) == Layout.of(view)
    part = Layout.darray(4, 2, sizes, ["block", "cyclic"], np.array([-1, 2]), np.array([2, 2]), FOUR)
    assert part == Layout.darray(4, 2, [6, 8], ["block", "cyclic"], [-1, 2], [2, 2], FOUR)


def test_negative_numbers_and_the_ends_of_each_type() -> None:
    for dtype in ("i1", "i2", "i4", ">i4"):
        limits = np.iinfo(dtype)
        numbers = np.array([limits.min, 0, limits.max], dtype)
        assert Layout.paged(2, numbers).runs() == Layout.paged(2, [int(x) for x in numbers]).runs()
    for dtype in ("u1", "u2", "u4", ">u2"):
        numbers = np.array([np.iinfo(dtype).max, 0], dtype)
        assert Layout.paged(2, numbers).runs() == Layout.paged(2, [int(x) for x in numbers]).runs()


@pytest.mark.parametrize("dtype", ["u8", ">u8"])
def test_what_does_not_fit_64_bits_is_named(dtype: str) -> None:
    with pytest.raises(OverflowError, match=r"page_numbers\[2\] is 9223372036854775808; .*at most 2\^63 - 1"):
        Layout.paged(1, np.array([1, 2, 2**63, 4], dtype))
    with pytest.raises(OverflowError, match=r"page_numbers\[1\] is -9223372036854775809"):
        Layout.paged(1, [1, -(2**63) - 1])
    with pytest.raises(OverflowError, match="beyond 2\\^60"):
        Layout.paged(1 << 20, np.array([2**62]))


@pytest.mark.parametrize(
    ("numbers", "error", "text"),
    [
        (np.zeros(3), TypeError, "page_numbers has elements of type float64; integers are needed"),
        (np.zeros(3, bool), TypeError, "type bool; integers are needed .*flatnonzero"),
        (np.zeros(3, "c8"), TypeError, "complex64"),
        (np.zeros(3, "M8[s]"), TypeError, "datetime64"),
        (np.zeros(3, "m8[s]"), TypeError, "timedelta64"),
        (np.zeros(3, "S8"), TypeError, "S8"),
        (np.zeros(3, "V8"), TypeError, "V8"),
        (np.zeros(3, [("a", "i8")]), TypeError, "'a'"),
        (array.array("d", [1]), TypeError, "float64"),
        (Dlpack(np.zeros(3)), TypeError, "float64"),
        (Dlpack(np.zeros(3, "i8"), CUDA), TypeError, "page_numbers lies on a device"),
        (np.zeros((2, 2), int), ValueError, "page_numbers has 2 dimensions; a list of integers has one"),
        (np.array(3), ValueError, "0 dimensions"),
        ([1, 2.0], TypeError, r"page_numbers\[1\] is of type float; an integer is needed"),
        ([1, "2"], TypeError, r"page_numbers\[1\] is of type str"),
        (np.array([1, None]), TypeError, r"page_numbers\[1\] is of type NoneType"),
        ("12", TypeError, "page_numbers is of type str; a sequence or an array of integers"),
        (b"12", TypeError, "page_numbers is of type bytes"),
        (None, TypeError, "NoneType"),
        (7, TypeError, "type int;"),
        ({1, 2}, TypeError, "type set"),
        ((x for x in (1, 2)), TypeError, "type generator"),
    ],
)
def test_what_is_no_list_of_integers_is_named(numbers: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        Layout.paged(8, numbers)


def test_every_argument_is_named() -> None:
    bad, good = np.zeros(1), [1]
    calls: dict[str, Callable[[], Layout]] = {
        "blocklengths": lambda: Layout.indexed(bad, good, FOUR),
        "displacements": lambda: Layout.indexed_block(1, bad, FOUR),
        "byte_displacements": lambda: Layout.hindexed(good, bad, FOUR),
        "offsets": lambda: Layout.blocks(bad, good),
        "lengths": lambda: Layout.blocks(good, bad),
        "sizes": lambda: Layout.subarray(bad, good, [0], FOUR),
        "subsizes": lambda: Layout.subarray(good, bad, [0], FOUR),
        "starts": lambda: Layout.subarray(good, good, bad, FOUR),
        "shape": lambda: Layout.strided(4, bad, good),
        "strides": lambda: Layout.strided(4, good, bad),
        "block_sizes": lambda: Layout.darray(1, 0, good, ["block"], bad, good, FOUR),
        "grid": lambda: Layout.darray(1, 0, good, ["block"], good, bad, FOUR),
    }
    for name, call in calls.items():
        with pytest.raises(TypeError, match=f"^{name} has elements of type float64"):
            call()


def test_an_empty_array_of_any_type_is_an_empty_list() -> None:
    for nothing in (np.array([]), np.zeros(0, "M8[s]"), [], (), array.array("d"), Dlpack(np.zeros(0))):
        assert Layout.paged(8, nothing).size == 0


def test_lists_of_different_lengths_and_negative_lengths() -> None:
    with pytest.raises(ValueError, match="2 block lengths but 3 displacements"):
        Layout.blocks(np.arange(3), np.arange(2))
    with pytest.raises(ValueError, match="a block length is -1; it must not be negative"):
        Layout.blocks(np.arange(3), np.array([1, 2, -1], "i1"))


def test_the_layout_keeps_its_numbers() -> None:
    """What becomes of the array afterwards is no matter, and it can be resized again."""
    pages = np.array([5, 2, 9])
    layout = Layout.paged(8, pages)
    pages[...] = 0
    assert layout.runs() == [(40, 8), (16, 8), (72, 8)]
    numbers = bytearray(b"\x01\x02")
    Layout.paged(8, numbers)
    numbers.append(3)  # BufferError, if its memory were held


def test_a_list_that_changes_while_it_is_read() -> None:
    class Shrinks:
        def __index__(self) -> int:
            numbers.clear()
            return 1

    numbers: list[Any] = [0, Shrinks(), 2, 3]
    with pytest.raises(RuntimeError, match="page_numbers changed while it was read"):
        Layout.paged(8, numbers)


@pytest.mark.parametrize("seed", range(20))
def test_random_lists_of_any_type(seed: int) -> None:
    rng = np.random.default_rng(seed)
    for _ in range(20):
        dtype = np.dtype(str(rng.choice(["i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", ">i8", ">u4"])))
        most = min(2**40, int(np.iinfo(dtype).max))
        least = max(-(2**40), int(np.iinfo(dtype).min))
        count = int(rng.integers(0, 300))
        step = int(rng.choice([1, 2, -1, -3]))
        numbers = rng.integers(least, most, count * abs(step), endpoint=True).astype(dtype)[::step]
        lengths = rng.integers(0, 3, len(numbers)).astype(dtype)[::-1]
        as_list = [int(x) for x in numbers]
        assert Layout.paged(64, numbers) == Layout.paged(64, as_list)
        assert Layout.blocks(numbers, lengths) == Layout.blocks(as_list, [int(x) for x in lengths])
        assert Layout.indexed_block(3, numbers, FOUR) == Layout.indexed_block(3, as_list, FOUR)


def test_an_error_of_an_entry_is_its_own() -> None:
    class Interrupted:
        def __index__(self) -> int:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Layout.paged(1, [1, Interrupted()])  # type: ignore[list-item]
    with pytest.raises(OverflowError, match="very many digits"):
        Layout.paged(1, [10**5000])
