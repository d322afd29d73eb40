"""Types of elements: whether those of two arrays are the same."""

from __future__ import annotations

import mmap
import sys
from typing import Any

import numpy as np

ElementType = np.dtype[Any] | str | None
"""NumPy's; the name of one that NumPy has not; None for bytes of no type, which are as good as any."""

_KINDS = {0: "i", 1: "u", 2: "f", 5: "c"}
"""DLPack's codes of the types that NumPy has."""

_NAMES = {
    4: "bfloat16",
    7: "float8_e3m4",
    8: "float8_e4m3",
    9: "float8_e4m3b11fnuz",
    10: "float8_e4m3fn",
    11: "float8_e4m3fnuz",
    12: "float8_e5m2",
    13: "float8_e5m2fnuz",
    14: "float8_e8m0fnu",
}
"""DLPack's codes of others, by the names that ml_dtypes and torch give them."""


def of_dtype(dtype: np.dtype[Any]) -> ElementType:
    """A type that a package added to NumPy (bfloat16) goes by its name, as DLPack's do."""
    added = dtype.kind == "V" and dtype.names is None and dtype.subdtype is None and dtype.type is not np.void
    return dtype.name if added else dtype


def of_name(name: str) -> ElementType:
    """The type that a library calls so: "<f4", "float32", "bfloat16"."""
    try:
        return of_dtype(np.dtype(name))
    except TypeError:
        return name


def of_dlpack(code: int, bits: int, lanes: int) -> ElementType:
    """The type of DLPack's three numbers."""
    if lanes == 1 and code == 6:
        return np.dtype(bool) if bits == 8 else f"bool{bits}"
    if lanes == 1 and code in _KINDS and bits % 8 == 0:
        try:
            return np.dtype(f"{_KINDS[code]}{bits // 8}")
        except TypeError:
            pass
    if lanes == 1 and code in _NAMES:
        return _NAMES[code]
    return f"DLPack's type {code} of {bits} bits, {lanes} lanes"


def of_buffer(array: Any) -> ElementType:
    """The type of an object that has the buffer protocol and no dtype."""
    view = memoryview(array)
    owner: Any = array
    while isinstance(owner, memoryview) and owner.format == "B":
        owner = owner.obj
    if isinstance(owner, (bytes, bytearray, mmap.mmap)):
        return None
    try:
        return np.asarray(view).dtype
    except (ValueError, TypeError, RuntimeError, NotImplementedError):
        return f"format {view.format}"


def holds_references(array: Any) -> bool:
    """Whether an object that has the buffer protocol is of ctypes and has a `py_object` within: a union has the format
    of bytes, whatever is in it."""
    owner: Any = array
    while isinstance(owner, memoryview):
        owner = owner.obj
    ctypes = sys.modules.get("ctypes")
    return ctypes is not None and _names_objects(type(owner), ctypes)


def _names_objects(kind: Any, ctypes: Any) -> bool:
    if issubclass(kind, ctypes.py_object):
        return True
    if issubclass(kind, ctypes.Array):
        return _names_objects(kind._type_, ctypes)
    if not issubclass(kind, (ctypes.Structure, ctypes.Union)):
        return False
    fields = [field for base in kind.__mro__ for field in vars(base).get("_fields_", ())]
    return any(_names_objects(field[1], ctypes) for field in fields)


def check(target: ElementType, source: ElementType) -> None:
    """Raises TypeError if the two are different types."""
    if target is None or source is None or (isinstance(target, str) == isinstance(source, str) and target == source):
        return
    raise TypeError(
        f"the target has elements of type {_text(target)}, the source of {_text(source)}: copying moves bytes and "
        "converts nothing; convert one first (source.astype(target.dtype), say), or pass as_bytes=True to take them "
        "as bytes"
    )


def _text(element: ElementType) -> str:
    if isinstance(element, np.dtype) and not element.isnative and element.names is None:
        return f"{element.name} in the other byte order ({element.str})"
    return str(element)
