"""A cache as it lies in memory, and what a peer has to know of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from lacuna import _core
from lacuna.kv.formats import dimensions


@dataclass(frozen=True)
class Form:
    """What a peer has to know of a cache. It is small, and the same for all requests."""

    order: tuple[str, ...]
    """Of its dimensions in memory, the slowest first: "layer", "kv", "block", "token", "head"."""
    block_size: int
    """Tokens of a block."""
    layers: tuple[int, int]
    """The first one of the model that it has, and the one behind the last."""
    heads: tuple[int, int]
    """The same of the heads of K and V."""
    head_bytes: tuple[int, ...]
    """Bytes of a head for a token: of K and of V, or of the one plane that there is (MLA)."""
    array_for_each: tuple[str, ...]
    """"layer", "kv": what has arrays of its own."""
    dtypes: tuple[str, ...] = ()
    """Of K's numbers and V's, or of the one plane's; empty where the arrays do not say."""

    def __post_init__(self) -> None:
        known = {"layer", "kv", "block", "token", "head"}
        if self.block_size < 1 or not {"block", "token"} <= set(self.order) <= known or not self.head_bytes:
            raise ValueError(f"no form of a cache: {self}")

    def to_json(self) -> bytes:
        return msgspec.json.encode(self)

    @staticmethod
    def from_json(text: bytes) -> Form:
        """Raises ValueError if it is none."""
        return msgspec.json.decode(text, type=Form)


class Cache:
    """Arrays that hold K and V of requests in blocks, in any format.

        Cache(layers, "vllm:flash_attn")                                       an array for each layer
        Cache(k_buffers, "sglang:mha", values=v_buffers, block_size=64)        K and V apart
        Cache(host, "sglang:page_first", block_size=64)                        one array for all layers
        Cache(layers, "block head token dim", values=other_layers)             a format of your own

    Arrays are NumPy arrays, torch tensors on the CPU, and whatever else has the buffer protocol or DLPack; nothing is
    copied. Their strides may be any, so a tensor that was permuted is described by the dimensions of its shape.
    """

    def __init__(
        self,
        arrays: Any,
        format_name: str,
        *,
        values: Any = None,
        block_size: int | None = None,
        first_layer: int = 0,
        first_head: int = 0,
        dtype: str | None = None,
    ) -> None:
        """`arrays`: one array, or one for each layer where the format has no `layer`. `values`: V's, where the format
        has no `kv` and there is one. `block_size` in tokens, for formats with slots. `first_layer` and `first_head`:
        the numbers in the model of the first ones that are here. `dtype`: what the numbers are, as "bfloat16", where
        the arrays hold them as another type; both ends of a link have to have the same.

        Raises ValueError: a format that is none, arrays of K, or of V, of different shapes or strides, a `dim` that has
        gaps, a `kv` of another length than 2, slots that are no whole number of blocks."""
        self.names = dimensions(format_name)
        by_layer = "layer" not in self.names
        keys = _listed(arrays, by_layer)
        planes = [keys] if values is None else [keys, _listed(values, by_layer)]
        if len(planes) == 2 and "kv" in self.names:
            raise ValueError(f"{format_name!r} has K and V in one array; `values` are another one's")
        if len({len(plane) for plane in planes}) != 1:
            raise ValueError(f"{len(keys)} arrays of K and {len(planes[1])} of V")
        self._planes = [_Plane(plane, self.names) for plane in planes]
        first = self._planes[0]
        if any(plane.sizes | {"dim": 0} != first.sizes | {"dim": 0} for plane in self._planes):
            raise ValueError(f"K's arrays have {first.sizes}, V's have {self._planes[1].sizes}")
        if first.sizes.get("kv", 2) != 2:
            raise ValueError(f"`kv` has length {first.sizes['kv']}; it is 2, of K and V")
        if "slot" in self.names:
            if block_size is None or block_size < 1 or first.sizes["slot"] % block_size:
                raise ValueError(f"{first.sizes['slot']} slots need a block_size that divides them; it is {block_size}")
        elif block_size not in (None, first.sizes["token"]):
            raise ValueError(f"blocks of {first.sizes['token']} tokens, by their shape; block_size is {block_size}")
        self.block_size = int(block_size if block_size is not None else first.sizes["token"])
        heads, layers = first.sizes.get("head", 1), len(keys) if by_layer else first.sizes["layer"]
        widths = tuple(plane.head_bytes for plane in self._planes)
        dtypes = tuple(dtype if dtype is not None else _dtype_of(plane.arrays[0]) for plane in self._planes)
        both = 2 if "kv" in self.names else 1
        self.form = Form(
            first.order(self.block_size),
            self.block_size,
            (first_layer, first_layer + layers),
            (first_head, first_head + heads),
            widths * both,
            (*(["layer"] if by_layer else []), *(["kv"] if len(planes) == 2 else [])),
            dtypes * both if all(dtypes) else (),
        )

    @property
    def blocks(self) -> int:
        """How many there are."""
        sizes = self._planes[0].sizes
        return sizes["slot"] // self.block_size if "slot" in sizes else sizes["block"]

    @property
    def planes_alike(self) -> bool:
        """Whether a layout of K is one of V."""
        return all(plane.like(self._planes[0]) for plane in self._planes)

    def stride(self, name: str, plane: int = 0) -> int:
        """Bytes from one of a dimension to the next: "layer", "kv", "block", "token", "head"."""
        return self._planes[min(plane, len(self._planes) - 1)].stride(name, self.block_size)

    def array(self, layer: int, plane: int) -> tuple[Any, int]:
        """Where a layer's K or V begins: the array, and bytes from its first element."""
        own = self._planes[min(plane, len(self._planes) - 1)]
        at = layer - self.form.layers[0]
        offset = own.stride("kv", self.block_size) * plane if "kv" in self.names else 0
        if "layer" in self.names:
            return own.arrays[0], offset + at * own.stride("layer", self.block_size)
        return own.arrays[at], offset


