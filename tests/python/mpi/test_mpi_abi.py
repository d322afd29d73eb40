"""The numbers that lacuna/mpi writes down are those of every mpi.h at hand."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from lacuna.mpi.installations import MpiInstallation
from lacuna.mpi.interposer import MpiError, abi_of, preload_library, preloaded

ROOT = Path(__file__).resolve().parents[3]
FOLDER = ROOT / "lacuna" / "mpi" / "abi"


def peers() -> list[MpiInstallation]:
    listed = subprocess.run(
        [ROOT / "scripts" / "peers.sh", "all"], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    return [
        MpiInstallation(name, Path(path)) for name, path in (line.split("\t") for line in listed.stdout.splitlines())
    ]


def written(abi: str) -> dict[str, str]:
    """Names and numbers of an ABI's header and of the one that all share."""
    text = (FOLDER / f"{abi}.hpp").read_text() + (FOLDER / "abi.hpp").read_text()
    found = dict(re.findall(r"inline constexpr [\w:]+ (k\w+)(?: = |\{)([-\w]+)", text))
    combiners = re.search(r"enum class Combiner : int \{(.*?)\};", text, re.DOTALL)
    assert combiners
    found |= dict(re.findall(r"(\w+) = (\d+),", combiners[1]))
    found["ignored"] = "0" if "return nullptr;" in text else "1"
    return found


@pytest.mark.parametrize("name", ["openmpi4-debian", "mpich4-debian", "openmpi5", "mpich5", "impi", "mpich5-abi"])
def test_the_abi_is_the_one_of_mpi_h(name: str, tmp_path: Path) -> None:
    peer = next((p for p in peers() if p.name == name), None)
    if peer is None:
        pytest.skip(f"{name} is not here; `make peers` installs it")
    numbers = written("standard" if name.endswith("-abi") else "openmpi" if "openmpi" in name else "mpich")
    assert len(numbers) > 30
    options = [f"-DLACUNA_{key}={value}" for key, value in numbers.items() if value.lstrip("-")[0].isdigit()]
    line = [
        peer.mpicc,
        "-std=c11",
        "-w",
        *options,
        "-c",
        ROOT / "tests" / "mpi" / "abi_check.c",
        "-o",
        tmp_path / "check.o",
    ]
    done = subprocess.run(line, env=peer.environment(), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    wrong = [o for o in options if "kErrTruncate" not in o] + ["-DLACUNA_kErrTruncate=99"]
    line = [
        peer.mpicc,
        "-std=c11",
        "-w",
        *wrong,
        "-c",
        ROOT / "tests" / "mpi" / "abi_check.c",
        "-o",
        tmp_path / "check.o",
    ]
    assert subprocess.run(line, env=peer.environment(), capture_output=True, check=False).returncode != 0


def test_the_abi_follows_from_the_launchers_words() -> None:
    assert abi_of("mpirun (Open MPI) 4.1.4") == "openmpi"
    assert abi_of("HYDRA build details:\n    Version: 5.0.2") == "mpich"
    assert abi_of("Intel(R) MPI Library for Linux* OS, Version 2021.19") == "mpich"
    with pytest.raises(MpiError, match="no MPI known here"):
        abi_of("slurm 23")


def test_the_library_comes_last_and_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LACUNA_MPI_LIB_DIR", str(tmp_path))
    with pytest.raises(MpiError, match="is not in"):
        preload_library("mpich")
    with pytest.raises(MpiError, match="there is no ABI"):
        preload_library("lam")
    library = tmp_path / "liblacuna_mpi_mpich.so"
    library.touch()
    assert preload_library("mpich") == library.resolve()
    environment = preloaded(library, {"LD_PRELOAD": "/a.so /b.so", "X": "1"})
    assert environment == {"LD_PRELOAD": f"/a.so:/b.so:{library}", "X": "1"}
    assert preloaded(library, environment) == environment
    # But before an MPI.
    assert (
        preloaded(library, {"LD_PRELOAD": "/a.so:libmpi.so.40:/b.so"})["LD_PRELOAD"]
        == f"/a.so:{library}:libmpi.so.40:/b.so"
    )
