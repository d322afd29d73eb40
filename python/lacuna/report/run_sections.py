"""The sections that the pages of a guide, a bench and a comparison share."""

from __future__ import annotations

from collections.abc import Iterable

from lacuna.guide.contests import censored, left_out_of_large, notify_costs
from lacuna.guide.noise_check import check_noise
from lacuna.guide.run_record import Run
from lacuna.report import curves, describe
from lacuna.report.describe import facts, far_facts
from lacuna.report.html import Raw, figure, heading, note, page, paragraph, section, table, text
from lacuna.report.row_tables import MethodCell, RowTable
from lacuna.report.style import svg
from lacuna.units import gain_text
from lacuna.worker.hardware import EMULATED


def run_page(run: Run, title: str, heading_text: str, found: Iterable[str], again: Raw) -> str:
    """A page: what was found, between what it was measured on and what else there is to know of the run."""
    tables = (describe.paths(run.nic), describe.methods(run.methods))
    means = section("Paths and methods", *(shown.on_page() for shown in tables))
    after = (_notification(run), _quietness(run), _left_out(run), means, again)
    body = "".join((_platform(run), _warnings(run), *found, *after))
    return page(title, heading_text, f"Measured {date(run)} by Lacuna {run.lacuna_version}.", body)


def _platform(guide: Run) -> Raw:
    rows = [
        *facts(guide.machine, guide.nic),
        *far_facts(guide),
        ("command", guide.command),
        ("time", f"{guide.seconds:.1f} s of measuring"),
    ]
    return table((), [(Raw(f"<b>{text(subject)}</b>"), fact) for subject, fact in rows])


def _warnings(guide: Run) -> str:
    parts = []
    if guide.nic.emulated:
        parts.append(note(EMULATED, bad=True))
    if guide.fault:
        parts.append(note(f"A fault was planted to test the guide: {guide.fault}. Do not use these numbers.", bad=True))
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
    noise = check_noise(guide.looks)
    parts += [note(warning) for warning in noise.warnings] if noise else []
    return "".join(parts)


def _quietness(guide: Run) -> Raw:
    """How far the numbers can be trusted: the machine's state over time, and what second looks found."""
    noise = check_noise(guide.looks)
    if noise is None:
        return Raw("")
    u = noise.usual
    counts = sum(look.counts for i, look in enumerate(guide.looks) if i in noise.disturbed)
    parts = [
        paragraph(
            "Before, during and after each cell the same work was done: a message between the two processes, and "
            f"arithmetic on either core. Usually they took {u.message_us:.2f}, {u.sender_us:.2f} and "
            f"{u.receiver_us:.2f} µs. Of {len(guide.looks)} looks at cells {len(noise.disturbed)} were disturbed; "
            f"{counts} of these count, because there was no quiet one. Methods of one cell were measured in turn "
            "and compare in any state."
        ),
        figure(svg(curves.timeline(guide.looks, noise)), "The machine during the run: the same work again and again"),
    ]
    if guide.repeats:
        same = sum(r.first == r.second for r in guide.repeats)
        near = sum(r.first != r.second and r.apart <= 1.05 for r in guide.repeats)
        rest = [r for r in guide.repeats if r.first != r.second and r.apart > 1.05]
        parts += [
            heading("Repeatability"),
            paragraph(
                f"{len(guide.repeats)} cells were looked at twice in quiet, some time apart: {same} named the same "
                f"method and path as the best, {near} another one within 5 % of it, {len(rest)} one farther away."
            ),
        ]
        if rest:
            subjects = [(r.subject.layout, str(r.subject.block_bytes), str(r.subject.block_count)) for r in rest]
            rows = [(*s, r.first, r.second, f"{r.apart:.2f}×") for s, r in zip(subjects, rest, strict=True)]
            head = ("layout", "block", "blocks", "first", "second", "apart")
            parts.append(RowTable(head, rows, texts=(0, 3, 4)).on_page())
    return section("How quiet the machine was", *parts)


def _notification(guide: Run) -> Raw:
    costs = notify_costs(guide.rows, guide.methods)
    if not costs:
        return Raw("")
    rows = [(MethodCell(c.method), c.path, c.notify, f"{c.extra_us:.2f}", str(c.cells)) for c in costs]
    return section(
        "What it costs to tell the receiver",
        paragraph(
            "A one-sided write by itself leaves the receiver in the dark. It is told by an immediate value (imm) or by "
            "a second small write (flag). What is shown above counts the cheaper of the two; this is what it adds to "
            "the bare transfer."
        ),
        RowTable(("method", "path", "notification", "median extra, µs", "cells"), rows, texts=3).on_page(),
    )


def _left_out(guide: Run) -> Raw:
    hopeless = [
        (MethodCell(g.method), g.path, str(g.cells), f"{g.fastest_us / 1e3:.3g} to {g.slowest_us / 1e3:.3g}")
        for g in censored(guide)
    ]
    behind = [(MethodCell(o.method), o.path, str(o.cells), gain_text(o.behind)) for o in left_out_of_large(guide)]
    impossible = [(MethodCell(s.method), s.path, s.notify, str(n), s.reason) for s, n in guide.skips.items()]
    tables = (
        (
            "Censored",
            "One verified transfer took so many times as long as the best method's, or simply so long, that it was "
            "hopeless; it was not repeated and does not compete.",
            RowTable(("method", "path", "cells", "one transfer took, ms"), hopeless, texts=2),
        ),
        (
            "Not tried in large cells",
            "So far behind the best in all smaller neighbours, and not catching up, that the time was spent elsewhere.",
            RowTable(("method", "path", "cells", "times the best's time, at least"), behind, texts=2),
        ),
        (
            "Not possible",
            "",
            RowTable(("method", "path", "notify", "cells", "the limit"), impossible, texts=(0, 1, 2, 4)),
        ),
    )
    parts = []
    for title, words, shown in tables:
        if shown.rows:
            parts += [heading(title), *([paragraph(words)] if words else []), shown.on_page()]
    if guide.unmeasured:
        parts += [heading("No time left"), paragraph("; ".join(guide.unmeasured) + ".")]
    return section(
        "Censored, impossible, left out", *(parts or [paragraph("Nothing: all that was planned was measured.")])
    )


def date(guide: Run) -> str:
    return guide.created.replace("T", " ").removesuffix("Z") + " UTC"


def capital(sentence: str) -> str:
    return sentence[:1].upper() + sentence[1:]
