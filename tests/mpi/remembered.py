"""What programs print without the library, by MPI and program: a plain run that has been seen need not be seen again.

plain_outcomes.json has digests. An entry holds for one content of the MPI's library and of the program; where it does
not, or where a run prints something else, the program is run without the library again, and that is what counts.
`python tests/mpi/run.py --remember` writes the file anew.
"""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
from functools import cache
from pathlib import Path

HERE = Path(__file__).resolve().parent
FILE = HERE / "plain_outcomes.json"
Entry = dict[str, str]


@cache
def entries() -> dict[str, Entry]:
    found: dict[str, Entry] = json.loads(FILE.read_text()) if FILE.exists() else {}
    return found


def digest(*parts: bytes) -> str:
    together = hashlib.sha256()
    for part in parts:
        together.update(hashlib.sha256(part).digest())
    return together.hexdigest()[:16]


@cache
def _of_library(path: Path) -> str:
    return digest(path.read_bytes())


def _mpi(built: Path) -> str:
    """Of the MPI's library that this program loads. Nothing where there is none to be seen."""
    said = subprocess.run(["ldd", str(built)], capture_output=True, text=True, check=False).stdout
    found = re.search(r"^\s*libmpi\S* => (/\S+)", said, re.MULTILINE)
    return _of_library(Path(found[1]).resolve()) if found else ""


def _program(source: Path, argument: str, ranks: int) -> str:
    shared = [*sorted(HERE.glob("*.h")), *sorted(HERE.glob("fortran/*.inc"))]
    return digest(*(file.read_bytes() for file in (source, *shared)), argument.encode(), str(ranks).encode())


def entry(built: Path, source: Path, argument: str, ranks: int, out: str) -> Entry:
    return {"mpi": _mpi(built), "program": _program(source, argument, ranks), "out": digest(out.encode())}


def agrees(name: str, seen: Entry) -> bool | None:
    """Whether a run printed what the MPI by itself prints; None where that is not known."""
    known = entries().get(name)
    if known is None or not seen["mpi"] or any(known[of] != seen[of] for of in ("mpi", "program")):
        return None
    return known["out"] == seen["out"]


def remember(new: dict[str, Entry]) -> None:
    """Adds these, or takes their place."""
    together = dict(sorted((entries() | new).items()))
    lines = ",\n".join(f" {json.dumps(name)}: {json.dumps(value)}" for name, value in together.items())
    FILE.write_text(f"{{\n{lines}\n}}\n")
    entries.cache_clear()
