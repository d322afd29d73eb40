"""What only tests may have: nothing of it is in what is installed."""

from __future__ import annotations

from pathlib import Path

import pytest

import lacuna

BENCHES = {"lacuna-message-bench", "lacuna-mpi-bench", "lacuna-copy-bench", "lacuna-device-bench"}
"""Built with the tests they plant faults, which a wheel's do not."""


@pytest.mark.check
def test_libraries_and_the_worker_hear_no_test() -> None:
    binaries = [
        file
        for folder in lacuna.__path__
        for file in Path(folder).rglob("*")
        if file.is_file() and (".so" in file.name or file.parent.name == "bin") and file.name not in BENCHES
    ]
    assert {"lacuna-worker", "liblacuna_mpi_openmpi.so", "liblacuna_mpi_mpich.so"} <= {file.name for file in binaries}
    assert [file.name for file in binaries if b"LACUNA_TEST_" in file.read_bytes()] == []
