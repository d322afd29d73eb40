"""`lacuna bench copy`: pooling and summary, the bench's client against a scripted bench, peers, and the real bench."""

from __future__ import annotations

import json
import math
import stat
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import PATIENCE
from typer.testing import CliRunner

import lacuna
from lacuna.bench.copies import families_picture
from lacuna.bench.copies import picture as copies_figures
from lacuna.bench.copies.arrays_race import ArraysRace
from lacuna.bench.copies.command import CopyBench, planned
from lacuna.bench.copies.families import ELEMENTS, FAMILIES, SIZES, drawn
from lacuna.bench.copies.figures import OPERATIONS
from lacuna.bench.copies.page import CopyPresentation
from lacuna.bench.copies.rows import CACHES, Against, Copies, CopyRow
from lacuna.bench.result import Mpi
from lacuna.cli.app import app
from lacuna.mpi import installations
from lacuna.worker.json_lines import RowError
from lacuna.worker.process import WorkerError
from lacuna.worker.protocol import parsed, read

pytestmark = pytest.mark.check

HELLO = {
    "version": "0.1.0",
    "instruction_set": "AVX2",
    "compiler": "GCC 12",
    "mpi": "",
    "machine": {"cpu": "a CPU", "kernel": "6.1"},
    "cases": [{"group": "ddtbench", "name": f"case {i}", "kind": "kind"} for i in range(13)],
    "equivalents": [{"name": "a pair", "ways": ["one", "two"]}],
}


def against(name: str, ratio: float, width: float = 0.0) -> Against:
    return Against(name, 100 / ratio, ratio, ratio - width, ratio + width)


def row(case: str = "a", operation: str = "pack", cache: str = "warm", hand: float = 0.5, size: int = 4096) -> CopyRow:
    return CopyRow(
        "irregular",
        case,
        case,
        operation,
        cache,
        size,
        16,
        64,
        99,
        100.0,
        against("hand_memcpy", hand, 0.05),
        against("memcpy", 2.0),
        against("limit", 1.25),
    )


def result(*rows: CopyRow) -> Copies:
    return Copies("0.1.0", "now", "lacuna bench copy", {"cpu": "a CPU"}, "AVX2", "GCC 12", rows=list(rows))


def test_geomeans_and_the_largest_lower_end() -> None:
    found = result(row("a", hand=0.5), row("b", hand=2.0), row("c", "unpack", hand=0.25)).summary()
    assert math.isclose(found["pack_vs_hand_geomean"], 1.0)
    assert math.isclose(found["pack_vs_hand_worst"], 1.95)
    assert math.isclose(found["unpack_vs_hand_geomean"], 0.25)
    assert "vs_best_mpi_geomean" not in found


def test_rows_below_1_kib_are_told_in_nanoseconds() -> None:
    found = result(row("small", hand=4.0, size=480), row("large", hand=0.5)).summary()
    assert math.isclose(found["pack_vs_hand_geomean"], 0.5)
    assert math.isclose(found["small_rows_worst_ns_behind_hand"], 75.0)


def test_the_best_mpi_is_the_one_that_we_are_slowest_against() -> None:
    one = row()
    one.mpi = [against("slow", 0.2), against("quick", 0.8), against("middling", 0.5)]
    assert one.best_mpi == one.mpi[1]
    found = Copies("", "", "", mpis=[Mpi("slow", "slow", "1"), Mpi("quick", "quick", "2")], rows=[one]).summary()
    assert math.isclose(found["vs_best_mpi_geomean"], 0.8)
    assert math.isclose(found["vs_slow_geomean"], 0.2)


def test_the_share_of_the_limit_counts_rows_of_whole_lines() -> None:
    found = result(row(size=16 * 64), row("short", size=16 * 63)).summary()
    assert math.isclose(found["limit_share_64_worst"], 0.8)
    assert found["limit_share_64_rows_of_85_percent"] == 0


def test_quick_takes_some_of_every_kind() -> None:
    hello = {"cases": [{"name": f"{kind} {i}", "kind": kind} for kind in ("x", "y") for i in range(7)]}
    chosen = planned(hello, quick=True)
    assert chosen == [0, 6, 7, 13]
    assert planned(hello, quick=True, pattern="Y 3") == [10]
    assert len(planned(hello, quick=False)) == 14


