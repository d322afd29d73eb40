"""What `lacuna bench interactions` shows: each condition with what it does to the choice; a page and a picture."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console
from rich.text import Text

from lacuna.interactions.conditions import CONDITIONS, condition
from lacuna.interactions.rows import MATTERS, Effect, Interactions
from lacuna.listing import notes, shown, written
from lacuna.page import Raw, code, figure, note, paragraph, section
from lacuna.report_parts import page
from lacuna.store import write_whole
from lacuna.units import us_text

_MEANINGS = (
    "Loss: the time of the way that is best without the condition over the time of the way that is best with it, both "
    "forced, chosen and judged by different rounds. A condition matters to the choice from a mean loss of "
    f"{MATTERS - 1:.0%} on; what the row again has is noise. Slower: the best way's time over that without the "
    "condition; both ways an exchange moves two messages. Automatic: what Lacuna chooses by itself over the best that "
    "is forced."
)
_HEAD = ["condition", "what", "slower", "other best", "mean loss", "most", "automatic", "matters", "in the choice"]
_TEXTS = 2


def show(console: Console, result: Interactions) -> None:
    for nic, _ in result.summary().items():
        console.print(Text(f"Interactions on {nic}", style="bold"))
        console.print(shown(_HEAD, _table(result, nic), _TEXTS))
    if result.effects:
        console.print(Text(_MEANINGS, style="dim"))
    for name, why in result.skipped.items():
        console.print(Text(f"skipped: {name}: {why}"))
    for text in notes(result.errors, result.left_out, interrupted=result.interrupted):
        console.print(Text(text))


def _table(result: Interactions, nic: str) -> list[list[str]]:
    found = []
    for name, what in result.summary()[nic].items():
        found.append(
            [
                name,
                condition(name).words,
                f"{what['slower_median']:.2f}×",
                f"{what['other_best']} of {what['cases']}",
                f"{what['loss_geomean']:.3f}",
                f"{what['loss_max']:.2f}",
                f"{what['automatic_geomean']:.2f}" if "automatic_geomean" in what else "-",
                "yes" if what["matters"] else "no",
                what["handled"],
            ]
        )
    return found


def write(result: Interactions, directory: Path) -> list[Path]:
    """Writes interactions.html and interactions.png; returns the files."""
    # Imported here: matplotlib takes half a second, which a run without pictures need not spend.
    from lacuna.interactions.figures import losses
    from lacuna.style import save_png, svg

    html, picture = directory / "interactions.html", directory / "interactions.png"
    if not result.effects:
        write_whole(html, _page(result, paragraph("Nothing was measured.")))
        return [html]
    drawn = losses(result)
    save_png(drawn, picture)
    write_whole(html, _page(result, figure(svg(drawn), "What the best way without a condition loses with it")))
    return [html, picture]


def _page(result: Interactions, picture: Raw) -> str:
    parts = [section("What matters", paragraph(_MEANINGS), picture)]
    for nic in result.summary():
        parts.append(section(f"On {nic}", written(_HEAD, _table(result, nic), _TEXTS)))
    parts.append(section("Conditions", *(paragraph(f"{c.name}: {c.words}.") for c in CONDITIONS)))
    if result.skipped:
        parts.append(section("Skipped", *(note(f"{name}: {why}") for name, why in result.skipped.items())))
    if result.errors:
        parts.append(section("Errors", *(note(error, bad=True) for error in result.errors)))
    parts.append(section("Every case", written(_CASE_HEAD, map(_case, result.effects), 4)))
    rows = [
        [r.nic, r.condition, r.case, r.way, us_text(r.us), f"{us_text(r.low)} to {us_text(r.high)}"]
        for r in result.rows
    ]
    parts.append(section("Every time", written(["NIC", "condition", "case", "way", "µs", "95 % interval"], rows, 4)))
    for title, texts in (("Refused", result.refused), ("Left out", result.left_out)):
        if texts:
            parts.append(section(title, paragraph("; ".join(texts))))
    parts.append(section("How to run it again", code(f"{result.command} --output DIR")))
    lead = f"Measured {result.created} by Lacuna {result.lacuna_version}, on {result.machine}."
    return page(f"Lacuna: interactions on {result.machine}", "What changes the choice", lead, "".join(parts))


_CASE_HEAD = ["NIC", "condition", "case", "best, and without", "slower", "loss", "automatic", "without"]


def _case(e: Effect) -> list[str]:
    best = e.best if e.best == e.best_without else f"{e.best}; {e.best_without}"
    automatic = [f"{value:.2f}" if value else "-" for value in (e.automatic, e.automatic_without)]
    return [e.nic, e.condition, e.case, best, f"{e.slower:.2f}×", f"{e.loss:.3f}", *automatic]
