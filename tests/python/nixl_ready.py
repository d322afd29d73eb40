"""NIXL as scripts/peers.sh installs it, and the plug-in as Lacuna's package has it. What is missing skips a test."""

from __future__ import annotations

import functools
import os
import subprocess
from pathlib import Path

import pytest

import lacuna

ROOT = Path(__file__).resolve().parents[2]


@functools.cache
def _said() -> str:
    command = [ROOT / "scripts" / "peers.sh", "nixl"]
    return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False).stdout.strip()


def nixl_python() -> Path:
    """The Python that has NIXL."""
    if not _said():
        pytest.skip("NIXL is not here: scripts/peers.sh install")
    return Path(_said())


def nixl_libraries() -> Path:
    """The folder of NIXL's package that has its libraries."""
    (folder,) = (nixl_python().parent.parent / "lib").glob("python3*/site-packages/nixl_cu12.libs")
    return folder


def plugin() -> Path:
    found = next((file for place in lacuna.__path__ for file in Path(place).glob("lib/nixl/libplugin_LACUNA.so")), None)
    assert found is not None, f"there is no lib/nixl/libplugin_LACUNA.so in {list(lacuna.__path__)}"
    return found


def environment() -> dict[str, str]:
    """Of a program with NIXL that finds the plug-in, and no profile of this machine."""
    return {
        **os.environ,
        "NIXL_PLUGIN_DIR": str(plugin().parent),
        "NIXL_LOG_LEVEL": "ERROR",
        "LACUNA_PROFILE": "/nonexistent/profile",
    }
