"""A Python that is neither Debian's nor pyenv's: CPython 3.14 as JavaCPP brings it for programs in Java. It was built
by GCC 11 on Ubuntu 22.04, with a libffi and an OpenSSL of its own. Maven fetches it into build/other_python."""

from __future__ import annotations

import platform
import shutil
import subprocess
import zipfile
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

VERSION = "3.14.3-1.5.13"
FOLDER = Path(__file__).resolve().parents[3] / "build" / "other_python" / VERSION


def other_python() -> Path:
    """Skips a test where it cannot be had."""
    if platform.machine() != "x86_64":
        pytest.skip("org.bytedeco:cpython is fetched for x86-64 only")
    if not FOLDER.exists():
        maven = shutil.which("mvn")
        if maven is None:
            pytest.skip("there is no mvn, which fetches org.bytedeco:cpython (Debian: maven)")
        FOLDER.parent.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(dir=FOLDER.parent) as new:
            fetch(maven, Path(new))
    return FOLDER / "org" / "bytedeco" / "cpython" / "linux-x86_64" / "bin" / "python3.14"


def fetch(maven: str, folder: Path) -> None:
    """Into `folder` first: what has its name is whole, and another process may fetch it at the same time."""
    copy = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy"
    artifact = f"-Dartifact=org.bytedeco:cpython:{VERSION}:jar:linux-x86_64"
    line = [maven, "-q", "-B", copy, artifact, f"-DoutputDirectory={folder}"]
    done = subprocess.run(line, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    (file,) = folder.glob("*.jar") if done.returncode == 0 else (None,)
    if file is None:
        pytest.skip(f"mvn cannot fetch org.bytedeco:cpython: {done.stdout.strip()[:300]}")
    with zipfile.ZipFile(file) as jar:
        jar.extractall(folder / "all")
    for program in (folder / "all").glob("org/bytedeco/cpython/linux-x86_64/bin/*"):
        program.chmod(0o755)
    if not FOLDER.exists():
        (folder / "all").rename(FOLDER)
