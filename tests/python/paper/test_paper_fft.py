"""What F12, F13 and R5.1.1 say of runs that are made up."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from rich.console import Console

from lacuna.mpi import applications
from lacuna.mpi.installations import MpiInstallation
from lacuna.paper import fft_command
from lacuna.paper import page as report
from lacuna.paper.fft_runs import Plan, Row, Runs
from lacuna.paper.results import Results
from lacuna.paper.section import Section
from lacuna.paper.sections.fft import APPLICATIONS, f12a, f12b, f13, r511

MPIS = ("openmpi4", "intelmpi")


def row(mpi: str, n: int, variant: str, us: tuple[float, float, float], ranks: int = 2, preloaded: bool = False) -> Row:
    fft, packing, communication = us
    exchange = packing + communication
    named = {"fft": fft, "packing": packing, "communication": communication, "exchange": exchange}
    return Row(mpi, f"{mpi} 1.0", preloaded, ranks, n, variant, named | {"whole": fft + exchange}, 1e-16)


def holds(section: Section) -> list[bool]:
    return [f.holds for f in section.findings]


def test_shares_by_size() -> None:
    plan = Plan((256, 1024))
    grows = [row(m, n, "none", (50, n / 100, 40 - n / 100)) for m in MPIS for n in plan.ns]
    section = f12a(Runs(grows), plan)
    assert holds(section) == [True]
    assert "openmpi4: packing 3 to 11 %, communication 42 to 33 %" in section.findings[0].got
    assert [line.name for line in section.plots[0].lines] == ["packing", "communication", "transforms"]
    falls = [*grows[:2], *(row("intelmpi", n, "none", (50, 40 - n / 100, n / 100)) for n in plan.ns)]
    assert holds(f12a(Runs(falls), plan)) == [False]


def test_shares_by_ranks() -> None:
    plan = Plan((512,), (2, 4))
    runs = Runs([row(m, 512, "none", (50, 20, 10 * r), r) for m in MPIS for r in plan.ranks])
    assert holds(f12b(runs, plan)) == [True]


def times(factors: dict[tuple[str, bool], float], ns: tuple[int, ...]) -> Runs:
    return Runs(
        [row(m, n, v, (1, 0, n * f), preloaded=p) for m in MPIS for n in ns for (v, p), f in factors.items()],
    )


def test_four_variants() -> None:
    plan = Plan((256, 512))
    documents = {("none", False): 4.0, ("send", False): 5.0, ("recv", False): 50.0, ("both", False): 60.0}
    runs = times({**documents, ("both", True): 1.9, ("native", False): 2.1}, plan.ns)
    section = f13(runs, plan)
    assert holds(section) == [True, True, True]
    assert "0.47 (openmpi4, both, preloaded; by hand: openmpi4)" in section.findings[2].got
    assert section.grids[0].rows[0] == ["openmpi4, plain", "2.05", "2.56", "25.6", "30.7", "1.08"]
    assert [line.name for line in section.plots[0].lines if line.dashed] == ["both, preloaded"]
    others = times({**documents, ("recv", False): 3.0, ("both", True): 2.2}, plan.ns)
    assert holds(f13(others, plan)) == [False, False, False]


def test_an_mpi_that_failed_is_no_part_of_it() -> None:
    plan = Plan((256,))
    whole = times({(v, False): 1.0 for v in ("none", "send", "recv", "both")}, plan.ns)
    part = Runs([r for r in whole.rows if (r.mpi, r.variant) != ("intelmpi", "both")])
    assert [p.title for p in f13(part, plan).plots] == ["openmpi4"]
    assert f13(Runs(whole.rows[:1]), plan).findings == []


def test_the_median_is_over_jobs() -> None:
    runs = Runs([row("openmpi4", 64, "none", (1, 0, t)) for t in (3.0, 900.0, 5.0)])
    assert runs.us("openmpi4", 64, "none") == 5.0
    assert runs.us("openmpi4", 64, "both") is None


@pytest.mark.parametrize(("small", "large", "loaded"), [(0.9, 100.0, 0.9), (1.1, 0.8, 1.2)])
def test_receiving(small: float, large: float, loaded: float) -> None:
    plan = Plan((48, 2560))
    rows = []
    for mpi in MPIS:
        for n, ratio in zip(plan.ns, (small, large), strict=True):
            rows += [row(mpi, n, "none", (0, 0, 100)), row(mpi, n, "recv", (0, 0, 100 * ratio))]
            rows += [row(mpi, n, "none", (0, 0, 50), preloaded=True)]
            rows += [row(mpi, n, "recv", (0, 0, 50 * loaded), preloaded=True)]
    section = r511(Runs(rows), plan)
    assert holds(section) == [large > 1, small < 1, loaded <= 1.05]
    assert section.grids[0].rows[1] == ["openmpi4, preloaded", f"{loaded:.2f}", f"{loaded:.2f}"]


class StopsAfterOneJob:
    """A program that is interrupted when it runs for the second time."""

    def __init__(self) -> None:
        self.jobs = 0

    def run(self, arguments: dict[str, str], **_: object) -> list[dict[str, object]]:
        self.jobs += 1
        if self.jobs > 1:
            raise KeyboardInterrupt
        us = {"fft": 1, "packing": 1, "communication": 1, "exchange": 2, "whole": 3}
        verified = {"error": 1e-16}
        return [
            {"mpi": "Open MPI 5", "n": int(n), "variant": variant, "us": us, "verified": verified}
            for n in arguments["n"].split(",")
            for variant in arguments["variant"].split(",")
        ]


@pytest.mark.usefixtures("still_clock")
def test_an_interruption_leaves_what_was_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(applications, "missing", lambda _: "")
    program = StopsAfterOneJob()
    monkeypatch.setattr(applications, "build", lambda *_: program)
    results = Results("0", "lacuna paper f13")
    chapter = next(c for c in APPLICATIONS if c.name == "f13")
    with pytest.raises(KeyboardInterrupt):
        fft_command.measure(Console(quiet=True), [chapter], [MpiInstallation("some", Path())], results, quick=True)
    assert len(results.fft) == len(chapter.quick[0].ns) * len(chapter.quick[0].variants)
    assert [section.id for section in results.sections] == ["F13"]


def test_report(tmp_path: Path) -> None:
    chapter = next(c for c in APPLICATIONS if c.name == "f13")
    runs = times({(v, False): 1.0 for v in ("none", "send", "recv", "both", "native")}, chapter.quick[0].ns)
    results = Results("0", "lacuna paper f13", [f13(runs, chapter.quick[0])], runs.rows, left_out=["f13: a <reason>"])
    files = report.write(results, tmp_path)
    assert [f.name for f in files] == ["paper.html", "f13.png"]
    page = files[0].read_text()
    assert "a &lt;reason&gt;" in page
    assert "Measured on this machine" in page
    assert "virtual time" not in page.split("</h1>")[0]
    told = json.loads(results.to_json())
    assert told["fft"][0]["us"]["exchange"] == runs.rows[0].us["exchange"]
    assert told["left_out"] == ["f13: a <reason>"]
