"""This machine, in words."""

from __future__ import annotations

import platform
import re
from pathlib import Path


def cpu() -> str:
    """The CPU's name."""
    said = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text())
    return said[1] if said else f"{platform.machine()} CPU"
