"""The families of layouts that `lacuna bench copy` draws. Layout number i of a family depends on the seed, the family
and i alone: with more rows come more layouts, and those before stay."""

from __future__ import annotations

import math
from collections.abc import Callable
from random import Random

import numpy as np

from lacuna.bench.copies.drawn import Blocks, DrawnCase, DrawnSide, Nest, dense_side, side_of

MIB = 1 << 20

ELEMENTS = (1, 2, 4, 8, 12, 16, 24, 32)
SIZES = (MIB, 16 * MIB, 32 * MIB)
"""Of permutations: the first one stays in a cache, the others do not."""
_NUMBERS = (1, 2, 4, 8, 16)
_FIELDS = (1, 2, 3, 4, 6, 8, 12, 16)
_ROWS = (256, 512, 1024, 2048, 4096)
_LARGEST_RECORD = 128
_IMAGES = ((224, 224), (299, 299), (480, 640), (512, 512), (720, 1280), (1080, 1920))

LIST_ENTRIES = 1 << 16
BOTH_CACHES = ("warm", "cold")


def drawn(seed: int, rows: int, pattern: str = "") -> list[DrawnCase]:
    """`rows` layouts of each family, and three times as many permutations: one of each family, then the next of each.
    So a run that is cut short has seen all families. Only those whose family or name holds the pattern."""
    cases = []
    for i in range(3 * rows):
        for family, draw in FAMILIES.items():
            if i < rows or family == "permutation":
                case = draw(Random(f"{seed} {family} {i}"), i)
                if pattern.lower() in f"{family} {case.name}".lower():
                    cases.append(case)
    return cases


