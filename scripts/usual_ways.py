#!/usr/bin/env python3
"""Prints the times of ways in profiles as lines of C++: those that hold where nothing was measured.

    scripts/usual_ways.py ~/.config/lacuna/profiles/HOST/mpi-open_mpi.json > lacuna/guide/usual_mpi/CPU/open_mpi.inc
    scripts/usual_ways.py first.json second.json third.json > lacuna/guide/usual_mpi/CPU/open_mpi.inc
    scripts/usual_ways.py --median first.json second.json third.json > lacuna/guide/usual_mpi/CPU_distant/open_mpi.inc
    scripts/usual_ways.py ~/.config/lacuna/profiles/HOST/local.json > lacuna/guide/usual_messages/epyc.inc

Several profiles are of one MPI, or all of messages, on one machine: each time is the shortest of theirs, since what
else a machine does only makes times longer. With --median each is the median: between distant CPUs, of which a machine
makes near ones now and then. lacuna/guide/usual_mpi.cpp and usual_messages.cpp include the files, and say what sheet()
is.
"""

from __future__ import annotations

import argparse
import json
import sys
import textwrap
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from statistics import median_low
from typing import Any

MPI_SCHEMA = "lacuna-mpi-ways/4"
SCHEMA = 3
WIDTH = 120


def lines_of(profiles: list[dict[str, Any]], median: bool) -> Iterator[str]:
    """`median`: of the times, not the shortest. Raises KeyError where a member is missing, ValueError where two
    profiles do not belong together."""
    first = profiles[0]
    for other in profiles[1:]:
        for member in ("schema", "library_version", "distance", "machine", "lacuna_version"):
            if other.get(member) != first.get(member):
                raise ValueError(f"its {member} is {other.get(member)!r}, not {first.get(member)!r}")
    of_mpi = first["schema"] == MPI_SCHEMA
    all_ns = [profile["ns"] if of_mpi else profile["messages"]["ns"] for profile in profiles]
    ns = combined(median_low if median else min, all_ns)
    origin = f"{first['machine']}; {first['created']}; Lacuna {first['lacuna_version']}."
    library = f"{first['library_version']}; " if of_mpi else ""
    cpus = f", between {first['distance']} CPUs" if "distance" in first else ""
    yield from wrapped(f"Nanoseconds, by bytes, then runs{cpus}: {library}{origin}", "// ", "// ")
    which = "median" if median else "shortest"
    runs = f" Each is the {which} of {len(profiles)} runs." if len(profiles) > 1 else ""
    command = "guide --mpi" if of_mpi else "guide"
    yield from wrapped(f"`lacuna {command}` measured them, and scripts/usual_ways.py wrote them.{runs}", "// ", "// ")
    if not of_mpi:
        yield from _sheets("", ns, "MessageWay")
        return
    for use, forms in ns.items():
        yield from _sheets(f"MpiUse::{use}, ", forms, "MpiWay")


def combined(choose: Callable[[Sequence[float]], float], all_ns: list[Any]) -> Any:
    """Of each cell one of the times; the cells are lists, in objects of objects."""
    first = all_ns[0]
    if isinstance(first, dict):
        return {name: combined(choose, [ns[name] for ns in all_ns]) for name in first}
    return [choose(each) for each in zip(*all_ns, strict=True)]


def _sheets(use: str, forms: dict[str, dict[str, list[float]]], kind: str) -> Iterator[str]:
    for form, ways in forms.items():
        listed = "true" if form == "listed" else "false"
        for way, times in ways.items():
            numbers = ", ".join(map(rounded, times))
            yield from wrapped(f"sheet({use}{listed}, {kind}::{way}, {{{numbers}}});", "", "      ")


def rounded(ns: float) -> str:
    """To three digits, and never as 1.2e+03."""
    value = float(f"{ns:.3g}")
    return str(int(value)) if value.is_integer() else f"{value:g}"


def wrapped(text: str, first: str, later: str) -> list[str]:
    return textwrap.wrap(text, WIDTH, initial_indent=first, subsequent_indent=later, break_on_hyphens=False)


def main() -> int:
    assert __doc__
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("profile", type=Path, nargs="+")
    parser.add_argument("--median", action="store_true", help="the median of the times, not the shortest")
    arguments = parser.parse_args()
    profiles = []
    try:
        for file in arguments.profile:
            profile = json.loads(file.read_text(encoding="utf-8"))
            if profile["schema"] not in (MPI_SCHEMA, SCHEMA):
                raise ValueError(f"its schema is {profile['schema']!r}, not {MPI_SCHEMA!r} or {SCHEMA}")
            profiles.append(profile)
        print(*lines_of(profiles, arguments.median), sep="\n")
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as e:
        print(f"{file} is no profile of ways: {e}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
