"""lacuna.copy() of arrays of the host: element types, shapes, overlap, DLPack, errors; random views against NumPy."""

from __future__ import annotations

import array
import ctypes
import mmap
import random
from typing import Any

import numpy as np
import pytest
from host_arrays import (
    CPU,
    CUDA,
    CUDA_HOST,
    CUDA_MANAGED,
    ROCM_HOST,
    STRUCT,
    TYPES,
    Dlpack,
    OldDlpack,
    filled,
    raw,
    view_of_shape,
)

import lacuna
from lacuna import Layout, elements

pytestmark = pytest.mark.check


@pytest.mark.parametrize("name", TYPES)
def test_elements_of_every_type(name: str) -> None:
    rng = random.Random(name)
    source, target = (filled((6, 10), TYPES[name], rng) for _ in range(2))
    expected = raw(target).copy()
    expected[::2, 1:9:3] = raw(source)[5:2:-1, 7::-3]
    lacuna.copy(target[::2, 1:9:3], source[5:2:-1, 7::-3])
    assert raw(target).tobytes() == expected.tobytes()
    source, target = source[::-2, ::3], target[::-2, ::3]
    layout = Layout.of(source)
    assert layout.pack(source) == raw(source).tobytes()
    layout.unpack(layout.pack(source), target)
    assert raw(target).tobytes() == raw(source).tobytes()


@pytest.mark.parametrize("a", TYPES)
def test_different_types_are_refused(a: str) -> None:
    for b in TYPES:
        source = np.zeros(4 * TYPES[a].itemsize * TYPES[b].itemsize, "u1").view(TYPES[a])
        target = np.zeros(4 * TYPES[a].itemsize * TYPES[b].itemsize, "u1").view(TYPES[b])
        if a == b:
            lacuna.copy(target, source)
            continue
        with pytest.raises(TypeError, match=r"the target has elements of type .*, the source of .*as_bytes=True"):
            lacuna.copy(target, source)
        source.view("u1")[...] = 7
        lacuna.copy(target, source, as_bytes=True)
        assert target.tobytes() == source.tobytes()


def test_the_error_names_both_types() -> None:
    with pytest.raises(TypeError, match="the target has elements of type float32, the source of int32"):
        lacuna.copy(np.zeros(3, "f4"), np.zeros(3, "i4"))
    with pytest.raises(TypeError, match=r"type int32, the source of int32 in the other byte order \(>i4\)"):
        lacuna.copy(np.zeros(3, "<i4"), np.zeros(3, ">i4"))


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (np.zeros(4, "l"), np.zeros(4, "q")),
        (np.zeros(4, "i8"), array.array("l", [1, 2, 3, 4])),
        (array.array("d", [1, 2]), (ctypes.c_double * 2)(3, 4)),
        (memoryview(np.zeros(4, "f2")), np.zeros(4, "f2")),
        (np.zeros(3, STRUCT), np.zeros(3, STRUCT.newbyteorder("="))),
        (np.zeros((2, 2), "c8"), Dlpack(np.ones((2, 2), "c8"))),
        (np.zeros(4, bool), Dlpack(np.ones(4, bool))),
        (np.zeros(4, "U3"), np.zeros(4, "=U3").view(np.char.chararray)),
    ],
)
def test_equal_types_are_equal_however_they_are_called(a: Any, b: Any) -> None:
    lacuna.copy(a, b)
    lacuna.copy(b, a)


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (array.array("b", [1, 2]), array.array("B", [1, 2])),
        (array.array("f", [1, 2]), array.array("i", [1, 2])),
        (np.zeros(3, "f4"), Dlpack(np.zeros(3, "i4"))),
        (np.zeros(3, [("a", "i4")]), np.zeros(3, [("b", "i4")])),
        (np.zeros(3, "u1"), memoryview(np.zeros(3, "i1"))),
        ((ctypes.c_int * 2)(), (ctypes.c_float * 2)()),
    ],
)
def test_different_types_of_other_objects_are_refused(a: Any, b: Any) -> None:
    for target, source in ((a, b), (b, a)):
        with pytest.raises(TypeError, match="as_bytes=True"):
            lacuna.copy(target, source)
        lacuna.copy(target, source, as_bytes=True)


