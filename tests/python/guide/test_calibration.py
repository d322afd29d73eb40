"""From a run's rows to a profile, and what becomes of the file that holds it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import grid_subject, look, row
from fake_messages import EXCHANGES
from lacuna._core import Layout, price_names, usual_prices
from synthetic import ONE_PATH, WAYS, billed, run_of, some_pairs

from lacuna import _core
from lacuna.guide import calibration
from lacuna.guide.calibration import PeerClass, Profile, classes_of, message_times, observations
from lacuna.guide.fitting import Fitted, limits_text
from lacuna.guide.run_record import Look
from lacuna.worker.hardware import Nic
from lacuna.worker.records import Probe, Subject

pytestmark = pytest.mark.check

VECTOR = Layout.vector(16, 4, 100, Layout.bytes(8))
NEAR, FAR = 2.7, 9.0


def subjects(count: int) -> list[Subject]:
    return [grid_subject(block_bytes=8 * (i + 1)) for i in range(count)]


def noisy(message_us: float, count: int, spread: float = 0.03, seed: int = 1) -> list[float]:
    return [float(message_us * np.exp(x)) for x in np.random.default_rng(seed).normal(0, spread, count)]


# --- classes of peers


def test_near_and_far_peers_are_two_classes() -> None:
    cells = subjects(60)
    times = dict(zip(cells, noisy(NEAR, 40) + noisy(FAR, 20), strict=True))
    assert classes_of(times) == [set(cells[:40]), set(cells[40:])]


@pytest.mark.parametrize("spread", [0.01, 0.1, 0.3])
def test_one_state_with_noise_is_one_class(spread: float) -> None:
    cells = subjects(60)
    assert classes_of(dict(zip(cells, noisy(NEAR, 60, spread), strict=True))) == [set(cells)]


def test_peers_on_one_core_are_a_third_class() -> None:
    cells = subjects(60)
    times = dict(zip(cells, noisy(1.4, 14, 0.01) + noisy(NEAR, 30) + noisy(FAR, 16), strict=True))
    assert classes_of(times) == [set(cells[:14]), set(cells[14:44]), set(cells[44:])]


def test_a_few_far_cells_are_no_class() -> None:
    cells = subjects(60)
    assert classes_of(dict(zip(cells, noisy(NEAR, 52) + noisy(FAR, 8), strict=True))) == [set(cells)]


def test_two_states_that_are_nearly_alike_are_one_class() -> None:
    cells = subjects(60)
    assert classes_of(dict(zip(cells, noisy(NEAR, 30) + noisy(1.5 * NEAR, 30), strict=True))) == [set(cells)]


def test_nothing_has_no_class() -> None:
    assert classes_of({}) == []


def test_of_looks_those_that_count_tell_the_time_of_a_message() -> None:
    near, far = subjects(2)
    looks = [look(near, Probe(NEAR, 7, 7)), look(far, Probe(NEAR, 7, 7), counts=False), look(far, Probe(FAR, 7, 7))]
    assert message_times(looks) == {near: NEAR, far: FAR}


def moving(subject: Subject, *messages_us: float) -> Look:
    one = look(subject)
    return replace(one, conditions=replace(one.conditions, probes=tuple(Probe(us, 7, 7) for us in messages_us)))


def test_a_cell_during_which_the_peers_moved_is_of_no_class() -> None:
    still, left, jolted = subjects(3)
    looks = [
        moving(still, *[NEAR] * 5),
        moving(left, NEAR, NEAR, NEAR, FAR, FAR),
        moving(jolted, NEAR, NEAR, NEAR, FAR),
    ]
    assert message_times(looks) == {still: NEAR, jolted: NEAR}
    assert message_times(looks, still=True) == {still: NEAR, left: NEAR, jolted: NEAR}
    assert message_times(looks[1:2]) == {left: NEAR}  # better than nothing


# --- from rows to a profile


def test_only_own_methods_that_were_not_given_up_are_fitted() -> None:
    subject = grid_subject()
    rows = [
        row(subject, "pack", 2.0),
        row(subject, "sgrs", 3.0),
        row(subject, "multi_write", 1e5, notify="imm", censored=True),
        row(subject, "by_hand_memcpy", 1.0),
        row(grid_subject(128), "pack", 2.0),
    ]
    (own,) = observations(rows, {subject: (VECTOR, VECTOR)}).values()
    assert [(o.row.method, o.behind) for o in own] == [("pack", 1.0), ("sgrs", 1.5)]


def test_a_run_gives_a_profile_of_its_peers() -> None:
    run, cells = run_of(some_pairs(30))
    profile = calibration.calibrate(run, cells)
    assert profile
    (measured,) = profile.classes
    assert measured.message_us == pytest.approx(NEAR)
    (path,) = measured.paths
    assert path.path == "mapped"
    assert len(path.errors) == 30 * len(WAYS)
    assert path.error_median < 0.02
    assert (profile.lacuna_version, profile.created) == (run.lacuna_version, run.created)


def test_what_slow_moments_took_is_taken_as_at_the_usual_speed() -> None:
    """While the clock is slow, a message and all ways take longer alike."""
    usual = np.array(usual_prices("mapped", NEAR))
    takes_time = np.array([not name.endswith("_bytes") for name in price_names()])
    times = [NEAR * factor for factor in np.linspace(0.85, 1.2, 31)]
    usual_us = float(np.median(times))
    slowness = [_core.speed_factor(us, usual_us) for us in times]
    assert (min(slowness), max(slowness)) == pytest.approx((0.87, 1.12), abs=0.02)
    run, cells = run_of(some_pairs(31), lambda i: times[i], lambda i: list(usual * slowness[i] ** takes_time))
    profile = calibration.calibrate(run, cells)
    assert profile
    (measured,) = profile.classes
    assert measured.message_us == pytest.approx(usual_us)
    assert measured.paths[0].error_median < 0.02
    took = [s[f"{WAYS[0][0]}/{WAYS[0][1]}/{WAYS[0][2]}"] for s in measured.seen.values()]
    assert took == pytest.approx(list(billed(some_pairs(31), list(usual))[:: len(WAYS), 0]), rel=1e-6)


def test_near_and_far_peers_have_prices_of_their_own() -> None:
    near = usual_prices("mapped", NEAR)
    slower = [p * (1 if name.endswith("_bytes") else 3) for name, p in zip(price_names(), near, strict=True)]
    run, cells = run_of(some_pairs(50), lambda i: NEAR if i < 30 else FAR, lambda i: near if i < 30 else slower)
    profile = calibration.calibrate(run, cells)
    assert profile
    assert [c.message_us for c in profile.classes] == pytest.approx([NEAR, FAR])  # the one with more rows is first
    unseen = some_pairs(20, seed=9)
    expected = [billed(unseen, list(c.paths[0].prices.values()))[:, 0] for c in profile.classes]
    assert np.median(expected[1] / expected[0]) == pytest.approx(3, rel=0.15)


FEW = 12
"""Cells, enough for a class, with too few rows for prices."""


def test_a_class_with_few_rows_is_left_to_the_usual_prices() -> None:
    run, cells = run_of(some_pairs(60), lambda i: NEAR if i < 60 - FEW else FAR)
    profile = calibration.calibrate(run, cells)
    assert profile
    assert [c.message_us for c in profile.classes] == pytest.approx([NEAR])
    assert len(profile.classes[0].paths[0].errors) == (60 - FEW) * len(WAYS)
    assert profile.unclassed == FEW


def test_bindings_have_prices_of_their_own() -> None:
    run, cells = run_of(some_pairs(12))
    profile = calibration.calibrate(run, cells, [(16, 1.0 + 0.016), (256, 1.0 + 0.256), (2048, 1.0 + 2.048)])
    assert profile
    prices = profile.classes[0].paths[0].prices
    assert prices["bind"] == pytest.approx(1000)
    assert prices["bind_entry"] == pytest.approx(1)


# --- the file


def profile_of(
    message_us: float, copying: float = 1.0, version: str = _core.__version__, nic: Nic = ONE_PATH, path: str = "mapped"
) -> Profile:
    """Of the usual prices, but that copying costs so many times as much."""
    usual = dict(zip(price_names(), usual_prices(path, message_us), strict=True))
    for name in ("copy_call", "pack_run", "unpack_run", "pack_byte", "unpack_byte"):
        usual[name] *= copying
    return Profile(
        version, "2030-01-02T03:04:05Z", nic, [PeerClass(message_us, [Fitted(path, usual, {}, np.zeros(3))])]
    )


def stored(file: Path) -> dict[str, Any]:
    found = json.loads(file.read_text())
    assert isinstance(found, dict)
    return found


def messages(file: Path) -> list[float]:
    return [c["message_us"] for c in stored(file)["classes"]]


def test_a_stored_profile_is_found_and_chosen_by(no_settings_of_the_user: Path) -> None:
    limits = limits_text(ONE_PATH)
    assert _core.Guide(limits=limits).warnings
    chosen = []
    for copying in (0.01, 1000.0):
        file = profile_of(NEAR, copying).store("local")
        assert no_settings_of_the_user in file.parents
        guides = (_core.Guide(limits=limits), _core.Guide(limits=limits, profile=str(file)))
        assert [g.warnings for g in guides] == [[], []]
        found, named = (g.choose(VECTOR, VECTOR) for g in guides)
        assert found == named
        chosen.append(found["method"])
    assert chosen[0].startswith("pack")
    assert not chosen[1].startswith("pack")


def test_the_file_says_what_was_measured_where() -> None:
    document = stored(profile_of(NEAR).store("local"))
    (peers,) = document.pop("classes")
    assert peers["message_us"] == NEAR
    assert peers["paths"]["mapped"].keys() == {"prices", "biases", "error_median", "error_p90", "rows"}
    assert document == {
        "schema": 3,
        "lacuna_version": _core.__version__,
        "created": "2030-01-02T03:04:05Z",
        "nic": "local",
        "peers": "same machine",
        "machine": _core.machine_name(),
    }


def test_a_class_that_the_new_run_has_not_seen_is_kept() -> None:
    profile_of(FAR).store("local")
    file = profile_of(NEAR).store("local")
    assert messages(file) == [NEAR, FAR]
    assert messages(profile_of(NEAR).store("local")) == [NEAR, FAR]
    (note,) = calibration.Stored(profile_of(NEAR), file).notes()
    assert note.endswith("2.7 µs, 9.0 µs")
    file = profile_of(1.2 * FAR).store("local")  # of the same class as the one before, which it replaces
    assert messages(file) == [round(1.2 * FAR, 3), NEAR]
    assert _core.Guide(limits=limits_text(ONE_PATH), profile=str(file), message_us=NEAR).warnings == []


def test_times_of_messages_are_kept_until_there_are_newer_ones() -> None:
    axes = _core.message_axes()

    def times(ns: float) -> dict[str, Any]:
        ways = {
            way: [ns if run <= size else 0 for size in of["bytes"] for run in of["runs"]] for way, of in axes.items()
        }
        return {**axes["wide"], "ns": {"regular": ways, "listed": ways}}

    first = replace(profile_of(NEAR), messages=times(100)).store("local")
    _core.check_profile(str(first))
    assert stored(profile_of(NEAR).store("local"))["messages"] == times(100)
    assert stored(replace(profile_of(NEAR), messages=times(200)).store("local"))["messages"] == times(200)
    first.write_text(json.dumps({**stored(first), "machine": "another"}))
    assert "messages" not in stored(profile_of(NEAR).store("local"))


def test_prices_of_exchanges_are_kept_until_there_are_newer_ones() -> None:
    first = replace(profile_of(NEAR), exchanges=EXCHANGES).store("local")
    _core.check_profile(str(first))
    assert stored(first)["exchanges"] == EXCHANGES
    assert stored(profile_of(NEAR).store("local"))["exchanges"] == EXCHANGES
    newer = {**EXCHANGES, "latency": 900.0}
    assert stored(replace(profile_of(NEAR), exchanges=newer).store("local"))["exchanges"] == newer


def test_an_earlier_file_is_kept_whatever_is_forced(monkeypatch: pytest.MonkeyPatch) -> None:
    profile_of(FAR).store("local")
    monkeypatch.setenv("LACUNA_METHOD", "none such")
    assert messages(profile_of(NEAR).store("local")) == [NEAR, FAR]


def test_classes_of_schema_2_are_kept_under_the_new_name_of_biases() -> None:
    file = profile_of(FAR).store("local")
    document = stored(file)
    biases = {"pack": [0.5] * 8}
    (path,) = document["classes"][0]["paths"].values()
    del path["biases"]
    path["leans"] = biases
    file.write_text(json.dumps({**document, "schema": 2}))
    _core.check_profile(str(file))
    file = profile_of(NEAR).store("local")
    assert messages(file) == [NEAR, FAR]
    assert stored(file)["classes"][1]["paths"]["mapped"]["biases"] == biases


@pytest.mark.parametrize("member", ["machine", "lacuna_version", "nic", "schema"])
def test_what_is_of_another_machine_nic_or_version_is_dropped(member: str) -> None:
    file = profile_of(FAR).store("local")
    document = stored(file)
    file.write_text(json.dumps({**document, member: 1 if member == "schema" else "another"}))
    assert messages(profile_of(NEAR).store("local")) == [NEAR]


@pytest.mark.parametrize(
    "text", ["", "nonsense", "[]", "{}", '{"schema": 3}', "\udcff", '{"classes": 3}', '"text"', "null"]
)
def test_a_corrupt_earlier_file_is_no_problem(text: str) -> None:
    file = profile_of(FAR).store("local")
    file.write_bytes(text.encode(errors="surrogateescape"))
    assert messages(profile_of(NEAR).store("local")) == [NEAR]


@pytest.mark.parametrize(
    "classes",
    [
        *(3, [3], [{}], [{"message_us": "far"}], [{"message_us": 0}], [{"message_us": -1}]),
        [{"message_us": NEAR, "paths": {"mapped": {"rows": 1_000_000}}}],
        [{"message_us": FAR, "paths": {"mapped": {"rows": 1_000_000, "prices": {"post": -1.0}, "biases": {}}}}],
    ],
)
def test_corrupt_classes_of_an_earlier_file_are_no_problem(classes: object) -> None:
    file = profile_of(FAR).store("local")
    file.write_text(json.dumps({**stored(file), "classes": classes}))
    assert messages(profile_of(NEAR).store("local")) == [NEAR]


def test_a_named_file_takes_the_profile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    named = tmp_path / "deep" / "mine.json"
    monkeypatch.setenv("LACUNA_PROFILE", str(named))
    assert profile_of(NEAR).store("local") == named
    assert messages(named) == [NEAR]


def test_a_simulated_nic_has_a_profile_that_is_the_same_everywhere() -> None:
    wire = replace(ONE_PATH.paths[0], name="wire", mover="device", unit_bytes=1024)
    nic = replace(ONE_PATH, name="model:connectx5-rocev2", paths=(wire,))
    file = profile_of(0.0, nic=nic, path="wire").store(nic.name)
    assert file.parent.name == "simulated"
    assert file.name == "model-connectx5-rocev2.json"
    document = stored(file)
    assert (document["nic"], document["machine"], document["peers"]) == (nic.name, "simulated", "another machine")
    guide = _core.Guide(nic.name, limits=limits_text(nic))
    assert guide.warnings == []
    assert guide.choose(VECTOR, VECTOR)["path"] == "wire"
    again = profile_of(0.0, copying=2.0, nic=nic, path="wire").store(nic.name)
    assert messages(again) == [0.0]  # one class, whatever was there


@pytest.mark.parametrize("seen", [3, [3], [{}], [{"pair": [1], "cold": False, "us": [1.0, 2.0]}], {"a": 1}])
def test_corrupt_pairs_of_an_earlier_file_are_no_problem(seen: object) -> None:
    file = profile_of(NEAR).store("local")
    document = stored(file)
    document["classes"][0] |= {"ways": ["pack/mapped/none"], "seen": seen}
    file.write_text(json.dumps(document))
    assert stored(profile_of(NEAR).store("local"))["classes"][0]["seen"] == []
