"""Views of .npy files in a layout's text: `matrix.npy[::2, 3:5].T`."""

from __future__ import annotations

from types import EllipsisType
from typing import Any

import numpy.typing as npt
from numpy.lib.format import open_memmap

from lacuna.tokens import Token, Tokens

Array = npt.NDArray[Any]
Index = int | slice | EllipsisType


def read_view(tokens: Tokens) -> Array:
    """The view that the next tokens name. No element is read: the file is mapped."""
    token = tokens.take()
    array = _mapped(tokens, token)
    while True:
        at = tokens.next
        if tokens.skip(".T"):
            array = array.T
        elif tokens.skip("["):
            index = [_index(tokens)]
            while tokens.skip(","):
                index.append(_index(tokens))
            tokens.need("]")
            try:
                # With an ellipsis a single element stays a view.
                array = array[tuple(index) if ... in index else (*index, ...)]
            except (IndexError, ValueError, OverflowError) as e:
                tokens.fail(f"{e}; the array has shape {array.shape}", at)
        else:
            return array


def _mapped(tokens: Tokens, token: Token) -> Array:
    name = token.text[1:-1] if token.kind == "quoted" else token.text
    try:
        return open_memmap(name, mode="r")
    except OSError as e:
        tokens.fail(f"cannot read {name}: {e.strerror or e}", token)
    except ValueError as e:
        tokens.fail(f"cannot use {name}: {e}", token)


def _index(tokens: Tokens) -> Index:
    if tokens.skip("..."):
        return ...
    parts: list[int | None] = [None]
    while True:
        if tokens.next.kind == "number":
            parts[-1] = tokens.number()
        if len(parts) == 3 or not tokens.skip(":"):
            break
        parts.append(None)
    if parts == [None]:
        tokens.expected('a number, a slice or "..."')
    return parts[0] if len(parts) == 1 and parts[0] is not None else slice(*parts)
