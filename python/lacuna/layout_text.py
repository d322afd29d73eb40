"""Layouts as text: MPI's constructors, DDTBench names, views of .npy files; `lacuna explain --help` lists them."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from lacuna._core import Layout, ddtbench, ddtbench_families, ddtbench_sizes
from lacuna.layout_source import MOST_NESTED, LayoutSource, LayoutTextError
from lacuna.npy_view import Array, is_view, read_view, whole

__all__ = ["BASIC_TYPES", "CONSTRUCTORS", "MOST_NESTED", "LayoutTextError", "Parsed", "parse", "read"]

MOST_OF_RANGE = 1 << 24
_REPEATED = 8
"""At most so many numbers of a range(); so many entries of a list in a meaning."""

BASIC_TYPES = {
    **dict.fromkeys(("byte", "char", "signed_char", "unsigned_char", "c_bool", "int8", "uint8"), 1),
    **dict.fromkeys(("short", "unsigned_short", "int16", "uint16"), 2),
    **dict.fromkeys(("int", "unsigned", "unsigned_int", "float", "int32", "uint32", "float32"), 4),
    **dict.fromkeys(("long", "unsigned_long", "long_long", "unsigned_long_long"), 8),
    **dict.fromkeys(("double", "int64", "uint64", "float64", "aint", "c_float_complex"), 8),
    "c_double_complex": 16,
}
"""Bytes of each, by the names of MPI's C types without MPI_ and _T."""

CONSTRUCTORS: dict[str, tuple[Callable[..., Layout], str]] = {
    "bytes": (Layout.bytes, "count"),
    "contiguous": (Layout.contiguous, "count, old"),
    "vector": (Layout.vector, "count, blocklength, stride, old"),
    "hvector": (Layout.hvector, "count, blocklength, stride_bytes, old"),
    "indexed": (Layout.indexed, "[blocklengths], [displacements], old"),
    "hindexed": (Layout.hindexed, "[blocklengths], [byte_displacements], old"),
    "indexed_block": (Layout.indexed_block, "blocklength, [displacements], old"),
    "hindexed_block": (Layout.hindexed_block, "blocklength, [byte_displacements], old"),
    "struct": (Layout.struct, "[blocklengths], [byte_displacements], [members]"),
    "subarray": (Layout.subarray, "[sizes], [subsizes], [starts], old, order=C"),
    "darray": (
        Layout.darray,
        "processes, rank, [sizes], [distributions], [block_sizes], [grid], old, order=C",
    ),
    "resized": (Layout.resized, "old, lower_bound, extent"),
    "blocks": (Layout.blocks, "[offsets], [lengths]"),
    "paged": (Layout.paged, "block_bytes, [page_numbers]"),
}
"""What makes each, and its arguments: numbers and [lists], of numbers where _Reader._argument() knows no other form."""

T = TypeVar("T")
Meant = tuple[T, str]
"""A value, and how its text was understood."""


@dataclass(frozen=True)
class Parsed:
    layout: Layout
    meaning: str
    """How the text was understood: arguments with their names, defaults spelled out, long lists cut."""


def parse(text: str) -> Layout:
    """The layout that a text names. Raises LayoutTextError."""
    return read(text).layout


def read(text: str) -> Parsed:
    """The same, and how the text was understood."""
    source = LayoutSource(text)
    layout, meaning = _Reader(source).layout(source.expression)
    return Parsed(layout, meaning)


