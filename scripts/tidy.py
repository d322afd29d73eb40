#!/usr/bin/env python3
"""Runs clang-tidy over what the library is compiled from, those units that changed since they last passed.

    scripts/tidy.py [--jobs N] [--build DIR] [FILE...]      FILE: only the units that these sources are part of

A unit is what the compiler takes at a time: a source, or those of a layer together (LACUNA_UNITY). It passes once for
one content of all files of this repository that its object depends on, of .clang-tidy, of its compile command and of
the tool. The build in DIR has to be up to date: the compiler has written down there what each object depends on.

Kernels are checked for one instruction set, which has most of them.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import platform
import shlex
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TARGETS = ("lacuna_objects.dir", "lacuna_mpi_", "lacuna_nixl.dir", "lacuna_tools.dir", "lacuna-worker.dir")
IMAGES = "kernel_images.cpp"  # megabytes of generated numbers
NOISE = ("warnings generated.", "warning generated.", "Suppressed ", "Use -header-filter", "warnings treated as")


@dataclass(frozen=True)
class Unit:
    command: tuple[str, ...]
    file: Path
    name: str
    """Of its object, which says which library and which layer."""
    files: tuple[Path, ...]
    """Of this repository, that the object depends on."""

    def fingerprint(self, common: bytes) -> str:
        digest = hashlib.sha256(common + shlex.join(self.command).encode())
        for file in self.files:
            digest.update(file.read_bytes())
        return digest.hexdigest()

    def sources(self) -> list[Path]:
        return [file for file in self.files if file.suffix == ".cpp"]


def dependencies(build: Path) -> dict[str, tuple[Path, ...]]:
    """Of each object, the files of this repository that it depends on; generated ones but for lists of sources."""
    said = subprocess.run(["ninja", "-C", str(build), "-t", "deps"], capture_output=True, text=True, check=True).stdout
    found: dict[str, tuple[Path, ...]] = {}
    for block in said.split("\n\n"):
        head, *lines = block.splitlines() or [""]
        paths = sorted({(build / line.strip()).resolve() for line in lines})
        wanted = [p for p in paths if p.is_relative_to(ROOT) and p.suffix in {".cpp", ".hpp", ".h", ".cxx"}]
        found[head.split(":")[0]] = tuple(p for p in wanted if not p.is_relative_to(ROOT / ".venv"))
    return found


def units(build: Path) -> list[Unit]:
    """What is compiled for the libraries, the tools and the worker. Exits where an object has not been built."""
    known = dependencies(build)
    found = []
    for entry in json.loads((build / "compile_commands.json").read_text()):
        command = tuple(shlex.split(entry["command"]))
        name = command[command.index("-o") + 1]
        if not name.startswith(tuple(f"CMakeFiles/{target}" for target in TARGETS)):
            continue
        if name.endswith(".gch") or "cmake_pch" in Path(entry["file"]).name:
            continue
        if Path(entry["file"]).name == IMAGES:
            continue
        if name not in known:
            sys.exit(f"{name} has not been built; make build")
        short = name.removeprefix("CMakeFiles/").replace(".dir/", ": ", 1).removesuffix(".o")
        found.append(Unit(command, Path(entry["file"]), short, known[name]))
    return found


def tidy(unit: Unit, build: Path) -> tuple[bool, str, float]:
    start = time.monotonic()
    # The compile commands are GCC's: Clang does not know all of its warnings, nor its precompiled headers.
    line = ["clang-tidy", "--quiet", str(unit.file)]
    more = ["-Wno-unknown-warning-option", "-Wno-ignored-gch", "-Wno-unused-command-line-argument"]  # GCC's own
    more.append("-UFMT_HEADER_ONLY")  # within fmt are throws for formats that the compiler has checked
    if unit.file.suffix == ".cxx":
        line.append("--checks=-bugprone-suspicious-include")  # scripts/ladder.py lets no source include another
    elif "foreach_target.h" in unit.file.read_text():
        more.append("-DHWY_COMPILE_ONLY_STATIC")
        if platform.machine() == "x86_64":
            more.append("-march=icelake-server")
    result = subprocess.run(
        [*line, "--", *unit.command[1:], *more], capture_output=True, text=True, check=False, cwd=build
    )
    stderr = [said for said in result.stderr.splitlines() if not any(n in said for n in NOISE)]
    return result.returncode == 0, result.stdout + "\n".join(stderr), time.monotonic() - start


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--build", type=Path, default=ROOT / "build" / "release")
    parser.add_argument("files", nargs="*", type=Path, help="only what these are part of (default: all)")
    options = parser.parse_args()

    wanted = {path.resolve() for path in options.files}
    all_units = [unit for unit in units(options.build) if not wanted or wanted & set(unit.sources())]
    version = subprocess.run(["clang-tidy", "--version"], capture_output=True, check=True).stdout
    common = version + Path(__file__).read_bytes() + (ROOT / ".clang-tidy").read_bytes()

    cache = ROOT / "build" / "tidy"
    cache.mkdir(parents=True, exist_ok=True)
    marks = {unit: cache / unit.fingerprint(common) for unit in all_units}
    todo = sorted((unit for unit in all_units if not marks[unit].exists()), key=lambda unit: -len(unit.files))
    print(f"    {len(all_units)} units, {len(todo)} to check")

    failed: list[tuple[str, str]] = []
    with ThreadPoolExecutor(options.jobs) as pool:
        futures = {pool.submit(tidy, unit, options.build): unit for unit in todo}
        for done, future in enumerate(as_completed(futures), 1):
            unit = futures[future]
            passed, output, seconds = future.result()
            print(f"    [{done}/{len(todo)}] {unit.name} {'ok' if passed else 'FAILED'} ({seconds:.0f} s)", flush=True)
            if passed:
                marks[unit].touch()
            else:
                failed.append((unit.name, output.replace(f"{ROOT}/", "")))
                print(failed[-1][1], flush=True)
    for mark in cache.iterdir():  # forget what no unit has any more, unless only some were asked for
        if not wanted and mark not in marks.values():
            mark.unlink()
    for name, output in failed:  # again: where only the end of a log is kept, it says why
        print(f"    {name} FAILED\n{output}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
