#!/usr/bin/env python3
"""Runs clang-tidy over the library's sources, those that changed since they last passed.

    scripts/tidy.py [--jobs N] [--build DIR] [FILE...]

A source passes once for one content of itself, of all headers, of .clang-tidy, of its compile command and of the tool.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def fingerprint(common: bytes, command: dict[str, str]) -> str:
    digest = hashlib.sha256(common)
    digest.update(command["command"].encode())
    digest.update(Path(command["file"]).read_bytes())
    return digest.hexdigest()


def tidy(build: Path, command: dict[str, str]) -> tuple[bool, str, float]:
    start = time.monotonic()
    # The compile commands are GCC's: Clang does not know all of its warnings.
    arguments = ["clang-tidy", "--quiet", "-p", str(build), "--extra-arg=-Wno-unknown-warning-option", command["file"]]
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
    commands = [
        c
        for c in commands
        if Path(c["file"]).is_relative_to(ROOT / "lacuna") and (not wanted or Path(c["file"]).resolve() in wanted)
    ]
    version = subprocess.run(["clang-tidy", "--version"], capture_output=True, check=True).stdout
    headers = sorted(p for p in (ROOT / "lacuna").rglob("*") if p.suffix in {".hpp", ".h"})
    common = version + (ROOT / ".clang-tidy").read_bytes() + b"".join(p.read_bytes() for p in headers)

    cache = ROOT / "build" / "tidy"
    cache.mkdir(parents=True, exist_ok=True)
    marks = {c["file"]: cache / fingerprint(common, c) for c in commands}
    todo = [c for c in commands if not marks[c["file"]].exists()]
    print(f"    {len(commands)} sources, {len(todo)} to check")

    failed = []
    with ThreadPoolExecutor(options.jobs) as pool:
        futures = {pool.submit(tidy, options.build, c): c for c in todo}
        for done, future in enumerate(as_completed(futures), 1):
            file = futures[future]["file"]
            passed, output, seconds = future.result()
            name = Path(file).relative_to(ROOT)
            print(f"    [{done}/{len(todo)}] {name} {'ok' if passed else 'FAILED'} ({seconds:.0f} s)", flush=True)
            if passed:
                marks[file].touch()
            else:
                failed.append(name)
                print(output.replace(f"{ROOT}/", ""), flush=True)
    for mark in cache.iterdir():  # forget what no source has any more, unless only some were asked for
        if not wanted and mark not in marks.values():
            mark.unlink()
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
