"""bench.html and bench.png: every experiment with its figure, the finding to compare with, numbers and counters."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path

from lacuna.bench.methods import picture as bench_figures
from lacuna.bench.methods.experiments import MethodRun
from lacuna.bench.methods.places import Spot, View, here, views
from lacuna.files import write_whole
from lacuna.report.html import (
    Number,
    Raw,
    code,
    figure,
    heading,
    method_name,
    paragraph,
    section,
    swatch,
    table,
    text,
)
from lacuna.report.run_sections import run_page
from lacuna.report.style import svg
from lacuna.worker.records import Row

_SHOWN = {
    "latency": "One-way latency (µs) of each method on whichever path was fastest",
    "bandwidth": "Bandwidth (MB/s) of each method on whichever path was fastest, one transfer at a time",
    "split": "One-way latency (µs) of each method on whichever path was fastest, in brackets what both CPUs copied",
}


def write(bench: MethodRun, directory: Path) -> list[Path]:
    """Writes the page, and the picture if there is something to draw. Returns the files."""
    found = views(bench)
    html = directory / "bench.html"
    write_whole(html, _page(bench, found))
    if not found:
        return [html]
    picture = directory / "bench.png"
    bench_figures.write_png(picture, f"{bench.machine.cpu}, NIC {bench.nic.name}: experiments with methods", found)
    return [html, picture]


def _page(bench: MethodRun, found: Sequence[View]) -> str:
    again = section("How to run it again", code(f"{bench.command} --output DIR"))
    title = f"Lacuna bench: {bench.machine.cpu}, {bench.nic.name}"
    heading_text = "Known experiments with scattered data, on this machine"
    return run_page(bench, title, heading_text, map(_experiment, found), again)


def _experiment(view: View) -> Raw:
    e = view.experiment
    conditions = e.conditions[:1].upper() + e.conditions[1:]
    found = "".join(paragraph(Raw(f"<b>Here:</b> {text(line)}.")) for line in here(view))
    return section(
        f"{e.id}: {e.title}",
        paragraph(f"{conditions}."),
        figure(svg(bench_figures.experiment(view)), f"{e.id}: {e.title}"),
        paragraph(Raw(f"<b>To compare with:</b> {text(e.finding)}.")),
        Raw(found),
        heading(_SHOWN[e.shows]),
        _numbers(view),
        *_work(view),
    )


def _numbers(view: View) -> Raw:
    e = view.experiment
    grouped = any(panel.group for panel in view.panels)
    head: list[str | Number] = ["cells"] if grouped else []
    head += [Number(e.axis.name), *(Number(method_name(m)) for m in view.methods), *map(Number, view.references)]
    rows = []
    for panel in view.panels:
        for spot in panel.spots:
            beside = [
                Number(_timed(view, c.best) if (c := spot.references.get(name)) and c.best else "-")
                for name in view.references
            ]
            first: list[object] = [panel.group] if grouped else []
            times = [_time(view, spot, method) for method in view.methods]
            rows.append([*first, Number(e.axis.text(spot.x)), *times, *beside])
    return table(head, rows)


def _time(view: View, spot: Spot, method: str) -> Number:
    row = spot.contest.best_of(method)
    if row is None:
        return Number("censored" if any(r.method == method for r in spot.contest.censored) else "-")
    if view.wins(spot, row):
        return Number(Raw(f"{swatch(method)}{text(_timed(view, row))}"), best=True)
    return Number("~ " * view.ties(spot, row) + _timed(view, row))


def _timed(view: View, row: Row) -> str:
    return f"{view.text(row)} {row.path}"


def _work(view: View) -> Iterator[Raw]:
    spot = view.middle
    rows = [row for m in view.methods if spot and (row := spot.contest.best_of(m))]
    if not rows or spot is None:
        return
    group = view.panels[len(view.panels) // 2].group
    where = f"{view.experiment.axis.words(spot.x)}{', ' if group else ''}{group}"
    yield heading(f"What each side does for one transfer: {where}")
    names = [name.replace("_", " ") for name in asdict(rows[0].counters.send)]
    sides = [
        (method_name(row.method) if side == "send" else "", f"{side}s", *(Number(f"{n:,}") for n in work.values()))
        for row in rows
        for side, work in asdict(row.counters).items()
    ]
    yield table(("method", "side", *map(Number, names)), sides)
