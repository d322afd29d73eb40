"""How good the choices are: regrets by hand, and a few pairs on a simulated NIC."""

from __future__ import annotations

import json
from dataclasses import replace
from math import log, sqrt
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from conftest import NIC, PATIENCE, guide, row
from lacuna._core import Guide, Layout, nic_label
from made_up_time import MadeUp as MadeUpClock

from lacuna import clock
from lacuna.bench.validation.page import ValidationPresentation
from lacuna.bench.validation.pair_measurement import Measured
from lacuna.bench.validation.picture import figure
from lacuna.bench.validation.validation import SEED, Judged, Sample, Validation, judge, validate
from lacuna.cli.options import worker_nic
from lacuna.cli.validate import needs_profile
from lacuna.guide import calibration, campaign, plan
from lacuna.guide.baselines import RULES, ruled, table3_of
from lacuna.guide.pairs import Pair
from lacuna.medians import geomean
from lacuna.worker.client import Worker
from lacuna.worker.records import Failure, Row, Way

VECTOR = Layout.vector(16, 4, 100, Layout.bytes(8))
PAIR = Pair("made up", VECTOR, Layout.bytes(512))
UMR, UMR_KERNEL = ("umr_write", "mapped", "flag"), ("umr_write", "kernel", "flag")
SGRS, PACK, PACK_KERNEL = ("sgrs", "mapped", "none"), ("pack", "mapped", "none"), ("pack", "kernel", "none")


class MadeUp:
    """A guide that chooses what it is told to."""

    warnings: tuple[str, ...] = ()

    def __init__(self, chosen: Way, predicted: dict[Way, float]) -> None:
        self.chosen, self.predicted = chosen, predicted

    def choose(self, *_: object) -> dict[str, Any]:
        return dict(zip(("method", "path", "notify"), self.chosen, strict=True))

    def explain(self, *_: object) -> tuple[str, list[dict[str, Any]]]:
        names = ("method", "path", "notify")
        ways = [{**dict(zip(names, way, strict=True)), "predicted_us": us} for way, us in self.predicted.items()]
        return "", [*ways, {"method": "umr_write", "path": "mapped", "notify": "none", "refused": "for a reason"}]


def rows(halves: dict[Way, tuple[float, float] | None]) -> list[Row]:
    subject = plan.pair_cell(PAIR, required=True).subject
    made = []
    for (method, path, notify), half_us in halves.items():
        us = sqrt(half_us[0] * half_us[1]) if half_us else 5.0
        made.append(replace(row(subject, method, us, path=path, notify=notify), half_us=half_us))
    return made


def judged(
    chosen: Way, halves: dict[Way, tuple[float, float] | None], predicted: dict[Way, float] | None = None
) -> Judged:
    made_up = MadeUp(chosen, predicted or {chosen: 1.0})
    found = judge(cast(Guide, made_up), PAIR, rows(halves), 2.7)
    assert found
    return found


def test_one_half_picks_and_the_other_is_timed() -> None:
    # The first half picks pack, which takes 2 in the second; the second picks sgrs, which takes 2 in the first.
    found = judged(PACK_KERNEL, {PACK: (1.0, 2.0), SGRS: (2.0, 1.0), PACK_KERNEL: (4.0, 3.0)})
    assert found.regret == pytest.approx(sqrt(3 / 2 * 4 / 2))
    assert found.best == PACK
    assert found.best_us == pytest.approx(2.0)
    assert found.chosen_us == pytest.approx(sqrt(12))
    assert found.message_us == 2.7


def test_a_way_that_was_lucky_once_is_not_the_one_to_reach() -> None:
    assert judged(SGRS, {PACK: (0.5, 4.0), SGRS: (2.0, 2.0)}).regret == pytest.approx(sqrt(2 / 4 * 2 / 2))


def test_the_best_has_nothing_to_regret() -> None:
    assert judged(PACK, {PACK: (1.0, 1.1), SGRS: (2.0, 2.2)}).regret == pytest.approx(1)


def test_a_row_without_halves_stands_for_both() -> None:
    assert judged(SGRS, {PACK: (2.5, 2.5), SGRS: None}).regret == pytest.approx(2)


