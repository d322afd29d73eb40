#!/usr/bin/env python3
"""Compiles the example applications with MPIs' own compiler wrappers.

    scripts/examples.py FOLDER [[NAME=]MPICC]...

Makes FOLDER/EXAMPLE-NAME for each example and MPI; without any, for the mpicc on the PATH. An example that needs what
is not installed is left out, which is said. Exits with 1 where one does not compile.
"""

from __future__ import annotations

import sys
from pathlib import Path

from lacuna.mpi import applications, installations
from lacuna.mpi.applications import ApplicationError, MissingError
from lacuna.mpi.installations import MpiInstallationError


def main() -> int:
    if len(sys.argv) < 2 or sys.argv[1].startswith("-"):
        print(__doc__)
        return 2
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    try:
        found = installations.find(sys.argv[2:])
    except MpiInstallationError as e:
        print(f"lacuna: {e}", file=sys.stderr)
        return 2
    if not found:
        print("==> no example: no MPI was found; make peers installs four")
    failed = False
    for peer in found:
        for name in applications.NAMES:
            try:
                print(f"==> {applications.build(peer, name, folder).path}", flush=True)
            except MissingError as e:
                print(f"==> not {name} for {peer.name}: {e}", flush=True)
            except (ApplicationError, MpiInstallationError) as e:
                print(f"lacuna: {e}", file=sys.stderr, flush=True)
                failed = True
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
