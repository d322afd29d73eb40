#!/usr/bin/env python3
"""Prints profiles of `lacuna guide --mpi` as lines of C++: the times that hold where nothing was measured.

    scripts/usual_mpi.py ~/.config/lacuna/profiles/mpi-open_mpi.json > lacuna/guide/usual_mpi/open_mpi.inc
    scripts/usual_mpi.py first.json second.json third.json > lacuna/guide/usual_mpi/open_mpi.inc

Several profiles are of one MPI on one machine: each time is the shortest of theirs, since what else a machine does only
makes times longer. lacuna/guide/usual_mpi.cpp includes the file, and says what sheet() is.
"""

from __future__ import annotations

import argparse
import json
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

SCHEMA = "lacuna-mpi-ways/2"
WIDTH = 120


def lines_of(profiles: list[dict[str, Any]]) -> Iterator[str]:
    """Raises KeyError where a member is missing."""
    profile = shortest(profiles)
    origin = f"{profile['library_version']}; {profile['machine']}; {profile['created']}; Lacuna"
    yield from wrapped(f"Nanoseconds, by bytes, then runs: {origin} {profile['lacuna_version']}.", "// ", "// ")
    runs = f" Each is the shortest of {len(profiles)} runs." if len(profiles) > 1 else ""
    yield from wrapped(f"`lacuna guide --mpi` measured them, and scripts/usual_mpi.py wrote them.{runs}", "// ", "// ")
    for use, forms in profile["ns"].items():
        for form, ways in forms.items():
            listed = "true" if form == "listed" else "false"
            for way, times in ways.items():
                numbers = ", ".join(map(rounded, times))
                yield from wrapped(f"sheet(MpiUse::{use}, {listed}, MpiWay::{way}, {{{numbers}}});", "", "      ")


def shortest(profiles: list[dict[str, Any]]) -> dict[str, Any]:
    """Of each cell the shortest time. Raises ValueError where two profiles are of different MPIs or machines."""
    first = profiles[0]
    for other in profiles[1:]:
        for member in ("library_version", "machine", "lacuna_version"):
            if other[member] != first[member]:
                raise ValueError(f"its {member} is {other[member]!r}, not {first[member]!r}")
    ns = {
        use: {
            form: {
                way: [min(each) for each in zip(*(p["ns"][use][form][way] for p in profiles), strict=True)]
                for way in ways
            }
            for form, ways in forms.items()
        }
        for use, forms in first["ns"].items()
    }
    return {**first, "ns": ns}


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
    profiles = []
    try:
        for file in parser.parse_args().profile:
            profile = json.loads(file.read_text(encoding="utf-8"))
            if profile["schema"] != SCHEMA:
                raise ValueError(f"its schema is {profile['schema']!r}, not {SCHEMA!r}")
            profiles.append(profile)
        print(*lines_of(profiles), sep="\n")
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as e:
        print(f"{file} is no profile of an MPI's ways: {e}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
