"""What a new profile keeps of the one that was there: classes of peers, as profiles have them, of both."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import log
from typing import Any

from lacuna._core import same_class, speed_factor

Class = Mapping[str, Any]
SeenPair = tuple[tuple[float, ...], bool]
"""The numbers of a measured pair, and whether it was cold."""

MOST_SEEN = 1000
"""Pairs of a class that a profile keeps, the newest: more make a choice slower and say little more."""
FAR_MORE = 2
"""A path's fit to more than so many times as many rows knows the same peers better than a newer one."""
_BINDING = ("bind", "bind_entry")
"""Prices that are measured by themselves, whatever else is fitted to how many rows."""


def refined(new: Sequence[Class], old: Sequence[Class]) -> list[dict[str, Any]]:
    """The new classes, each with what the old one of the same peers has; then old ones that match none. Most rows
    first, since the first one is taken where the class is not known."""
    matched = _matched(new, old)
    alone = [{**c, **_seen([c], c["message_us"])} for c in new]
    classes = [_merged(c, old[matched[i]]) if i in matched else alone[i] for i, c in enumerate(new)]
    classes += [dict(c) for j, c in enumerate(old) if j not in matched.values()]
    return sorted(classes, key=lambda c: -rows_of(c))


def rows_of(one: Class) -> int:
    """To which its prices were fitted, over all paths."""
    return sum(int(path["rows"]) for path in one["paths"].values())


def _matched(new: Sequence[Class], old: Sequence[Class]) -> dict[int, int]:
    """Of new classes by index the old one of the same peers: the nearest by what a message takes, each at most once."""
    near = sorted(
        (_apart(a["message_us"], b["message_us"]), i, j)
        for i, a in enumerate(new)
        for j, b in enumerate(old)
        if same_class(a["message_us"], b["message_us"])
    )
    found: dict[int, int] = {}
    for _, i, j in near:
        if i not in found and j not in found.values():
            found[i] = j
    return found


def _apart(one: float, two: float) -> float:
    return abs(log(one / two)) if one > 0 and two > 0 else 0.0


def _merged(new: Class, old: Class) -> dict[str, Any]:
    paths = {}
    kept = 0
    for name in {**new["paths"], **old["paths"]}:
        mine, theirs = new["paths"].get(name), old["paths"].get(name)
        if mine is None:
            paths[name] = theirs
        elif theirs is None or theirs["rows"] <= FAR_MORE * mine["rows"]:
            paths[name] = mine
        else:
            bindings = {price: mine["prices"][price] for price in _BINDING}
            paths[name] = {**theirs, "prices": {**theirs["prices"], **bindings}}
            kept += theirs["rows"]
    message_us = (old if 2 * kept > sum(path["rows"] for path in paths.values()) else new)["message_us"]
    return {"message_us": message_us, "paths": paths, **_seen((new, old), message_us)}


def _seen(classes: Iterable[Class], message_us: float) -> dict[str, Any]:
    """The measured pairs of all of them, as they are where a message takes so long; of one that was measured twice the
    first."""
    pairs: dict[SeenPair, dict[str, float]] = {}
    for one in classes:
        factor = speed_factor(message_us, one["message_us"])
        for seen in one.get("seen", ()):
            took = {way: us * factor for way, us in zip(one["ways"], seen["us"], strict=True) if us > 0}
            times = {way: float(f"{us:.6g}") for way, us in took.items()}
            pairs.setdefault((tuple(seen["pair"]), seen["cold"]), times)
    return seen_members(dict(list(pairs.items())[:MOST_SEEN]))


def seen_members(pairs: Mapping[SeenPair, Mapping[str, float]]) -> dict[str, Any]:
    """The members of a class that measured pairs are; 0 where a way was not measured."""
    ways = sorted({way for times in pairs.values() for way in times})
    seen = []
    for (pair, cold), times in pairs.items():
        seen.append({"pair": list(pair), "cold": cold, "us": [times.get(way, 0) for way in ways]})
    return {"ways": ways, "seen": seen}
