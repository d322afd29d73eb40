"""What the terminal shows of a bench: each experiment and what to compare it with, then what each side had to do."""

from __future__ import annotations

from collections.abc import Callable

from rich import box
from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from lacuna.bench.methods.experiments import MethodRun
from lacuna.bench.methods.places import Spot, View, here, views
from lacuna.guide.contests import Contest
from lacuna.report.guide_tables import notes
from lacuna.report.palette import ink
from lacuna.worker.records import Row, Work

_COUNTERS: tuple[tuple[str, Callable[[Work], int]], ...] = (
    ("work\nreq.", lambda w: w.work_requests + w.receives),
    ("sges", lambda w: w.sges),
    ("door-\nbells", lambda w: w.doorbells),
    ("comple-\ntions", lambda w: w.completions),
    ("keys\nbound", lambda w: w.keys_bound),
    ("key\nentries", lambda w: w.key_entries),
    ("bytes\ncopied", lambda w: w.bytes_copied),
)


def show(console: Console, bench: MethodRun) -> None:
    """Prints the whole result of a run."""
    found = views(bench)
    for view in found:
        for part in _experiment(view):
            console.print(part)
        console.print()
    if found:
        console.print(Text("What each side has to do for one transfer, sender/receiver", style="bold"))
        console.print(_counters(found))
        console.print(
            Text("The middle cell of each experiment; receives count as work requests, K is 1024.", style="dim")
        )
        console.print()
    for note in notes(bench):
        console.print(note)


def _experiment(view: View) -> list[RenderableType]:
    e = view.experiment
    what = {
        "latency": "One-way time in µs",
        "bandwidth": "Bandwidth in MB/s",
        "split": "One-way time in µs (of which both CPUs copied)",
    }[e.shows]
    star = "; * the best, ~ cannot be told from it" if e.is_race else ""
    parts: list[RenderableType] = [
        Text(f"{e.id}  {e.title}", style="bold"),
        Text(f"{e.conditions[:1].upper()}{e.conditions[1:]}. {what} at the best path{star}.", style="dim"),
        _numbers(view),
        Text.assemble(("To compare with: ", "bold"), e.finding, "."),
    ]
    return parts + [Text.assemble(("Here: ", "bold"), line, ".") for line in here(view)]


def _numbers(view: View) -> Table:
    e = view.experiment
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), show_edge=False)
    table.add_column(e.axis.name.replace(" of ", "\nof "), justify="right", no_wrap=True)
    for method in view.methods:
        table.add_column(method.replace("_", "_\n", 1), justify="right", no_wrap=True)
    for name in view.references:
        table.add_column(name.replace(" ", "\n", 1), justify="right", no_wrap=True)
    for panel in view.panels:
        if panel.group:
            table.add_row(Text(panel.group, justify="left", style="italic"))
        for spot in panel.spots:
            beside = [_reference(view, spot.references.get(name)) for name in view.references]
            table.add_row(e.axis.text(spot.x), *(_time(view, spot, method) for method in view.methods), *beside)
    return table


def _time(view: View, spot: Spot, method: str) -> Text:
    row = spot.contest.best_of(method)
    if row is None:
        return Text("cens." if any(r.method == method for r in spot.contest.censored) else "-", style="dim")
    if view.wins(spot, row):
        return Text(f"*{view.text(row)}", style=f"bold {ink(method).terminal}")
    return Text("~" * view.ties(spot, row) + view.text(row))


def _reference(view: View, contest: Contest | None) -> Text:
    return Text(view.text(contest.best)) if contest and contest.best else Text("-", style="dim")


def _counters(found: list[View]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 0), show_edge=False)
    table.add_column("cell", no_wrap=True)
    table.add_column("method", no_wrap=True)
    for name, _ in _COUNTERS:
        table.add_column(name, justify="right", no_wrap=True)
    for view in found:
        spot = view.middle
        rows = [row for m in view.methods if spot and (row := spot.contest.best_of(m))]
        names = [view.experiment.id, view.experiment.axis.text(spot.x) if spot else ""]
        for i, row in enumerate(rows):
            table.add_row(
                names[i] if i < len(names) else "",
                Text(row.method, style=ink(row.method).terminal),
                *_pairs(row),
            )
        if len(rows) == 1:
            table.add_row(names[1])
    return table


def _pairs(row: Row) -> list[str]:
    send, receive = row.counters.send, row.counters.receive
    return [f"{_short(count(send))}/{_short(count(receive))}" for _, count in _COUNTERS]


def _short(value: int) -> str:
    """A count in at most four characters, or five from 10^9 on: 9999, 30K, 1.9M."""
    if value < 10_000:
        return str(value)
    amount, unit = (value / 1024, "K") if value < 1000 * 1024 else (value / (1 << 20), "M")
    return f"{amount:.2g}{unit}" if amount < 10 else f"{amount:.0f}{unit}"
