"""NIXL as scripts/peers.sh installs it, and the plug-in as Lacuna's package has it. What is missing skips a test."""

from __future__ import annotations

import functools
import os
import subprocess
import sys
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


def skip_without(nic: str) -> None:
    """Skips a test for which this machine has no such NIC."""
    if nic == "local":
        return
    command = [sys.executable, "-m", "lacuna", "info", "--nic", nic]
    opened = subprocess.run(command, capture_output=True, text=True, check=False)
    if opened.returncode != 0:
        pytest.skip(opened.stderr.strip() or f"NIC {nic} is not here")


def environment() -> dict[str, str]:
    """Of a program with NIXL that finds the plug-in, and no profile of this machine."""
    return {
        **os.environ,
        "NIXL_PLUGIN_DIR": str(plugin().parent),
        "NIXL_LOG_LEVEL": "ERROR",
        "LACUNA_PROFILE": "/nonexistent/profile",
    }