def test_types_that_numpy_has_not_go_by_their_names() -> None:
    bfloat16 = elements.of_dlpack(4, 16, 1)
    elements.check(bfloat16, elements.of_name("bfloat16"))
    assert elements.of_name("<f4") == elements.of_dlpack(2, 32, 1) == np.dtype("f4")
    assert elements.of_dlpack(6, 8, 1) == np.dtype(bool)
    for other in (np.dtype("f2"), elements.of_dlpack(2, 16, 1), elements.of_dlpack(4, 16, 2), "float8_e5m2"):
        with pytest.raises(TypeError, match="as_bytes=True"):
            elements.check(bfloat16, other)


def test_plain_bytes_have_no_type() -> None:
    numbers = np.arange(5.0)
    target = bytearray(40)
    lacuna.copy(target, numbers)
    assert target == numbers.tobytes()
    back = np.zeros(5)
    lacuna.copy(back[::-1], bytes(target))
    assert back.tolist() == [4, 3, 2, 1, 0]
    with mmap.mmap(-1, 64) as mapped:
        lacuna.copy(memoryview(mapped)[8:48], numbers)
        assert mapped[8:48] == numbers.tobytes()


def test_nothing_and_single_elements() -> None:
    lacuna.copy(np.zeros((0, 3)), np.ones((5, 0)))
    lacuna.copy(np.zeros((3, 4))[1:1], Dlpack(np.ones((2, 0))))
    zero = np.zeros(())
    lacuna.copy(zero, np.full((1, 1, 1), 7.0))
    assert zero == 7
    lacuna.copy(np.zeros(4)[2:3], zero)
    assert Layout.of(zero).size == 8
    assert Layout.of(zero).pack(zero) == zero.tobytes()
    assert Layout.of(np.zeros((0, 3))).pack(b"") == b""
    Layout().unpack(b"", bytearray())
    lacuna.copy(np.zeros(2, "V0"), np.zeros(5, "V0"))
    with pytest.raises(ValueError, match="must hold the same"):
        lacuna.copy(np.zeros(0), np.zeros(1))


@pytest.mark.parametrize("threads", [2, 3, 1024])
def test_threads_copy_what_one_copies(threads: int) -> None:
    source = np.random.default_rng(1).integers(0, 256, (60, 70, 300), np.uint8)
    for axes in ((0, 2, 1), (2, 1, 0), (1, 0, 2)):
        view = source.transpose(axes)
        dense, gaps = np.zeros(view.shape, "u1"), np.zeros((*view.shape, 3), "u1")
        lacuna.copy(dense, view, threads=threads)
        lacuna.copy(gaps[..., 1], view, threads=threads)
        assert np.array_equal(dense, view)
        assert np.array_equal(gaps[..., 1], view)
        assert not gaps[..., ::2].any()
        lacuna.copy(view, dense[::-1], threads=threads)
        assert np.array_equal(view, dense[::-1])


@pytest.mark.parametrize("threads", [0, -1, 1025])
def test_threads_that_cannot_be(threads: int) -> None:
    with pytest.raises(ValueError, match="threads must be between 1 and 1024"):
        lacuna.copy(np.zeros(4), np.ones(4), threads=threads)


def test_packed_bytes_have_no_gaps_and_are_in_order() -> None:
    layout = Layout.hvector(2, 1, 8, Layout.bytes(4))
    target = np.zeros(3, "i4")
    layout.unpack(np.arange(2, dtype="i8")[1::-1][1:], target)
    assert target.tolist() == [0, 0, 0]
    one = np.array([[5]], "i8")[::-1, ::-1]
    layout.unpack(one, target)
    assert target.tolist() == [5, 0, 0]
    with pytest.raises(ValueError, match="must be contiguous"):
        layout.unpack(np.arange(2, dtype="i4")[::-1], target)


def test_a_source_may_name_bytes_twice() -> None:
    target = np.zeros((3, 4))
    lacuna.copy(target, np.broadcast_to(np.arange(4.0), (3, 4)))
    assert target.tolist() == [[0, 1, 2, 3]] * 3
    windows = np.lib.stride_tricks.sliding_window_view(np.arange(6), 3)
    into = np.zeros((4, 3), windows.dtype)
    lacuna.copy(into, windows)
    assert np.array_equal(into, windows)
    with pytest.raises(ValueError, match="twice"):
        lacuna.copy(np.lib.stride_tricks.as_strided(target, (12,), (0,)), np.zeros(12))


