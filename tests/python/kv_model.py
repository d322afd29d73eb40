"""A model of paged caches in NumPy: where each number of each token is, by plain loops."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from lacuna.kv import FORMATS, Cache

Array = np.ndarray[Any, np.dtype[Any]]


@dataclass
class Model:
    """What a request's tokens hold: [layer, plane, token, head, dim], of the whole model."""

    numbers: Array
    latent: bool

    @property
    def layers(self) -> int:
        return int(self.numbers.shape[0])

    @property
    def tokens(self) -> int:
        return int(self.numbers.shape[2])

    @property
    def heads(self) -> int:
        return int(self.numbers.shape[3])


def drawn_model(rng: random.Random, *, latent: bool) -> Model:
    shape = (rng.randint(1, 4), 1 if latent else 2, rng.randint(1, 90), 1 if latent else rng.randint(1, 6), 4)
    return Model(1 + np.arange(np.prod(shape)).reshape(shape).astype(np.int32), latent)


@dataclass
class Kept:
    """A cache of some layers and heads of a model, its arrays, and a request's blocks."""

    cache: Cache
    names: tuple[str, ...]
    keys: list[Array]
    values: list[Array] | None
    table: Array
    layers: range
    heads: range

    def places(self, layer: int, plane: int, token: int, head: int) -> Array:
        """The numbers of one head for a token."""
        block, within = int(self.table[token // self.cache.block_size]), token % self.cache.block_size
        at = {"layer": layer - self.layers.start, "kv": plane, "block": block, "token": within}
        at |= {"slot": block * self.cache.block_size + within, "head": head - self.heads.start}
        arrays = self.values if self.values is not None and plane == 1 else self.keys
        array = arrays[0 if "layer" in self.names else layer - self.layers.start]
        return array[tuple(at[name] for name in self.names if name != "dim")]

    def every(self, model: Model, tokens: range) -> Iterator[tuple[int, int, int, int]]:
        for layer in self.layers:
            for plane in range(model.numbers.shape[1]):
                for token in tokens:
                    for head in self.heads:
                        yield layer, plane, token, head

    def fill(self, model: Model) -> None:
        for at in self.every(model, range(model.tokens)):
            self.places(*at)[:] = model.numbers[at]

    def copy(self) -> list[Array]:
        return [array.copy() for array in (*self.keys, *(self.values or []))]


def drawn_cache(rng: random.Random, model: Model, format_name: str, *, block_size: int, dtype: str = "i4") -> Kept:
    """Arrays whose strides are any: a permutation of their dimensions' order in memory, with room between."""
    names = tuple(FORMATS.get(format_name, format_name).split())
    layers = _range(rng, model.layers)
    heads = _range(rng, model.heads) if "head" in names else range(1)
    blocks = 2 * -(-model.tokens // block_size) + 1
    sizes = {"layer": len(layers), "kv": 2, "block": blocks, "token": block_size, "slot": blocks * block_size}
    sizes |= {"head": len(heads), "dim": model.numbers.shape[4]}
    permuted = [name for name in names if name != "dim"]
    if rng.random() < 0.3:
        last = permuted[-2:]
        rng.shuffle(last)
        permuted[-2:] = last

    room = rng.choice([0, 3])

    def arrays() -> list[Array]:
        made = []
        for _ in range(1 if "layer" in names else len(layers)):
            whole = np.zeros([*(sizes[name] for name in permuted), sizes["dim"] + room], dtype)
            ordered = whole.transpose([*(permuted.index(name) for name in names if name != "dim"), len(permuted)])
            made.append(ordered[..., : sizes["dim"]])
        return made

    keys = arrays()
    values = None if "kv" in names or model.latent else arrays()
    table = np.array(rng.sample(range(blocks), -(-model.tokens // block_size)), rng.choice([np.int32, np.int64]))
    cache = Cache(
        keys[0] if "layer" in names else keys,
        format_name,
        values=(values[0] if "layer" in names else values) if values is not None else None,
        block_size=block_size,
        first_layer=layers.start,
        first_head=heads.start,
    )
    return Kept(cache, names, keys, values, table, layers, heads)


def _range(rng: random.Random, length: int) -> range:
    low = rng.randrange(length)
    return range(low, rng.randint(low + 1, length)) if rng.random() < 0.4 else range(length)
