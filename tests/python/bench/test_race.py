"""What all benches do: cases while there is time, contenders that go, and what is shown of a run that is not whole."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path

import pytest
from rich.console import Console

from lacuna import clock
from lacuna.bench.presentation import Picture, Presentation
from lacuna.bench.race import ask_each, cases_in_time
from lacuna.bench.result import BenchResult, Mpi, geomean_of, ratio_of
from lacuna.mpi.applications import MissingError
from lacuna.report.row_tables import MethodCell, RowTable
from lacuna.worker.json_lines import RowError
from lacuna.worker.process import WorkerError
from lacuna.worker.result import begun

pytestmark = pytest.mark.check


@pytest.fixture
def result() -> BenchResult:
    return begun(BenchResult, "lacuna bench x")


def quiet() -> Console:
    return Console(file=io.StringIO(), width=100)


def test_cases_for_which_there_is_no_time_are_left_out(result: BenchResult, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr(clock, "now", lambda: now[0])
    seen = []
    for case in cases_in_time(quiet(), result, ["a", "b", "c"], str.upper, 1.5, "cases"):
        seen.append(case)
        now[0] += 1
    assert seen == ["a", "b"]
    assert result.left_out == ["C"]


def test_a_contender_that_is_gone_does_not_come_back(result: BenchResult) -> None:
    contenders = {"dies": 1, "errs": 2, "lacks": 3, "good": 4}
    asked: list[str] = []

    def ask(name: str, _: int) -> None:
        asked.append(name)
        if name != "good":
            raise {"dies": WorkerError, "errs": RowError, "lacks": MissingError}[name]("why")

    ask_each(result, contenders, "first", ask)
    ask_each(result, contenders, "second", ask)
    assert asked == ["dies", "errs", "lacks", "good", "errs", "lacks", "good"]
    assert result.errors == ["dies: first: why", "errs: first: why", "errs: second: why"]
    assert result.left_out == ["lacks: first: why", "lacks: second: why"]


def test_what_was_not_measured_is_missing_from_a_summary() -> None:
    assert geomean_of("x", []) == {}
    assert geomean_of("x", [1.0, 4.0]) == {"x": pytest.approx(2.0)}
    assert ratio_of([2.0, 6.0, 4.0], [1.0, 2.0, 4.0]).value == 2.0


class Shown(Presentation[BenchResult]):
    name = "x"
    subject = "Things"
    heading = "Things, on this machine"
    meanings = "A number is a number."

    def figures(self) -> RowTable:
        return RowTable(["figure", "here"], [["<one>", "1.00"]])

    def pictures(self) -> Iterator[Picture]:
        yield Picture("Nothing", "x.png", None, "no picture")

    def tables(self) -> Iterator[tuple[str, str, RowTable]]:
        yield "Rows", "in words", RowTable(["way", "µs"], [[MethodCell("pack", " on mapped"), "3"]])


def test_a_run_that_is_not_whole_says_so_on_terminal_and_page(result: BenchResult, tmp_path: Path) -> None:
    result.mpis.append(Mpi("mpich5", "m", "MPICH 5.0", "shm"))
    result.errors.append("moved < wrong bytes")
    result.left_out += ["a", "b"]
    result.interrupted = True
    console = quiet()
    Shown(result).show(console)
    assert isinstance(console.file, io.StringIO)
    told = console.file.getvalue()
    for text in ("Things on this machine", "mpich5: MPICH 5.0; shm", "ERROR: moved < wrong bytes", "2 were left out"):
        assert text in told
    assert "Interrupted" in told
    assert Shown(result).write(tmp_path) == [tmp_path / "x.html"]
    page = (tmp_path / "x.html").read_text()
    for text in ("&lt;one&gt;", "moved &lt; wrong bytes", "Nothing of it was measured", "pack on mapped", "in words"):
        assert text in page
    assert "lacuna bench x --output DIR" in page
