"""Meshes of ranks, and how a tensor is spread over one: the words of JAX (`PartitionSpec`) and of torch (`Shard`,
`Replicate`), and three more for what serving needs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import Any

from lacuna.resharding import spans
from lacuna.resharding.spans import Span

Sizes = Mapping[str, int]
Place = Mapping[str, int]
"""Of each axis: how many there are, which one."""


class Mesh:
    """Ranks in an array with named axes.

    Mesh((2, 4), ("data", "model"))                         ranks 0 to 7, the last axis the fastest
    Mesh((2, 2), ("data", "model"), ranks=[8, 9, 12, 13])   these ranks
    Mesh.of(mesh)                                           a mesh of torch (DeviceMesh) or JAX
    """

    def __init__(self, shape: Sequence[int], axes: Sequence[str], ranks: Sequence[int] | None = None) -> None:
        """Raises ValueError: axes that are not as many as the shape's, or of one name; ranks that are not as many as
        the mesh has places, or that come twice."""
        self.shape, self.axes = tuple(int(n) for n in shape), tuple(axes)
        places = prod(self.shape)
        self.ranks = tuple(range(places)) if ranks is None else tuple(int(rank) for rank in ranks)
        if len(self.axes) != len(self.shape) or len(set(self.axes)) != len(self.axes):
            raise ValueError(f"a mesh of shape {self.shape} needs as many axes of different names; got {self.axes}")
        if min(self.shape, default=1) < 1:
            raise ValueError(f"a mesh of shape {self.shape}: each axis has at least one place")
        if len(self.ranks) != places or len(set(self.ranks)) != places or min(self.ranks) < 0:
            raise ValueError(f"a mesh of shape {self.shape} has {places} places; the ranks {self.ranks} do not fill it")
        self._place = dict(zip(self.ranks, product(*(range(n) for n in self.shape)), strict=True))

    @staticmethod
    def of(mesh: Any) -> Mesh:
        """The same mesh in torch's words (`DeviceMesh`, whose ranks it keeps; axes without names are "0", "1", ...) or
        JAX's (`Mesh`, whose devices' numbers are the ranks)."""
        if isinstance(mesh, Mesh):
            return mesh
        if hasattr(mesh, "mesh_dim_names"):
            ranks = mesh.mesh
            names = mesh.mesh_dim_names or [str(i) for i in range(ranks.ndim)]
            return Mesh(tuple(ranks.shape), tuple(names), ranks.flatten().tolist())
        if hasattr(mesh, "devices") and hasattr(mesh, "axis_names"):
            return Mesh(mesh.devices.shape, mesh.axis_names, [device.id for device in mesh.devices.flat])
        raise TypeError(f"{type(mesh).__name__} is no mesh: lacuna's Mesh, torch's DeviceMesh or JAX's Mesh is needed")

    @property
    def sizes(self) -> dict[str, int]:
        """Of each axis."""
        return dict(zip(self.axes, self.shape, strict=True))

    def place(self, rank: int) -> dict[str, int]:
        """Where a rank is. Raises ValueError if it is not in the mesh."""
        if rank not in self._place:
            raise ValueError(f"rank {rank} is not in the mesh, which has {_few(self.ranks)}")
        return dict(zip(self.axes, self._place[rank], strict=True))

    def split(self, axis: str, **parts: int) -> Mesh:
        """One axis as several, the last one the fastest: mesh.split("tp", kv=4, copy=2) of a "tp" of 8. For heads that
        are fewer than ranks: they are sharded over "kv" alone. Raises ValueError if the sizes do not multiply up."""
        if axis not in self.axes:
            raise ValueError(f"the mesh has no axis {axis!r}; it has {self.axes}")
        at = self.axes.index(axis)
        if prod(parts.values()) != self.shape[at]:
            raise ValueError(f"axis {axis!r} has {self.shape[at]} places; {parts} has {prod(parts.values())}")
        shape = (*self.shape[:at], *parts.values(), *self.shape[at + 1 :])
        return Mesh(shape, (*self.axes[:at], *parts, *self.axes[at + 1 :]), self.ranks)

    def __repr__(self) -> str:
        return f"Mesh({self.shape}, {self.axes}, ranks={_few(self.ranks)})"


def _few(ranks: Sequence[int]) -> str:
    return str(list(ranks)) if len(ranks) <= 16 else f"{list(ranks[:8])} and {len(ranks) - 8} more"


class PartitionSpec(tuple[Any, ...]):
    """Of each dimension what it is spread over: an axis, several ("x", "y"), None, a `Split`, `Cyclic` or `Segments`.
    Dimensions that are left out are whole on each rank. Axes that are not named hold replicas."""

    def __new__(cls, *entries: Any) -> PartitionSpec:
        return super().__new__(cls, entries)

    def __repr__(self) -> str:
        return f"P({', '.join(map(repr, self))})"


@dataclass(frozen=True)
class Shard:
    """torch's placement: this axis of the mesh shards dimension `dim`. Uneven sizes are cut as torch.chunk does."""

    dim: int

    def is_shard(self) -> bool:
        return True