def _permutation(rng: Random, i: int) -> DrawnCase:
    element = ELEMENTS[i % 8]
    size = SIZES[(i + 2 * (i // 8)) % 3]  # all pairs within 24
    rank = rng.randint(2, 5)
    shape = _shape(rng, rank, size // element)
    axes = list(range(rank))
    while axes == sorted(axes):
        rng.shuffle(axes)
    nest = _permuted(element, shape, axes)
    name = f"permutation of {element} B, {_by(shape)}, axes {_by(axes)}"
    return _to_dense("permutation", name, element, [nest], rng)


def _records(rng: Random, _: int) -> DrawnCase:
    packed = rng.random() < 0.4
    fields: list[tuple[int, int]] = []  # places and sizes
    end = 0
    for _number in range(rng.randint(1, 12)):
        size = rng.choice(_FIELDS)
        natural = 1 if packed else min(size & -size, 8)
        place = -(-end // natural) * natural
        if place + size <= _LARGEST_RECORD:
            fields.append((place, size))
            end = place + size
    record = max(3, min(end + rng.choice((0, 0, 0, 1, 4, 8)), _LARGEST_RECORD))
    count = rng.choice((MIB, 16 * MIB)) // record
    chosen = [field for field in fields if rng.random() < 0.7] or fields[:1]
    parts = [Nest(size, place, (count,), (record,)) for place, size in chosen]
    sizes = [size for _place, size in chosen]
    name = f"record of {record} B, fields of {'+'.join(map(str, sizes))} B to arrays"
    return _to_dense("record", name, sizes[0] if len(set(sizes)) == 1 else 0, parts, rng)


def _channels(rng: Random, i: int) -> DrawnCase:
    element, channels = (1, 3) if i == 0 else (rng.choice((1, 1, 2, 4)), rng.choice((2, 3, 3, 4, 4, 8, 16, 32, 64)))
    height, width = rng.choice([(h, w) for h, w in _IMAGES if h * w * element * channels <= 16 * MIB])
    images = max(1, MIB // (element * channels * height * width))
    interleaved = i % 2 == 0
    shape = [images, height, width, channels] if interleaved else [images, channels, height, width]
    nest = _permuted(element, shape, [0, 3, 1, 2] if interleaved else [0, 2, 3, 1])
    to = "HWC to CHW" if interleaved else "CHW to HWC"
    name = f"channel {to}, {channels} of {element} B, {images} of {height}x{width}"
    return _to_dense("channel", name, element, [nest], rng)


def _every_kth(rng: Random, i: int) -> DrawnCase:
    element, k = _FIELDS[i % 8], 2 + (i * 7 + rng.randrange(15)) % 15
    count = rng.choice((MIB // 4, MIB, 4 * MIB)) // element
    if rng.random() < 0.5:
        return _to_dense("every_kth", f"every kth: {k}, of {element} B", element, [_strided(element, [count], k)], rng)
    width = rng.randint(24, 400)
    name = f"every kth: {k}, of {element} B in rows of {width}"
    return _to_dense("every_kth", name, element, [_strided(element, [count // width, width], k)], rng)


def _reversal(rng: Random, i: int) -> DrawnCase:
    element = ELEMENTS[i % 8]
    rank = rng.randint(1, 3)
    shape = _shape(rng, rank, rng.choice((MIB, MIB, 16 * MIB)) // element)
    turned = sorted(rng.sample(range(rank), rng.randint(1, rank)))
    strides = _dense_strides(element, shape)
    signs = [-1 if axis in turned else 1 for axis in range(rank)]
    nest = Nest(element, 0, tuple(shape), tuple(a * b for a, b in zip(signs, strides, strict=True)))
    name = f"reversal of {element} B, {_by(shape)}, axes {_by(turned)}"
    return _to_dense("reversal", name, element, [nest], rng)


def _list(rng: Random, i: int) -> DrawnCase:
    kind = "random" if rng.random() < 0.6 else "sorted"
    if i % 2 == 0:
        element = _FIELDS[i // 2 % 8]
        blocks = Blocks(element, _places(rng, LIST_ENTRIES, kind), np.array([1], np.int32))
        return _to_dense("list", f"{kind} list of {element} B", element, [blocks], rng, BOTH_CACHES)
    row = _ROWS[i // 2 % 5]
    blocks = Blocks(1, _places(rng, 2 * MIB // row, kind) * row, np.array([row], np.int32))
    return _to_dense("list", f"{kind} list of rows of {row} B", 1, [blocks], rng, BOTH_CACHES)


def _triangle(rng: Random, i: int) -> DrawnCase:
    element = (8, 4, 2, 16, 1)[i % 5]
    n = rng.randint(64, 1400)
    lower = rng.random() < 0.5
    rows = np.arange(n, dtype=np.int32)
    places, lengths = (rows * n, rows + 1) if lower else (rows * (n + 1), n - rows)
    blocks = Blocks(element, places, lengths)
    name = f"triangle, {'lower' if lower else 'upper'}, of {element} B, {n}x{n}"
    return _to_dense("triangle", name, element, [blocks], rng, BOTH_CACHES)


def _halo(rng: Random, i: int) -> DrawnCase:
    element = (8, 4, 16, 2, 1)[i % 5]
    rank = rng.choice((2, 3, 3))
    line = 64 // element
    axis, thick = rng.randrange(rank), rng.randint(1, 3)
    shape = _shape(rng, rank, rng.choice((MIB, 8 * MIB)) // element)
    shape = [max(count, 3 * thick) for count in shape]
    other = [count + rng.randint(0, 4) for count in shape]
    for longest in (shape, other):
        longest[-1] += longest[-1] % line == 0  # no row begins where a line does
    counts = [count - 2 * thick for count in shape]
    counts[axis] = thick
    starts = [thick] * rank
    source, target = _box(element, shape, starts, counts), _box(element, other, starts, counts)
    name = f"halo of {element} B, {thick} thick, axis {axis} of {_by(shape)}"
    return DrawnCase("halo", name, element, source, target, caches=BOTH_CACHES)


def _broadcast(rng: Random, i: int) -> DrawnCase:
    element = _NUMBERS[i % 5]
    shape = _shape(rng, rng.randint(2, 3), MIB // element)
    axis = rng.randrange(len(shape))
    kept = [1 if a == axis else count for a, count in enumerate(shape)]
    strides = [0 if a == axis else s for a, s in enumerate(_dense_strides(element, kept))]
    name = f"broadcast of {element} B, {_by(shape)}, axis {axis}"
    source = side_of([Nest(element, 0, tuple(shape), tuple(strides))])
    dense = dense_side(source.size, element)
    return DrawnCase("broadcast", name, element, source, dense, operations=("pack", "transpack"))


FAMILIES: dict[str, Callable[[Random, int], DrawnCase]] = {
    "permutation": _permutation,
    "record": _records,
    "channel": _channels,
    "every_kth": _every_kth,
    "reversal": _reversal,
    "list": _list,
    "triangle": _triangle,
    "halo": _halo,
    "broadcast": _broadcast,
}


# --- what they are made of --------------------------------------------------------------------------------------------


def _to_dense(
    family: str,
    name: str,
    element: int,
    parts: list[Nest] | list[Blocks],
    rng: Random,
    caches: tuple[str, ...] = ("warm",),
) -> DrawnCase:
    scattered = side_of(parts)
    dense = dense_side(scattered.size, element or 1)
    return DrawnCase(family, name, element, scattered, dense, rng.random() < 0.5, caches)


def _by(numbers: list[int]) -> str:
    return "x".join(map(str, numbers))


def _shape(rng: Random, rank: int, elements: int) -> list[int]:
    """Some `elements` in so many dimensions of 2 and more. Some shapes are powers of two, whose columns share sets of a
    cache."""
    weights = [rng.uniform(0.25, 1.0) for _ in range(rank)]
    shape = [max(2, round(elements ** (weight / sum(weights)))) for weight in weights]
    if rng.random() < 0.4:
        shape = [1 << max(1, round(math.log2(count))) for count in shape]
    longest = shape.index(max(shape))
    rest = math.prod(shape) // shape[longest]
    shape[longest] = max(2, round(elements / rest))
    return shape


def _dense_strides(element: int, shape: list[int]) -> list[int]:
    return [element * math.prod(shape[axis + 1 :]) for axis in range(len(shape))]


def _permuted(element: int, shape: list[int], axes: list[int]) -> Nest:
    strides = _dense_strides(element, shape)
    return Nest(element, 0, tuple(shape[a] for a in axes), tuple(strides[a] for a in axes))


def _strided(element: int, shape: list[int], step: int) -> Nest:
    """Every `step`-th element of each row."""
    strides = _dense_strides(element, [*shape[:-1], shape[-1] * step])
    strides[-1] = element * step
    return Nest(element, 0, tuple(shape), tuple(strides))


def _box(element: int, shape: list[int], starts: list[int], counts: list[int]) -> DrawnSide:
    strides = _dense_strides(element, shape)
    offset = sum(a * b for a, b in zip(starts, strides, strict=True))
    return side_of([Nest(element, offset, tuple(counts), tuple(strides))], element * math.prod(shape))


def _places(rng: Random, count: int, kind: str) -> np.ndarray[tuple[int], np.dtype[np.int32]]:
    """`count` of four times as many, none twice."""
    places = rng.sample(range(4 * count), count)
    return np.array(sorted(places) if kind == "sorted" else places, np.int32)
