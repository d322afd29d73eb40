"""What a recipe has to agree with: version, options and dependencies of the CMake build, and pyproject.toml."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[3]
PACKAGING = ROOT / "packaging"


class Names(NamedTuple):
    """Of a dependency: in Spack and on conda-forge."""

    spack: str | None
    conda: str | None


NAMES = {
    "fmt": Names("fmt", "fmt"),
    "hwy": Names("highway", "libhwy"),
    "hwy/highway.h": Names("highway", "libhwy"),
    "infiniband/verbs.h": Names("rdma-core", "rdma-core"),
    "rdma/fabric.h": Names("libfabric", "libfabric"),
    "libsodium": Names("libsodium", "libsodium"),
    "nlohmann_json": Names("nlohmann-json", "nlohmann_json"),
    "PkgConfig": Names("pkgconfig", "pkg-config"),
    "Threads": Names(None, None),  # of the C library
    "xxhash.h": Names("xxhash", "xxhash"),
}
"""By what CMakeLists.txt looks for. What it begins to look for is added here and to the recipes."""

_OPTION = re.compile(r"^\s*option\((\w+)|^\s*set\((\w+) .*\bCACHE\b", re.MULTILINE)
_FOUND = re.compile(
    r"^find_package\((\w+) REQUIRED|^find_path\(\w+ (\S+) REQUIRED|^pkg_check_modules\((\w+) REQUIRED", re.MULTILINE
)


def cmake_lists() -> str:
    return (ROOT / "CMakeLists.txt").read_text()


def only(pattern: str, text: str) -> str:
    (found,) = re.findall(pattern, text, re.MULTILINE)
    return str(found)


def version() -> str:
    return only(r"^  VERSION (\d+\.\d+\.\d+)\b", cmake_lists())


def least_cmake() -> str:
    return only(r"^cmake_minimum_required\(VERSION (\S+)\)", cmake_lists())


def options() -> set[str]:
    """The variables that a build may set: those of CMakeLists.txt and of cmake/."""
    files = [ROOT / "CMakeLists.txt", *sorted((ROOT / "cmake").glob("*.cmake"))]
    return {name for file in files for names in _OPTION.findall(file.read_text()) for name in names if name}


def dependencies() -> list[Names]:
    found = [name for names in _FOUND.findall(cmake_lists()) for name in names if name]
    return [NAMES[name] for name in found]


def pyproject() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text())