class _Reader:
    """Reads nodes of the expression, a method for each form that there is. All other nodes are refused."""

    def __init__(self, source: LayoutSource) -> None:
        self._source = source
        self._depth = 0

    def layout(self, node: ast.expr) -> Meant[Layout]:  # noqa: RET503, expected() does not return
        source = self._source
        if is_view(source, node):
            return self._view(node)
        match node:
            case ast.Call(func=ast.Name(id=name)) if name.lower() in CONSTRUCTORS:
                return self._constructed(node, name.lower())
            case ast.Call(func=ast.Name()):
                source.expected("the end", source.end(node.func))
            case ast.Name(id=name) if name.lower() in CONSTRUCTORS:
                _, signature = CONSTRUCTORS[name.lower()]
                source.expected(f'"(" of {name.lower()}({signature})', source.end(node))
            case ast.Name(id=name):
                basic = name.lower().removeprefix("mpi_").removesuffix("_t")
                if basic in BASIC_TYPES:
                    return Layout.bytes(BASIC_TYPES[basic]), basic
                return self._ddtbench(node, [])
            case ast.BinOp(ast.BinOp(ast.Name() as family, ast.MatMult(), index), ast.MatMult(), side):
                return self._ddtbench(family, [index, side])
            case ast.BinOp(ast.Name() as family, ast.MatMult(), index):
                return self._ddtbench(family, [index])
            case _:
                source.expected("a layout: a constructor, a basic type, a DDTBench name or a .npy file", node)

    def _view(self, node: ast.expr) -> Meant[Layout]:
        array = read_view(self._source, node)
        # Without their type, since the buffer protocol knows no dates.
        elements = array.view(np.dtype((np.void, array.dtype.itemsize)))
        shape = " x ".join(map(str, array.shape)) or "one element"
        return self._made(node, Layout.of, [elements]), f"{self._source.of(node)} ({array.dtype}, {shape})"

    def _ddtbench(self, name: ast.Name, rest: Sequence[ast.expr]) -> Meant[Layout]:
        """`rest`: the index of a size, and a side; both may be missing."""
        source = self._source
        families = {family.lower(): family for family in ddtbench_families()}
        family = families.get(name.id.lower())
        if family is None:
            source.fail(
                f'nothing is called "{name.id}". DDTBench families: {", ".join(families.values())}; '
                f"constructors: {', '.join(CONSTRUCTORS)}; basic types: {', '.join(BASIC_TYPES)}; or a .npy file",
                name,
            )
        sizes = ddtbench_sizes(family)
        index = whole(source, rest[0]) if rest else 0
        if not 0 <= index < sizes:
            source.fail(f"{family} has {sizes} sizes, 0 to {sizes - 1}", rest[0])
        side = self._word(rest[1], "send", "receive") if len(rest) > 1 else "send"
        send, receive, dims = ddtbench(family, index)
        return send if side == "send" else receive, f"{family}:{index}:{side} (DDTBench, {dims})"

    def _constructed(self, call: ast.Call, constructor: str) -> Meant[Layout]:
        source = self._source
        make, signature = CONSTRUCTORS[constructor]
        form = f"{constructor}({signature})"
        missing = {wanted.strip("[]"): wanted for wanted in signature.removesuffix("=C").split(", ")}
        parameters = list(missing)
        found: dict[str, Meant[Any]] = {}
        self._depth += 1
        if self._depth > MOST_NESTED:
            source.fail(f"nested more than {MOST_NESTED} times", call)
        nodes: list[ast.expr | ast.keyword] = [*call.args, *call.keywords]
        for node in nodes:
            parameter = node.arg if isinstance(node, ast.keyword) else next(iter(missing), None)
            if parameter in found and isinstance(node, ast.keyword):
                source.fail(f"{parameter} is given twice: {form}", node)
            if parameter is None or parameter not in missing:
                source.fail(f"too many arguments: {form}" if parameter is None else f"no {parameter} in {form}", node)
            value = node.value if isinstance(node, ast.keyword) else node
            found[parameter] = self._argument(parameter, missing.pop(parameter), value)
        self._depth -= 1
        if missing.pop("order", None):
            found["order"] = "C", "C"
        if missing:
            source.fail(f"{constructor} lacks {' and '.join(missing)}: {form}", source.end(call) - 1)
        layout = self._made(call, make, [found[parameter][0] for parameter in parameters])
        return layout, f"{constructor}({', '.join(f'{parameter}={found[parameter][1]}' for parameter in parameters)})"

    def _argument(self, parameter: str, form: str, node: ast.expr) -> Meant[Any]:
        match parameter:
            case "old":
                return self.layout(node)
            case "members":
                return self._list(node, self.layout)
            case "distributions":
                return self._list(node, lambda entry: _meant(self._word(entry, "none", "block", "cyclic")))
            case "order":
                return _meant(self._word(node, "C", "F"))
        return self._numbers(node) if form.startswith("[") else _meant(whole(self._source, node))

    def _numbers(self, node: ast.expr) -> Meant[Sequence[int] | Array]:
        source = self._source
        match node:
            case ast.List():
                return self._list(node, lambda entry: _meant(whole(source, entry)))
            case ast.Call(func=ast.Name(id="range")):
                return self._range(node)
        if not is_view(source, node):
            source.expected("a list: [1, 2, 3], range(first, end, step) or a .npy file of integers", node)
        array = read_view(source, node)
        if array.ndim != 1 or array.dtype.kind not in "iu":
            source.fail(f"a list must be one row of integers; this is {array.dtype} of shape {array.shape}", node)
        if array.size and int(array.max()) >= 2**63:
            source.fail(f"{int(array.max())} does not fit 64 bits", node)
        return array, f"{source.of(node)} ({len(array):,} numbers)"

    def _range(self, call: ast.Call) -> Meant[list[int]]:
        numbers = [whole(self._source, node) for node in call.args]
        if call.keywords or not 1 <= len(numbers) <= 3 or numbers[2:] == [0]:
            self._source.fail("expected range(end), range(first, end) or range(first, end, step), no step of 0", call)
        values = range(*numbers)
        if values[MOST_OF_RANGE:]:
            self._source.fail(f"a range of more than {MOST_OF_RANGE:,} numbers; vector() takes more", call)
        return list(values), self._source.of(call)

    def _list(self, node: ast.expr, entry: Callable[[ast.expr], Meant[T]]) -> Meant[list[T]]:
        if not isinstance(node, ast.List):
            self._source.expected('"["', node)
        entries = [entry(one) for one in node.elts]
        return [value for value, _ in entries], _shortened([meaning for _, meaning in entries])

    def _word(self, node: ast.expr, *words: str) -> str:
        """One of these, in whatever case."""
        said = node.id.lower() if isinstance(node, ast.Name) else ""
        found = next((word for word in words if word.lower() == said), None)
        if found is None:
            self._source.expected(f"{', '.join(words[:-1])} or {words[-1]}", node)
        return found

    def _made(self, at: ast.expr, make: Callable[..., Layout], values: Sequence[Any]) -> Layout:
        try:
            return make(*values)
        except (ValueError, OverflowError, MemoryError) as e:
            self._source.fail(str(e), at)


def _meant(value: T) -> Meant[T]:
    return value, str(value)


def _shortened(entries: Sequence[str]) -> str:
    more = [f"... {len(entries):,} in all"] if len(entries) > _REPEATED else []
    return f"[{', '.join([*entries[:_REPEATED], *more])}]"
