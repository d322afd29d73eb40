"""Arrays of Python objects: their bytes are references, so no call may move them. In a process of their own, since a
reference that was not counted ends the interpreter."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import numpy as np
import pytest

import lacuna
from lacuna import Layout

pytestmark = pytest.mark.check

TARGETS = """
    import ctypes, gc
    import numpy as np
    import lacuna
    from lacuna import Layout

    def objects():
        return np.array([[i, str(i)] for i in range(64)] + [None], dtype=object)[:64]

    PAIR = np.dtype([("key", "i8"), ("nested", [("value", object)])])

    class Record(ctypes.Structure):
        _fields_ = [("number", ctypes.c_long), ("value", ctypes.py_object)]

    class Either(ctypes.Union):  # whose format is that of bytes
        _fields_ = [("number", ctypes.c_long), ("value", ctypes.py_object)]

    class Within(ctypes.Structure):
        _fields_ = [("number", ctypes.c_long), ("either", Either)]

    def unions():
        return (Either * 64)(*[Either(value=[i, str(i)]) for i in range(64)])

    def unions_within():
        return (Within * 64)(*[Within(i, Either(value=[i])) for i in range(64)])

    def records():
        return (Record * 64)(*[Record(i, [i, str(i)]) for i in range(64)])

    def pairs():
        array = np.zeros(64, PAIR)
        array["nested"]["value"] = objects()
        return array

    def refused(call):
        try:
            call()
        except TypeError as error:
            assert "objects" in str(error), error
        else:
            raise SystemExit(f"{call} was not refused")
"""

CASES = {
    "copy": "refused(lambda: lacuna.copy(target, make()))",
    "copy_as_bytes": "refused(lambda: lacuna.copy(target, make(), as_bytes=True))",
    "from_bytes": "refused(lambda: lacuna.copy(target, bytearray(memoryview(target).nbytes), as_bytes=True))",
    "to_bytes": "refused(lambda: lacuna.copy(bytearray(memoryview(target).nbytes), make(), as_bytes=True))",
    "of": "refused(lambda: Layout.of(make()))",
    "pack": "refused(lambda: Layout.bytes(memoryview(target).nbytes).pack(make()))",
    "unpack": "refused(lambda: Layout.bytes(memoryview(target).nbytes).unpack("
    "bytes(memoryview(target).nbytes), target))",
    "unpack_from": "refused(lambda: Layout.bytes(memoryview(target).nbytes).unpack("
    "target, bytearray(memoryview(target).nbytes)))",
}


@pytest.mark.parametrize("kind", ["objects", "pairs", "records", "unions", "unions_within"])
@pytest.mark.parametrize("case", CASES)
def test_is_refused_and_the_interpreter_lives(case: str, kind: str) -> None:
    program = textwrap.dedent(TARGETS) + textwrap.dedent(f"""
        make = {kind}
        for _ in range(20):
            target = make()
            {CASES[case]}
            for value in target:  # the references are those that were there
                str(value)
            del target, value
            gc.collect()
        print("alive")
    """)
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "alive\n", "")


def test_the_interpreter_survives_a_copy() -> None:
    """Whether it is refused or not: with the references uncounted, this program ended by a signal."""
    program = textwrap.dedent("""
        import gc, numpy as np, lacuna
        for _ in range(50):
            held = np.array([[i] * 3 for i in range(1000)] + [None], dtype=object)
            into = np.array([[-i] for i in range(1000)] + [None], dtype=object)
            try:
                lacuna.copy(into[::2], held[::2])
            except TypeError:
                pass
            del held
            gc.collect()
            fill = [[i, i] for i in range(5000)]
            [list(x) for x in into if x is not None]
            del into, fill
            gc.collect()
        print("alive")
    """)
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stdout) == (0, "alive\n")


def test_a_view_of_their_numbers_is_none_of_objects() -> None:
    array = np.zeros(8, [("key", "i8"), ("value", object)])
    array["key"] = np.arange(8)
    target = np.zeros(8, "i8")
    lacuna.copy(target, array["key"])
    assert target.tolist() == list(range(8))
    assert Layout.of(array["key"]).size == 64


def test_a_field_may_be_named_with_an_o() -> None:
    """The format is T{d:O:i:VOID:}, without an object."""
    array = np.zeros(5, [("O", "f8"), ("VOID", "i4")])
    array["O"] = np.arange(5)
    target = bytearray(array.nbytes)
    lacuna.copy(target, memoryview(array))
    assert target == array.tobytes()


def test_the_error_says_which_and_what_to_do() -> None:
    with pytest.raises(TypeError, match=r"the source holds Python objects \(object\).*astype"):
        lacuna.copy(np.zeros(3), np.array([None] * 3))
    with pytest.raises(TypeError, match="the target holds Python objects"):
        lacuna.copy(np.array([None] * 3), np.zeros(3))
    strings = np.array(["a", "bc"], dtype=np.dtypes.StringDType())
    with pytest.raises(TypeError, match=r"the array holds Python objects"):
        Layout.of(strings)