def test_a_page_and_a_picture_of_what_there_is(tmp_path: Path) -> None:
    whole = result(*(row(c, o, k) for c in ("a", "b<i>") for o in OPERATIONS for k in CACHES))
    whole.errors.append("a < b moved other bytes")
    whole.rows += [drawn_row("permutation", o, numpy=against("numpy", 0.2)) for o in OPERATIONS]
    files = CopyPresentation(whole).write(tmp_path)
    assert [f.name for f in files] == ["copy.html", "copy.png", "copy-families.png"]
    page = files[0].read_text()
    assert "b&lt;i&gt;" in page
    assert "a &lt; b moved other bytes" in page
    assert CopyPresentation(result()).write(tmp_path) == [tmp_path / "copy.html"]


def test_the_picture_shows_the_largest_of_each_kind() -> None:
    rows = [row("a", size=1024), row("b", size=4096)]
    for one in rows:
        one.kind = "k"
    assert [r.case for r in copies_figures.selection(rows)] == ["b"]


def test_all_panels_of_a_picture_have_grid_lines() -> None:
    whole = result(*(row("a", o, k) for o in OPERATIONS for k in CACHES))
    of_seed = [drawn_row("permutation", o) for o in OPERATIONS]
    for drawn_figure in (copies_figures.bandwidth(whole, whole.rows), families_picture.times_over_memcpy(of_seed)):
        assert drawn_figure
        assert len(drawn_figure.axes) > 2
        for axes in drawn_figure.axes:
            assert all(line.get_visible() for line in axes.get_xgridlines())


# --- layouts from a seed ----------------------------------------------------------------------------------------------


def drawn_row(family: str, operation: str = "pack", element: int = 4, size: int = 1 << 20, **others: Any) -> CopyRow:
    one = row(f"{family} of {element} B", operation, size=size)
    one.group, one.kind, one.element = "drawn", family, element
    for name, value in others.items():
        setattr(one, name, value)
    return one


def test_families_have_figures_of_their_own() -> None:
    found = result(
        row("a", hand=0.5),
        drawn_row("permutation", element=2, numpy=against("numpy", 0.25, 0.05)),
        drawn_row("permutation", "unpack", memcpy=against("memcpy", 8.0, 1.0), size=16 << 20),
        drawn_row("list", "transpack", dense_side=against("dense_side", 1.1)),
    ).summary()
    assert math.isclose(found["pack_vs_hand_geomean"], 0.5)
    assert math.isclose(found["permutation_vs_memcpy_geomean"], 4.0)
    assert math.isclose(found["permutation_vs_memcpy_worst"], 7.0)
    assert math.isclose(found["permutation_pack_vs_memcpy_geomean"], 2.0)
    assert math.isclose(found["permutation_unpack_vs_memcpy_geomean"], 8.0)
    assert math.isclose(found["permutation_2B_vs_memcpy_geomean"], 2.0)
    assert math.isclose(found["permutation_4B_and_more_vs_memcpy_geomean"], 8.0)
    assert math.isclose(found["permutation_large_vs_memcpy_geomean"], 8.0)
    assert math.isclose(found["permutation_vs_numpy_geomean"], 0.25)
    assert math.isclose(found["permutation_vs_numpy_worst"], 0.2)
    assert math.isclose(found["drawn_transpack_vs_dense_side_worst"], 1.1)
    assert "permutation_vs_torch_geomean" not in found
    assert "list_4B_vs_memcpy_geomean" not in found


def test_a_seed_draws_the_same_and_another_one_draws_others() -> None:
    cases = drawn(5, 2)
    again, more, other = drawn(5, 2), drawn(5, 3), drawn(6, 2)
    described = [case.described("pack") for case in cases]
    assert described == [case.described("pack") for case in again]
    assert all(d in [case.described("pack") for case in more] for d in described)
    assert len([d for d in described if d in [case.described("pack") for case in other]]) < 3
    assert [case.family for case in cases[: len(FAMILIES)]] == list(FAMILIES)