class TestReadOnly:
    def test_the_error_says_which(self) -> None:
        frozen = np.zeros(8)
        frozen.flags.writeable = False
        with pytest.raises(ValueError, match=r"the target is read-only \(ndarray\)"):
            lacuna.copy(frozen, np.ones(8))
        with pytest.raises(BufferError, match=r"the target is read-only \(bytes\)"):
            lacuna.copy(b"12345678", np.ones(1), as_bytes=True)
        with pytest.raises(ValueError, match="the buffer is read-only"):
            Layout.bytes(64).unpack(bytes(64), frozen)
        with pytest.raises(BufferError, match=r"the target is read-only \(Dlpack\)"):
            lacuna.copy(Dlpack(frozen), np.ones(8))
        assert not frozen.any()

    def test_a_source_may_be(self) -> None:
        source = np.arange(8.0)
        source.flags.writeable = False
        target = np.zeros(8)
        lacuna.copy(target, source)
        assert target.tolist() == source.tolist()
        target[...] = 0
        lacuna.copy(target, Dlpack(source))
        assert target.tolist() == source.tolist()
        assert Layout.of(Dlpack(source)).pack(Dlpack(source)) == source.tobytes()


class TestOverlap:
    def test_a_shared_byte_is_refused(self) -> None:
        numbers = np.arange(100.0)
        grid = np.arange(36.0).reshape(6, 6)
        pairs = [
            (numbers[1:], numbers[:-1]),
            (numbers, numbers),
            (numbers[::2], numbers[::2]),
            (numbers[:50], numbers[98::-2]),
            (grid, grid.T),
            (grid[:, 0], grid[0]),
            (grid[1:4, 1:4], grid[3:6, 3:6]),
            (memoryview(numbers.view("u1"))[:8], memoryview(numbers.view("u1"))[7:15]),
            (np.zeros(0), np.zeros(0)),
        ]
        for target, source in pairs[:-1]:
            before = np.array(numbers), np.array(grid)
            with pytest.raises(ValueError, match=r"overlap in memory: the target begins -?\d+ bytes from the source"):
                lacuna.copy(target, source)
            assert np.array_equal(numbers, before[0])
            assert np.array_equal(grid, before[1])
        lacuna.copy(*pairs[-1])

    def test_views_that_interleave_are_copied(self) -> None:
        grid = np.arange(64.0 * 48).reshape(64, 48)
        cube = np.arange(16**3, dtype="f4").reshape(16, 16, 16)
        pixels = np.zeros(1000, [("r", "u1"), ("g", "u1"), ("b", "u1"), ("a", "u1")])
        pixels["g"] = np.arange(1000) % 251
        numbers = np.arange(1000)
        pairs = [
            (grid[:, 0], grid[:, -2]),
            (grid[:, :24], grid[:, 24:]),
            (grid[1::2], grid[::2]),
            (grid[1::2, ::-1], grid[::2]),
            (grid[::2, ::2], grid[::2, 1::2]),
            (grid[:32, :24].T, grid[:32, 24:].T),
            (cube[1:-1, 1:-1, 0], cube[1:-1, 1:-1, -2]),
            (cube[1:-1, 0, 1:-1], cube[1:-1, -2, 1:-1]),
            (cube[2:5, ::2, 3:9], cube[2:5, 1::2, 3:9]),
            (pixels["r"], pixels["g"]),
            (numbers[::2], numbers[999::-2]),
            (numbers[0:999:3], np.broadcast_to(numbers[1], 333)),
        ]
        for target, source in pairs:
            expected = source.copy()
            lacuna.copy(target, source)
            assert np.array_equal(target, expected)

    def test_of_what_has_dlpack_alone(self) -> None:
        numbers = np.arange(20)
        lacuna.copy(Dlpack(numbers[::2]), Dlpack(numbers[1::2]))
        assert numbers.tolist() == [i | 1 for i in range(20)]
        with pytest.raises(ValueError, match="overlap in memory"):
            lacuna.copy(Dlpack(numbers[1:]), Dlpack(numbers[:-1]))


