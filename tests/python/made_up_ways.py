"""A program that times an MPI's ways, made up: what it prints, and an MPI whose mpiexec prints that."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest

from lacuna.mpi.installations import MpiInstallation
from lacuna.mpi.ways import CELLS, CONTIGUOUS, SERVING

VERSION = "Open MPI v9.8.7, package"
LINE_NS = 20.0
"""Of near CPUs."""


def time_of(use: str, way: str, size: int) -> float:
    """Packing pays from 4 KiB on, shared memory from 64 KiB on."""
    host = 100.0 + size + (1000 if use == "alltoallw" else 0)
    return host * {"host": 1.0, "packed": 0.5 if size >= 4096 else 2, "offered": 0.25 if size >= 65536 else 3}[way]


def _cell(size: int, run: int) -> dict[str, Any]:
    ns: dict[str, dict[str, dict[str, float]]] = {}
    for (use, form), serving in SERVING.items():
        ns.setdefault(use, {})[form] = {way: time_of(use, way, size) for way in serving}
    return {"bytes": size, "run": run, "ns": ns}


def _without_gaps(size: int) -> dict[str, Any]:
    """Shared memory pays from 256 KiB on, but not at 1 MiB."""
    offered = 0.5 if size >= 262144 and size != 1048576 else 1
    times = {"host": float(size), "offered": size * offered}
    return {"bytes": size, "run": 0, "ns": {"contiguous": {"regular": times}}}


Line = dict[str, Any] | str


def honest(version: str = VERSION, line_ns: Sequence[float] = (LINE_NS,)) -> list[Line]:
    """`line_ns`: of the sizes, by turns."""
    sizes = [*(_cell(*at) for at in CELLS), *map(_without_gaps, CONTIGUOUS)]
    cells = [{**size, "line_ns": ns} for size, ns in zip(sizes, cycle(line_ns), strict=False)]
    return [{"version": version, "cells": len(cells)}, *cells, {"ends": len(cells)}]


def text(lines: list[Line]) -> str:
    return "".join((line if isinstance(line, str) else json.dumps(line)) + "\n" for line in lines)


Play = Callable[..., MpiInstallation]


def player(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Play:
    """Makes an MPI whose mpiexec prints these lines, and then does what `after` says."""

    def play(lines: list[Line], after: str = "exit 0") -> MpiInstallation:
        (folder / "lines").write_text(text(lines))
        body = f"case $1 in --version) echo HYDRA build details:; exit;; esac\ncat {folder}/lines\n{after}"
        for name, script in (("mpicc", "exit 0"), ("mpiexec", body)):
            (folder / name).write_text(f"#!/bin/sh\n{script}\n")
            (folder / name).chmod(0o755)
        return MpiInstallation("played", folder / "mpicc")

    monkeypatch.setenv("LACUNA_MPI_LIB_DIR", str(folder))
    (folder / "liblacuna_mpi_mpich.so").touch()
    return play