class _Plane:
    """Arrays of K, of V, or of both, all of one shape and one set of strides."""

    def __init__(self, arrays: Sequence[Any], names: tuple[str, ...]) -> None:
        self.arrays = arrays
        _, self._item, shape, strides = _core.memory_of(arrays[0])
        if len(shape) != len(names):
            raise ValueError(f"an array of {len(shape)} dimensions for {' '.join(names)}, which are {len(names)}")
        for array in arrays:
            _, item, other_shape, other_strides = _core.memory_of(array)
            if (item, other_shape, other_strides) != (self._item, shape, strides):
                both = f"{shape}, {strides} and {other_shape}, {other_strides}"
                raise ValueError(f"arrays of different shapes or strides: {both}")
        self.sizes = dict(zip(names, shape, strict=True))
        self._strides = dict(zip(names, strides, strict=True))
        if shape[-1] > 1 and strides[-1] != self._item:
            raise ValueError(f"numbers of a head are {strides[-1]} B apart; they have to lie side by side")
        self.head_bytes = self._item * shape[-1]

    def stride(self, name: str, block_size: int) -> int:
        if "slot" in self._strides and name in ("block", "token"):
            return self._strides["slot"] * (block_size if name == "block" else 1)
        return self._strides.get(name, 0)

    def like(self, other: _Plane) -> bool:
        return (self._strides, self.head_bytes) == (other._strides, other.head_bytes)

    def order(self, block_size: int) -> tuple[str, ...]:
        """The dimensions by their strides. One of length 1 is where it costs nothing: the innermost."""
        lengths = {name: size for name, size in self.sizes.items() if name not in ("slot", "dim")}
        if "slot" in self.sizes:
            lengths |= {"block": self.sizes["slot"] // block_size, "token": block_size}
        names = sorted(lengths, key=lambda name: name == "token")  # behind its block, where neither has a stride
        return tuple(sorted(names, key=lambda n: -abs(self.stride(n, block_size)) if lengths[n] > 1 else 0))


def _dtype_of(array: Any) -> str:
    """As "float16", of arrays that say it, as those of NumPy and torch do; else empty."""
    return str(getattr(array, "dtype", "")).rpartition(".")[2]


def _listed(arrays: Any, by_layer: bool) -> list[Any]:
    if isinstance(arrays, (list, tuple)):
        if not arrays or (not by_layer and len(arrays) != 1):
            raise ValueError(f"{len(arrays)} arrays; the format wants " + ("one for each layer" if by_layer else "one"))
        return list(arrays)
    return [arrays]