class TestDlpackAlone:
    @pytest.mark.parametrize("kind", [Dlpack, OldDlpack])
    @pytest.mark.parametrize("device", [CPU, CUDA_HOST, ROCM_HOST, CUDA_MANAGED])
    def test_is_taken_everywhere(self, device: int, kind: type[Dlpack]) -> None:
        host = np.arange(120, dtype="i4").reshape(10, 12)
        view = kind(host[::-3, 1::2], device)
        layout = Layout.of(view)
        assert layout == Layout.of(host[::-3, 1::2])
        assert layout.pack(view) == host[::-3, 1::2].tobytes()
        target = np.zeros((4, 6), "i4")
        lacuna.copy(target, view)
        assert np.array_equal(target, host[::-3, 1::2])
        lacuna.copy(view, np.zeros((4, 6), "i4"))
        assert not host[::-3, 1::2].any()
        layout.unpack(target, view)
        assert np.array_equal(host[::-3, 1::2], target)
        lacuna.copy(kind(target, device), kind(host[:2], device))
        assert np.array_equal(target.reshape(2, 12), host[:2])

    def test_a_layout_may_lie_anywhere_in_it(self) -> None:
        host = np.arange(16, dtype="u1")
        assert Layout.bytes(4).pack(Dlpack(host), offset=3) == bytes([3, 4, 5, 6])
        with pytest.raises(ValueError, match="covers bytes 13 to 17 of the buffer, which has bytes 0 to 16"):
            Layout.bytes(4).pack(Dlpack(host), offset=13)

    def test_memory_of_a_device_is_refused(self) -> None:
        for call in (lambda x: Layout.of(x), lambda x: Layout.bytes(1).pack(x), lambda x: lacuna.copy(np.zeros(3), x)):
            with pytest.raises(TypeError, match=r"lies on a device \(DLPack calls its kind 2\).*copy it to the host"):
                call(Dlpack(np.zeros(3), CUDA))

    def test_memory_of_a_gpu_without_dlpack_is_refused(self) -> None:
        class OnlyCuda:
            __cuda_array_interface__ = np.zeros(3).__array_interface__

        with pytest.raises(TypeError, match=r"the buffer lies on a device .*lacuna\.device"):
            Layout.bytes(8).pack(OnlyCuda())

    def test_managed_memory_of_a_gpu_library_is_host_memory(self) -> None:
        """CuPy's arrays say what they are in two ways."""

        class Managed(Dlpack):
            @property
            def __cuda_array_interface__(self) -> dict[str, Any]:
                return dict(self._array.__array_interface__)

        source, target = np.arange(6.0), np.zeros(6)
        lacuna.copy(target, Managed(source, CUDA_MANAGED))
        assert target.tolist() == source.tolist()
        lacuna.copy(Managed(source, CUDA_MANAGED), target[::-1].copy())
        assert source.tolist() == [5, 4, 3, 2, 1, 0]
        with pytest.raises(TypeError, match="one of the two is in GPU memory"):
            lacuna.copy(target, Managed(source, CUDA))

    def test_reads_what_has_a_buffer_that_it_does_not_give(self) -> None:
        """As JAX's arrays of bfloat16; those on a GPU have the protocol too."""

        class Refusing(mmap.mmap):  # closed, it raises an error where a buffer is asked for
            array = np.arange(6, dtype="i4")
            device = CPU

            def __dlpack__(self, **options: Any) -> Any:
                return self.array.__dlpack__(**options)

            def __dlpack_device__(self) -> tuple[int, int]:
                return (self.device, 0)

        closed = Refusing(-1, 24)
        closed.close()
        target = np.zeros(6, "i4")
        lacuna.copy(target, closed)
        assert target.tolist() == list(range(6))
        with pytest.raises(ValueError, match="mmap closed"):
            lacuna.copy(closed, target)
        Refusing.device = CUDA
        for pair in ((target, closed), (closed, target)):
            with pytest.raises(TypeError, match="lies on a device"):
                lacuna.copy(*pair)

    def test_its_own_error_is_told(self) -> None:
        class Gradient(Dlpack):
            def __dlpack__(self, **options: Any) -> Any:
                del options
                raise BufferError("this tensor needs a gradient: use detach()")

        with pytest.raises(BufferError, match="needs a gradient"):
            lacuna.copy(np.zeros(3), Gradient(np.zeros(3)))

        class Nonsense(Dlpack):
            def __dlpack__(self, **options: Any) -> Any:
                return options

        with pytest.raises(TypeError, match=r"the source \(Nonsense\).*DLPack's capsule"):
            lacuna.copy(np.zeros(3), Nonsense(np.zeros(3)))


