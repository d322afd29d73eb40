"""What two caches have in common, and in which order it is moved. Either end finds the same from the two forms."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import gcd
from typing import Any, NamedTuple

from lacuna._core import Layout
from lacuna.kv.cache import Cache, Form


class Piece(NamedTuple):
    """One message: a layout in an array, `offset` bytes behind its first element."""

    array: Any
    layout: Layout
    offset: int


class Agreement:
    """Of a sender's form and a receiver's: which layers and heads are moved, by how many messages, in which order.

    The order is that of the sender's memory, since what is contiguous in both caches is contiguous in it then. Tokens
    between which and whose blocks there is another dimension (heads before tokens) are moved by chunks, which divide
    the blocks of both.

    Raises ValueError if the caches have no layers or no heads in common, or heads of different lengths.
    """

    def __init__(
        self, sender: Form, receiver: Form, *, layers: Sequence[int] | None = None, heads: Sequence[int] | None = None
    ) -> None:
        """`layers` and `heads`: only those of the model from the first number on, up to below the second one."""
        self.layers = _common("layers", sender.layers, receiver.layers, layers)
        self.heads = _common("heads", sender.heads, receiver.heads, heads)
        if sender.head_bytes != receiver.head_bytes:
            raise ValueError(f"heads of {sender.head_bytes} B and of {receiver.head_bytes} B for a token")
        self.planes = len(sender.head_bytes)
        self._apart = {*sender.array_for_each, *receiver.array_for_each}
        if len(set(sender.head_bytes)) > 1:
            self._apart.add("kv")
        order = [name for name in sender.order if name not in self._apart]
        if order.index("token") < order.index("block"):
            order.remove("token")
            order.insert(order.index("block") + 1, "token")
        self.order = tuple(order)
        """Loops of a message, the outermost first."""
        self.chunk = 0
        """Tokens; 0 where tokens are moved one after the other, whatever the blocks are."""
        if self.order.index("token") != self.order.index("block") + 1:
            self.chunk = gcd(sender.block_size, receiver.block_size)

    def messages(self) -> int:
        """For each request."""
        return len(list(self._units()))

    def pieces(self, cache: Cache, table: Any, tokens: int, first: int = 0) -> list[Piece]:
        """A request's in one of the two caches: tokens `first` to `first + tokens` of it, whose block i is block
        table[i] of the cache. The table is an array of integers, whose memory is read, or a sequence. Raises
        ValueError: tokens beyond the table, a block beyond the cache."""
        _check(cache, table, tokens, first)
        made: dict[int, Layout] = {}
        found = []
        for layer, plane in self._units():
            like = 0 if cache.planes_alike else plane
            if like not in made:
                made[like] = self._layout(cache, table, tokens, first, plane)
            array, offset = cache.array(layer, plane)
            head = (self.heads.start - cache.form.heads[0]) * cache.stride("head", plane)
            found.append(Piece(array, made[like], offset + head))
        return found

    def _units(self) -> Iterator[tuple[int, int]]:
        """The layer and the plane that a message begins with."""
        for layer in self.layers if "layer" in self._apart else self.layers[:1]:
            for plane in range(self.planes if "kv" in self._apart else 1):
                yield layer, plane

    def _layout(self, cache: Cache, table: Any, tokens: int, first: int, plane: int) -> Layout:
        size, block = cache.block_size, self.order.index("block")
        unit = self.chunk or size
        inner = self.order[block + 1 :]
        step, stride = cache.stride("token", plane), cache.stride("block", plane)
        parts: list[Layout] = []

        def place(token: int, layout: Layout) -> None:
            number = int(table[token // size])
            _check_blocks(cache, number, number)
            at = number * stride + token % size * step
            parts.append(Layout.hindexed([1], [at], layout))

        for begin, stop, whole in _cut(first, first + tokens, unit):
            if not whole:
                place(begin, self._nest(cache, inner, stop - begin, plane))
                continue
            one = self._nest(cache, inner, unit, plane)
            for low, high, of_blocks in _cut(begin, stop, size):
                several = Layout.hvector((size if of_blocks else high - low) // unit, 1, unit * step, one)
                if of_blocks:
                    pages = table[low // size : high // size]
                    parts.append(Layout.indexed_block(1, pages, Layout.resized(several, 0, stride)))
                    if stride == 0:  # one block
                        _check_blocks(cache, int(min(pages)), int(max(pages)))
                    else:
                        _check_blocks(cache, *_bounds(parts[-1], several, stride))
                else:
                    place(low, several)
        made = parts[0] if len(parts) == 1 else Layout.struct([1] * len(parts), [0] * len(parts), parts)
        return self._loops(cache, self.order[:block], made, 0, plane)

    def _nest(self, cache: Cache, names: Sequence[str], tokens: int, plane: int) -> Layout:
        return self._loops(cache, names, Layout.bytes(cache.form.head_bytes[plane]), tokens, plane)

    def _loops(self, cache: Cache, names: Sequence[str], inner: Layout, tokens: int, plane: int) -> Layout:
        lengths = {"token": tokens, "head": len(self.heads), "layer": len(self.layers), "kv": self.planes}
        for name in reversed(names):
            inner = Layout.hvector(lengths[name], 1, cache.stride(name, plane), inner)
        return inner


def _cut(low: int, high: int, size: int) -> Iterator[tuple[int, int, bool]]:
    """[low, high) in up to three parts, of which the second one is whole units of `size`: (from, to, whole)."""
    a, b = -(-low // size) * size, high // size * size
    if a >= b:
        a = b = high if a > high else a  # no whole unit: up to a boundary, and on from there
    for begin, stop, whole in ((low, a, False), (a, b, True), (b, high, False)):
        if begin < stop:
            yield begin, stop, whole


def _common(what: str, sender: tuple[int, int], receiver: tuple[int, int], wanted: Sequence[int] | None) -> range:
    low, high = max(sender[0], receiver[0]), min(sender[1], receiver[1])
    if wanted is not None:
        low, high = max(low, wanted[0]), min(high, wanted[1])
    if low >= high:
        raise ValueError(f"no {what} in common: the sender has {sender}, the receiver {receiver}, wanted are {wanted}")
    return range(low, high)


def _bounds(paged: Layout, block: Layout, stride: int) -> tuple[int, int]:
    """The least and the largest number of a block in a layout of blocks, which knows its own bounds."""
    ends = (
        (paged.true_lower_bound - block.true_lower_bound) // stride,
        (paged.true_lower_bound + paged.true_extent - block.true_lower_bound - block.true_extent) // stride,
    )
    return min(ends), max(ends)


def _check_blocks(cache: Cache, least: int, most: int) -> None:
    if least < 0 or most >= cache.blocks:
        raise ValueError(f"block {least if least < 0 else most} of a cache of {cache.blocks} blocks")


def _check(cache: Cache, table: Any, tokens: int, first: int) -> None:
    if tokens < 1 or first < 0:
        raise ValueError(f"tokens {first} to {first + tokens}: at least one is needed, from 0 on")
    if first + tokens > len(table) * cache.block_size:
        raise ValueError(
            f"tokens {first} to {first + tokens} in a table of {len(table)} blocks of {cache.block_size} tokens"
        )
