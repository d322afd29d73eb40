"""Simple rules, as papers and libraries have them: what the choice is compared with.

A rule names methods, for the side of a pair with more blocks. It knows neither paths nor notifications: whichever suit
its methods best are taken, so that each rule is shown at its best.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from lacuna.guide.pairs import Pair
from lacuna.medians import geomean
from lacuna.split_half import fastest, regret
from lacuna.units import bytes_text
from lacuna.worker.records import Way

KIB = 1 << 10

_SMALL_BLOCK = 128
_FEW_BLOCKS = 60
"""Table 3's borders: 128 B, and the middle of its 60 ± 30 blocks."""

_FROM_BLOCK = (256, 1 * KIB, 4 * KIB, 16 * KIB, 64 * KIB)
"""Zero-copy from so many bytes of a block on average. 16 KiB is MPICH's MPIR_CVAR_CH4_IOV_DENSITY_MIN."""

_FROM_PAYLOAD = 16 * KIB
"""Zero-copy from this payload, whatever the blocks: where UCX's eager protocols on mlx5 begin (ucx_info in openucx/ucx
issue 11097)."""

Halves = Mapping[Way, tuple[float, float]]
"""What each way took, by either half of its visits."""


@dataclass(frozen=True)
class Rule:
    name: str
    methods: Callable[[Pair], tuple[str, ...]]


@dataclass(frozen=True)
class Ruled:
    """What a rule came to for one pair."""

    way: Way
    regret: float
    """How many times as long as the best it takes, by the halves that did not pick."""


def table3_of(block_bytes: float, blocks: int) -> str:
    """The method that Table 3 of the documents names."""
    if blocks < _FEW_BLOCKS:
        return "umr_write"
    return "pack" if block_bytes < _SMALL_BLOCK else "sgrs"


def _blocks(pair: Pair) -> int:
    return max(1, pair.send.run_count, pair.receive.run_count)


def _zero_copy(pair: Pair) -> tuple[str, ...]:
    """Methods by which no CPU copies, but where the NIC is one."""
    lists = ("sgrs", "linked_write", "multi_write", "umr_send", "umr_write", "umr_read", "umr_chunked")
    one_sided = (("gather_write", pair.receive), ("scatter_read", pair.send))
    return (*lists, *(method for method, far_end in one_sided if far_end.run_count == 1))


def _from_block(least: int) -> Rule:
    return Rule(
        f"zero-copy from {bytes_text(least)} blocks",
        lambda pair: _zero_copy(pair) if pair.send.size >= least * _blocks(pair) else ("pack",),
    )


TABLE_3 = Rule("Table 3", lambda pair: (table3_of(pair.send.size / _blocks(pair), _blocks(pair)),))
RULES = (
    TABLE_3,
    Rule("always pack", lambda _: ("pack",)),
    Rule("always pack_pipelined", lambda _: ("pack_pipelined",)),
    *(_from_block(least) for least in _FROM_BLOCK),
    Rule(
        f"zero-copy from {bytes_text(_FROM_PAYLOAD)} payload",
        lambda pair: _zero_copy(pair) if pair.send.size >= _FROM_PAYLOAD else ("pack",),
    ),
)


def ruled(pair: Pair, halves: Halves) -> dict[str, Ruled]:
    """What each rule comes to; a rule is missing where none of its methods was measured."""
    best = fastest(halves, halves)
    found = {}
    for rule in RULES:
        methods = rule.methods(pair)
        own = [way for way in halves if way[0] in methods]
        if own:
            picked = fastest(own, halves)
            found[rule.name] = Ruled(picked[0], regret(picked, best, halves))
    return found


def regret_figures(regrets: Sequence[float]) -> dict[str, float]:
    """Nothing of nothing."""
    if not regrets:
        return {}
    return {
        "regret_geomean": round(geomean(regrets), 5),
        "regret_p95": round(float(np.percentile(regrets, 95)), 4),
        "regret_max": round(max(regrets), 4),
    }
