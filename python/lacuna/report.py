"""report.html and guide.png: one page that holds everything, and one picture.

The page needs nothing but itself: no network, no script. It reads on light, on dark and on paper.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from string import Template

from lacuna import figures
from lacuna.analysis import (
    Contest,
    Grid,
    censored,
    contests,
    ddtbench,
    grids,
    method_order,
    notify_costs,
    one_of_each_family,
)
from lacuna.describe import facts, yes
from lacuna.page import (
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
    swatch,
    table,
    text,
)
from lacuna.record import Guide, Run
from lacuna.rules import Rule, derive, honesty, range_text
from lacuna.schema import BASELINE
from lacuna.store import write_whole
from lacuna.units import bytes_text, gain_text, us_text

TEMPLATES = Path(__file__).with_name("templates")


def write(guide: Guide, directory: Path) -> list[Path]:
    """Writes the report, and the picture if there is something to draw. Returns the files."""
    all_contests = contests(guide)
    order = method_order(guide)
    page = directory / "report.html"
    write_whole(page, _page(guide, all_contests, order))
    grid = next(iter(grids(all_contests)), None)
    if grid is None:
        return [page]
    picture = directory / "guide.png"
    figures.save_png(figures.summary(_title(guide), grid, one_of_each_family(ddtbench(all_contests)), order), picture)
    return [page, picture]


def _page(guide: Guide, all_contests: Sequence[Contest], order: Sequence[str]) -> str:
    found = grids(all_contests)
    body = "".join(
        (
            platform(guide),
            warnings(guide),
            _in_short(found),
            _heat_maps(found, order),
            _ddtbench(all_contests, order),
            _curves(found, order),
            _cpu(found, order),
            notification(guide),
            left_out(guide),
            means(guide),
            _again(guide),
        )
    )
    return Template((TEMPLATES / "report.html").read_text(encoding="utf-8")).substitute(
        title=text(f"Lacuna guide: {guide.machine.cpu}, {guide.nic.name}"),
        heading="Which way to move scattered data on this machine",
        lead=text(f"Measured {date(guide)} by Lacuna {guide.lacuna_version}."),
        css=(TEMPLATES / "report.css").read_text(encoding="utf-8"),
        body=body,
    )


def platform(guide: Run) -> Raw:
    rows = [
        *facts(guide.machine, guide.nic),
        ("command", guide.command),
        ("time", f"{guide.seconds:.1f} s of measuring"),
    ]
    return table((), [(Raw(f"<b>{text(subject)}</b>"), fact) for subject, fact in rows])


def warnings(guide: Run) -> str:
    parts = []
    if guide.errors:
        parts.append(note(f"This run failed, with {len(guide.errors)} errors. Do not use what they name.", bad=True))
        parts.append(
            table(
                ("method", "path", "notify", "layout", "what happened"),
                [(e.method or "-", e.path or "-", e.notify or "-", e.layout, e.message) for e in guide.errors],
            )
        )
    if guide.interrupted:
        parts.append(note("This run was interrupted. The page shows what was measured until then."))
    return "".join(parts)


def _in_short(found: Sequence[Grid]) -> Raw:
    rules = [(grid, derive(grid)) for grid in found]
    intro = paragraph(
        "The simplest rule that the measurements bear out, for each kind of layout pair. A rule may split the "
        "block sizes once, and each part once by the number of blocks. The true crossover lies between two "
        "measured sizes."
    )
    few = paragraph("Too few cells were measured to derive a rule.")
    return section(
        "In short",
        intro,
        side_by_side(Raw(heading(_capital(grid.title)) + (_rule(rule) if rule else few)) for grid, rule in rules),
    )


def _rule(rule: Rule) -> Raw:
    if not rule.trusted:
        return paragraph(f"No simple rule holds. The nearest is {honesty(rule)} Use the map below.")
    rows = [
        (
            range_text(part.blocks, rule.grid.blocks, bytes_text),
            range_text(part.counts, rule.grid.counts, str),
            Raw(f"{method_name(part.combo[0])} on {text(part.combo[1])}"),
        )
        for part in rule.parts
    ]
    return Raw(table(("block size", "number of blocks", "use"), rows) + paragraph(f"It is {honesty(rule)}", "quiet"))


def _heat_maps(found: Sequence[Grid], order: Sequence[str]) -> Raw:
    intro = paragraph(
        "Each cell names the method with the shortest one-way latency, the path of the NIC on which it was fastest, "
        f"and how many times faster that is than {BASELINE} (pack, one send, unpack) on its own best path; pale cells "
        "gain little, empty ones were not measured. ~ means that the confidence intervals of the best two meet, so "
        "either may be the best. The axes count the receiver's blocks; the gap between blocks is twice the block."
    )
    maps = [figure(figures.svg(figures.heat_map(grid, order)), _capital(grid.title)) for grid in found]
    return section("The fastest method", intro, side_by_side(maps))


def _curves(found: Sequence[Grid], order: Sequence[str]) -> Raw:
    parts = [
        paragraph(
            "Median one-way latency of each method on whichever path was fastest at that point; the marker tells "
            "which. Bands are confidence intervals; where none is visible it is narrower than the line. Both axes are "
            "logarithmic."
        )
    ]
    for grid in found:
        drawn = figures.latency_curves(grid, order) if grid.cache == "warm" else None
        if drawn is not None:
            parts.append(figure(figures.svg(drawn), _capital(grid.title)))
    return section("Latency", *parts)


def _ddtbench(all_contests: Sequence[Contest], order: Sequence[str]) -> Raw:
    layouts = ddtbench(all_contests)
    drawn = figures.ddtbench_gains(layouts, order)
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
                *(_time(contest, method) for method in order),
                best.path if best else "-",
                Number((gain_text(gain) if gain else "-") + (" ~" if contest.tied else "")),
            )
        )
    head: tuple[str | Number, ...] = (
        "layout",
        Number("payload"),
        Number("blocks"),
        *(Number(Raw(f"{text(m)}, µs".replace("_", "_<wbr>"))) for m in order),
        "best path",
        Number(f"over {BASELINE}"),
    )
    return section(
        "Application layouts: DDTBench",
        paragraph(
            "The communication of real applications, as rebuilt from the DDTBench micro-applications. Warm caches."
        ),
        figure(
            figures.svg(drawn),
            f"How many times faster than {BASELINE}: the bar and its label are the best method, the dots all of them",
        ),
        heading("One-way latency of each method at its best path"),
        table(head, rows),
    )


def _time(contest: Contest, method: str) -> Number:
    row = contest.best_of(method)
    if row is None:
        return Number("censored" if any(r.method == method for r in contest.censored) else "-")
    if row is contest.best:
        return Number(Raw(f"{swatch(method)}{us_text(row.latency_us)}"), best=True)
    return Number(us_text(row.latency_us))


def _cpu(found: Sequence[Grid], order: Sequence[str]) -> Raw:
    drawn = figures.cpu_time(found[0], order) if found else None
    if drawn is None:
        return Raw("")
    return section(
        "CPU time of both sides",
        paragraph(
            "What one transfer costs the two processors. Together they can exceed the latency, because both sides work "
            "or poll at once; a method whose receiver has nothing to do leaves it time to compute."
        ),
        figure(figures.svg(drawn), f"CPU time by method at its fastest path: {found[0].title}"),
    )


def notification(guide: Run) -> Raw:
    costs = notify_costs(guide.rows, guide.methods)
    if not costs:
        return Raw("")
    return section(
        "What it costs to tell the receiver",
        paragraph(
            "A one-sided write by itself leaves the receiver in the dark. It is told by an immediate value (imm) or by "
            "a second small write (flag). What is shown above counts the cheaper of the two; this is what it adds to "
            "the bare transfer."
        ),
        table(
            ("method", "path", "notification", Number("median extra, µs"), Number("cells")),
            [(method_name(c.method), c.path, c.notify, Number(f"{c.extra_us:.2f}"), Number(c.cells)) for c in costs],
        ),
    )


def left_out(guide: Run) -> Raw:
    parts = []
    if groups := censored(guide):
        parts += [
            heading("Censored"),
            paragraph(
                "One verified transfer took so long that it was hopeless; it was not repeated and does not compete."
            ),
            table(
                ("method", "path", Number("cells"), Number("one transfer took, ms")),
                [
                    (
                        method_name(g.method),
                        g.path,
                        Number(g.cells),
                        Number(f"{g.fastest_us / 1e3:.3g} to {g.slowest_us / 1e3:.3g}"),
                    )
                    for g in groups
                ],
            ),
        ]
    if guide.skips:
        parts += [
            heading("Not possible"),
            table(
                ("method", "path", "notify", Number("cells"), "the limit"),
                [(method_name(s.method), s.path, s.notify, Number(n), s.reason) for s, n in guide.skips.items()],
            ),
        ]
    if guide.unmeasured:
        parts += [heading("No time left"), paragraph("; ".join(guide.unmeasured) + ".")]
    return section(
        "Censored, impossible, left out", *(parts or [paragraph("Nothing: all that was planned was measured.")])
    )


def means(guide: Run) -> Raw:
    return section(
        "Paths and methods",
        table(
            ("path", "available", "passive target", "note"),
            [(p.name, yes(p.available), yes(p.passive_target), p.note) for p in guide.nic.paths],
        ),
        table(
            ("method", "kind", "notification", "what it does"),
            [
                (method_name(m.name), "one-sided" if m.one_sided else "two-sided", ", ".join(m.notifies), m.summary)
                for m in guide.methods
            ],
        ),
    )


def _again(guide: Guide) -> Raw:
    return section(
        "How to run it again",
        code(f"{guide.command} --output DIR"),
        paragraph(
            "Two processes, pinned to two cores, move each layout by every method in turn, interleaved, so that a "
            "disturbance hits all of them alike. The first transfer of each is verified byte by byte, gaps included. "
            "Times are medians. DIR/guide.json holds every row."
        ),
    )


def _title(guide: Guide) -> str:
    return f"{guide.machine.cpu}, NIC {guide.nic.name}: how to move scattered data"


def date(guide: Run) -> str:
    return guide.created.replace("T", " ").removesuffix("Z") + " UTC"


def _capital(sentence: str) -> str:
    return sentence[:1].upper() + sentence[1:]
