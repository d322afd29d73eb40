"""Layouts as text: each form gives what the constructors give, and what is wrong is named and pointed at."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from lacuna import Layout, _core
from lacuna.layout_text import CONSTRUCTORS, MOST_NESTED, LayoutTextError, parse, read

pytestmark = pytest.mark.check

BYTE, INT, DOUBLE = Layout.bytes(1), Layout.bytes(4), Layout.bytes(8)

FORMS = {
    "bytes(24)": Layout.bytes(24),
    "contiguous(3, int)": Layout.contiguous(3, INT),
    "vector(16,4,100,double)": Layout.vector(16, 4, 100, DOUBLE),
    "hvector(3, 2, -50, int)": Layout.hvector(3, 2, -50, INT),
    "indexed([1, 2], [0, 3], int)": Layout.indexed([1, 2], [0, 3], INT),
    "hindexed([1, 2], [0, 13], int)": Layout.hindexed([1, 2], [0, 13], INT),
    "indexed_block(2, [5, 0], int)": Layout.indexed_block(2, [5, 0], INT),
    "hindexed_block(2, [50, 0], int)": Layout.hindexed_block(2, [50, 0], INT),
    "struct([1, 3], [0, 8], [byte, double])": Layout.struct([1, 3], [0, 8], [BYTE, DOUBLE]),
    "subarray([3, 4], [2, 2], [1, 1], int)": Layout.subarray([3, 4], [2, 2], [1, 1], INT),
    "subarray([3, 4], [2, 2], [1, 1], int, order=F)": Layout.subarray([3, 4], [2, 2], [1, 1], INT, order="F"),
    "subarray([3, 4], [2, 2], [1, 1], int, f)": Layout.subarray([3, 4], [2, 2], [1, 1], INT, order="F"),
    "darray(4, 1, [8, 8], [block, CYCLIC], [-1, 2], [2, 2], int)": Layout.darray(
        4, 1, [8, 8], ["block", "cyclic"], [-1, 2], [2, 2], INT
    ),
    "resized(vector(2, 1, 2, int), -4, 40)": Layout.resized(Layout.vector(2, 1, 2, INT), -4, 40),
    "blocks([90, 1_0, 70], [3, 4, 5])": Layout.blocks([90, 10, 70], [3, 4, 5]),
    "paged(8192, [7, 1, 4])": Layout.paged(8192, [7, 1, 4]),
    "blocks(range(0, 100, 10), range(1, 11))": Layout.blocks(range(0, 100, 10), range(1, 11)),
    "indexed_block(1, range(9, -1, -3), int)": Layout.indexed_block(1, [9, 6, 3, 0], INT),
    "Vector(stride=3, count=2, blocklength=1, old=MPI_INT)": Layout.vector(2, 1, 3, INT),
    "vector(2, 1, old=int, stride=3)": Layout.vector(2, 1, 3, INT),
    " \n vector ( 2 ,\t1, 3, int ) ": Layout.vector(2, 1, 3, INT),
    "struct([1, 2], [0, 64], [vector(2, 1, 3, struct([1], [4], [short])), resized(NAS_LU_y, 0, 9999)])": Layout.struct(
        [1, 2],
        [0, 64],
        [
            Layout.vector(2, 1, 3, Layout.struct([1], [4], [Layout.bytes(2)])),
            Layout.resized(_core.ddtbench("NAS_LU_y", 0)[0], 0, 9999),
        ],
    ),
    "indexed([], [], int)": Layout(),
}


def bounds(layout: Layout) -> tuple[int, int]:
    return layout.lower_bound, layout.extent


@pytest.mark.parametrize("text", FORMS)
def test_a_form_is_what_the_constructor_makes(text: str) -> None:
    assert parse(text) == FORMS[text]
    assert bounds(parse(text)) == bounds(FORMS[text])


def test_every_constructor_is_tried() -> None:
    assert {text.split("(")[0].strip().lower() for text in FORMS} == CONSTRUCTORS.keys()


@pytest.mark.parametrize(
    ("names", "size"),
    [
        ("byte char MPI_CHAR unsigned_char int8 uint8 MPI_UINT8_T", 1),
        ("short MPI_SHORT int16 uint16", 2),
        ("int float MPI_FLOAT mpi_int MPI_UNSIGNED int32 uint32 float32 MPI_INT32_T", 4),
        ("long double Double MPI_DOUBLE int64 uint64 float64 c_float_complex MPI_LONG_LONG", 8),
        ("c_double_complex MPI_C_DOUBLE_COMPLEX", 16),
    ],
)
def test_basic_types_are_as_long_as_in_c(names: str, size: int) -> None:
    assert {name: parse(name).size for name in names.split()} == dict.fromkeys(names.split(), size)


def test_ddtbench_names() -> None:
    families = _core.ddtbench_families()
    assert len(families) == 16
    for family in families:
        last = _core.ddtbench_sizes(family) - 1
        send, receive, dims = _core.ddtbench(family, last)
        assert parse(f"{family}:{last}") == send
        assert parse(f"{family.lower()}:{last}:send") == send
        assert parse(f"{family}:{last}:receive") == receive
        assert dims in read(f"{family}:{last}").meaning
        assert parse(family) == _core.ddtbench(family, 0)[0]
    assert _core.ddtbench_sizes("nothing") == 0
    with pytest.raises(ValueError, match="has 5 sizes"):
        _core.ddtbench("FFT2", 5)


@pytest.fixture
def matrix(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> np.ndarray:
    """What lies in matrix.npy of the working directory, among other files."""
    monkeypatch.chdir(tmp_path)
    array = np.arange(120.0).reshape(10, 12)
    np.save("matrix.npy", array)
    np.save("columns.npy", np.asfortranarray(array))
    np.save("dates.npy", np.zeros(6, dtype="M8[s]"))
    np.save("objects.npy", np.array([1, "a"], dtype=object))
    np.save("pages.npy", np.array([4, 1, 2], dtype="i4"))
    np.save("huge.npy", np.array([2**63], dtype="u8"))
    np.save("with space.npy", array)
    (tmp_path / "folder").mkdir()
    np.save("folder/x-1.npy", array)
    (tmp_path / "text.npy").write_text("these are no numbers")
    (tmp_path / "short.npy").write_bytes((tmp_path / "matrix.npy").read_bytes()[:200])
    return array


@pytest.mark.parametrize(
    ("text", "view"),
    [
        ("matrix.npy", lambda m: m),
        ("./folder/x-1.npy[2]", lambda m: m[2]),
        ("'with space.npy'[:, 1]", lambda m: m[:, 1]),
        ('"with space.npy".T', lambda m: m.T),
        ("matrix.npy[::2, 3:5]", lambda m: m[::2, 3:5]),
        ("matrix.npy.T[-3:]", lambda m: m.T[-3:]),
        ("matrix.npy[::-1].T[2:, ::-4][1]", lambda m: m[::-1].T[2:, ::-4][1]),
        ("matrix.npy[..., 4]", lambda m: m[..., 4]),
        ("matrix.npy[3, 4]", lambda m: m[3, 4]),
        ("matrix.npy[3:3]", lambda m: m[3:3]),
        ("columns.npy[1:, :2]", lambda m: np.asfortranarray(m)[1:, :2]),
        ("dates.npy[::2]", lambda _: np.zeros(6)[::2]),
        ("contiguous(2, matrix.npy[:, 1])", lambda m: m[:, 1]),
    ],
)
def test_views_are_those_of_numpy(matrix: np.ndarray, text: str, view: Callable[[np.ndarray], np.ndarray]) -> None:
    expected = Layout.of(view(matrix))
    assert parse(text) == (Layout.contiguous(2, expected) if text.startswith("contiguous") else expected)


def test_lists_come_from_files(matrix: np.ndarray) -> None:
    del matrix
    assert parse("paged(8192, pages.npy)") == Layout.paged(8192, [4, 1, 2])
    assert parse("paged(8192, pages.npy[::-1])") == Layout.paged(8192, [2, 1, 4])
    assert parse("blocks(pages.npy, [1, 1, 1])") == Layout.blocks([4, 1, 2], [1, 1, 1])


def test_the_meaning_names_arguments_and_spells_out_defaults(matrix: np.ndarray) -> None:
    del matrix
    assert read("VECTOR(2, 1, 3, MPI_INT)").meaning == "vector(count=2, blocklength=1, stride=3, old=int)"
    assert (
        read("subarray([4],[2],[0],int)").meaning == "subarray(sizes=[4], subsizes=[2], starts=[0], old=int, order=C)"
    )
    assert read("fft2").meaning.startswith("FFT2:0:send (DDTBench, ")
    assert read("matrix.npy[::2].T").meaning == "matrix.npy[::2].T (float64, 12 x 5)"
    assert read("paged(8, pages.npy)").meaning == "paged(block_bytes=8, page_numbers=pages.npy (3 numbers))"
    assert "7, ... 20 in all]" in read(f"paged(8, {list(range(20))})").meaning


WRONG = {
    # The text, what is said, and how much of the text stands before the caret.
    "": ("expected a layout: a constructor", ""),
    "NAS_LU_z": ('"NAS_LU_z". DDTBench families: WRF_y_vec, .*FFT2', ""),
    "contiguous(2, nope)": ('nothing is called "nope"', "contiguous(2, "),
    "NAS_LU_y:7": ("NAS_LU_y has 7 sizes, 0 to 6", "NAS_LU_y:"),
    "NAS_LU_y:-1": ("has 7 sizes", "NAS_LU_y:"),
    "FFT2:1:recieve": ('expected send or receive; found "recieve"', "FFT2:1:"),
    "FFT2:": ("expected a value; found the end", "FFT2:"),
    "vector": (r'expected "\(" of vector\(count, blocklength, stride, old\)', "vector"),
    "vector(16, 4": ('expected "," or "\\)"; found the end', "vector(16, 4"),
    "vector(16, 4)": (r"lacks stride and old: vector\(count, blocklength, stride, old\)", "vector(16, 4"),
    "vector(1, 2, 3, int, 4)": ("too many arguments: vector", "vector(1, 2, 3, int, "),
    "vector(count=1, count=2)": ("count is given twice", "vector(count=1, "),
    "vector(1.5, 2, 3, int)": ('cannot read "1.5', "vector("),
    "vector(int, 2, 3, int)": ('expected a whole number; found "int"', "vector("),
    "contiguous(9223372036854775808, int)": ("does not fit 64 bits", "contiguous("),
    "contiguous(2, contiguous(-1, int))": ("count is -1", "contiguous(2, "),
    "contiguous(4611686018427387904, int)": ("overflow: ", ""),
    "blocks([1, 2], [3])": ("1 block lengths but 2 displacements", ""),
    "blocks([1, 2,], [3])": ('expected a value; found "]"', "blocks([1, 2,"),
    "blocks([1 2], [3])": ('expected "," or "]"; found "2"', "blocks([1 "),
    "blocks(7, [3])": (r"expected a list: \[1, 2, 3\], range", "blocks("),
    "blocks(range(0, 1, 0), [])": ("no step of 0", "blocks("),
    "blocks(range(), [])": ("expected range", "blocks("),
    "blocks(range(0, 99999999999), [1])": ("more than 16,777,216 numbers", "blocks("),
    "struct([1], [0], int)": ('expected "\\["; found "int"', "struct([1], [0], "),
    "subarray([4], [2], [0], int, order=X)": ('expected C or F; found "X"', "subarray([4], [2], [0], int, order="),
    "subarray([4], [5], [0], int)": ("5 elements from 0", ""),
    "darray(1, 0, [4], [blok], [1], [1], int)": ("none, block or cyclic", "darray(1, 0, [4], ["),
    "bytes(3) int": ('expected the end; found "int"', "bytes(3) "),
    "int(3)": ("expected the end", "int"),
    "bytes(3) + 1": ('cannot read "\\+ 1"', "bytes(3) "),
    "bytes(3)(4)": ("expected a layout", ""),
    "bytes(count=3, size=4)": (r"no size in bytes\(count\)", "bytes(count=3, "),
    "bytes(**all)": ("cannot read", "bytes("),
    "bytes(lambda: 3)": ("expected a value", "bytes(lambda"),
    "bytes(3) if int else int": ('expected the end; found "if"', "bytes(3) "),
    "(bytes(3), int)": ("expected a layout", ""),
    "[bytes(3)]": ("expected a layout", ""),
    "__import__('os')": ("expected the end", "__import__"),
    "none.npy": ("cannot read none.npy: No such file", ""),
    "contiguous(2, 'none of these')": ("cannot read none of these: No such file", "contiguous(2, "),
    "objects.npy": ("cannot use objects.npy: .*Python objects", ""),
    "text.npy": ("cannot use text.npy", ""),
    "short.npy": ("cannot use short.npy", ""),
    "matrix.npy[12]": (r"out of bounds .*has shape \(10, 12\)", "matrix.npy"),
    "matrix.npy[::0]": ("step cannot be zero", "matrix.npy"),
    "matrix.npy[]": ("expected a number, a slice", "matrix.npy["),
    "matrix.npy[1:2:3:4]": ('expected a value; found ":"', "matrix.npy[1:2:3"),
    "matrix.npy[[1, 2]]": ("expected a number, a slice", "matrix.npy["),
    "matrix.npy.real": ('cannot read ".real"', "matrix.npy"),
    "paged(8, matrix.npy)": ("one row of integers; this is float64", "paged(8, "),
    "paged(8, huge.npy)": ("9223372036854775808 does not fit", "paged(8, "),
}


@pytest.mark.parametrize("text", WRONG)
def test_errors_say_what_and_where(matrix: np.ndarray, text: str) -> None:
    del matrix
    says, before = WRONG[text]
    with pytest.raises(LayoutTextError, match=says) as raised:
        parse(text)
    assert raised.value.at == len(before)
    assert str(raised.value).endswith(f"\n  {text}\n  {' ' * len(before)}^")


def test_long_texts_are_shown_around_the_error() -> None:
    with pytest.raises(LayoutTextError) as raised:
        parse(f"blocks([{'7, ' * 1000}x{', 7' * 1000}], [])")
    _, shown, caret = str(raised.value).splitlines()
    assert len(shown) < 120
    assert shown[caret.index("^")] == "x"
    assert (shown[:5], shown[-3:]) == ("  ...", "...")


def test_nesting_has_a_limit() -> None:
    def nested(depth: int) -> str:
        return "contiguous(1, " * depth + "int" + ")" * depth

    assert parse(nested(MOST_NESTED)) == INT
    for depth in (MOST_NESTED + 1, 100_000):
        with pytest.raises(LayoutTextError, match=f"nested more than {MOST_NESTED} times"):
            parse(nested(depth))
