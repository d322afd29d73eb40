#!/usr/bin/env python3
"""Prints a profile of `lacuna guide --mpi` as lines of C++: the times that hold where nothing was measured.

    scripts/usual_mpi.py ~/.config/lacuna/profiles/mpi-open_mpi.json > lacuna/guide/usual_mpi/open_mpi.inc

lacuna/guide/mpi_ways.cpp includes the file, and says what sheet() is.
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


def lines_of(profile: dict[str, Any]) -> Iterator[str]:
    """Raises KeyError where a member is missing."""
    origin = f"{profile['library_version']}; {profile['machine']}; {profile['created']}; Lacuna"
    yield from wrapped(f"Nanoseconds, by bytes, then runs: {origin} {profile['lacuna_version']}.", "// ", "// ")
    yield from wrapped("`lacuna guide --mpi` measured them, and scripts/usual_mpi.py wrote them.", "// ", "// ")
    for use, forms in profile["ns"].items():
        for form, ways in forms.items():
            listed = "true" if form == "listed" else "false"
            for way, times in ways.items():
                numbers = ", ".join(map(rounded, times))
                yield from wrapped(f"sheet(MpiUse::{use}, {listed}, MpiWay::{way}, {{{numbers}}});", "", "      ")


def rounded(ns: float) -> str:
    """To three digits, and never as 1.2e+03."""
    value = float(f"{ns:.3g}")
    return str(int(value)) if value.is_integer() else f"{value:g}"


def wrapped(text: str, first: str, later: str) -> list[str]:
    return textwrap.wrap(text, WIDTH, initial_indent=first, subsequent_indent=later, break_on_hyphens=False)


def main() -> int:
    assert __doc__
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("profile", type=Path)
    file = parser.parse_args().profile
    try:
        profile = json.loads(file.read_text(encoding="utf-8"))
        if profile["schema"] != SCHEMA:
            raise ValueError(f"its schema is {profile['schema']!r}, not {SCHEMA!r}")
        print(*lines_of(profile), sep="\n")
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as e:
        print(f"{file} is no profile of an MPI's ways: {e}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
