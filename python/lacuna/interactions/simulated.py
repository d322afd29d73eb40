"""The conditions that a modelled NIC has: each way's messages in virtual time, where nothing is noise."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from lacuna import Layout
from lacuna._core import simulate_exchange
from lacuna.interactions.conditions import AUTOMATIC, CONDITIONS, FORCED, Condition, Subject
from lacuna.lines import WrongBytesError

_WINDOW = 8
_WRONG = "other bytes than"
"""What simulate_exchange() says of what it has compared."""
_BEFORE = 160
"""Exchanges: until memory that is used again is registered, where that is Lacuna's choice."""


def conditions() -> list[Condition]:
    return [c for c in CONDITIONS if not (c.cold or c.huge or c.busy or c.apart) and c.name != "again"]


def messages(c: Condition) -> list[tuple[int, int]]:
    """Rank 0 has all the others as peers."""
    out = [(0, peer) for peer in range(1, c.ranks)]
    return out + [(peer, rank) for rank, peer in out] if c.both_ways else out


def times(
    platform: Path, subject: Subject, of: Sequence[Condition]
) -> tuple[dict[tuple[str, str], list[float]], list[str]]:
    """Microseconds by condition and way, every byte compared; and why a way cannot. Raises WrongBytesError."""
    layout = Layout.hvector(subject.count, 1, 3 * subject.block, Layout.bytes(subject.block))
    found: dict[tuple[str, str], list[float]] = {}
    refused = []
    for way in (AUTOMATIC, *(w for w in FORCED if w.method)):
        before = _BEFORE if way == AUTOMATIC else 1
        try:
            for c in of:
                us, _, _ = simulate_exchange(
                    str(platform), c.ranks, messages(c), layout, way.method, "at_once", _WINDOW, True, before
                )
                found[c.name, way.name] = [us]
        except (ValueError, RuntimeError) as e:
            if _WRONG in str(e):
                raise WrongBytesError(f"{subject.name}: {way.name}: {e}") from e
            refused.append(f"{subject.name}: {way.name}: {e}")
    return found, refused
