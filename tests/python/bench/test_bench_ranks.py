"""`lacuna bench ranks`: its program under each MPI, what it makes of runs, and how it ends."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from lacuna.bench.ranks.command import RANKS, block_of
from lacuna.bench.ranks.page import RanksPresentation
from lacuna.bench.ranks.rows import ManyRanks, RanksRun, row_of
from lacuna.cli.app import app
from lacuna.mpi.installations import MpiInstallationError, find
from lacuna.worker.result import begun


def many(init: float = 1.0, exchange: float = 1.0, shared: int = 5000, ranks: int = 4) -> ManyRanks:
    return ManyRanks(ranks, 4096, init, 0.001, exchange, exchange, exchange, 0.01, 0.02, 3000, shared, shared - 1024)


@pytest.mark.check
def test_blocks_of_many_ranks_are_shorter() -> None:
    blocks = [block_of(ranks) for ranks in RANKS]
    assert blocks == sorted(blocks, reverse=True)
    assert all(block % 64 == 0 for block in blocks)
    assert all(2 * block * ranks * ranks <= 4 << 30 for block, ranks in zip(blocks, RANKS, strict=True))
    assert block_of(1024) == 4096


@pytest.mark.check
def test_a_row_has_medians_and_what_lacuna_adds() -> None:
    plain = [many(1, 2, 5000), many(3, 2, 5000), many(2, 2, 5000)]
    preloaded = [many(2, 1, 25480), many(2, 1, 25480), many(9, 1, 25480)]
    row = row_of("MPI", plain, preloaded, 1000)
    assert (row.ranks, row.runs) == (4, 3)
    assert row.ratio("init_s") == 1
    assert row.ratio("alltoallw_s") == 0.5
    assert row.plain["shared_after_exchange_kib"] == 4000
    assert row.shared_mib_of_rank == 5
    assert row.idle_mib_of_rank == 5


@pytest.mark.check
def test_the_summary_has_the_worst(tmp_path: Path) -> None:
    run = begun(RanksRun, "lacuna bench ranks")
    assert run.is_empty
    assert run.summary() == {}
    run.rows = [row_of("MPI", [many()], [many(1.5)], 0), row_of("MPI", [many(ranks=8)], [many(2, 0.5, ranks=8)], 0)]
    summary = run.summary()
    assert summary["init_ratio_worst"] == 2
    assert summary["finalize_ratio_worst"] == 1
    assert summary["ranks_most"] == 8
    assert {file.name for file in RanksPresentation(run).write(tmp_path)} == {"ranks.html", "ranks.png"}
    assert "128 ranks" not in (tmp_path / "ranks.html").read_text()


def _installed() -> str:
    try:
        return str(find([])[0].mpicc)
    except (MpiInstallationError, IndexError) as e:
        pytest.skip(f"no MPI: {e}")


def test_it_runs_and_verifies() -> None:
    done = CliRunner().invoke(app, ["bench", "ranks", "--ranks", "3", "--quick", "--json", "-", "--mpi", _installed()])
    assert done.exit_code == 0, done.output
    said = json.loads(done.stdout)
    assert [row["ranks"] for row in said["rows"]] == [3]
    assert said["errors"] == []
    assert said["rows"][0]["preloaded"]["alltoallw_s"] > 0


def test_an_mpi_that_cannot_be_used_is_an_error(tmp_path: Path) -> None:
    fake = tmp_path / "mpicc"
    fake.write_text("#!/bin/sh\nexit 1\n")
    fake.chmod(0o755)
    done = CliRunner().invoke(app, ["bench", "ranks", "--ranks", "2", "--json", "-", "--mpi", str(fake)])
    assert done.exit_code != 0
