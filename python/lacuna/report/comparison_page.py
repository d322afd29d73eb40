"""What `lacuna compare` shows: on the terminal, and as a page with the maps of both guides side by side."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from rich.console import Console
from rich.text import Text

from lacuna.files import write_whole
from lacuna.guide.contests import Grid, grids, method_order
from lacuna.guide.noise_check import check_noise
from lacuna.guide.plan import Cell
from lacuna.guide.run_record import Guide
from lacuna.report import heatmaps
from lacuna.report.comparison import CLOSE, LEAST_NOISE, Comparison, Pair
from lacuna.report.describe import facts
from lacuna.report.html import Raw, code, figure, heading, note, page, paragraph, section, side_by_side, table
from lacuna.report.row_tables import Cell as ShownCell
from lacuna.report.row_tables import MethodCell, RowTable, fact_grid
from lacuna.report.run_sections import capital, date
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
    console.print(fact_grid([("A", _who(c.a)), ("B", _who(c.b))]))
    for warning in c.warnings:
        console.print(Text(f"Note: {warning}", style="yellow"))
    console.print()
    for line in summary(c):
        console.print(line)
    console.print()
    for shown in _tables(c, _MOST_LISTED):
        console.print(shown.on_terminal())
        console.print()
    console.print(Text(_LEGEND, style="dim"))


def _tables(c: Comparison, most: int | None = None) -> Iterator[RowTable]:
    """`most`: of the lists of cells only so many."""
    head = ("", "cells", "B / A", "faster in B", "slower in B")
    for title, changes in (
        ("The best of each kind of cell", c.by_group()),
        ("Each method on each path", c.by_method()),
    ):
        rows = [(x.name, str(x.cells), f"{x.ratio:.2f}", str(x.faster), str(x.slower)) for x in changes]
        yield RowTable(head, rows, title=title)
    lists = {
        f"Different best methods, more than {CLOSE - 1:.0%} apart": c.beyond_close,
        "Best times that differ by more than the noise": c.changed,
    }
    for title, pairs in lists.items():
        if pairs:
            shown = pairs[:most]
            more = f" ({len(shown)} of {len(pairs)})" if len(pairs) > len(shown) else ""
            yield RowTable(_HEAD, [_row(pair) for pair in shown], texts=(0, 1, 3), title=title + more)


def _who(guide: Guide) -> str:
    noise = check_noise(guide.looks)
    state = f", a message of 16 KiB takes {noise.usual.message_us:.1f} µs" if noise else ""
    m = guide.machine
    return f"{m.cpu}, {m.cpus} CPUs, NIC {guide.nic.name}; Lacuna {guide.lacuna_version}, {date(guide)}{state}"


def _row(pair: Pair) -> tuple[ShownCell, ...]:
    one, two = pair.bests
    apart = pair.pooled_apart
    return (
        Cell(pair.subject, {}, 0, required=False).label,
        MethodCell(one.method, f" / {one.path}"),
        us_text(one.latency_us),
        MethodCell(two.method, f" / {two.path}"),
        us_text(two.latency_us),
        f"{pair.ratio:.2f}{' !' if pair.differs else '  '}",
        f"{apart:.2f}" if apart else "?",
    )


def write(c: Comparison, directory: Path) -> list[Path]:
    """compare.html; returns the files."""
    path = directory / "compare.html"
    verdict = section("In short", *map(note, c.warnings), *map(paragraph, summary(c)))
    again = section("How to measure again", code(f"{c.a.command} --output A\n{c.b.command} --output B"))
    body = "".join((_platforms(c), verdict, _maps(c), _numbers(c), again))
    lead = f"A: {_who(c.a)}. B: {_who(c.b)}."
    write_whole(path, page("Lacuna: two guides compared", "Two guides, side by side", lead, body))
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


def _maps(c: Comparison) -> Raw:
    parts: list[Raw] = []
    a, b = grids([p.a for p in c.pairs]), grids([p.b for p in c.pairs])
    order = method_order(c.a)
    for one, two in ((x, y) for x in a for y in b if (x.shape, x.cache) == (y.shape, y.cache)):
        maps = [figure(svg(heatmaps.heat_map(g, order, small=True)), n) for n, g in (("A", one), ("B", two))]
        ratios = svg(heatmaps.ratio_map(one, _ratios(c, one)))
        parts += [heading(capital(one.title)), side_by_side(maps)]
        parts.append(figure(ratios, "B / A: the best time in B over that in A"))
    intro = paragraph(
        "The maps show the cells that are in both guides and were measured in like states. In the third, numbers "
        "in bold differ by more than the noise; red is slower in B, blue faster."
    )
    return section("Maps", intro, *parts)


def _ratios(c: Comparison, grid: Grid) -> dict[tuple[int, int], tuple[float, bool]]:
    subjects = {contest.subject for contest in grid.cells.values()}
    return {
        (p.subject.block_bytes, p.subject.block_count): (p.ratio, p.differs) for p in c.pairs if p.subject in subjects
    }


def _numbers(c: Comparison) -> Raw:
    parts = [part for shown in _tables(c) for part in (heading(shown.title), shown.on_page())]
    return section("Numbers", paragraph(_LEGEND), *parts)