def test_prediction_is_compared_with_both_halves() -> None:
    found = judged(PACK, {PACK: (1.0, 4.0), SGRS: (5.0, 5.0)}, {PACK: 3.0, SGRS: 4.0, UMR: 1.0})
    assert found.errors == pytest.approx((0.5, -0.2))
    assert found.predicted_us == 3.0


def test_table_3_takes_the_path_that_suits_its_method_best() -> None:
    # 16 blocks of 32 B: umr_write. The first half picks the kernel's, which takes 6 in the second.
    found = judged(PACK, {PACK: (2.0, 2.0), UMR: (8.0, 2.5), UMR_KERNEL: (4.0, 6.0)})
    assert found.rules["Table 3"].way == UMR_KERNEL
    assert found.rules["Table 3"].regret == pytest.approx(sqrt(6 / 2 * 8 / 2))


def test_table_3_is_silent_where_its_method_was_not_measured() -> None:
    found = judged(PACK, {PACK: (2.0, 2.0), SGRS: (3.0, 3.0)})
    assert "Table 3" not in found.rules
    assert found.rules["always pack"].regret == pytest.approx(1)


@pytest.mark.parametrize(
    ("block_bytes", "blocks", "method"),
    [
        (8, 59, "umr_write"),
        (65536, 1, "umr_write"),
        (8, 60, "pack"),
        (127.9, 60, "pack"),
        (128, 60, "sgrs"),
        (65536, 100000, "sgrs"),
    ],
)
def test_table_3_by_its_borders(block_bytes: float, blocks: int, method: str) -> None:
    assert table3_of(block_bytes, blocks) == method


def test_table_3_looks_at_the_side_with_more_blocks() -> None:
    fine = Layout.vector(64, 8, 100, Layout.bytes(8))
    halves: dict[Way, tuple[float, float]] = {PACK: (1.0, 1.0), UMR: (1.0, 1.0)}
    assert ruled(Pair("", fine, Layout.bytes(4096)), halves)["Table 3"].way == PACK
    assert ruled(Pair("", Layout.bytes(4096), fine), halves)["Table 3"].way == PACK
    assert ruled(PAIR, halves)["Table 3"].way == UMR


def pair_of(block: int, count: int, *, same: bool = True) -> Pair:
    blocks = Layout.vector(count, block, 2 * block, Layout.bytes(1))
    return Pair("", blocks, blocks if same else Layout.bytes(block * count))


def test_always_is_always() -> None:
    pipelined = ("pack_pipelined", "mapped", "none")
    found = ruled(pair_of(65536, 4), {PACK: (2.0, 2.0), pipelined: (3.0, 3.0), SGRS: (1.0, 1.0)})
    assert found["always pack"].regret == pytest.approx(2)
    assert found["always pack_pipelined"].regret == pytest.approx(3)


@pytest.mark.parametrize(
    ("block", "zero_copy"), [(1023, ()), (1024, ("1 KiB",)), (16384, ("1 KiB", "4 KiB", "16 KiB"))]
)
def test_zero_copy_begins_at_a_block_size(block: int, zero_copy: tuple[str, ...]) -> None:
    found = ruled(pair_of(block, 64), {PACK: (2.0, 2.0), SGRS: (1.0, 1.0)})
    for size in ("1 KiB", "4 KiB", "16 KiB", "64 KiB"):
        assert found[f"zero-copy from {size} blocks"].way == (SGRS if size in zero_copy else PACK)


def test_zero_copy_begins_at_a_payload() -> None:
    halves: dict[Way, tuple[float, float]] = {PACK: (2.0, 2.0), SGRS: (1.0, 1.0)}
    assert ruled(pair_of(8, 2048), halves)["zero-copy from 16 KiB payload"].way == SGRS
    assert ruled(pair_of(8, 2047), halves)["zero-copy from 16 KiB payload"].way == PACK