def test_permutations_have_each_element_in_each_size() -> None:
    cases = [case for case in drawn(1, 8) if case.family == "permutation"]
    nearest = {(c.element, min(SIZES, key=lambda size, c=c: abs(size - c.scattered.size))) for c in cases}
    assert nearest == {(element, size) for element in ELEMENTS for size in SIZES}
    assert {len(c.scattered.parts[0].described()["loops"]) for c in cases} == {2, 3, 4, 5}


def test_only_takes_a_family_or_a_part_of_a_name() -> None:
    assert {case.family for case in drawn(1, 2, "PERMUTATION")} == {"permutation"}
    assert {case.family for case in drawn(1, 4, "list of rows")} == {"list"}
    assert drawn(1, 4, "no such layout") == []


def move_all(seed: int, rows: int, most: int) -> None:
    """Both verify all contenders: the bench against the scalar reference, and Python against NumPy."""
    arrays = ArraysRace()
    with CopyBench(PATIENCE) as bench:
        for case in drawn(seed, rows):
            if case.scattered.size > most:
                continue
            for operation in case.operations:
                asked = case.described(operation)
                for cache in case.caches:
                    said = bench.ask(drawn=asked, operation=operation, cache=cache, milliseconds=0.1)
                    assert said["bytes"] == case.scattered.size
                found = arrays.measure(case, operation, 0.1)
                assert "numpy" in found or (operation == "transpack" and case.family in ("list", "triangle"))


def test_every_family_is_moved_right_from_python_and_in_the_bench() -> None:
    move_all(1, 2, 4 << 20)


@pytest.mark.gate
@pytest.mark.parametrize("seed", [2, 3])
def test_every_family_of_more_seeds_is_moved_right(seed: int) -> None:
    move_all(seed, 2, 17 << 20)


class Tensor:
    """A stand-in for torch's, of what the bench calls."""

    def __init__(self, array: np.ndarray) -> None:
        assert array.dtype in (np.uint8, np.int16, np.int32, np.int64, np.complex128)
        assert all(s >= 0 and s % array.itemsize == 0 for s in array.strides)
        self.array = array

    def copy_(self, other: Tensor) -> None:
        np.copyto(self.array, other.array)

    def index_copy_(self, axis: int, numbers: Tensor, rows: Tensor) -> None:
        assert axis == 0
        self.array[numbers.array] = rows.array


class Torch:
    """As far as the bench needs it."""

    __version__ = "9.9"
    from_numpy = Tensor

    @staticmethod
    def set_num_threads(count: int) -> None:
        assert count == 1

    @staticmethod
    def index_select(table: Tensor, axis: int, numbers: Tensor, out: Tensor) -> None:
        np.take(table.array, numbers.array, axis, out.array, "clip")


def test_torch_takes_part_where_its_tensors_can() -> None:
    arrays = ArraysRace(Torch)
    assert arrays.versions["torch"] == "9.9"
    seen: dict[tuple[str, str], bool] = {}
    for case in drawn(1, 5):
        if case.scattered.size < 3 << 20:
            for operation in case.operations:
                found = "torch" in arrays.measure(case, operation, 0.1)
                seen[case.family, operation] = seen.get((case.family, operation), False) or found
    assert all(seen["permutation", operation] for operation in OPERATIONS)
    assert all(seen["channel", operation] for operation in OPERATIONS)
    assert seen["list", "pack"]
    assert seen["list", "unpack"]
    assert not seen["list", "transpack"]
    assert not any(seen["reversal", operation] for operation in OPERATIONS)  # no negative strides
    assert not seen["triangle", "pack"]


def test_a_wrong_byte_from_python_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    case = next(c for c in drawn(1, 4, "permutation") if c.scattered.size < 2 << 20)

    def spoiling(target: Any, source: Any) -> None:
        np.copyto(target, source)
        target[(-1,) * target.ndim] = source[(0,) * source.ndim]

    monkeypatch.setattr(lacuna, "copy", spoiling)
    with pytest.raises(RowError, match="lacuna moved other bytes than numpy"):
        ArraysRace().measure(case, "transpack", 0.1)


