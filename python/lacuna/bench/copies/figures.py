"""Figures of ratios, Lacuna's time over another's: of some rows, and of the families that a seed draws."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from lacuna.medians import geomean
from lacuna.worker.grouping import grouped

if TYPE_CHECKING:
    from lacuna.bench.copies.rows import Against, CopyRow

_LARGE = 8 << 20
"""Bytes from which on a row is in no second-level cache, and mostly in none."""

OPERATIONS = ("pack", "unpack", "transpack")

OTHERS = {"memcpy": "memcpy", "numpy": "NumPy", "torch": "torch", "hand": "by hand", "dense_side": "one side dense"}
"""What rows from a seed are compared with, beside the limit: by the member of a row the heading."""


def ratio_figures(name: str, found: Sequence[Against]) -> dict[str, float]:
    """The geometric mean, the largest lower end of an interval, and the largest ratio."""
    if not found:
        return {}
    return {
        f"{name}_geomean": geomean([a.ratio for a in found]),
        f"{name}_worst": max(a.low for a in found),
        f"{name}_worst_median": max(a.ratio for a in found),
    }


def family_figures(rows: Sequence[CopyRow]) -> dict[str, float]:
    """Of each family by what Lacuna is compared with: of all rows, of each operation, and of permutations by element
    and by size."""
    found: dict[str, float] = {}
    for family, own in by_family(rows).items():
        for name, some in {family: own, **divided(family, own)}.items():
            for other in OTHERS:
                found |= ratio_figures(f"{name}_vs_{other}", compared(some, other))
            if some:
                found[f"{name}_limit_share_geomean"] = limit_share(some)
    for cache in ("warm", "cold"):
        found |= ratio_figures(f"drawn_{cache}_vs_hand", compared([r for r in rows if r.cache == cache], "hand"))
    return found | ratio_figures("drawn_transpack_vs_dense_side", compared(rows, "dense_side"))


def by_family(rows: Sequence[CopyRow]) -> dict[str, list[CopyRow]]:
    return grouped(rows, lambda row: row.kind)


def divided(family: str, rows: Sequence[CopyRow]) -> dict[str, list[CopyRow]]:
    """The rows of a family by the names that their figures have."""
    found = {f"{family}_{operation}": [r for r in rows if r.operation == operation] for operation in OPERATIONS}
    if family == "permutation":
        found |= by_element(family, rows)
        found[f"{family}_4B_and_more"] = [r for r in rows if r.element >= 4]
        found[f"{family}_small"] = [r for r in rows if r.bytes < _LARGE]
        found[f"{family}_large"] = [r for r in rows if r.bytes >= _LARGE]
        found[f"{family}_large_4B_and_more"] = [r for r in rows if r.bytes >= _LARGE and r.element >= 4]
    return found


def by_element(family: str, rows: Sequence[CopyRow]) -> dict[str, list[CopyRow]]:
    own = grouped(sorted(rows, key=lambda row: row.element), lambda row: row.element)
    return {f"{family}_{element}B": some for element, some in own.items()}


def compared(rows: Sequence[CopyRow], other: str) -> list[Against]:
    """With another one, in the rows that have it."""
    return [one for r in rows if (one := getattr(r, other)) is not None]


def limit_share(rows: Sequence[CopyRow]) -> float:
    return geomean([min(1.0, 1 / r.limit.ratio) for r in rows])
