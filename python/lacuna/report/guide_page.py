"""report.html and guide.png: one page that holds everything, and one picture.

The page needs nothing but itself: no network, no script. It reads on light, on dark and on paper.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path

from lacuna.files import write_whole
from lacuna.guide.calibration import Stored
from lacuna.guide.contests import (
    Contest,
    Grid,
    ai_transfers,
    contests,
    ddtbench,
    grids,
    method_order,
    one_of_each_family,
)
from lacuna.guide.rules import Rule, derive, honesty
from lacuna.guide.run_record import Guide
from lacuna.report import bar_charts, curves, heatmaps, table3
from lacuna.report.curves import Panel, over_blocks, over_counts
from lacuna.report.describe import rule_table
from lacuna.report.html import (
    Number,
    Raw,
    code,
    figure,
    heading,
    paragraph,
    section,
    side_by_side,
    swatch,
    table,
    text,
)
from lacuna.report.row_tables import Cell, MethodCell, RowTable
from lacuna.report.run_sections import capital, run_page
from lacuna.report.style import save_png, svg
from lacuna.units import bytes_text, gain_text, us_text
from lacuna.worker.records import BASELINE, Work

_SMALL = 1 << 10
"""Blocks up to here are small, as in the documents' figures."""

_FEW, _MANY = 16, 256
_COUNT_BLOCKS = (256, 1 << 10, 4 << 10, 64 << 10)


def write(guide: Guide, directory: Path, profile: Stored | None = None) -> list[Path]:
    """Writes the report, and the picture if there is something to draw. Returns the files."""
    all_contests = contests(guide)
    order = method_order(guide)
    html = directory / "report.html"
    write_whole(html, _page(guide, all_contests, order, profile))
    grid = next(iter(grids(all_contests)), None)
    if grid is None:
        return [html]
    picture = directory / "guide.png"
    save_png(heatmaps.summary(_title(guide), grid, one_of_each_family(ddtbench(all_contests)), order), picture)
    return [html, picture]


def _page(guide: Guide, all_contests: Sequence[Contest], order: Sequence[str], profile: Stored | None) -> str:
    found = grids(all_contests)
    parts = (
        _in_short(found),
        _heat_maps(found, order),
        table3.part(found, profile),
        _curves(found, order),
        _costs(found, order),
        _layouts(
            "Application layouts: DDTBench",
            "The communication of real applications, as rebuilt from the DDTBench micro-applications. Warm caches.",
            ddtbench(all_contests),
            order,
        ),
        _layouts(
            "Transfers of AI systems",
            "What inference and training systems move, cut to this machine: the name tells how many of the field's "
            "blocks are moved. Warm caches.",
            ai_transfers(all_contests),
            order,
        ),
    )
    title = f"Lacuna guide: {guide.machine.cpu}, {guide.nic.name}"
    where = "between two machines" if guide.peer else "on this machine"
    return run_page(guide, title, f"Which way to move scattered data {where}", parts, _again(guide))


def _in_short(found: Sequence[Grid]) -> Raw:
    rules = [(grid, derive(grid)) for grid in found]
    intro = paragraph(
        "The simplest rule that the measurements bear out, for each kind of layout pair. A rule may split the block "
        "sizes once, and each part once by the number of blocks. The true crossover lies between two measured sizes."
    )
    few = paragraph("Too few cells were measured to derive a rule.")
    return section(
        "In short",
        intro,
        side_by_side(Raw(heading(capital(grid.title)) + (_rule(rule) if rule else few)) for grid, rule in rules),
    )


def _rule(rule: Rule) -> Raw:
    if not rule.trusted:
        return paragraph(f"No simple rule holds. The nearest is {honesty(rule)} Use the map below.")
    return Raw(rule_table(rule).on_page() + paragraph(f"It is {honesty(rule)}", "quiet"))


