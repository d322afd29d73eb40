"""Layouts of NumPy arrays and views, and copies between them."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

import lacuna
from lacuna import Layout

pytestmark = pytest.mark.check

VIEWS = {
    "whole": np.s_[:],
    "column": np.s_[:, 3],
    "box": np.s_[2:7, 1:9:2],
    "transposed": None,
    "reversed": np.s_[::-1, ::-2],
    "one": np.s_[4:5, 4:5],
    "empty": np.s_[3:3, :],
}


def view(array: np.ndarray, name: str) -> np.ndarray:
    """The named view of an array."""
    index = VIEWS[name]
    return array.T if index is None else array[index]


@pytest.mark.parametrize("name", VIEWS)
@pytest.mark.parametrize("dtype", ["u1", "f4", "c16"])
def test_a_view_packs_in_index_order(name: str, dtype: str) -> None:
    array = np.arange(10 * 12).reshape(10, 12).astype(dtype)
    strided = view(array, name)
    layout = Layout.of(strided)
    assert layout.size == strided.nbytes
    assert layout.pack(strided) == strided.tobytes()


@pytest.mark.parametrize("name", VIEWS)
def test_unpacking_leaves_the_gaps(name: str) -> None:
    array = np.full((10, 12), -1, dtype="i4")
    strided = view(array, name)
    expected = array.copy()
    values = np.arange(strided.size, dtype="i4")
    view(expected, name)[...] = values.reshape(strided.shape)
    Layout.of(strided).unpack(values, strided)
    np.testing.assert_array_equal(array, expected)


def test_copy_between_views_of_different_shape() -> None:
    source = np.arange(24.0).reshape(4, 6)
    target = np.zeros((6, 9))
    lacuna.copy(target[:, 1:9:2], source.T)
    np.testing.assert_array_equal(target[:, 1:9:2], source.T)
    assert target[:, 0::2].sum() == 0


def test_copy_refuses_what_it_cannot_do() -> None:
    array = np.zeros(10)
    with pytest.raises(ValueError, match="must hold the same"):
        lacuna.copy(array, np.zeros(9))
    with pytest.raises(ValueError, match="overlap in memory"):
        lacuna.copy(array[1:], array[:-1])
    repeated = np.lib.stride_tricks.as_strided(array, (4,), (0,))
    with pytest.raises(ValueError, match="twice"):
        lacuna.copy(repeated, np.zeros(4))


def test_equal_typemaps_are_equal_however_they_were_written() -> None:
    array = np.zeros((8, 8), dtype="f8")
    column = Layout.of(array[:, 2])
    double = Layout.bytes(8)
    assert column == Layout.vector(8, 1, 8, double)
    assert column == Layout.blocks([64 * i for i in range(8)], [8] * 8)
    assert hash(column) == hash(Layout.hvector(8, 1, 64, double))
    assert column != Layout.of(array[:, 2:4])
    assert column != "a column"


def test_constructors_take_lists() -> None:
    four = Layout.bytes(4)
    assert Layout.indexed([1, 2], [0, 3], four).runs() == [(0, 4), (12, 8)]
    assert Layout.hindexed([1, 2], [0, 13], four).runs() == [(0, 4), (13, 8)]
    assert Layout.indexed_block(1, [5, 0], four).runs() == [(20, 4), (0, 4)]
    assert Layout.hindexed_block(1, [5, 0], four).runs() == [(5, 4), (0, 4)]
    assert Layout.struct([1, 1], [0, 8], [four, Layout.bytes(2)]).runs() == [(0, 4), (8, 2)]
    assert Layout.paged(4, [7, 1]).runs() == [(28, 4), (4, 4)]
    assert Layout.subarray([3, 4], [2, 2], [1, 1], four).runs() == [(20, 8), (36, 8)]
    assert Layout.subarray([4, 3], [2, 2], [1, 1], four, order="F").runs() == [(20, 8), (36, 8)]
    assert Layout.resized(four, 0, 12).extent == 12
    part = Layout.darray(2, 1, [8], ["cyclic"], [2], [2], Layout.bytes(1))
    assert part.runs() == [(2, 2), (6, 2)]


def test_the_wire_form_comes_back() -> None:
    layout = Layout.of(np.zeros((100, 100))[::3, ::7])
    wire = layout.wire()
    assert len(wire) < 40
    assert Layout.from_wire(wire) == layout
    with pytest.raises(ValueError, match="malformed"):
        Layout.from_wire(wire[:-1])


def test_errors_name_the_argument() -> None:
    with pytest.raises(ValueError, match="count is -1"):
        Layout.bytes(-1)
    with pytest.raises(OverflowError):
        Layout.contiguous(2**62, Layout.bytes(2**40))
    with pytest.raises(ValueError, match="covers bytes"):
        Layout.bytes(9).pack(np.zeros(1))
    with pytest.raises(ValueError, match="covers bytes"):
        Layout.bytes(100).pack(bytearray(10), offset=2**63 - 50)
    with pytest.raises(ValueError, match="exactly the layout's size"):
        Layout.bytes(8).unpack(b"1234", np.zeros(1))
    with pytest.raises(BufferError):
        Layout.bytes(4).unpack(b"1234", b"read-only")
    with pytest.raises(ValueError, match="order"):
        Layout.subarray([2], [1], [0], Layout.bytes(1), order="Z")


def test_repr_shows_the_canonical_form() -> None:
    assert repr(Layout.hvector(3, 1, 10, Layout.bytes(4))) == "<lacuna.Layout of 12 bytes: 3 x +10 B { 4 B }>"


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_threads_pack_and_unpack_the_same(threads: int) -> None:
    layout = Layout.vector(1 << 18, 1, 2, Layout.bytes(12))
    memory = np.random.default_rng(3).integers(0, 256, layout.true_extent, dtype=np.uint8)
    packed = layout.pack(memory, threads=threads)
    assert packed == layout.pack(memory)
    target = np.zeros_like(memory)
    layout.unpack(packed, target, threads=threads)
    assert layout.pack(target) == packed
    assert target.sum(dtype=np.int64) == np.frombuffer(packed, np.uint8).sum(dtype=np.int64)


@pytest.mark.parametrize("threads", [1, 3])
def test_packing_into_memory_that_is_there_allocates_nothing(threads: int) -> None:
    memory = np.arange(1 << 18, dtype="f8").reshape(512, 512)
    layout = Layout.of(memory.T)
    out = np.zeros(memory.size, "f8")
    tracemalloc.start()
    try:
        returned = layout.pack(memory, threads=threads, out=out)
        layout.unpack(out, memory, threads=threads)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert returned is out
    assert peak < 1 << 16  # the array has 2 MiB
    assert np.array_equal(out.reshape(512, 512), np.arange(1 << 18, dtype="f8").reshape(512, 512).T)
    assert np.array_equal(memory, np.arange(1 << 18, dtype="f8").reshape(512, 512))


def test_packing_into_any_memory_without_gaps() -> None:
    memory = np.arange(12, dtype="u1")
    layout = Layout.of(memory[::3])
    whole = bytearray(8)
    assert layout.pack(memory, out=memoryview(whole)[2:6]) == b"\x00\x03\x06\x09"
    assert whole == b"\x00\x00\x00\x03\x06\x09\x00\x00"
    square = np.zeros((2, 2), "u1")
    layout.pack(memory, 1, out=square)
    assert square.tolist() == [[1, 4], [7, 10]]
    assert layout.pack(memory, out=None) == b"\x00\x03\x06\x09"


def test_packing_into_what_does_not_fit_is_refused() -> None:
    memory = np.arange(12, dtype="u1")
    layout = Layout.of(memory[::3])
    for out in (bytearray(3), np.zeros(8, "u1")[::2], np.zeros(4, "u2")):
        with pytest.raises(
            ValueError, match="the output must be contiguous and hold exactly the layout's size, 4 bytes"
        ):
            layout.pack(memory, out=out)
    with pytest.raises(BufferError):
        layout.pack(memory, out=b"1234")
    with pytest.raises(ValueError, match="overlap what the layout covers"):
        layout.pack(memory, out=memory[4:8])
    with pytest.raises(TypeError):
        layout.pack(memory, out=[0, 0, 0, 0])
    assert memory.tolist() == list(range(12))


def test_bytes_that_are_named_twice_are_packed_and_never_unpacked() -> None:
    row = np.arange(3, dtype="u1")
    layout = Layout.of(np.broadcast_to(row, (2, 3)))
    assert layout.pack(row) == bytes([0, 1, 2, 0, 1, 2])
    with pytest.raises(ValueError, match="names some bytes twice"):
        layout.unpack(bytes(6), row)
    target = np.zeros((2, 3), "u1")
    lacuna.copy(target, np.broadcast_to(row, (2, 3)))
    assert target.tolist() == [[0, 1, 2]] * 2
    with pytest.raises(ValueError, match="names some bytes twice"):
        lacuna.copy(np.lib.stride_tricks.as_strided(row, (2, 3), (0, 1)), target)
    assert row.tolist() == [0, 1, 2]


def test_threads_are_refused_where_order_would_matter() -> None:
    with pytest.raises(ValueError, match="threads"):
        Layout.bytes(8).pack(bytes(8), threads=0)
    twice = Layout.hvector(2, 1, 0, Layout.bytes(8))
    with pytest.raises(ValueError, match="twice"):
        twice.unpack(bytes(16), bytearray(8), threads=2)
