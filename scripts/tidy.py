#!/usr/bin/env python3
"""Runs clang-tidy over the library's sources, those that changed since they last passed.

    scripts/tidy.py [--jobs N] [--build DIR] [FILE...]

A source passes once for one content of itself, of all headers, of .clang-tidy, of its compile commands and of the tool.

What is compiled several times is checked once where that says as much: kernels for one instruction set, which has
most of them, and what is compiled for both ABIs of MPI for one of them, unless it asks which it is.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import platform
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).resolve().parent.parent


def fingerprint(common: bytes, file: str, commands: list[dict[str, str]]) -> str:
    digest = hashlib.sha256(common)
    for command in commands:
        digest.update(command["command"].encode())
    digest.update(Path(file).read_bytes())
    return digest.hexdigest()


def tidy(database: Path, file: str) -> tuple[bool, str, float]:
    start = time.monotonic()
    # The compile commands are GCC's: Clang does not know all of its warnings.
    arguments = ["clang-tidy", "--quiet", "-p", str(database), "--extra-arg=-Wno-unknown-warning-option", file]
    if "foreach_target.h" in Path(file).read_text():
        arguments.append("--extra-arg=-DHWY_COMPILE_ONLY_STATIC")
        if platform.machine() == "x86_64":
            arguments.append("--extra-arg=-march=icelake-server")
    result = subprocess.run(arguments, capture_output=True, text=True, check=False)
    noise = ("warnings generated.", "warning generated.", "Suppressed ", "Use -header-filter", "warnings treated as")
    stderr = [line for line in result.stderr.splitlines() if not any(n in line for n in noise)]
    return result.returncode == 0, result.stdout + "\n".join(stderr), time.monotonic() - start


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--build", type=Path, default=ROOT / "build" / "release")
    parser.add_argument("files", nargs="*", type=Path, help="only these (default: all of lacuna/)")
    options = parser.parse_args()

    commands = json.loads((options.build / "compile_commands.json").read_text())
    wanted = {path.resolve() for path in options.files}
    sources: dict[str, list[dict[str, str]]] = {}
    for command in commands:
        file = command["file"]
        path = Path(file)
        if not path.is_relative_to(ROOT / "lacuna") or (wanted and path.resolve() not in wanted):
            continue
        if file not in sources or "LACUNA_MPI_ABI_" in path.read_text():
            sources.setdefault(file, []).append(command)
    version = subprocess.run(["clang-tidy", "--version"], capture_output=True, check=True).stdout
    headers = sorted(p for p in (ROOT / "lacuna").rglob("*") if p.suffix in {".hpp", ".h"})
    rules = [Path(__file__), ROOT / ".clang-tidy", *headers]
    common = version + b"".join(path.read_bytes() for path in rules)

    cache = ROOT / "build" / "tidy"
    cache.mkdir(parents=True, exist_ok=True)
    marks = {file: cache / fingerprint(common, file, of) for file, of in sources.items()}
    todo = [file for file in sources if not marks[file].exists()]
    print(f"    {len(sources)} sources, {len(todo)} to check")

    failed: list[tuple[Path, str]] = []
    with TemporaryDirectory() as folder, ThreadPoolExecutor(options.jobs) as pool:
        database = Path(folder)  # clang-tidy takes all that it finds there of a source
        (database / "compile_commands.json").write_text(json.dumps([c for of in sources.values() for c in of]))
        futures = {pool.submit(tidy, database, file): file for file in todo}
        for done, future in enumerate(as_completed(futures), 1):
            file = futures[future]
            passed, output, seconds = future.result()
            name = Path(file).relative_to(ROOT)
            print(f"    [{done}/{len(todo)}] {name} {'ok' if passed else 'FAILED'} ({seconds:.0f} s)", flush=True)
            if passed:
                marks[file].touch()
            else:
                failed.append((name, output.replace(f"{ROOT}/", "")))
                print(failed[-1][1], flush=True)
    for mark in cache.iterdir():  # forget what no source has any more, unless only some were asked for
        if not wanted and mark not in marks.values():
            mark.unlink()
    for name, output in failed:  # again: where only the end of a log is kept, it says why
        print(f"    {name} FAILED\n{output}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
