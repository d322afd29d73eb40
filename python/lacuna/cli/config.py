"""`lacuna config`: where things of this package are: what a compiler needs to build C and C++ programs, what NIXL
loads, and pages."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import lacuna
from lacuna.bench import command_exit
from lacuna.cli.options import command_app

app = command_app()

_LIBRARY = "liblacuna.so"


@app.command()
def config(
    cflags: Annotated[bool, typer.Option("--cflags", help="The flags that compile.")] = False,
    libs: Annotated[bool, typer.Option("--libs", help="The flags that link.")] = False,
    cmake_dir: Annotated[bool, typer.Option("--cmake-dir", help="The folder for CMake's lacuna_DIR.")] = False,
    pkg_config_dir: Annotated[bool, typer.Option("--pkg-config-dir", help="The folder for PKG_CONFIG_PATH.")] = False,
    nixl_plugin_dir: Annotated[bool, typer.Option("--nixl-plugin-dir", help="The folder for NIXL_PLUGIN_DIR.")] = False,
    docs_dir: Annotated[bool, typer.Option("--docs-dir", help="The folder docs, whose pages --help names.")] = False,
) -> None:
    """Print how C and C++ programs are built against the library that this package brings, or where its plug-in for
    NIXL and its pages are.

    \b
    Examples:
      g++ -std=c++20 column.cpp $(lacuna config --cflags --libs) -o column
      cmake -S . -B build -Dlacuna_DIR=$(lacuna config --cmake-dir)
      NIXL_PLUGIN_DIR=$(lacuna config --nixl-plugin-dir) python server.py
      less $(lacuna config --docs-dir)/start/mpi.md

    Exit status: 0, 2 for wrong usage, 3 if this package was installed without the library.
    """
    if not (cflags or libs or cmake_dir or pkg_config_dir or nixl_plugin_dir or docs_dir):
        raise typer.BadParameter(
            "what shall be printed? --cflags, --libs, --cmake-dir, --pkg-config-dir, --nixl-plugin-dir or --docs-dir"
        )
    place = _place()
    said = [f"-I{place / 'include'}"] if cflags else []
    if libs:
        said += [f"-L{place / 'lib'}", f"-Wl,-rpath,{place / 'lib'}", "-llacuna"]
    said += [str(place / "lib" / "cmake" / "lacuna")] if cmake_dir else []
    said += [str(place / "lib" / "pkgconfig")] if pkg_config_dir else []
    said += [str(place / "lib" / "nixl")] if nixl_plugin_dir else []
    said += [str(place / "docs")] if docs_dir else []
    print(*said)


def _place() -> Path:
    """The folder of the package that has the library."""
    folders = [Path(folder) for folder in lacuna.__path__]
    found = next((folder for folder in folders if (folder / "lib" / _LIBRARY).exists()), None)
    if found is None:
        command_exit.fail(f"there is no lib/{_LIBRARY} in {' or '.join(map(str, folders))}")
    return found