def test_a_method_that_copies_at_the_other_end_is_not_zero_copy() -> None:
    gather = ("gather_write", "mapped", "flag")
    halves: dict[Way, tuple[float, float]] = {SGRS: (3.0, 3.0), gather: (1.0, 1.0)}
    assert ruled(pair_of(16384, 4), halves)["zero-copy from 16 KiB blocks"].way == SGRS
    assert ruled(pair_of(16384, 4, same=False), halves)["zero-copy from 16 KiB blocks"].way == gather


def test_no_two_rules_have_one_name() -> None:
    assert len({rule.name for rule in RULES}) == len(RULES)


def test_a_choice_that_was_not_measured_is_an_error() -> None:
    with pytest.raises(ValueError, match="umr_write/kernel/flag was chosen, and is not among what was measured"):
        judged(UMR_KERNEL, {PACK: (1.0, 1.0)})


def test_what_tells_nobody_does_not_compete() -> None:
    silent = ("umr_write", "mapped", "none")
    assert judged(UMR, {silent: (0.1, 0.1), UMR: (1.0, 1.0), PACK: (2.0, 2.0)}).best == UMR


def test_hand_packing_does_not_compete() -> None:
    assert judged(PACK, {("by_hand_memcpy", "mapped", "none"): (0.1, 0.1), PACK: (1.0, 1.0)}).regret == 1


def test_a_pair_of_which_nothing_was_measured_is_not_judged() -> None:
    assert judge(cast(Guide, MadeUp(PACK, {})), PAIR, []) is None


def empty(nic: str = "local") -> Validation:
    return Validation("0.1.0", "now", "lacuna guide --validate", nic=nic)


def made_validation() -> Validation:
    halves: list[dict[Way, tuple[float, float] | None]] = [
        {PACK: (1.0, 1.0), UMR: (2.0, 2.0)},
        {PACK: (2.0, 2.0), UMR: (1.0, 1.0)},
        {PACK: (1.0, 1.0), SGRS: (3.0, 3.0)},
    ]
    pairs = [judged(PACK, own, {PACK: 1.1}) for own in halves]
    return Validation("0.1.0", "now", "lacuna guide --validate", nic="local", profile=["old"], pairs=pairs)


def test_the_json_has_what_it_promises() -> None:
    data = json.loads(made_validation().to_json())
    assert data.keys() >= {
        *("nic", "regret_geomean", "regret_p95", "regret_max", "prediction_error_median", "rules"),
        *("seed", "measured_again", "profile_warnings", "pairs"),
    }
    assert data["regret_geomean"] == pytest.approx(2 ** (1 / 3), rel=1e-4)
    assert data["regret_p95"] == pytest.approx(1.9)
    assert data["regret_max"] == 2
    assert data["rules"]["Table 3"] == {
        "regret_geomean": pytest.approx(sqrt(2), rel=1e-3),
        "regret_p95": pytest.approx(1.95),
        "regret_max": 2,
    }
    assert data["prediction_error_median"] == pytest.approx(0.1)
    assert (data["nic"], data["seed"], data["profile_warnings"]) == ("local", SEED, ["old"])
    assert [p["regret"] for p in data["pairs"]] == [1, 2, 1]
    assert data["pairs"][2].keys() == {
        *("name", "payload_bytes", "message_us", "chosen", "predicted_us", "chosen_us", "best", "best_us", "regret"),
        *("rules", "prediction_error_median"),
    }
    assert data["pairs"][1]["best"] == "umr_write/mapped/flag"
    assert data["pairs"][1]["rules"]["Table 3"] == ["umr_write/mapped/flag", 1]
    assert "Table 3" not in data["pairs"][2]["rules"]


def test_the_figure_draws(tmp_path: Path) -> None:
    page, picture = ValidationPresentation(made_validation()).write(tmp_path)
    assert "umr_write mapped flag" in page.read_text()
    assert picture.read_bytes().startswith(b"\x89PNG")
    drawn = figure(made_validation())
    assert drawn
    assert "3 random pairs of layouts on local" in drawn.get_suptitle()
    assert ValidationPresentation(empty()).write(tmp_path) == [tmp_path / "validation.html"]


def test_an_average_is_geometric() -> None:
    assert geomean([1.0, 4.0]) == pytest.approx(2)


