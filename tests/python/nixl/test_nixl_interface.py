"""The order of the functions by which NIXL calls a plug-in, as NIXL's own plug-ins have it.

tests/nixl/interface_test.cpp compares the same list, tests/nixl/functions.txt, with lacuna/nixl/interface.hpp."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection
from nixl_ready import nixl_libraries

FUNCTIONS = (Path(__file__).resolve().parents[2] / "nixl" / "functions.txt").read_text().split()
WORD = 8
BEFORE = 4
"""Of a table: the distance to the object's beginning, its type, and two destructors."""


def table(file: Path, name: str) -> list[str]:
    """The names of the functions in a class's table, without their parameters."""
    with file.open("rb") as stream:
        elf = ELFFile(stream)
        symbols = [
            s for part in elf.iter_sections() if isinstance(part, SymbolTableSection) for s in part.iter_symbols()
        ]
        (place,) = {
            (s["st_value"], s["st_size"]) for s in symbols if s.name == f"_ZTV{len(name)}{name}" and s["st_size"]
        }
        functions = {s["st_value"]: s.name for s in symbols if s["st_info"]["type"] == "STT_FUNC" and s["st_value"]}
        dynamic = elf.get_section_by_name(".dynsym")
        relocations = elf.get_section_by_name(".rela.dyn")
        assert isinstance(dynamic, SymbolTableSection)
        found = {}
        for one in relocations.iter_relocations():
            if place[0] <= one["r_offset"] < place[0] + place[1]:
                symbol = dynamic.get_symbol(one["r_info_sym"]).name if one["r_info_sym"] else functions[one["r_addend"]]
                found[(one["r_offset"] - place[0]) // WORD] = symbol
    return [found[slot] for slot in sorted(found) if slot >= BEFORE]


def short(symbol: str) -> str:
    """connect, of _ZN15nixlPosixEngine7connectE..."""
    mangled = re.match(r"_ZNK?(\d+)", symbol)
    assert mangled, symbol
    rest = symbol[mangled.end() + int(mangled[1]) :]
    length = re.match(r"\d+", rest)
    assert length, symbol
    return rest[length.end() :][: int(length[0])]


@pytest.mark.parametrize(("plugin_name", "name"), [("POSIX", "nixlPosixEngine"), ("UCX", "nixlUcxEngine")])
def test_nixl_has_its_functions_in_this_order(plugin_name: str, name: str) -> None:
    found = [short(symbol) for symbol in table(nixl_libraries() / "nixl" / f"libplugin_{plugin_name}.so", name)]
    assert found[: len(FUNCTIONS)] == FUNCTIONS  # a class may have more of its own
