"""docs/reference/mpi-functions.md lists every function of every mpi.h at hand, and what the interposers export."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection
from test_mpi_abi import ROOT, peers

from lacuna.mpi.installations import MpiInstallation
from lacuna.mpi.interposer import ABIS, preload_library

PAGE = ROOT / "docs" / "reference" / "mpi-functions.md"
ALONE = {"Open MPI": {"openmpi"}, "standard ABI": {"abi"}, "MPICH": {"mpich", "abi"}}
"""The libraries that a row means which names one."""


def listed(page: str) -> dict[str, set[str]]:
    """Of each function the libraries that intercept it."""
    found: dict[str, set[str]] = {}
    for line in page.splitlines():
        row = re.fullmatch(r"\| (`MPI.*`) \| (intercepted|passed through)(?:: (.*))? \| (.+) \|", line)
        if row is None:
            assert not line.startswith("| `"), f"not a row of functions: {line}"
            continue
        functions, what, alone, _ = row.groups()
        taken = set(ABIS) if what == "intercepted" else set()
        for name in re.findall(r"`(\w+)`", functions):
            assert name not in found, f"{name} is listed twice"
            found[name] = taken if alone is None else ALONE[alone]
    return found


def entry(page: dict[str, set[str]], function: str) -> set[str] | None:
    """Its own, or that of the form with small counts."""
    return page.get(function, page.get(function.removesuffix("_c")))


def declared(peer: MpiInstallation, folder: Path) -> set[str]:
    source = folder / "functions.c"
    source.write_text("#include <mpi.h>\n")
    line = [peer.mpicc, "-E", source]
    text = subprocess.run(line, env=peer.environment(), capture_output=True, text=True, check=True).stdout
    return set(re.findall(r"\b(?:int|double|MPI_\w+)\s+(MPIX?_\w+)\s*\(", text))


def exported(abi: str) -> set[str]:
    with preload_library(abi).open("rb") as stream:
        section = ELFFile(stream).get_section_by_name(".dynsym")
        assert isinstance(section, SymbolTableSection)
        return {symbol.name for symbol in section.iter_symbols() if symbol["st_shndx"] != "SHN_UNDEF"}


def faults(page: dict[str, set[str]], abi: str, functions: set[str], exports: set[str]) -> list[str]:
    """What the page, a header and a library do not agree on."""
    wrong = []
    for function in sorted(functions):
        taken = entry(page, function)
        if taken is None:
            wrong.append(f"{function} is not listed")
            continue
        there = {name for name in (function, f"P{function}") if name in exports}
        if abi in taken and len(there) < 2:
            wrong.append(f"{function} is listed as intercepted, and the library for {abi} has {there or 'none'}")
        if abi not in taken and there:
            wrong.append(f"{function} is listed as passed through, and the library for {abi} has it")
    return wrong


@pytest.mark.parametrize("name", ["openmpi4-debian", "mpich4-debian", "openmpi5", "mpich5", "impi", "mpich5-abi"])
def test_every_function_of_mpi_h_is_listed(name: str, tmp_path: Path) -> None:
    peer = next((p for p in peers() if p.name == name), None)
    if peer is None:
        pytest.skip(f"{name} is not here; `make peers` installs it")
    abi = "abi" if name.endswith("-abi") else "openmpi" if "openmpi" in name else "mpich"
    functions = declared(peer, tmp_path)
    assert len(functions) > 400
    assert {"MPI_Send", "MPI_Wtime"} <= functions
    assert faults(listed(PAGE.read_text()), abi, functions, exported(abi)) == []


@pytest.mark.parametrize("abi", sorted(ABIS))
def test_every_function_of_the_library_is_listed(abi: str) -> None:
    page = listed(PAGE.read_text())
    exports = {name.removeprefix("P") for name in exported(abi) if re.match(r"P?MPIX?_", name)}
    assert len(exports) > 130
    assert [name for name in sorted(exports) if abi not in (entry(page, name) or set())] == []
    # Those that are listed with no other form are there, whatever the headers have.
    assert [name for name, taken in page.items() if abi in taken and name not in exports] == []


def test_what_is_not_listed_or_not_there_is_found() -> None:
    row = "| `MPI_Send`, `MPI_Recv` | intercepted | Both. |\n"
    page = listed(row + "| `MPI_Barrier` | passed through | No data. |\n")
    exports = {"MPI_Send", "PMPI_Send", "MPI_Recv", "PMPI_Recv"}
    assert faults(page, "mpich", {"MPI_Send", "MPI_Recv", "MPI_Barrier"}, exports) == []
    assert "MPI_New is not listed" in faults(page, "mpich", {"MPI_New"}, exports)
    assert faults(page, "mpich", {"MPI_Send_c"}, exports)[0].startswith("MPI_Send_c is listed as intercepted")
    assert faults(page, "mpich", {"MPI_Recv"}, exports - {"PMPI_Recv"}) != []
    assert faults(page, "mpich", {"MPI_Barrier"}, {"MPI_Barrier"}) != []
    with pytest.raises(AssertionError, match="listed twice"):
        listed(row + row)
    with pytest.raises(AssertionError, match="not a row"):
        listed("| `MPI_Send` | perhaps | |\n")