@pytest.mark.parametrize("what", [None, 3, [1.0, 2.0], "text", object(), {"a": 1}])
def test_what_is_no_array_is_named(what: Any) -> None:
    with pytest.raises(TypeError, match=f"the source is of type {type(what).__name__}; an array is needed"):
        lacuna.copy(np.zeros(2), what)
    with pytest.raises(TypeError, match=f"the target is of type {type(what).__name__}"):
        lacuna.copy(what, np.zeros(2))
    with pytest.raises(TypeError, match=f"the array is of type {type(what).__name__}"):
        Layout.of(what)


@pytest.mark.parametrize("seed", range(40))
def test_random_views_are_copied_as_numpy_does(seed: int) -> None:
    """Of two arrays, and of one: where a byte is in both views, and only there, it is an overlap."""
    rng = random.Random(seed)
    overlapping = 0
    for _ in range(50):
        dtype = TYPES[rng.choice(list(TYPES))]
        dims = rng.randint(0, 4)
        sizes = tuple(rng.randint(1, 9) for _ in range(dims))
        shape = tuple(0 if rng.random() < 0.02 else rng.randint(1, size) for size in sizes)
        if rng.random() < 0.3:
            sizes, shape = (*sizes[:-1], 300)[-max(dims, 1) :], (*shape[:-1], rng.randint(1, 150))[-max(dims, 1) :]
        base = filled(sizes, dtype, rng)
        other = base if rng.random() < 0.6 else filled(sizes, dtype, rng)
        target, source = view_of_shape(base, shape, rng), view_of_shape(other, shape, rng)
        if dtype.names and rng.random() < 0.5:
            one, two = rng.choice(dtype.names), rng.choice(dtype.names)
            two = two if dtype[one] == dtype[two] else one
            target, source = target[one], source[two]
        if rng.random() < 0.5:
            order = rng.sample(range(target.ndim), target.ndim)
            target, source = target.transpose(order), source.transpose(order)
        if rng.random() < 0.2 and source.ndim:
            source = np.broadcast_to(source[..., :1], target.shape)
        before, source_bytes = raw(base).tobytes(), raw(source).copy()
        if np.shares_memory(target, source):
            overlapping += 1
            with pytest.raises(ValueError, match="overlap in memory"):
                lacuna.copy(target, source)
            assert raw(base).tobytes() == before
            continue
        lacuna.copy(target, source)
        copied = raw(base).tobytes()
        restored = np.frombuffer(before, raw(base).dtype).reshape(base.shape)
        raw(base)[...] = restored
        raw(target)[...] = source_bytes
        assert raw(base).tobytes() == copied, (dtype, target.shape, target.strides, source.strides)
    assert overlapping > 0


@pytest.mark.parametrize("seed", range(10))
def test_random_views_pack_and_unpack_as_numpy_does(seed: int) -> None:
    rng = random.Random(1000 + seed)
    for _ in range(50):
        dtype = TYPES[rng.choice(list(TYPES))]
        sizes = tuple(rng.randint(1, 9) for _ in range(rng.randint(0, 4)))
        base = filled(sizes, dtype, rng)
        view = view_of_shape(base, tuple(rng.randint(0, size) for size in sizes), rng)
        layout = Layout.of(view)
        assert layout.size == view.nbytes
        assert layout.pack(view) == raw(view).tobytes()
        source = raw(filled(view.shape, dtype, rng))
        before = raw(base).copy()
        layout.unpack(source.tobytes(), view)
        unpacked = raw(base).tobytes()
        raw(base)[...] = before
        raw(view)[...] = source
        assert unpacked == raw(base).tobytes(), (dtype, view.shape, view.strides)


def test_a_view_beyond_all_bytes_is_an_error() -> None:
    """Of 2^61 bytes, which NumPy makes of one number: this ended the interpreter."""
    with pytest.raises((ValueError, OverflowError)):
        lacuna.copy(np.zeros(1), np.broadcast_to(np.float64(0), 2**58))


def test_a_tensor_whose_bytes_are_not_its_values_is_refused() -> None:
    class Negated(Dlpack):
        def is_neg(self) -> bool:
            return True

    with pytest.raises(ValueError, match="resolve_neg"):
        lacuna.copy(np.zeros(4), Negated(np.zeros(4)))
