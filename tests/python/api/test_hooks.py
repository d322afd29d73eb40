"""What only tests may have: nothing of it is in what is installed."""

from __future__ import annotations

from pathlib import Path

import pytest

import lacuna


@pytest.mark.check
def test_no_binary_hears_a_test() -> None:
    binaries = [
        file
        for folder in lacuna.__path__
        for file in Path(folder).rglob("*")
        if file.is_file() and (".so" in file.name or file.parent.name == "bin")
    ]
    known = {"lacuna-worker", "lacuna-message-bench", "lacuna-mpi-bench", "liblacuna_mpi_openmpi.so"}
    assert known <= {file.name for file in binaries}
    assert [file.name for file in binaries if b"LACUNA_TEST_" in file.read_bytes()] == []
