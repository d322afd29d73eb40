"""The wheels of `make wheel` in fresh environments of each Python that is here, and of one of another origin, without a
compiler and without what Debian has of Lacuna: Python, commands, preloaded MPI programs; with a compiler, C and C++
programs."""

from __future__ import annotations

import os
import shutil
import subprocess
import zipfile
from pathlib import Path

import pytest
from install.other_python import other_python
from mpi_ready import Ready, program, run

from lacuna.mpi.launch import launch

pytestmark = pytest.mark.gate

ROOT = Path(__file__).resolve().parents[3]
WHEELS = ROOT / "build" / "wheels"
OTHER = "other"
MPIS = ("openmpi4-debian", "openmpi5", "mpich4-debian", "mpich5", "impi", "mpich5-abi")


def wheel_for(version: str) -> Path:
    pattern = "lacuna-*-cp311-*.whl" if version == "3.11" else "lacuna-*-cp312-abi3-*.whl"
    found = sorted(WHEELS.glob(pattern))
    if not found:
        pytest.skip(f"there is no {pattern} in build/wheels; `make wheel` makes it")
    return found[-1]


def python_of(version: str) -> Path:
    if version == OTHER:
        return other_python()
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    for candidate in (f"python{version}", *map(str, sorted(pyenv.glob(f"versions/{version}.*/bin/python")))):
        check = [candidate, "-c", "import ensurepip, sys, venv; print(sys.executable)"]
        if shutil.which(candidate):
            done = subprocess.run(check, capture_output=True, text=True)
            if done.returncode == 0:
                return Path(done.stdout.strip())
    pytest.skip(f"there is no Python {version} with venv")