@dataclass(frozen=True)
class Replicate:
    """torch's placement: each rank along this axis of the mesh has the same."""

    def is_shard(self) -> bool:
        return False


def _axes(axes: str | Sequence[str]) -> tuple[str, ...]:
    return (axes,) if isinstance(axes, str) else tuple(axes)


@dataclass(frozen=True)
class Split:
    """A dimension in consecutive parts, one for each place of `axes`, the last axis the fastest.

    Without `sizes` the first axis cuts into parts of ceil(n / places) elements, of which the last ones are shorter or
    empty, and each further axis cuts the part: what torch does. `sizes`: of each part, in elements."""

    axes: str | Sequence[str]
    sizes: tuple[int, ...] | None = None

    def names(self) -> tuple[str, ...]:
        return _axes(self.axes)

    def leaves(self, n: int) -> list[tuple[int, Leaf]]:
        return [(n, self)]

    def spans(self, n: int, place: Place, sizes: Sizes) -> Iterator[Span]:
        if self.sizes is not None:
            number = 0
            for axis in self.names():
                number = number * sizes[axis] + place[axis]
            places = prod(sizes[axis] for axis in self.names())
            if len(self.sizes) != places or sum(self.sizes) != n or min(self.sizes, default=0) < 0:
                raise ValueError(f"{self} does not cut {n} elements for the mesh's {dict(sizes)}")
            low, size = sum(self.sizes[:number]), self.sizes[number]
        else:
            low, size = 0, n
            for axis in self.names():
                part = -(-size // sizes[axis])
                first = min(size, place[axis] * part)
                low, size = low + first, min(part, size - first)
        if size:
            yield Span(low, size, 0)


@dataclass(frozen=True)
class Cyclic:
    """Blocks of `block` elements, dealt out in turn to the places of `axes`: tokens of decode-context parallelism
    (block 1), interleaved heads. The last block may be short."""

    axes: str | Sequence[str]
    block: int = 1

    def __post_init__(self) -> None:
        if self.block < 1:
            raise ValueError(f"a block of {self.block} elements; at least 1 is needed")

    def names(self) -> tuple[str, ...]:
        return _axes(self.axes)

    def leaves(self, n: int) -> list[tuple[int, Leaf]]:
        return [(n, self)]

    def spans(self, n: int, place: Place, sizes: Sizes) -> Iterator[Span]:
        number, places = 0, 1
        for axis in self.names():
            number, places = number * sizes[axis] + place[axis], places * sizes[axis]
        yield from spans.cyclic(n, self.block, places, number)


class Segments:
    """A dimension that is several ones behind each other, each spread in its own way, as a fused QKV projection:

        Segments((q, "tp"), (k, "kv"), (v, "kv"))

    (elements, what it is spread over). A rank has its part of the first, then that of the second, and so on."""

    def __init__(self, *segments: tuple[int, Any]) -> None:
        self.segments = tuple((int(size), entry_of(entry)) for size, entry in segments)
        if any(size < 0 for size, _ in self.segments):
            raise ValueError(f"{self} has a segment of fewer than 0 elements")

    def names(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(name for _, entry in self.segments for name in entry.names()))

    def leaves(self, n: int) -> list[tuple[int, Leaf]]:
        """The segments, those within segments opened. Raises ValueError if they are not of `n` elements together."""
        if sum(size for size, _ in self.segments) != n:
            raise ValueError(f"{self} has {sum(size for size, _ in self.segments)} elements; the dimension has {n}")
        return [leaf for size, entry in self.segments for leaf in entry.leaves(size)]

    def __repr__(self) -> str:
        return f"Segments({', '.join(map(repr, self.segments))})"


Leaf = Split | Cyclic
Entry = Split | Cyclic | Segments


def entry_of(given: Any) -> Entry:
    """What a dimension is spread over, of what a PartitionSpec says."""
    if isinstance(given, (Split, Cyclic, Segments)):
        return given
    if given is None:
        return Split(())
    if isinstance(given, str) or (isinstance(given, (tuple, list)) and all(isinstance(name, str) for name in given)):
        return Split(tuple(given) if not isinstance(given, str) else given)
    raise TypeError(f"{given!r} is none of: None, an axis, a tuple of axes, Split, Cyclic, Segments")
