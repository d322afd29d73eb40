"""What `lacuna compare` shows: on the terminal, and as a page with the maps of both guides side by side."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from lacuna.files import write_whole
from lacuna.guide.contests import Contest, Grid, grids, method_order
from lacuna.guide.noise_check import check_noise
from lacuna.guide.plan import Cell
from lacuna.guide.run_record import Guide
from lacuna.report import heatmaps
from lacuna.report.comparison import CLOSE, LEAST_NOISE, Change, Comparison, Pair
from lacuna.report.describe import facts
from lacuna.report.html import (
    Number,
    Raw,
    code,
    figure,
    heading,
    method_name,
    note,
    paragraph,
    section,
    side_by_side,
    table,
)
from lacuna.report.run_sections import capital, date, page
from lacuna.report.style import svg
from lacuna.units import us_text

_MOST_LISTED = 12

_HEAD = ("cell", "A: best", "µs", "B: best", "µs", "B / A", "apart")

_LEGEND = (
    "B / A: how long the best takes in B, over A; ! marks what is more than the noise. Apart: how much A's best is "
    "behind B's, or the other way round, from both guides together."
)


def summary(c: Comparison) -> list[str]:
    """The comparison in sentences."""
    near = len(c.disagreeing) - len(c.beyond_close)
    found = ", as nine of ten second looks within the runs were" if c.noise > LEAST_NOISE else ""
    return [
        f"{len(c.pairs)} cells are in both guides. They name the same method and path in "
        f"{len(c.pairs) - len(c.disagreeing)}, different ones within {CLOSE - 1:.0%} of each other in {near}, and "
        f"farther apart in {len(c.beyond_close)}.",
        f"The best times differ by more than the noise in {len(c.changed)} cells. Noise: the intervals meet, or the "
        f"two are within {c.noise - 1:.0%} of each other{found}.",
    ]


def show(console: Console, c: Comparison) -> None:
    about = Table.grid(padding=(0, 2))
    for name, guide in (("A", c.a), ("B", c.b)):
        about.add_row(Text(name, style="bold"), _who(guide))
    console.print(about)
    for warning in c.warnings:
        console.print(Text(f"Note: {warning}", style="yellow"))
    console.print()
    for line in summary(c):
        console.print(line)
    console.print()
    for title, changes in (
        ("The best of each kind of cell", c.by_group()),
        ("Each method on each path", c.by_method()),
    ):
        console.print(_changes(title, changes))
        console.print()
    for title, pairs in _lists(c):
        if pairs:
            console.print(_pairs(title, pairs))
            console.print()
    console.print(Text(_LEGEND, style="dim"))


def _groups(c: Comparison) -> list[tuple[str, list[Change]]]:
    return [("The best of each kind of cell", c.by_group()), ("Each method on each path", c.by_method())]


def _lists(c: Comparison) -> list[tuple[str, list[Pair]]]:
    return [
        (f"Different best methods, more than {CLOSE - 1:.0%} apart", c.beyond_close),
        ("Best times that differ by more than the noise", c.changed),
    ]


def _who(guide: Guide) -> str:
    noise = check_noise(guide.looks)
    state = f", a message of 16 KiB takes {noise.usual.message_us:.1f} µs" if noise else ""
    m = guide.machine
    return f"{m.cpu}, {m.cpus} CPUs, NIC {guide.nic.name}; Lacuna {guide.lacuna_version}, {date(guide)}{state}"


def _changes(title: str, changes: Sequence[Change]) -> Table:
    shown = Table(title=title, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD, show_edge=False)
    shown.add_column("")
    for name in ("cells", "B / A", "faster in B", "slower in B"):
        shown.add_column(name, justify="right")
    for c in changes:
        shown.add_row(c.name, str(c.cells), f"{c.ratio:.2f}", str(c.faster), str(c.slower))
    return shown


def _label(pair: Pair) -> str:
    return Cell(pair.subject, {}, 0, required=False).label


def _row(pair: Pair) -> tuple[str, ...]:
    one, two = pair.bests
    apart = pair.pooled_apart
    return (
        _label(pair),
        f"{one.method} / {one.path}",
        us_text(one.latency_us),
        f"{two.method} / {two.path}",
        us_text(two.latency_us),
        f"{pair.ratio:.2f}{' !' if pair.differs else '  '}",
        f"{apart:.2f}" if apart else "?",
    )


def _pairs(title: str, pairs: Sequence[Pair]) -> Table:
    more = f" ({_MOST_LISTED} of {len(pairs)})" if len(pairs) > _MOST_LISTED else ""
    shown = Table(title=title + more, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD, show_edge=False)
    for i, name in enumerate(_HEAD):
        shown.add_column(name, justify="right" if i in (2, 4, 5, 6) else "left")
    for pair in pairs[:_MOST_LISTED]:
        shown.add_row(*_row(pair))
    return shown


def write(c: Comparison, directory: Path) -> list[Path]:
    """compare.html; returns the files."""
    path = directory / "compare.html"
    body = "".join((_platforms(c), _verdict(c), _maps(c), _tables(c), _again(c)))
    write_whole(
        path, page("Lacuna: two guides compared", "Two guides, side by side", f"A: {_who(c.a)}. B: {_who(c.b)}.", body)
    )
    return [path]


def _platforms(c: Comparison) -> Raw:
    rows = [
        (Raw(f"<b>{a[0] if a[0] == b[0] else f'{a[0]}, {b[0]}'}</b>"), a[1], "the same" if a[1] == b[1] else b[1])
        for a, b in zip(facts(c.a.machine, c.a.nic), facts(c.b.machine, c.b.nic), strict=True)
    ]
    rows.append((Raw("<b>Lacuna</b>"), c.a.lacuna_version, c.b.lacuna_version))
    rows.append((Raw("<b>measured</b>"), date(c.a), date(c.b)))
    rows.append((Raw("<b>command</b>"), c.a.command, c.b.command))
    return table(("", "A", "B"), rows)


def _verdict(c: Comparison) -> Raw:
    return section("In short", *(note(w) for w in c.warnings), *(paragraph(line) for line in summary(c)))


def _maps(c: Comparison) -> Raw:
    parts: list[Raw] = []
    a, b = grids([p.a for p in c.pairs]), grids([p.b for p in c.pairs])
    order = method_order(c.a)
    for one in a:
        two = next((g for g in b if (g.shape, g.cache) == (one.shape, one.cache)), None)
        if two is not None:
            parts += [heading(capital(one.title)), side_by_side([_map("A", one, order), _map("B", two, order)])]
            parts.append(
                figure(svg(heatmaps.ratio_map(one, _ratios(c, one))), "B / A: the best time in B over that in A")
            )
    intro = paragraph(
        "The maps show the cells that are in both guides and were measured in like states. In the third, numbers "
        "in bold differ by more than the noise; red is slower in B, blue faster."
    )
    return section("Maps", intro, *parts)


def _map(name: str, grid: Grid, order: Sequence[str]) -> Raw:
    return figure(svg(heatmaps.heat_map(grid, order, small=True)), name)


def _ratios(c: Comparison, grid: Grid) -> dict[tuple[int, int], tuple[float, bool]]:
    subjects: dict[object, Contest] = {contest.subject: contest for contest in grid.cells.values()}
    return {
        (p.subject.block_bytes, p.subject.block_count): (p.ratio, p.differs) for p in c.pairs if p.subject in subjects
    }


def _tables(c: Comparison) -> Raw:
    parts: list[Raw] = []
    for title, changes in (
        ("The best of each kind of cell", c.by_group()),
        ("Each method on each path", c.by_method()),
    ):
        head = ("", Number("cells"), Number("B / A, mean"), Number("faster in B"), Number("slower in B"))
        rows = [
            (x.name, Number(x.cells), Number(f"{x.ratio:.2f}"), Number(x.faster), Number(x.slower)) for x in changes
        ]
        parts += [heading(title), table(head, rows)]
    for title, pairs in _lists(c):
        if pairs:
            head_cells = tuple(Number(h) if i in (2, 4, 5, 6) else h for i, h in enumerate(_HEAD))
            parts += [heading(title), table(head_cells, [_html_row(p) for p in pairs])]
    return section("Numbers", paragraph(_LEGEND), *parts)


def _html_row(pair: Pair) -> tuple[object, ...]:
    one, two = pair.bests
    cells = _row(pair)
    return (
        cells[0],
        Raw(f"{method_name(one.method)} / {one.path}"),
        Number(cells[2]),
        Raw(f"{method_name(two.method)} / {two.path}"),
        Number(cells[4]),
        Number(cells[5].strip()),
        Number(cells[6]),
    )


def _again(c: Comparison) -> Raw:
    return section("How to measure again", code(f"{c.a.command} --output A\n{c.b.command} --output B"))
