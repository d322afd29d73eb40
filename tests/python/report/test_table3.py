"""Table 3 of the paper beside what was measured and what the fitted prices choose."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from conftest import NIC, grid_subject, guide, row
from lacuna._core import price_names, usual_prices

from lacuna import _core
from lacuna.guide.calibration import PeerClass, Profile, Stored
from lacuna.guide.contests import Grid, contests, grids
from lacuna.guide.fitting import Fitted, limits_text
from lacuna.guide.run_record import Guide
from lacuna.report import table3
from lacuna.report.guide_page import write

pytestmark = pytest.mark.check

TIMES = {
    # Table 3 says umr_write, as there are few blocks.
    (64, 16): {"pack": 2.0, "pack_write": 1.0, "sgrs": 5.0, "umr_write": 4.0},
    # Small blocks, and many: pack.
    (64, 256): {"pack": 3.0, "pack_write": 2.0, "sgrs": 9.0, "umr_write": 9.0},
    # Large ones, and many: sgrs.
    (4096, 256): {"pack": 90.0, "pack_write": 80.0, "sgrs": 40.0, "umr_write": 50.0},
}
OTHERS = (
    "pack_pipelined",
    "gather_write",
    "scatter_read",
    "umr_read",
    "linked_write",
    "multi_write",
    "umr_send",
    "umr_chunked",
)
"""Slower in all cells, but measured, so that whatever is chosen has a time."""
SLOW_US = 200.0
THEIRS = {(64, 16): ("umr_write", 4.0), (64, 256): ("pack", 1.5), (4096, 256): ("sgrs", 1.0)}
PATHS = replace(NIC, paths=NIC.paths[:1])


def measured() -> Guide:
    found = guide(
        *(
            row(grid_subject(*cell), method, us, notify="flag" if method.endswith("_write") else "none")
            for cell, times in TIMES.items()
            for method, us in (times | dict.fromkeys(OTHERS, SLOW_US)).items()
        )
    )
    return replace(found, nic=PATHS)


def grid_of(found: Guide) -> Grid:
    (grid,) = grids(contests(found))
    return grid


@pytest.fixture
def stored() -> Stored:
    prices = dict(zip(price_names(), usual_prices("mapped", 2.7), strict=True))
    fitted = Fitted("mapped", prices, {}, np.zeros(1))
    profile = Profile(_core.__version__, "2030-01-02T03:04:05Z", PATHS, [PeerClass(2.7, [fitted])])
    return Stored(profile, profile.store("local"))


def test_each_cell_says_how_far_table_3_is_from_the_best(stored: Stored) -> None:
    found = table3.beside(grid_of(measured()), stored)
    assert {(b.block_bytes, b.block_count): (b.table3.method, b.table3_times) for b in found} == THEIRS


def test_each_cell_says_what_the_fitted_prices_choose(stored: Stored) -> None:
    choices = _core.Guide(limits=limits_text(PATHS), profile=str(stored.file))
    for b in table3.beside(grid_of(measured()), stored):
        times = TIMES[b.block_bytes, b.block_count]
        send, receive = _core.case_layouts(
            f'{{"kind": "grid", "block_bytes": {b.block_bytes}, "block_count": {b.block_count}}}'
        )
        assert b.ours.method == choices.choose(send, receive)["method"]
        assert b.ours_times == pytest.approx(times.get(b.ours.method, SLOW_US) / min(times.values()))


def test_a_cell_without_table_3s_method_is_left_out(stored: Stored) -> None:
    found = measured()
    found.rows = [r for r in found.rows if (r.method, r.subject.block_bytes) != ("sgrs", 4096)]
    cells = {(b.block_bytes, b.block_count) for b in table3.beside(grid_of(found), stored)}
    assert cells == {(64, 16), (64, 256)}


def test_the_section_shows_both_and_their_averages(stored: Stored) -> None:
    grid = grid_of(measured())
    text = table3.part([grid], stored)
    assert "Table 3 beside ours" in text
    theirs = np.exp(np.mean([np.log(b.table3_times) for b in table3.beside(grid, stored)]))
    assert f"Here it takes {theirs:.2f} times as long as the best way on average" in text
    assert text.count("<tr") == 1 + len(table3.beside(grid, stored)) + 1 + len(table3.regrets([grid], stored))


def test_each_rule_is_judged_on_each_cell(stored: Stored) -> None:
    found = table3.regrets([grid_of(measured())], stored)
    assert found["Table 3"] == pytest.approx([4.0, 1.5, 1.0])
    assert found["always pack"] == pytest.approx([2.0, 1.5, 90 / 40])
    assert found["always pack_pipelined"] == pytest.approx([SLOW_US, SLOW_US / 2, SLOW_US / 40])
    assert found["zero-copy from 4 KiB blocks"] == pytest.approx([2.0, 1.5, 1.0])
    assert len(found["Lacuna"]) == 3


def test_without_a_profile_or_a_grid_there_is_no_section(stored: Stored) -> None:
    assert table3.part([grid_of(measured())], None) == ""
    assert table3.part([], stored) == ""
    cold = grid_of(guide(row(grid_subject(cache="cold"), "pack", 1.0)))
    assert table3.part([cold], stored) == ""


@pytest.mark.gate
def test_the_report_has_the_section_where_there_is_a_profile(
    full_guide: Guide, stored: Stored, tmp_path_factory: pytest.TempPathFactory
) -> None:
    # A hand-made guide as large as a report needs, with what Table 3 asks for.
    full_guide.nic = PATHS
    full_guide.rows += [row(grid_subject(16, n), "umr_write", 3.0, notify="flag") for n in (4, 64)]
    full_guide.rows += [row(grid_subject(16, n), "pack_write", 2.0, notify="flag") for n in (4, 64, 1024)]
    for profile in (stored, None):
        folder = tmp_path_factory.mktemp("report")
        write(full_guide, folder, profile)
        assert ("Table 3 beside ours" in (folder / "report.html").read_text()) == (profile is not None)
