"""Views of .npy files in a layout's text: `matrix.npy[::2, 3:5].T`."""

from __future__ import annotations

import ast
from types import EllipsisType
from typing import Any

import numpy.typing as npt
from numpy.lib.format import open_memmap

from lacuna.layout_source import LayoutSource

Array = npt.NDArray[Any]
Index = int | slice | EllipsisType


def is_view(source: LayoutSource, node: ast.expr) -> bool:
    while isinstance(node, ast.Subscript | ast.Attribute):
        node = node.value
    return source.file(node) is not None


def read_view(source: LayoutSource, node: ast.expr) -> Array:
    """No element is read: the file is mapped."""
    if isinstance(node, ast.Attribute):
        if node.attr != "T":
            source.fail(f'cannot read ".{node.attr}"', source.end(node.value))
        return read_view(source, node.value).T
    if isinstance(node, ast.Subscript):
        array = read_view(source, node.value)
        parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        index = [_index(source, part) for part in parts]
        try:
            # With an ellipsis a single element stays a view.
            view: Array = array[tuple(index) if ... in index else (*index, ...)]
            return view
        except (IndexError, ValueError, OverflowError) as e:
            source.fail(f"{e}; the array has shape {array.shape}", source.end(node.value))
    name = source.file(node)
    assert name is not None
    try:
        return open_memmap(name, mode="r")
    except OSError as e:
        source.fail(f"cannot read {name}: {e.strerror or e}", node)
    except ValueError as e:
        source.fail(f"cannot use {name}: {e}", node)


def _index(source: LayoutSource, node: ast.expr) -> Index:
    if isinstance(node, ast.Slice):
        return slice(*(whole(source, part) if part else None for part in (node.lower, node.upper, node.step)))
    if isinstance(node, ast.Constant) and node.value is ...:
        return ...
    if not isinstance(node, ast.Constant | ast.UnaryOp):
        source.expected('a number, a slice or "..."', node)
    return whole(source, node)


def whole(source: LayoutSource, node: ast.expr) -> int:
    """A whole number of 64 bits."""
    negative = isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub)
    inner = node.operand if isinstance(node, ast.UnaryOp) else node
    if not isinstance(inner, ast.Constant):
        source.expected("a whole number", node)
    if type(inner.value) is not int:
        source.fail(f'cannot read "{source.of(node)}"', node)
    value = -inner.value if negative else inner.value
    if not -(2**63) <= value < 2**63:
        source.fail("the number does not fit 64 bits", node)
    return value