@pytest.mark.parametrize(("moves", "again"), [(0, 0), (1, 1), (2, 2), (5, 2)])
def test_a_pair_during_which_the_peers_moved_is_measured_again(
    monkeypatch: pytest.MonkeyPatch, moves: int, again: int
) -> None:
    """Up to twice; the last time counts, and what failed is told of all."""
    measured: list[int] = []

    def measure_pair(*_: object, **__: object) -> Measured:
        measured.append(len(measured))
        us = 1.0 + len(measured)
        lost = Failure(f"number {len(measured)}", "made up")
        return Measured(rows({PACK: (us, us), SGRS: (1.0, 1.0)}), [lost], 2.7, len(measured) <= moves)

    made_up = MadeUp(PACK, {PACK: 1.0})
    monkeypatch.setattr("lacuna.bench.validation.validation.measure_pair", measure_pair)
    monkeypatch.setattr("lacuna.bench.validation.validation.Guide", lambda *_, **__: made_up)
    worker = cast(Worker, SimpleNamespace(hello=SimpleNamespace(nic=NIC)))
    made = empty()
    validate(worker, made, lambda *_: None, Sample(1))
    assert (len(measured), made.again) == (again + 1, again)
    assert [p.regret for p in made.pairs] == [pytest.approx(again + 2)]
    assert [e.partition(": ")[2] for e in made.errors] == [f"number {i + 1}" for i in range(again + 1)]


def test_no_pair_is_measured_again_when_time_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    made_up = MadeUpClock()
    monkeypatch.setattr(clock, "now", made_up.now)

    def measure_pair(*_: object, **__: object) -> Measured:
        made_up.sleep(0.25)
        return Measured(rows({PACK: (1.0, 1.0)}), [], 2.7, moved=True)

    monkeypatch.setattr("lacuna.bench.validation.validation.measure_pair", measure_pair)
    monkeypatch.setattr("lacuna.bench.validation.validation.Guide", lambda *_, **__: MadeUp(PACK, {PACK: 1.0}))
    worker = cast(Worker, SimpleNamespace(hello=SimpleNamespace(nic=NIC)))
    made = empty()
    validate(worker, made, lambda *_: None, Sample(2, latest=0.2))
    assert (len(made.pairs), made.again) == (1, 0)


# --- with the worker, on a simulated NIC


def test_a_few_pairs_are_judged_without_a_profile(simulated: Worker) -> None:
    told: list[tuple[int, int]] = []
    nic = nic_label(worker_nic("model"))
    assert needs_profile(nic)
    made = empty(nic)
    validate(simulated, made, lambda done, count, _: told.append((done, count)), Sample(6))
    assert told == [(i, 6) for i in range(1, 7)]
    assert made.errors == []
    assert len(made.pairs) == 6
    assert all(p.regret >= 1 for p in made.pairs)  # a simulated NIC has no noise
    assert all(p.chosen[1] == "wire" and p.message_us == 0 for p in made.pairs)
    assert any("nothing was measured here" in warning for warning in made.profile)
    assert json.loads(made.to_json())["nic"] == "model:connectx5-rocev2"


@pytest.mark.usefixtures("still_clock")
def test_a_fit_to_some_pairs_chooses_well_for_others(simulated: Worker) -> None:
    hello = simulated.hello
    cells = plan.counted(plan.simulated(plan.pair_cells(36)), hello)
    result = replace(guide(), nic=hello.nic, methods=hello.methods, machine=hello.machine)
    campaign.measure(simulated, cells, result, PATIENCE, 50, lambda *_: None)
    assert result.errors == []
    assert {r.subject for r in result.rows} == {c.subject for c in cells}
    profile = calibration.calibrate(result, cells)
    assert profile
    file = profile.store(hello.nic.name)
    assert not needs_profile(hello.nic.name)
    (peers,) = json.loads(file.read_text())["classes"]
    assert (peers["message_us"], list(peers["paths"])) == (0.0, ["wire"])
    made = empty(hello.nic.name)
    validate(simulated, made, lambda *_: None, Sample(10))
    assert made.errors == []
    assert len(made.pairs) == 10
    assert made.regret_geomean < 1.15
    assert log(made.regret_geomean) >= 0