@pytest.mark.parametrize(
    ("nest", "said"),
    [
        ({"element": 5, "offset": 0, "loops": [[4, 5]]}, "no loop by hand for elements of 5 bytes"),
        ({"element": 1, "offset": 0, "loops": [[2, 1]] * 6}, "more than five loops"),
        ({"element": 4, "offset": 64, "loops": [[5, 4]]}, "beyond its memory"),
        ({"element": 4, "offset": 0, "loops": [[5, -4]]}, "beyond its memory"),
        ({"element": 4, "offset": 0, "loops": [[4, 4]]}, "16 bytes.* 20"),
    ],
)
def test_a_layout_that_the_bench_cannot_have_is_an_error(nest: dict[str, Any], said: str) -> None:
    dense = {"span": 20, "base": 0, "nests": [{"element": 1, "offset": 0, "loops": [[20, 1]]}]}
    asked = {"name": "a", "kind": "a", "send": {**dense, "nests": [nest]}, "receive": dense}
    with CopyBench(PATIENCE) as bench, pytest.raises(RowError, match=said):
        bench.ask(drawn=asked, operation="pack", cache="warm", milliseconds=0.1)


def test_files_of_schema_2_are_still_read() -> None:
    new = parsed(result(row()).to_json())
    for name in ("element", "dense_side", "numpy", "torch"):
        del new["rows"][0][name]
    old = {k: v for k, v in new.items() if k not in ("seed", "arrays")} | {"schema": 2}
    assert read(Copies, old, "copy.json").rows == [row()]


# --- the client -------------------------------------------------------------------------------------------------------


