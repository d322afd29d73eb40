"""Layouts as text: MPI's constructors, DDTBench names, views of .npy files; `lacuna explain --help` lists them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from lacuna._core import Layout, ddtbench, ddtbench_families, ddtbench_sizes
from lacuna.npy_view import Array, read_view
from lacuna.tokens import LayoutTextError, Token, Tokens

__all__ = ["BASIC_TYPES", "CONSTRUCTORS", "LayoutTextError", "Parsed", "parse", "read"]

MOST_NESTED = 100
MOST_OF_RANGE = 1 << 24
_REPEATED = 8
"""At most so many levels; so many numbers of a range(); so many entries of a list in a meaning."""

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
"""What makes each, and its arguments: numbers and [lists], of numbers where _Parser.argument() knows no other form."""

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
    tokens = Tokens(text)
    layout, meaning = _Parser(tokens).layout()
    if tokens.next.kind != "end":
        tokens.expected("the end")
    return Parsed(layout, meaning)


class _Parser:
    """Recursive descent, a method for each form."""

    def __init__(self, tokens: Tokens) -> None:
        self._tokens = tokens
        self._depth = 0

    def layout(self) -> Meant[Layout]:
        tokens = self._tokens
        token = tokens.next
        if token.is_file:
            return self._view(token)
        if token.kind != "name":
            tokens.expected("a layout: a constructor, a basic type, a DDTBench name or a .npy file")
        tokens.take()
        name = token.text.lower()
        if name in CONSTRUCTORS:
            return self._constructed(token, name)
        basic = name.removeprefix("mpi_").removesuffix("_t")
        if basic in BASIC_TYPES:
            return Layout.bytes(BASIC_TYPES[basic]), basic
        return self._ddtbench(token)

    def _view(self, token: Token) -> Meant[Layout]:
        array = read_view(self._tokens)
        # Without their type, since the buffer protocol knows no dates.
        elements = array.view(np.dtype((np.void, array.dtype.itemsize)))
        shape = " x ".join(map(str, array.shape)) or "one element"
        return self._made(token, Layout.of, [elements]), f"{self._tokens.source(token)} ({array.dtype}, {shape})"

    def _ddtbench(self, name: Token) -> Meant[Layout]:
        tokens = self._tokens
        families = {family.lower(): family for family in ddtbench_families()}
        family = families.get(name.text.lower())
        if family is None:
            tokens.fail(
                f'nothing is called "{name.text}". DDTBench families: {", ".join(families.values())}; '
                f"constructors: {', '.join(CONSTRUCTORS)}; basic types: {', '.join(BASIC_TYPES)}; or a .npy file",
                name,
            )
        index, side = 0, "send"
        if tokens.skip(":"):
            sizes = ddtbench_sizes(family)
            at = tokens.next
            index = tokens.number()
            if not 0 <= index < sizes:
                tokens.fail(f"{family} has {sizes} sizes, 0 to {sizes - 1}", at)
            if tokens.skip(":"):
                side = tokens.word("send", "receive")
        send, receive, dims = ddtbench(family, index)
        return send if side == "send" else receive, f"{family}:{index}:{side} (DDTBench, {dims})"

    def _constructed(self, name: Token, constructor: str) -> Meant[Layout]:
        tokens = self._tokens
        make, signature = CONSTRUCTORS[constructor]
        form = f"{constructor}({signature})"
        missing = {wanted.strip("[]"): wanted for wanted in signature.removesuffix("=C").split(", ")}
        parameters = list(missing)
        found: dict[str, Meant[Any]] = {}

        def argument() -> None:
            token = tokens.next
            if token.text in parameters and tokens.skip(token.text, "="):
                parameter = token.text
                if parameter in found:
                    tokens.fail(f"{parameter} is given twice: {form}", token)
            elif not missing:
                tokens.fail(f"too many arguments: {form}", token)
            else:
                parameter = next(iter(missing))
            found[parameter] = self._argument(parameter, missing.pop(parameter))

        if not tokens.skip("("):
            tokens.expected(f'"(" of {form}')
        self._depth += 1
        if self._depth > MOST_NESTED:
            tokens.fail(f"nested more than {MOST_NESTED} times", name)
        tokens.entries(")", argument)
        self._depth -= 1
        if missing.pop("order", None):
            found["order"] = "C", "C"
        if missing:
            tokens.fail(f"{constructor} lacks {' and '.join(missing)}: {form}", tokens.last)
        layout = self._made(name, make, [found[parameter][0] for parameter in parameters])
        return layout, f"{constructor}({', '.join(f'{parameter}={found[parameter][1]}' for parameter in parameters)})"

    def _argument(self, parameter: str, form: str) -> Meant[Any]:
        match parameter:
            case "old":
                return self.layout()
            case "members":
                return self._list(self.layout)
            case "distributions":
                return self._list(lambda: self._meant(self._tokens.word("none", "block", "cyclic")))
            case "order":
                return self._meant(self._tokens.word("C", "F"))
        return self._numbers() if form.startswith("[") else self._meant(self._tokens.number())

    def _numbers(self) -> Meant[Sequence[int] | Array]:
        tokens = self._tokens
        token = tokens.next
        if token.text == "[":
            return self._list(lambda: self._meant(tokens.number()))
        if tokens.skip("range"):
            return self._range(token)
        if not token.is_file:
            tokens.expected("a list: [1, 2, 3], range(first, end, step) or a .npy file of integers")
        array = read_view(tokens)
        if array.ndim != 1 or array.dtype.kind not in "iu":
            tokens.fail(f"a list must be one row of integers; this is {array.dtype} of shape {array.shape}", token)
        if array.size and int(array.max()) >= 2**63:
            tokens.fail(f"{int(array.max())} does not fit 64 bits", token)
        return array, f"{tokens.source(token)} ({len(array):,} numbers)"

    def _range(self, token: Token) -> Meant[list[int]]:
        self._tokens.need("(")
        numbers = self._tokens.entries(")", self._tokens.number)
        if not 1 <= len(numbers) <= 3 or numbers[2:] == [0]:
            self._tokens.fail("expected range(end), range(first, end) or range(first, end, step), no step of 0", token)
        values = range(*numbers)
        if values[MOST_OF_RANGE:]:
            self._tokens.fail(f"a range of more than {MOST_OF_RANGE:,} numbers; vector() takes more", token)
        return list(values), self._tokens.source(token)

    def _list(self, entry: Callable[[], Meant[T]]) -> Meant[list[T]]:
        self._tokens.need("[")
        entries = self._tokens.entries("]", entry)
        return [value for value, _ in entries], _shortened([meaning for _, meaning in entries])

    @staticmethod
    def _meant(value: T) -> Meant[T]:
        return value, str(value)

    def _made(self, at: Token, make: Callable[..., Layout], values: Sequence[Any]) -> Layout:
        try:
            return make(*values)
        except (ValueError, OverflowError, MemoryError) as e:
            self._tokens.fail(str(e), at)


def _shortened(entries: Sequence[str]) -> str:
    more = [f"... {len(entries):,} in all"] if len(entries) > _REPEATED else []
    return f"[{', '.join([*entries[:_REPEATED], *more])}]"
