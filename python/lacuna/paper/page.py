"""paper.html and paper.png: the findings in the paper's order, each with its picture."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from lacuna.files import write_whole
from lacuna.paper import pictures, profiles
from lacuna.paper.profiles import LABELS
from lacuna.paper.results import Results
from lacuna.paper.section import Finding, Section
from lacuna.report.html import Raw, figure, heading, page, paragraph, section, table, text
from lacuna.report.style import save_png, svg

_MEANINGS = {
    "calibrated": "fitted to the 120 cells of Table 4",
    "literature": "rests on a published constant, whose source is named",
    "predicted": "neither: the model's own word, with its estimates",
    "measured": "timed on this machine, with the MPIs that are named",
}


def write(results: Results, directory: Path) -> list[Path]:
    """Writes the page and the picture; returns the files."""
    files = [directory / "paper.html"]
    write_whole(files[0], _page(results))
    picture = directory / "paper.png"
    title = "The documents' experiments on modelled NICs; points are the paper's"
    if pictures.write_png(picture, title, [s for s in results.sections if s.profile]):
        files.append(picture)
    for measured in (s for s in results.sections if not s.profile and s.plots):
        files.append(directory / f"{measured.id.lower()}.png")
        save_png(pictures.draw(measured), files[-1])
    return files


def _page(results: Results) -> str:
    body = "".join(
        (
            section("Findings", paragraph(_labels(results.findings)), results.table.on_page(), paragraph(_HOW)),
            *(_section(s) for s in results.sections),
            _profiles(results.sections),
            _told("Not measured", results.left_out),
            _told("Errors", results.errors),
        )
    )
    held = sum(f.holds for f in results.findings)
    measured = any(not s.profile for s in results.sections)
    modelled = any(s.profile for s in results.sections)
    where = " and ".join(["the model"] * modelled + ["this machine"] * measured)
    lead = f"{held} of {len(results.findings)} findings hold on {where}. By Lacuna {results.version}."
    lead += " Those of the model are the same numbers on every machine." * modelled
    title = "The findings of the papers behind Lacuna" + ", on a NIC in virtual time" * modelled
    return page("Lacuna paper", title, lead, body)


def _labels(found: Sequence[Finding]) -> Raw:
    used = [label for label in (*LABELS, "measured") if label != "measured" or any(f.label == label for f in found)]
    return Raw("; ".join(f"<b>{label}</b>: {text(_MEANINGS[label])}" for label in used) + ".")


def _told(title: str, lines: Sequence[str]) -> str:
    return section(title, *(paragraph(line) for line in lines)) if lines else ""


_HOW = (
    "The methods are those that run on real NICs; the bytes move, and both payload and gaps are compared. Times come "
    "from a profile of the platform: docs/design/model.md says what each stage is, the end of this page what each "
    "number rests on."
)


def _section(s: Section) -> Raw:
    on = f"Profile: {s.profile}" if s.profile else "Measured on this machine"
    parts = [paragraph(f"{s.conditions[:1].upper()}{s.conditions[1:]}. {on}.")]
    if s.plots:
        parts.append(figure(svg(pictures.draw(s)), f"{s.id}: {s.title}"))
    for f in s.findings:
        verdict = "Holds" if f.holds else "Does not hold"
        parts.append(
            paragraph(
                Raw(
                    f"<b>{verdict}</b> ({f.label}): {text(f.statement)}. Expected: {text(f.expected)}. Found: "
                    f"{text(f.got)}." + (f" {text(f.reason[:1].upper() + f.reason[1:])}." if f.reason else "")
                )
            )
        )
    for grid in s.grids:
        parts += [heading(grid.title), grid.on_page()]
    parts += [paragraph(note) for note in s.notes]
    return section(f"{s.id}: {s.title}", *parts)


def _profiles(sections: Sequence[Section]) -> Raw:
    used = [profiles.load(n) for n in dict.fromkeys(n for s in sections if s.profile for n in s.profile.split(", "))]
    if not used:
        return Raw("")
    parts = []
    for profile in used:
        own = [p for p in profile.parameters.values() if not p.inherited]
        parts.append(heading(f"{profile.name}: {profile.title}"))
        if len(own) < len(profile.parameters):
            parts.append(paragraph("What is not listed is as in the profile it is based on."))
        rows = [(p.name, f"{p.value:.10g}", p.label, p.origin) for p in own]
        parts.append(table(("parameter", "value", "label", "origin"), rows))
    return section("Parameters and their origins", *parts)
