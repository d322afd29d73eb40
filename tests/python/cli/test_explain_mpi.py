"""What `lacuna explain` says of preloaded MPI programs."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from test_explain import VECTOR, data, explain

from lacuna.mpi import ways
from lacuna.worker.client import find_worker
from lacuna.worker.process import WorkerError


def test_what_a_preloaded_program_would_do() -> None:
    """MPICH's own datatypes take 20 times as long as packing from 16 KiB on, and MPI_Alltoallw is never packed."""
    shown = explain("vector(8192, 1, 2, double)", "--mpi", "mpich", "--mpi", "intel").stdout
    assert "In a program of MPICH, two ranks of a node, preloaded" in shown
    assert "In a program of Intel MPI" in shown
    assert re.search(r"MPI_Send +through shared memory", shown)
    assert re.search(r"MPI_Alltoallw +through shared memory +[\d.]+ +- +[\d.]+", shown)


def test_ranks_that_share_cpus() -> None:
    """Whether each has a CPU decides, and nothing else of their number."""
    what = ("vector(512, 1, 8, double)", "--mpi", "mpich")
    two, many = (data(*what, "--ranks", number)["mpi"]["mpich"] for number in ("2", "4096"))
    assert many["crowded"]
    assert many["uses"]["send"] == two["uses"]["later"]
    shown = explain(*what, "--ranks", "4096").stdout
    assert "In a program of MPICH, 4096 ranks of a node" in shown
    assert "They share CPUs" in shown
    assert explain(*what, "--ranks", "1").exit_code == 2


def test_an_mpi_by_its_wrapper_is_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the program prints stands beside what was expected; a program that moves a wrong byte is told of."""
    try:
        find_worker()
    except WorkerError as e:
        pytest.skip(str(e))
    monkeypatch.setenv("LACUNA_MPI_LIB_DIR", str(tmp_path))
    (tmp_path / "liblacuna_mpi_mpich.so").touch()
    forms = {
        use: {"regular": dict.fromkeys(of, 1500.0)} for (use, form), of in ways.SERVING.items() if form == "regular"
    }
    told = [
        {"version": "MPICH Version:      9.1", "cells": 1},
        {"bytes": 512, "run": 0, "ns": forms, "line_ns": 200.0},
        {"ends": 1},
    ]
    body = "case $1 in --version) echo HYDRA build details: Version: 9.1; exit;; esac\n"
    (tmp_path / "lines").write_text("".join(json.dumps(line) + "\n" for line in told))
    for name, text in (("mpicc", "exit 0"), ("mpiexec", f"{body}cat {tmp_path}/lines")):
        (tmp_path / name).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / name).chmod(0o755)
    what = ("vector(64, 1, 2, double)", "--nic", "model", "--mpi", str(tmp_path / "mpicc"), "--measure")
    ended = explain(*what, "--json", "-")
    assert ended.exit_code == 0, ended.stderr
    of = json.loads(ended.stdout)["mpi"]["mpich"]
    assert of["measured_of"] == "MPICH Version:      9.1"
    assert of["uses"]["bcast"]["measured_ns"] == {"host": 1500, "packed": 1500, "offered": 1500}
    assert (of["distance"], of["measured_distance"], of["measured_line_ns"]) == ("near", "distant", 200)
    assert "(1.50)" in ended.stderr
    assert "9.1, two ranks between distant CPUs (a line takes 200 ns); in brackets" in ended.stderr
    assert "--distance distant shows what is expected between such CPUs" in ended.stderr
    assert "shows what is expected" not in explain(*what, "--distance", "distant").stdout
    ended = explain(*what, "--mpi", f"other={tmp_path / 'mpicc'}")
    assert (ended.exit_code, "two of them are the same MPI" in " ".join(ended.stderr.split())) == (2, True)
    (tmp_path / "mpiexec").write_text(f"#!/bin/sh\n{body}echo 'bcast: wrong bytes' >&2; exit 1\n")
    ended = explain(*what)
    assert (ended.exit_code, "wrong bytes" in ended.stderr) == (1, True)


def test_an_mpi_that_is_no_name_and_no_wrapper() -> None:
    ended = explain(VECTOR, "--mpi", "open_mpy")
    assert ended.exit_code == 2
    assert "open_mpy" in ended.stderr


def test_what_the_environment_forces_of_a_preloaded_program(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in the program: a way that a use has not is the MPI's, and LACUNA_MPI_OFFER packs what is shorter."""
    what = ("vector(1024, 1, 2, double)", "--mpi", "mpich")  # 8 KiB
    monkeypatch.setenv("LACUNA_MPI_WAY", "packed")
    shown = explain(*what).stdout
    assert "forced by LACUNA_MPI_WAY" in shown
    assert re.search(r"MPI_Send +packed by Lacuna", shown)
    assert re.search(r"MPI_Alltoallw +the MPI's own", shown)
    monkeypatch.delenv("LACUNA_MPI_WAY")
    for offered_from, way in ((8192, "offered"), (8193, "packed")):
        monkeypatch.setenv("LACUNA_MPI_OFFER", str(offered_from))
        mpich = data(*what)["mpi"]["mpich"]
        assert (mpich["forced"], mpich["uses"]["send"]["chosen"]) == ("LACUNA_MPI_OFFER", way)
    for name, value in (("LACUNA_MPI_OFFER", "12"), ("LACUNA_MPI_OFFER", "much"), ("LACUNA_MPI_WAY", "fast")):
        monkeypatch.delenv("LACUNA_MPI_OFFER", raising=False)
        monkeypatch.setenv(name, value)
        ended = explain(*what)
        assert ended.exit_code == 2
        assert f"{name} is '{value}'; it may be" in ended.stderr