def _heat_maps(found: Sequence[Grid], order: Sequence[str]) -> Raw:
    intro = paragraph(
        "Each cell names the method with the shortest one-way latency, the path of the NIC on which it was fastest, "
        f"and how many times faster that is than {BASELINE}: the better of two loops that users write (over "
        "elements, or a memcpy for each block) around one send, at its best path. Pale cells gain little, empty "
        "ones were not measured. ~ means that the best two cannot be told apart. Lines are crossovers: a "
        "neighbouring cell has another best method; where they are dotted, one of the two cells is such a tie. The "
        "axes count the receiver's blocks."
    )
    kinds = paragraph(
        "Warm: one buffer again and again, its gaps twice the block. Cold: every transfer finds other memory, out "
        "of all caches, its blocks a page or more apart."
    )
    maps = [figure(svg(heatmaps.heat_map(grid, order)), capital(grid.title)) for grid in found]
    return section("The guide: the fastest method", intro, kinds, side_by_side(maps))


def _near(values: Sequence[int], wanted: int) -> int:
    return min(values, key=lambda v: max(v / wanted, wanted / v))


def _curves(found: Sequence[Grid], order: Sequence[str]) -> Raw:
    by_shape: dict[str, list[Grid]] = {}
    for grid in found:
        by_shape.setdefault(grid.shape, []).append(grid)
    same = by_shape.get("symmetric", [])
    other = [g for shape, some in by_shape.items() if shape != "symmetric" for g in some]

    def counts(grid: Grid) -> list[int]:
        return sorted({_near(grid.counts, _FEW), _near(grid.counts, _MANY)})

    small = [over_blocks(g, n, most=_SMALL) for g in same for n in counts(g)]
    large = [over_blocks(g, n, least=_SMALL) for g in same for n in counts(g)]
    whole = [over_blocks(g, n) for g in same for n in counts(g)]
    uneven = [
        Panel(f"{g.shape.replace('_', ' ')}, {g.cache}", p.over, p.points)
        for g in other
        for p in [over_blocks(g, _near(g.counts, _FEW))]
    ]
    many = [over_counts(g, b) for g in same[:1] for b in sorted({_near(g.blocks, b) for b in _COUNT_BLOCKS})]
    series = (
        ("Latency of small blocks, same layout on both sides (as F17a, F21)", small, False),
        ("Latency of large blocks (as F17b)", large, False),
        ("Bandwidth: payload over one-way latency, one transfer at a time (as F18)", whole, True),
        (f"Latency where the sides differ, {_FEW} blocks of the receiver (as F22, R5.3.2)", uneven, False),
        ("Latency over the number of blocks (as F23 and Table 4)", many, False),
    )
    parts = [
        paragraph(
            "Each method on whichever path was fastest at that point; the marker tells which. Bands are confidence "
            f"intervals; where none is visible it is narrower than the line. {BASELINE.capitalize()} is dotted. A "
            "line ends where a method was censored or not tried. F and R are the figures of the documents behind "
            "Lacuna."
        )
    ]
    for caption, panels, bandwidth in series:
        drawn = curves.sweep(panels, order, bandwidth=bandwidth)
        if drawn is not None:
            parts.append(figure(svg(drawn), caption))
    return section("Latency and bandwidth", *parts)


