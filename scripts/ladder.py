#!/usr/bin/env python3
"""Checks the include ladder: each layer knows only the own headers of the layers above it, and each room what it may.

    include/    the public headers: of the standard library and of one another
    lacuna/     the layers, in the order of LAYERS
    tools/      what measures: the layers' own headers, and the rooms that TOOLS lists
    examples/   programs of users: lacuna.h and lacuna.hpp
    tests/      whatever they test

    scripts/ladder.py [--root DIR]

Prints every offending line as `file:line: rule` and exits with 1 if there is one.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator
from pathlib import Path

# From the top of the ladder down: a layer may know those before it. New layers go where DESIGN puts them.
LAYERS = ["base", "layout", "copy", "device", "nic", "method", "guide", "protocol", "collective", "mpi", "nixl", "c"]
SOURCE_SUFFIXES = {".cpp", ".hpp", ".c", ".h"}

# The rooms of a layer, its folders, from the top down. A room may include the headers of the rooms before it that bear
# their names, those that OPEN lists, and the layer's own header; its own files may include one another.
ROOMS = {
    "protocol": [
        "bootstrap",
        "channel",
        "matching",
        "registration",
        "choice",
        "stream",
        "rendezvous",
        "request",
        "message",
        "access",
        "progress",
        "offer",
        "communicator",
    ],
    "mpi": [
        "abi",
        "host",
        "types",
        "ways",
        "report",
        "process",
        "inter_node",
        "rma",
        "collectives",
        "job",
        "messages",
        "calls",
    ],
}
# Beside its own header: what the rooms below may include.
OPEN = {
    "lacuna/mpi/host/bounce.hpp",
    "lacuna/mpi/host/cpus.hpp",
    "lacuna/mpi/host/environment.hpp",
    "lacuna/mpi/host/machine.hpp",
    "lacuna/mpi/host/mutex.hpp",
    "lacuna/mpi/host/pause.hpp",
    "lacuna/mpi/types/device_memory.hpp",
    "lacuna/mpi/report/passed.hpp",
    "lacuna/mpi/process/comms.hpp",
    "lacuna/mpi/process/descriptor.hpp",
    "lacuna/mpi/process/distance.hpp",
    "lacuna/mpi/inter_node/transport.hpp",
    "lacuna/mpi/messages/batch.hpp",
    "lacuna/mpi/messages/exchange.hpp",
    "lacuna/mpi/messages/later.hpp",
}

# Beside its own header, which may include them: what the layers below and the tools may include.
SHARED = {
    "base": {"lacuna/base/rarely.hpp"},
    "nic": {"lacuna/nic/devices.hpp", "lacuna/nic/memory.hpp", "lacuna/nic/tcp.hpp", "lacuna/nic/world.hpp"},
    "guide": {
        "lacuna/guide/exchange_prices.hpp",
        "lacuna/guide/learner.hpp",
        "lacuna/guide/message_ways.hpp",
        "lacuna/guide/mpi_learner.hpp",
        "lacuna/guide/mpi_ways.hpp",
        "lacuna/guide/usual_thresholds.hpp",
        "lacuna/guide/trial.hpp",
    },
    "protocol": {"lacuna/protocol/rendezvous/rget.hpp"},
}

# What a room of tools/ may know of the others.
TOOLS = {
    "corpus": set(),
    "measure": {"corpus"},
    "worker": {"corpus", "measure"},
    "bench": {"corpus", "measure", "handover"},
    "handover": set(),
}
# What a tool looks at inside a layer, beside its own header: kernels of baselines are launched as Lacuna's own are.
INSIDE = {
    "tools/bench/device/": {
        "lacuna/device/cuda/driver.hpp",
        "lacuna/device/cuda/images.hpp",
        "lacuna/device/nest.hpp",
        "lacuna/device/program.hpp",
    },
}
PUBLIC = {"lacuna.h", "lacuna.hpp"}

# Third-party headers and the files that may include them.
THIRD_PARTY = {
    "fmt/": (r"(.*\.cpp|tests/.*|tools/.*)$", "fmt is for .cpp files only"),
    "xxhash.h": (r"(.*\.cpp|tests/.*|tools/.*)$", "xxhash is for .cpp files only"),
    "sodium.h": (r"lacuna/nic/tcp/.*\.cpp$", "libsodium is for the .cpp files of nic/tcp only"),
    "hwy/": (r"(lacuna|tests)/copy/.*(\.cpp|-inl\.hpp)$", "Highway is for the .cpp files of copy only"),
    "cuda.h": (r"(lacuna|tools/bench)/device/.*$", "cuda.h is for device/cuda and its bench only"),
    "nlohmann/": (
        r"(lacuna/guide/(profile|learned|json_fields)\.[ch]pp|lacuna/nic/model/profile\.cpp|tests/.*|tools/.*|python/.*\.cpp)$",
        "in the library JSON is for the readers of profiles only",
    ),
}

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')


def sources(root: Path, *folders: str) -> Iterator[Path]:
    for folder in folders:
        yield from sorted(p for p in (root / folder).rglob("*") if p.suffix in SOURCE_SUFFIXES)


def own_header(layer: str) -> str:
    return "include/lacuna.h" if layer == "c" else f"lacuna/{layer}/{layer}.hpp"


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
    if target.endswith(".cpp") and path.startswith(("lacuna/", "tools/")):
        return "no file includes a source; CMake puts those together that are compiled at once"
    for prefix, (allowed, rule) in THIRD_PARTY.items():
        if target.startswith(prefix) and not re.match(allowed, path):
            return rule
    room = path.split("/")[0]
    if bracket == "<":
        if target in PUBLIC:
            return 'write "include/lacuna.h"' if room == "lacuna" else None
        # tests/api compiles as users do, from elsewhere
        return "write Lacuna's own includes with quotes" if target.startswith("lacuna/") and room != "tests" else None
    match room:
        case "include":
            inside = not target.startswith(("lacuna/", "tools/")) or target.count("/") == 1
            return None if inside else "a public header may not include one that is not installed"
        case "lacuna":
            return layer_rule(path, target)
        case "tools":
            return tool_rule(path, target)
        case "python":
            return None if target.startswith("tools/") or "/" not in target else only_own_headers(target)
        case "examples":
            known = target.startswith("examples/") or "/" not in target
            return None if known else "an example is a program of a user: <lacuna.hpp> or <lacuna.h>"
    return None


def only_own_headers(target: str) -> str | None:
    """Of a file outside the library that knows the layers."""
    parts = target.split("/")
    if parts[0] != "lacuna":
        return None
    if parts[1] not in LAYERS:
        return f"no layer is called '{parts[1]}'"
    if target != own_header(parts[1]) and target not in SHARED.get(parts[1], set()):
        return f"only the own header of {parts[1]} may be included here"
    return None


def layer_rule(path: str, target: str) -> str | None:
    """Of a file of the library."""
    own = path.split("/")[1]
    if own not in LAYERS:
        return f"no layer is called '{own}'"
    if own == "c" and target == own_header("c"):
        return None
    parts = target.split("/")
    if parts[0] != "lacuna":
        return 'write includes from the root of the repository, "lacuna/..."; the library knows nothing but itself'
    layer = parts[1]
    if layer not in LAYERS:
        return f"no layer is called '{layer}'"
    if layer == own:
        if path == own_header(own) and target not in {path, *SHARED.get(own, ())}:
            return f"the own header of {own} may not include others of it"
        return room_rule(path, target)
    if layer == "nic" and len(parts) > 3:
        return "a NIC's own headers are for lacuna/nic only"
    if LAYERS.index(layer) > LAYERS.index(own):
        return f"{own} may not know {layer}, which is below it"
    return only_own_headers(target)


def room_rule(path: str, target: str) -> str | None:
    """The rule that a file breaks by including a header of its own layer, or None."""
    layer = path.split("/")[1]
    rooms = ROOMS.get(layer)
    if rooms is None or own_header(layer) in (path, target):
        return None
    own, other = (name.split("/")[2] for name in (path, target))
    for room, name in ((own, path), (other, target)):
        if room not in rooms:
            return f"{name} is in no room of {layer}; there are: {', '.join(rooms)}"
    if own == other:
        return None
    if rooms.index(other) > rooms.index(own):
        return f"the room {own} may not know {other}, which is below it"
    if target != f"lacuna/{layer}/{other}/{other}.hpp" and target not in OPEN:
        return f"only {other}/{other}.hpp may be included outside lacuna/{layer}/{other}"
    return None


def tool_rule(path: str, target: str) -> str | None:
    """Of a file of tools/."""
    own = path.split("/")[1]
    if own not in TOOLS:
        return f"no room of tools/ is called '{own}'"
    parts = target.split("/")
    if parts[0] == "tools":
        known = parts[1] == own or parts[1] in TOOLS[own]
        return None if known else f"tools/{own} may not know tools/{parts[1]}"
    if parts[0] in ("tests", "examples"):
        return f"tools/{own} may not know {parts[0]}"
    inside = any(path.startswith(folder) and target in headers for folder, headers in INSIDE.items())
    return None if inside else only_own_headers(target)


def seam_rule(path: str, text: str) -> str | None:
    """The rule that a line of code breaks by naming a NIC, or None."""
    if path.startswith(("lacuna/nic/", "tests/")):
        return None
    if re.search(r"\bnic::local\b", text):
        return "nothing outside lacuna/nic names a NIC"
    if path.startswith("lacuna/method/") and '"local"' in text:
        return "nothing outside lacuna/nic names a NIC"
    return None


def check(root: Path) -> list[str]:
    violations: list[str] = []
    for file in sources(root, "include", "lacuna", "tests", "tools", "examples", "python"):
        path = file.relative_to(root).as_posix()
        lines = file.read_text(encoding="utf-8").splitlines()
        for number, text in strip_comments(lines):
            include = INCLUDE.match(text)
            rule = include_rule(path, include[1], include[2]) if include else seam_rule(path, text)
            if rule:
                violations.append(f"{path}:{number}: {rule}: {text.strip()}")
    for folder in sorted(p.name for p in (root / "lacuna").iterdir() if p.is_dir()):
        if folder not in LAYERS:
            violations.append(f"lacuna/{folder}: no layer is called '{folder}'")
        elif any(sources(root, f"lacuna/{folder}")) and not (root / own_header(folder)).exists():
            violations.append(f"lacuna/{folder}: its own header is missing: {own_header(folder)}")
    for layer, rooms in ROOMS.items():
        violations.extend(
            f"lacuna/{layer}/{room}: the room's header is missing: {room}.hpp"
            for room in rooms
            if not (root / "lacuna" / layer / room / f"{room}.hpp").exists()
        )
    return violations


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", type=Path, default=Path(__file__).resolve().parent.parent)
    violations = check(parser.parse_args().root)
    for violation in violations:
        print(violation)
    print(f"ladder: {len(violations)} violation{'' if len(violations) == 1 else 's'}")
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main())
