#!/usr/bin/env python3
"""Checks the include ladder: each layer knows only the public headers of the layers above it.

    scripts/ladder.py [--root DIR]

Prints every offending line as `file:line: rule` and exits with 1 if there is one. Long files are only reported.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator
from pathlib import Path

# From the top of the ladder down: a layer may know those before it. New layers go where DESIGN puts them.
LAYERS = ["base", "layout", "copy", "device", "nic", "method", "guide", "protocol", "collective", "mpi", "c"]
SOURCE_SUFFIXES = {".cpp", ".hpp", ".c", ".h"}
LONG_FILE = 400

# Beside its public header: what the layers below may include, and no user gets to see.
SHARED = {"nic": {"lacuna/nic/tcp.hpp"}, "guide": {"lacuna/guide/learner.hpp"}}

# Third-party headers and the files that may include them.
THIRD_PARTY = {
    "fmt/": (r"(.*\.cpp|tests/.*|tools/.*)$", "fmt is for .cpp files only"),
    "xxhash.h": (r"(.*\.cpp|tests/.*|tools/.*)$", "xxhash is for .cpp files only"),
    "sodium.h": (r"lacuna/nic/tcp/.*\.cpp$", "libsodium is for the .cpp files of nic/tcp only"),
    "hwy/": (r"(lacuna|tests)/copy/.*(\.cpp|-inl\.hpp)$", "Highway is for the .cpp files of copy only"),
    "cuda.h": (r"(lacuna|tools/bench)/device/.*$", "cuda.h is for device/cuda and its bench only"),
    "nlohmann/": (
        r"(lacuna/guide/.*\.cpp|lacuna/guide/(worker_json|json_fields)\.hpp|lacuna/nic/model/profile\.cpp|tests/.*|tools/.*|examples/.*\.cpp|python/.*\.cpp)$",
        "JSON is for the .cpp files of guide, its worker_json.hpp and json_fields.hpp, and the model's profiles, only",
    ),
}

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')


def sources(root: Path, *folders: str) -> Iterator[Path]:
    for folder in folders:
        yield from sorted(p for p in (root / folder).rglob("*") if p.suffix in SOURCE_SUFFIXES)


def public_headers(layer: str) -> set[str]:
    return {f"lacuna/{layer}/{layer}.hpp"} | ({"lacuna/c/lacuna.h", "lacuna/c/lacuna.hpp"} if layer == "c" else set())


def strip_comments(lines: list[str]) -> Iterator[tuple[int, str]]:
    """The lines, numbered from 1, without // and /* */ comments. String literals are kept as they are."""
    inside = False
    for number, line in enumerate(lines, 1):
        text = ""
        while line:
            if inside:
                end = line.find("*/")
                line, inside = (line[end + 2 :], False) if end >= 0 else ("", True)
                continue
            token = re.search(r'"(?:\\.|[^"\\])*"|//|/\*', line)
            if token is None:
                text, line = text + line, ""
            elif token[0] == "//":
                text, line = text + line[: token.start()], ""
            elif token[0] == "/*":
                text, line, inside = text + line[: token.start()], line[token.end() :], True
            else:
                text, line = text + line[: token.end()], line[token.end() :]
        yield number, text


def include_rule(path: str, bracket: str, target: str) -> str | None:
    """The rule that `path` breaks by including `target`, or None."""
    if target.endswith(".cpp") and path.startswith("lacuna/"):
        return "no file includes a source; CMake puts those together that are compiled at once"
    for prefix, (allowed, rule) in THIRD_PARTY.items():
        if target.startswith(prefix) and not re.match(allowed, path):
            return rule

    in_library = path.startswith("lacuna/")
    if not target.startswith("lacuna/"):
        if in_library and bracket == '"':
            return 'write includes from the root of the repository: "lacuna/..."'
        return None
    if bracket == "<":
        return 'write Lacuna\'s own includes with quotes: "lacuna/..."'

    parts = target.split("/")
    layer = parts[1]
    if layer not in LAYERS:
        return f"no layer is called '{layer}'"
    if parts[1] == "nic" and len(parts) > 3 and not path.startswith(("lacuna/nic/", "tests/")):
        return "a NIC's own headers are for lacuna/nic only"
    if not in_library:
        # Tests and benchmarks may look inside; the Python module and the examples are users like any other.
        if path.startswith(("python/", "examples/")) and target not in public_headers(layer):
            return f"only the public header of {layer} may be included here"
        return None

    own = path.split("/")[1]
    if own not in LAYERS:
        return f"no layer is called '{own}'"
    if layer == own:
        if path in public_headers(own) and target not in public_headers(own):
            return f"the public header of {own} may not include a header that is not installed"
        return None
    if LAYERS.index(layer) > LAYERS.index(own):
        return f"{own} may not know {layer}, which is below it"
    if target not in public_headers(layer) | SHARED.get(layer, set()):
        return f"only the public header of {layer} may be included outside lacuna/{layer}"
    return None


def seam_rule(path: str, text: str) -> str | None:
    """The rule that a line of code breaks by naming a NIC, or None."""
    if path.startswith(("lacuna/nic/", "tests/")):
        return None
    if re.search(r"\bnic::local\b", text):
        return "nothing outside lacuna/nic names a NIC"
    if path.startswith("lacuna/method/") and '"local"' in text:
        return "nothing outside lacuna/nic names a NIC"
    return None


def check(root: Path) -> tuple[list[str], list[str]]:
    """The violations, and the remarks."""
    violations: list[str] = []
    remarks: list[str] = []
    for file in sources(root, "lacuna", "tests", "tools", "examples", "python"):
        path = file.relative_to(root).as_posix()
        lines = file.read_text(encoding="utf-8").splitlines()
        for number, text in strip_comments(lines):
            include = INCLUDE.match(text)
            rule = include_rule(path, include[1], include[2]) if include else seam_rule(path, text)
            if rule:
                violations.append(f"{path}:{number}: {rule}: {text.strip()}")
        if len(lines) > LONG_FILE:
            remarks.append(f"{path}: {len(lines)} lines; more than {LONG_FILE} are hard to read")
    for folder in sorted(p.name for p in (root / "lacuna").iterdir() if p.is_dir()):
        if folder not in LAYERS:
            violations.append(f"lacuna/{folder}: no layer is called '{folder}'")
        elif any(sources(root, f"lacuna/{folder}")) and not any((root / h).exists() for h in public_headers(folder)):
            violations.append(f"lacuna/{folder}: its public header is missing: lacuna/{folder}/{folder}.hpp")
    return violations, remarks


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", type=Path, default=Path(__file__).resolve().parent.parent)
    violations, remarks = check(parser.parse_args().root)
    for remark in remarks:
        print(f"note: {remark}")
    for violation in violations:
        print(violation)
    print(f"ladder: {len(violations)} violation{'' if len(violations) == 1 else 's'}")
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main())