class Environment:
    """A virtual environment with the wheel, and commands in it that see no compiler."""

    def __init__(self, folder: Path, version: str, wheel: Path) -> None:
        self.folder = folder
        subprocess.run([python_of(version), "-m", "venv", folder], check=True, capture_output=True)
        self.variables = {"PATH": str(folder / "bin"), "HOME": str(folder), "LANG": "C.UTF-8"}
        cache = os.environ.get("PIP_CACHE_DIR") or str(Path.home() / ".cache" / "pip")  # NumPy is fetched once
        pip = ["-q", "--disable-pip-version-check", "--cache-dir", cache]
        self.run("python", "-m", "pip", *pip, "install", "--no-compile", str(wheel))

    def run(self, name: str, *arguments: str) -> str:
        done = self.ended(name, *arguments)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def ended(self, name: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        line = [str(self.folder / "bin" / name), *arguments]
        return subprocess.run(line, env=self.variables, cwd=self.folder, capture_output=True, text=True)


@pytest.fixture(scope="module", params=["3.11", "3.12", "3.13", OTHER])
def environment(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Environment:
    wheel = wheel_for(request.param)
    return Environment(tmp_path_factory.mktemp("environment") / request.param, request.param, wheel)


COPY = """
import numpy as np, lacuna
field = np.arange(20.0).reshape(4, 5)
lacuna.copy(field[:, 1], field[:, 4])
assert (field[:, 4] == field[:, 1]).all()
try:
    lacuna.Layout.bytes(-1)
except ValueError as error:
    print(error)
"""


def test_python_copies(environment: Environment) -> None:
    assert "count is -1" in environment.run("python", "-c", COPY)


def test_the_other_python_is_neither_debians_nor_pyenvs() -> None:
    line = [other_python(), "-c", "import sys; print(sys.prefix); print(sys.version)"]
    prefix, version = subprocess.run(line, check=True, capture_output=True, text=True).stdout.splitlines()
    assert Path(prefix).resolve() == other_python().parents[1]
    assert version.startswith("3.14.")
    assert "GCC 11" in version


def test_it_brings_neither_what_measures_nor_what_draws(environment: Environment) -> None:
    brought = environment.run("python", "-m", "pip", "list", "--format=freeze", "--disable-pip-version-check")
    names = {line.partition("==")[0].lower() for line in brought.splitlines()}
    assert {"lacuna", "numpy"} <= names
    assert not {"matplotlib", "scipy", "pillow", "contourpy"} & names
    done = environment.ended("lacuna", "guide", "--quick")
    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr == "ERROR: lacuna guide needs matplotlib and scipy: pip install 'lacuna[guide]'\n"
    assert "Usage: lacuna guide" in environment.run("lacuna", "guide", "--help")


def test_commands_run(environment: Environment) -> None:
    assert "64" in environment.run("lacuna", "explain", "vector(64, 1, 2, double)")
    assert "sge" in environment.run("lacuna", "info", "--json")  # by the worker
    assert "wrong usage" not in environment.run("lacuna", "--version")


@pytest.mark.parametrize("mpi", MPIS)
def test_an_mpi_program_is_preloaded(environment: Environment, mpi: str) -> None:
    peer = next((peer for peer in run.installed() if peer.name == mpi), None)
    if peer is None:
        pytest.skip(f"{mpi} is not here; `make peers` installs it")
    reuse = program("reuse")
    ready = Ready(peer, launch(peer), run.BUILT)
    abi = "abi" if mpi.endswith("-abi") else "openmpi" if mpi.startswith("openmpi") else "mpich"
    library = environment.run("lacuna", "mpi", "preload", "--abi", abi).strip()
    assert Path(library).is_relative_to(environment.folder)
    done = run.run(ready.started, reuse, ready.build(reuse.source), Path(library), {"LACUNA_MPI_REPORT": "1"})
    if done.code != 0:
        pytest.fail(done.text(), pytrace=False)
    assert ": offered, " in done.err


CXX = """
#include <cstdio>
#include <lacuna.hpp>
int main() try {
  const auto column = lacuna::Layout::vector(4, 1, 7, lacuna::Layout::bytes(1));
  std::printf("%lld\\n", static_cast<long long>(column.size()));
  (void)lacuna::Layout::bytes(-1);
} catch (const lacuna::Error& error) {
  return error.status() == LACUNA_ERR_INVALID_ARGUMENT ? 0 : 1;
}
"""
C = """
#include <lacuna.h>
#include <stdio.h>
int main(void) {
  lacuna_layout* layout = NULL;
  if (lacuna_layout_bytes(4, &layout) != LACUNA_OK) return 1;
  printf("%d\\n", (int)lacuna_layout_size(layout));
  lacuna_layout_free(layout);
  return 0;
}
"""
CMAKE = """
cmake_minimum_required(VERSION 3.25)
project(user LANGUAGES C CXX)
find_package(lacuna REQUIRED)
add_executable(program_cxx program.cpp)
target_link_libraries(program_cxx PRIVATE lacuna::lacuna)
add_executable(program_c program.c)
target_link_libraries(program_c PRIVATE lacuna::lacuna)
"""


@pytest.fixture
def user(tmp_path: Path) -> Path:
    for name, text in (("program.cpp", CXX), ("program.c", C), ("CMakeLists.txt", CMAKE)):
        (tmp_path / name).write_text(text)
    return tmp_path


def ran(*line: str | Path, **variables: str) -> str:
    done = subprocess.run(line, env={**os.environ, **variables}, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_programs_compile_with_what_config_prints(environment: Environment, user: Path) -> None:
    flags = environment.run("lacuna", "config", "--cflags", "--libs").split()
    pkg_config = environment.run("lacuna", "config", "--pkg-config-dir").strip()
    found = ran("pkg-config", "--cflags", "--libs", "lacuna", PKG_CONFIG_PATH=pkg_config).split()
    library = str(Path(pkg_config).parent)
    for compiler, source in (("c++", "program.cpp"), ("cc", "program.c")):
        language = ["-std=c++20"] if compiler == "c++" else []
        for given, variables in ((flags, {}), (found, {"LD_LIBRARY_PATH": library})):
            ran(compiler, *language, user / source, "-o", user / "program", *given)
            assert ran(user / "program", **variables) == "4\n"


def test_programs_compile_with_cmake(environment: Environment, user: Path) -> None:
    place = environment.run("lacuna", "config", "--cmake-dir").strip()
    ran("cmake", "-S", user, "-B", user / "build", f"-Dlacuna_DIR={place}")
    ran("cmake", "--build", user / "build")
    for name in ("program_cxx", "program_c"):
        assert ran(user / "build" / name) == "4\n"


@pytest.mark.parametrize("version", ["3.11", "3.12"])
def test_a_wheel_has_no_hooks_of_tests_and_names_no_source_tree(version: str) -> None:
    with zipfile.ZipFile(wheel_for(version)) as wheel:
        for name in wheel.namelist():
            text = wheel.read(name)
            assert name.endswith(".md") or b"LACUNA_TEST_" not in text, name  # pages may name what programs have not
            assert str(ROOT).encode() not in text, name
