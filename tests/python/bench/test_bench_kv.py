"""`lacuna bench kv`: its cases against NumPy, what it makes of measurements, and a run on the modelled NIC."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from conftest import grid_subject, row
from typer.testing import CliRunner

import lacuna
from lacuna.bench.kv.cases import CASES, Case
from lacuna.bench.kv.command import described, parts
from lacuna.bench.kv.rows import row_of
from lacuna.cli.app import app


@pytest.mark.check
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_case_has_the_pieces_that_it_names(case: Case) -> None:
    pieces = case.within(1 << 20)
    assert pieces % case.unit == 0
    send, receive = parts(case, pieces, 1 << 20)
    assert send.size == receive.size == (1 << 20 if case.pieces == 1 else pieces * case.piece_bytes)
    assert not receive.overlaps
    if case.pieces > 1:
        assert max(send.run_count, receive.run_count) == pieces
    full = case.layouts(case.pieces, case.tables(case.pieces))
    assert full[0].size == full[1].size == case.pieces * case.piece_bytes


@pytest.mark.check
def test_slices_of_heads_are_those_of_numpy() -> None:
    case = next(case for case in CASES if case.name.startswith("sglang"))
    tables = case.tables(64 * 16)
    send, receive = case.layouts(64 * 16, tables)
    source = np.random.default_rng(1).integers(0, 255, (128, 16, 8, 512), np.uint8)  # pages, tokens, slices
    target = np.zeros((128, 16, 512), np.uint8)
    lacuna.copy(target, source, target_layout=receive, source_layout=send)
    assert np.array_equal(target[tables[1]], source[tables[0], :, 0])
    assert np.count_nonzero(target.any(axis=(1, 2))) == 64


@pytest.mark.check
def test_descriptions_do_not_grow_with_pieces() -> None:
    strides = next(case for case in CASES if case.name.startswith("nixl"))
    found = described(strides)
    assert found.wire_bytes < 16 << 10
    assert found.list_bytes == 44_400_640
    for case in CASES:
        if case.tables(case.unit)[0].size:
            assert described(case).wire_bytes < 6 * sum(table.size for table in case.tables(case.pieces))


@pytest.mark.check
def test_a_choice_is_judged_by_the_half_that_did_not_pick() -> None:
    subject = grid_subject()

    def timed(method: str, first: float, second: float, notify: str = "none") -> object:
        made = row(subject, method, first, notify=notify)
        return replace(made, half_us=(first, second))

    rows = [
        timed("umr_write", 8, 8, "flag"),
        timed("linked_write", 30, 20, "imm"),
        timed("multi_write", 20, 30, "imm"),
        timed("linked_write", 1, 1),  # its receiver is not told of its end
        timed("pack", 16, 16),
    ]
    found = row_of("case", "nic", 4, ("umr_write", "mapped", "flag"), rows)  # type: ignore[arg-type]
    assert found.loss == pytest.approx(-0.5)
    assert found.loss_low == pytest.approx(8 * 0.99 / (16 * 1.01) - 1)
    assert (found.direct.us, found.packed.us, found.chosen.us) == pytest.approx((30, 16, 8))
    assert found.packed.posting_us == pytest.approx(12)
    with pytest.raises(ValueError, match="sgrs/mapped/none was chosen, and is not among"):
        row_of("case", "nic", 4, ("sgrs", "mapped", "none"), rows)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="none of pack, pack_write was measured"):
        row_of("case", "nic", 4, ("umr_write", "mapped", "flag"), rows[:-1])  # type: ignore[arg-type]


def test_a_run_on_the_modelled_nic(tmp_path: Path) -> None:
    """Every transfer is verified; the modelled times are the same each time."""
    line = ["bench", "kv", "--quick", "--nic", "model:what-if-400g", "--output", str(tmp_path), "--budget", "3600"]
    done = CliRunner().invoke(app, line)
    if "lacuna-worker" in done.output and done.exit_code == 3:
        pytest.skip(done.output)
    assert done.exit_code == 0, done.output
    found = json.loads((tmp_path / "kv.json").read_text())
    assert [one["case"] for one in found["rows"]] == [case.name for case in CASES]
    assert found["errors"] == []
    assert found["summary"]["direct_over_chosen"] > 1
    assert (tmp_path / "kv.html").stat().st_size > 1000
    assert (tmp_path / "kv.png").stat().st_size > 1000


@pytest.mark.check
def test_a_case_that_is_none_is_told() -> None:
    done = CliRunner().invoke(app, ["bench", "kv", "--only", "nothing of this name", "--nic", "model"])
    assert done.exit_code == 2
    assert "there are: nixl#1978 strides" in " ".join(done.output.replace("│", " ").split())