def _costs(found: Sequence[Grid], order: Sequence[str]) -> Raw:
    grid = next((g for g in found if g.shape == "symmetric"), None)
    if grid is None:
        return Raw("")
    count = _near(grid.counts, _FEW)
    column = [c for b in grid.blocks if (c := grid.cells.get((b, count))) and c.ranking]
    chosen = [column[i] for i in sorted({1, len(column) // 2, len(column) - 1}) if 0 <= i < len(column)]
    drawn = bar_charts.cost_split(chosen, order)
    if drawn is None:
        return Raw("")
    return section(
        "What a transfer costs the CPUs",
        paragraph(
            "The two processors' time for one transfer, and which part of it is packing and unpacking (as F19). "
            "Together they can exceed the latency, because both sides work at once; what is missing to it is "
            "waiting. On NIC local the CPUs do the NIC's work as well. A method whose receiver has nothing to do "
            "leaves it time to compute."
        ),
        figure(svg(drawn), f"CPU time by method at its fastest path: {grid.title}"),
        *(_work(contest, order) for contest in chosen[len(chosen) // 2 : len(chosen) // 2 + 1]),
    )


def _work(contest: Contest, order: Sequence[str]) -> Raw:
    """All that was measured of one cell: times, and what either side did."""
    counters = [f.name for f in fields(Work) if f.name != "keys_created"]  # a key is made before its transfers
    rows: list[tuple[Cell, ...]] = [
        (
            MethodCell(row.method),
            row.path,
            row.notify,
            us_text(row.latency_us),
            f"{row.bandwidth_mbs:,.0f}",
            us_text(row.cpu_send_us),
            us_text(row.cpu_recv_us),
            *(f"{getattr(row.counters.send, c):,} / {getattr(row.counters.receive, c):,}" for c in counters),
        )
        for row in (*map(contest.best_of, order), contest.by_hand)
        if row
    ]
    times = ("latency,<br>µs", "MB/s", "sender<br>CPU, µs", "receiver<br>CPU, µs")
    head = ["method", "path", "notify", *map(Raw, (*times, *(c.replace("_", "<br>") for c in counters)))]
    s = contest.subject
    size = f"{s.block_count:,} × {bytes_text(s.block_bytes)}, {s.cache}"
    title = f"Times and work of one transfer: {size}; work of sender / receiver"
    return Raw(heading(title) + RowTable(head, rows, texts=3).on_page())


def _layouts(title: str, about: str, layouts: Sequence[Contest], order: Sequence[str]) -> Raw:
    drawn = bar_charts.gains(layouts, order)
    if drawn is None:
        return Raw("")
    rows = []
    for contest in layouts:
        best, s = contest.best, contest.subject
        gain = contest.gain(best)
        rows.append(
            (
                s.layout,
                Number(bytes_text(s.payload_bytes)),
                Number(f"{s.block_count:,}"),
                Number(us_text(contest.by_hand.latency_us) if contest.by_hand else "-"),
                *(_time(contest, method) for method in order),
                best.path if best else "-",
                Number(f"{best.bandwidth_mbs:,.0f}" if best else "-"),
                Number((gain_text(gain) if gain else "-") + (" ~" if contest.tied else "")),
            )
        )
    head: tuple[str | Number, ...] = (
        "layout",
        Number("payload"),
        Number("blocks"),
        Number(Raw("by hand,<br>µs")),
        *(Number(Raw(f"{text(m)},<br>µs".replace("_", "_<wbr>"))) for m in order),
        "best path",
        Number(Raw("best,<br>MB/s")),
        Number(Raw("over<br>hand")),
    )
    return section(
        title,
        paragraph(about),
        figure(
            svg(drawn),
            f"How many times faster than {BASELINE}: the bar and its label are the best method, the dots all of them",
        ),
        heading("One-way latency of each method at its best path"),
        table(head, rows),
    )


def _time(contest: Contest, method: str) -> Number:
    row = contest.best_of(method)
    if row is None:
        return Number("cens." if any(r.method == method for r in contest.censored) else "-")
    if row is contest.best:
        return Number(Raw(f"{swatch(method)}{us_text(row.latency_us)}"), best=True)
    return Number(us_text(row.latency_us))


def _again(guide: Guide) -> Raw:
    cite = (
        f"Lacuna {guide.lacuna_version}, guide for {guide.machine.cpu}, NIC {guide.nic.name}, measured "
        f"{guide.created.split('T')[0]}. State the version, the machine and the command; attach guide.json."
    )
    return section(
        "How to run it again, and to cite it",
        code(f"{guide.command} --output DIR\nlacuna compare DIR/guide.json OTHER/guide.json"),
        paragraph(
            "Two processes, pinned to two cores, move each layout by every method in turn, round by round, so that a "
            "disturbance hits all of them alike. Of each a transfer before the rounds and one after them is verified "
            "byte by byte, gaps included; the second not where it is far behind in a large cell. A time is the median "
            "of the rounds' medians, its interval is the bootstrap's. guide.json, beside this page, holds every row."
        ),
        paragraph(f"To cite: {cite}"),
    )


def _title(guide: Guide) -> str:
    return f"{guide.machine.cpu}, NIC {guide.nic.name}: how to move scattered data"
