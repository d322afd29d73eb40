"""What `lacuna bench mpi` makes of samples: rows, summary, page and picture."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lacuna.bench.messages.rows import LARGE
from lacuna.bench.mpi.page import MpiPresentation
from lacuna.bench.mpi.rows import (
    COMMIT,
    LATENCY,
    METHODS,
    Contender,
    MpiRow,
    MpiRun,
    cost_of,
    forced_from,
    name_of,
    rows_from,
)
from lacuna.bench.ranks.rows import RanksRow
from lacuna.bench.result import Mpi
from lacuna.medians import median_of

pytestmark = pytest.mark.check

TIMES = ("init_s", "alltoallw_s", "isend_s", "dissemination_s", "comm_dup_s", "finalize_s")
MEMORY = ("shared_after_exchange_kib", "shared_after_idle_kib")


def row(
    mpi: str = "a", case: str = "F 1", hand: float = 0.5, host: float = 0.8, size: int = LARGE, **other: Any
) -> MpiRow:
    made = MpiRow(
        mpi,
        case,
        case.split()[0],
        size,
        7,
        "mpi_ddt",
        "",
        True,
        10.0,
        9.0,
        11.0,
        size / 10.0,
        0.4,
        hand,
        hand - 0.1,
        hand + 0.1,
        host,
        host - 0.1,
        host + 0.1,
        99,
    )
    return replace(made, **other)


def all_methods(mpi: str, case: str) -> list[MpiRow]:
    return [row(mpi, case, method=method, preloaded=side) for side in (False, True) for method in METHODS]


def result(*rows: MpiRow) -> MpiRun:
    mpis = [
        Mpi(name, f"{name}-called", f"MPI {name} 1.0", "shm", "lib.so") for name in dict.fromkeys(r.mpi for r in rows)
    ]
    return MpiRun("0.1.0", "now", "lacuna bench mpi", {"cpu": "a CPU <1>"}, "AVX2", "GCC 12", mpis, rows=list(rows))


def test_the_summary_has_the_worst_of_many_ranks(tmp_path: Path) -> None:
    run = replace(result(row()), rows=[])
    plain, slower = (dict.fromkeys((*TIMES, *MEMORY), value) for value in (2.0, 3.0))
    run.ranks = [RanksRow("a", 16, 64, 1, plain, slower), RanksRow("a", 64, 64, 1, plain, {**plain, "isend_s": 8.0})]
    figures = run.summary()["a"]
    assert (figures["ranks_init_worst"], figures["ranks_isend_worst"]) == (1.5, 4)
    assert not any(name.startswith("ranks_") for name in result(row()).summary()["a"])
    MpiPresentation(run).write(tmp_path)
    assert "Many ranks: every row" in (tmp_path / "mpi.html").read_text()


def test_the_summary_is_of_datatypes_with_lacuna() -> None:
    found = result(
        row(case="F large", hand=0.5, host=0.9, size=LARGE),
        row(case="G large", hand=2.0, host=0.4, size=LARGE + 1),
        row(case="F small", hand=0.7, host=1.5, size=LARGE - 1),
        row(case="H large", hand=9.0, host=9.0, preloaded=False),
        row(case="H large", hand=9.0, host=9.0, method="manual"),
        row(case="H large", host=0.6, method="mpi_pack_ddt"),
        row(case="H large", host=1.2, method="reference"),
        row("b", "F large", hand=0.25, host=0.5),
    ).summary()
    assert list(found) == ["a", "b"]
    assert math.isclose(found["a"]["large_vs_hand_geomean"], 1.0), "0.5 and 2.0"
    assert math.isclose(found["a"]["small_vs_hand_geomean"], 0.7)
    assert found["a"]["vs_hand_worst"] == 1.9, "the lower end of the interval"
    assert found["a"]["vs_hand_worst_case"] == "G large"
    assert math.isclose(found["a"]["vs_host_geomean"], (0.9 * 0.4 * 1.5) ** (1 / 3))
    assert (found["a"]["vs_host_worst"], found["a"]["vs_host_worst_case"]) == (1.4, "F small")
    assert math.isclose(found["a"]["pack_vs_host_geomean"], 0.6)
    assert math.isclose(found["a"]["contiguous_vs_host_geomean"], 1.2)
    assert math.isclose(found["b"]["large_vs_hand_geomean"], 0.25)
    assert "small_vs_hand_geomean" not in found["b"]
    assert "latency_8B_extra_ns" not in found["b"]


def test_what_calls_cost() -> None:
    run = result(row())
    run.costs = [
        cost_of("a", LATENCY, [0.200, 0.300, 0.250], [0.210, 0.320, 0.260]),
        cost_of("a", COMMIT, [10.0, 12.0], [50.0, 54.0]),
    ]
    found = run.summary()["a"]
    assert math.isclose(found["latency_8B_extra_ns"], 10.0), "the median of differences, not the difference of medians"
    assert found["commit_us_1000_blocks"] == {"plain": 11.0, "preloaded": 52.0}


CASE = {"suite": "ddtbench", "family": "F", "name": "F 1", "payload_bytes": 4096, "blocks": 7}
SAMPLES: dict[Contender, Sequence[float]] = {
    (False, "manual_elements"): [4.0, 8.0, 4.0],
    (False, "manual_memcpy"): [2.0, 4.0, 2.0],
    (False, "mpi_ddt"): [5.0, 10.0, 5.0],
    (False, "mpi_pack_ddt"): [3.0, 6.0, 3.0],
    (False, "reference"): [1.0, 2.0, 1.0],
    (True, "manual_elements"): [1.5, 3.0, 1.5],
    (True, "manual_memcpy"): [2.0, 4.0, 2.0],
    (True, "mpi_ddt"): [0.5, 1.0, 0.5],
    (True, "mpi_pack_ddt"): [2.5, 5.0, 2.5],
    (True, "reference"): [1.0, 2.0, 1.0],
}


def test_ratios_are_taken_round_by_round_against_the_faster_loop_without_lacuna() -> None:
    rows = rows_from(CASE, "a", SAMPLES)
    found = {(r.preloaded, r.method): r for r in rows}
    assert len(rows) == len(found) == 8
    manual = found[False, "manual"]
    assert (manual.loop, manual.latency_us, manual.ratio_vs_hand, manual.ratio_vs_host) == ("memcpy", 2.0, 1.0, 1.0)
    assert found[True, "manual"].loop == "elements", "the faster one of this job"
    assert found[True, "manual"].ratio_vs_hand == 0.75
    ours = found[True, "mpi_ddt"]
    assert (ours.ratio_vs_hand, ours.ratio_vs_hand_low, ours.ratio_vs_hand_high) == (0.25, 0.25, 0.25)
    assert (ours.ratio_vs_host, ours.loop, ours.rounds) == (0.1, "", 3)
    assert found[False, "mpi_ddt"].ratio_vs_hand == 2.5


def test_the_best_that_is_forced_is_judged_by_the_rounds_that_did_not_choose_it() -> None:
    assert forced_from(CASE, "a", SAMPLES) == []
    forced: dict[Contender, Sequence[float]] = {
        ("automatic", "mpi_ddt"): [2.0, 2.0, 2.0, 2.0],
        ("off", "mpi_ddt"): [9.0, 9.0, 9.0, 9.0],
        ("packed", "mpi_ddt"): [1.0, 4.0, 1.0, 4.0],
        ("mapped", "mpi_ddt"): [2.0, 2.0, 2.0, 2.0],
    }
    (row,) = forced_from(CASE, "a", forced)
    # One half of the rounds chooses packed, which takes 4 in the other; the other one mapped, which takes 2.
    assert row.ratio == pytest.approx((2 / 4 * 2 / 2) ** 0.5)
    assert row.ways_us == {"packed": 2.5, "mapped": 2.0, "off": 9.0}
    assert (row.best, row.automatic_us, row.rounds) == ("mapped", 2.0, 4)
    assert len(rows_from(CASE, "a", SAMPLES | {("packed", "mpi_ddt"): [1.0] * 3})) == 8


def test_bandwidth_and_packing_overhead_are_the_papers() -> None:
    found = {(r.preloaded, r.method): r for r in rows_from(CASE, "a", SAMPLES)}
    manual = found[False, "manual"]
    assert manual.bandwidth_MBps == 2048.0, "2 * 4096 bytes in a round trip of 4 us"
    assert manual.packing_overhead == 0.5, "half of the time is not communication"
    assert found[False, "reference"].packing_overhead == 0.0
    assert found[True, "mpi_ddt"].packing_overhead == -1.0, "faster than a contiguous message"


def test_a_method_that_the_mpi_refuses_has_no_row() -> None:
    without = {key: times for key, times in SAMPLES.items() if key[1] != "mpi_pack_ddt" or key[0]}
    found = {(r.preloaded, r.method) for r in rows_from(CASE, "a", without)}
    assert len(found) == 6
    assert (True, "mpi_pack_ddt") not in found, "nothing to compare it with"


@pytest.mark.parametrize(
    ("version", "name"),
    [
        ("Open MPI v4.1.4, package: Debian OpenMPI, ident: 4.1.4", "openmpi4"),
        ("Open MPI v5.0.11, package: Open MPI user@localhost", "openmpi5"),
        ("MPICH Version: 5.0.2", "mpich5"),
        ("Intel(R) MPI Library 2021.19.0 for Linux* OS", "intelmpi"),
        ("MVAPICH2 Version : 2.3.7", "own"),
    ],
)
def test_names_of_the_summary(version: str, name: str) -> None:
    assert name_of(version, "own") == name


def test_the_document() -> None:
    document = json.loads(result(row()).to_json())
    assert document["schema"] == 1
    assert document["mpis"][0]["called"] == "a-called"
    wanted = {"mpi", "case", "family", "payload_bytes", "blocks", "method", "loop", "preloaded", "latency_us"}
    wanted |= {"bandwidth_MBps", "packing_overhead", "ratio_vs_hand", "ratio_vs_hand_low", "ratio_vs_hand_high"}
    assert wanted | {"ratio_vs_host", "ratio_vs_host_low", "ratio_vs_host_high", "rounds"} <= set(document["rows"][0])
    assert json.loads(result().to_json())["summary"] == {}


def test_a_page_and_a_picture_of_what_there_is(tmp_path: Path) -> None:
    whole = result(*(r for mpi in ("a", "b") for case in ("F<1> x", "G y") for r in all_methods(mpi, case)))
    whole.errors.append("a < b moved wrong bytes")
    whole.variables = {"LACUNA_MPI": "pack"}
    files = MpiPresentation(whole).write(tmp_path)
    assert [f.name for f in files] == ["mpi.html", "mpi.png"]
    page = files[0].read_text()
    assert "F&lt;1&gt; x" in page
    assert "a &lt; b moved wrong bytes" in page
    assert "LACUNA_MPI=pack" in page
    assert MpiPresentation(result()).write(tmp_path) == [tmp_path / "mpi.html"]


def test_the_interval_is_that_of_the_guide() -> None:
    """The ranks that guide::median_of gives (lacuna/guide/statistics.cpp), for so many values."""
    for n, first in {1: 1, 5: 1, 6: 1, 9: 2, 10: 2, 21: 7, 101: 41, 600: 276}.items():
        found = median_of(range(1, n + 1))
        assert (found.value, found.low, found.high) == ((n + 1) / 2, first, n + 1 - first), n
