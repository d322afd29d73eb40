"""Tensors from one mesh of ranks to another: what `lacuna.reshard` takes and makes.

from lacuna.resharding import Mesh, Sharding, PartitionSpec as P

before = Sharding(Mesh((8,), ("tp",)), P(None, "tp"))
after = Sharding(Mesh((2, 2), ("dp", "tp")), P("dp", "tp"))
plan = lacuna.reshard(before, after, (4096, 8192), itemsize=2)
plan.run(ranks, mine, theirs)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lacuna.resharding.execution import Execution
from lacuna.resharding.mesh import Cyclic, Mesh, PartitionSpec, Replicate, Segments, Shard, Split
from lacuna.resharding.plan import Pair, Reshard
from lacuna.resharding.sharding import Sharding

__all__ = [
    "Cyclic",
    "Execution",
    "Mesh",
    "Pair",
    "PartitionSpec",
    "Replicate",
    "Reshard",
    "Segments",
    "Shard",
    "Sharding",
    "Split",
    "reshard",
]


def reshard(
    source_mesh: Any,
    target_mesh: Any,
    shape: Sequence[int],
    source_spec: Sequence[Any] = (),
    target_spec: Sequence[Any] = (),
    *,
    itemsize: int = 1,
) -> Execution:
    """The plan that takes a tensor from one mesh of ranks to another.

    `source_mesh` and `target_mesh` are meshes (`Mesh`, torch's DeviceMesh, JAX's Mesh), and `source_spec` and
    `target_spec` a PartitionSpec or a list of placements; or each mesh is a `Sharding`, which says both. The meshes
    number their ranks alike; they may share ranks, or none. `shape` is that of the whole tensor, in elements of
    `itemsize` bytes.

    Raises ValueError (a sharding that does not fit the shape or its mesh) and TypeError, as `Sharding` does.
    """
    before = source_mesh if isinstance(source_mesh, Sharding) else Sharding(source_mesh, source_spec)
    after = target_mesh if isinstance(target_mesh, Sharding) else Sharding(target_mesh, target_spec)
    return Execution(before, after, shape, itemsize)