@pytest.fixture
def scripted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Makes LACUNA_COPY_BENCH a script; a test writes its body, in which `say` prints a JSON line."""
    script = tmp_path / "bench.py"
    monkeypatch.setenv("LACUNA_COPY_BENCH", str(script))
    return script


def write(script: Path, body: str) -> None:
    head = f"#!{sys.executable}\nimport json, sys, time\ndef say(x): print(json.dumps(x), flush=True)\n"
    script.write_text(f"{head}HELLO = {HELLO!r}\n{body}\n")
    script.chmod(script.stat().st_mode | stat.S_IXUSR)


def test_rows_errors_and_a_farewell(scripted: Path) -> None:
    write(
        scripted, 'say({"hello": HELLO})\nfor l in sys.stdin: say({"row": {"a": 1}} if "1" in l else {"error": "no"})'
    )
    with CopyBench(PATIENCE) as bench:
        assert bench.hello["instruction_set"] == "AVX2"
        assert bench.ask(measure=1) == {"a": 1}
        with pytest.raises(RowError, match="no"):
            bench.ask(measure=2)
        assert bench.ask(measure=1) == {"a": 1}


@pytest.mark.parametrize(
    ("body", "said", "silence"),
    [
        ("sys.exit('broken')", "(?s)died: it exited with status 1.*broken", PATIENCE),
        ("time.sleep(3600)", "fell silent", 0.5),
        ("print('garbage', flush=True); time.sleep(3600)", "no JSON", PATIENCE),
        ('say({"row": 1}); time.sleep(3600)', "sent no hello", PATIENCE),
    ],
)
def test_a_bench_that_does_not_speak_as_agreed(scripted: Path, body: str, said: str, silence: float) -> None:
    write(scripted, body)
    with pytest.raises(WorkerError, match=said):
        CopyBench(silence)


def test_a_bench_that_dies_during_a_row(scripted: Path) -> None:
    write(scripted, 'say({"hello": HELLO})\nsys.stdin.readline()\nsys.exit("no memory")')
    with CopyBench(PATIENCE) as bench, pytest.raises(WorkerError, match="no memory"):
        bench.ask(measure=1)


# --- peers ------------------------------------------------------------------------------------------------------------


def fake_mpicc(folder: Path, body: str) -> Path:
    mpicc = folder / "mpicc"
    mpicc.write_text(f"#!/bin/sh\n{body}\n")
    mpicc.chmod(0o755)
    return mpicc


def test_peers_by_name_by_path_and_from_the_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mpicc = fake_mpicc(tmp_path, "exit 0")
    assert [p.name for p in installations.find([str(mpicc), f"other={mpicc}"])] == ["mpi1", "other"]
    monkeypatch.setenv("PATH", str(tmp_path))
    assert installations.find([])[0].mpicc == mpicc
    monkeypatch.setenv("PATH", "/nowhere")
    assert installations.find([]) == []


@pytest.mark.parametrize("options", [["/nowhere/mpicc"], ["a=/bin/true", "a=/bin/true"], ["../x=/bin/true"]])
def test_peers_that_cannot_be(options: list[str]) -> None:
    with pytest.raises(installations.MpiInstallationError):
        installations.find(options)


def test_a_compiler_that_fails_says_why(tmp_path: Path) -> None:
    peer = installations.MpiInstallation("bad", fake_mpicc(tmp_path, "echo no mpi.h >&2; exit 1"))
    with pytest.raises(installations.MpiInstallationError, match=r"no mpi\.h"):
        peer.shim(tmp_path)


# --- the real bench ---------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("still_clock")
def test_a_real_row_of_each_operation(tmp_path: Path) -> None:
    done = CliRunner().invoke(
        app, ["bench", "copy", "--only", "NAS_LU_y 33x33", "--no-mpi", "--quick", "-o", str(tmp_path)]
    )
    assert done.exit_code == 0, done.output
    data = json.loads((tmp_path / "copy.json").read_text())
    assert {(r["operation"], r["cache"]) for r in data["rows"]} == {(o, c) for o in OPERATIONS for c in CACHES}
    assert data["summary"]["pack_vs_hand_geomean"] > 0
    assert data["errors"] == []
    assert (tmp_path / "copy.png").stat().st_size > 10_000


# A contiguous halo that begins 40 bytes into a line: the limit stored whole lines there.
@pytest.mark.usefixtures("still_clock")
def test_the_limit_bears_memory_that_begins_anywhere(tmp_path: Path) -> None:
    arguments = ["bench", "copy", "--only", "halo", "--seed", "11", "--rows", "1", "--no-mpi", "--quick"]
    done = CliRunner().invoke(app, [*arguments, "-o", str(tmp_path)])
    assert done.exit_code == 0, done.output


@pytest.mark.usefixtures("still_clock")
def test_real_rows_of_a_family(tmp_path: Path) -> None:
    arguments = ["bench", "copy", "--only", "broadcast", "--seed", "9", "--rows", "2", "--no-mpi", "--quick"]
    done = CliRunner().invoke(app, [*arguments, "-o", str(tmp_path)])
    assert done.exit_code == 0, done.output
    data = json.loads((tmp_path / "copy.json").read_text())
    assert data["schema"] == 3
    assert data["seed"] == 9
    assert data["arrays"]["NumPy"] == np.__version__
    assert [r["operation"] for r in data["rows"]] == ["pack", "transpack"] * 2
    assert all(r["group"] == "drawn" and r["numpy"]["ns"] > 0 for r in data["rows"])
    assert data["summary"]["broadcast_vs_numpy_geomean"] > 0
    assert "--only 'broadcast' --seed 9 --rows 2" in data["command"]
    assert (tmp_path / "copy-families.png").stat().st_size > 10_000


def test_every_kind_of_layout_is_moved_right() -> None:
    """The bench verifies every contender of every row, gaps included, before and after it times them."""
    with CopyBench(PATIENCE) as bench:
        for case in planned(bench.hello, quick=True):
            for operation in OPERATIONS:
                bench.ask(measure=case, operation=operation, cache="warm", milliseconds=0.1)


@pytest.mark.parametrize("arguments", [["--only", "no such layout"], ["--mpi", "/nowhere/mpicc"]])
def test_wrong_usage(arguments: list[str]) -> None:
    assert CliRunner().invoke(app, ["bench", "copy", *arguments]).exit_code == 2


def test_an_mpi_if_there_is_one(tmp_path: Path) -> None:
    found = installations.find([])
    if not found:
        pytest.skip("no mpicc on the PATH: MPI_Pack was not compared")
    environment = found[0].environment()
    with CopyBench(PATIENCE, found[0].shim(tmp_path), environment) as bench:
        assert bench.hello["mpi"]
        rows = [bench.ask(measure=i, operation="pack", cache="warm", milliseconds=0.1) for i in (0, 30, 60)]
    assert all(r["contenders"][1]["name"] == "mpi" for r in rows)
