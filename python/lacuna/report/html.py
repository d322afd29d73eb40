"""The few pieces of HTML that the report is made of. Every text is escaped here; `Raw` is what already is HTML."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from string import Template

from lacuna.report.palette import ink

_TEMPLATES = Path(__file__).with_name("templates")

_WIDE = 12
"""A table with more columns is set smaller on paper."""


class Raw(str):
    """Text that is HTML already."""


def text(value: object) -> Raw:
    return value if isinstance(value, Raw) else Raw(escape(str(value)))


def page(title: str, heading_text: str, lead: str, body: str) -> str:
    """A whole page that needs nothing but itself."""
    return Template((_TEMPLATES / "report.html").read_text(encoding="utf-8")).substitute(
        title=text(title),
        heading=text(heading_text),
        lead=text(lead),
        css=(_TEMPLATES / "report.css").read_text(encoding="utf-8"),
        body=body,
    )


@dataclass(frozen=True)
class Number:
    """A table cell aligned to the right."""

    value: object
    best: bool = False


def swatch(method: str) -> Raw:
    return Raw(f'<span class="swatch" style="background:{ink(method).paper}"></span>')


def method_name(name: str) -> Raw:
    return Raw(swatch(name) + escape(name))


def side_by_side(parts: Iterable[Raw]) -> Raw:
    """Beside one another as far as the page is wide."""
    return Raw(f'<div class="row">{"".join(f"<div>{part}</div>" for part in parts)}</div>')


def section(title: str, *parts: Raw) -> Raw:
    return Raw(f"<section>\n<h2>{escape(title)}</h2>\n" + "\n".join(parts) + "\n</section>\n")


def heading(title: str) -> Raw:
    return Raw(f"<h3>{escape(title)}</h3>")


def paragraph(content: object, kind: str = "") -> Raw:
    return Raw(f"<p{_class(kind)}>{text(content)}</p>")


def note(content: object, *, bad: bool = False) -> Raw:
    return Raw(f'<div class="note{" bad" * bad}">{text(content)}</div>')


def code(lines: str) -> Raw:
    return Raw(f"<pre>{escape(lines)}</pre>")


def figure(svg: str, caption: str) -> Raw:
    shown = escape(caption)
    return Raw(f'<figure role="img" aria-label="{shown}"><figcaption>{shown}</figcaption>{svg}</figure>')


def table(head: Sequence[str | Number], rows: Iterable[Sequence[object]]) -> Raw:
    top = "".join(_cell(column, "th") for column in head)
    body = "\n".join(f"<tr>{''.join(_cell(value, 'td') for value in row)}</tr>" for row in rows)
    thead = f"<thead><tr>{top}</tr></thead>" if head else ""
    wide = _class("wide" if len(head) > _WIDE else "")
    return Raw(f'<div class="scroll"><table{wide}>{thead}<tbody>\n{body}\n</tbody></table></div>')


def _cell(value: object, tag: str) -> str:
    if isinstance(value, Number):
        return f"<{tag}{_class('n best' if value.best else 'n')}>{text(value.value)}</{tag}>"
    return f"<{tag}>{text(value)}</{tag}>"


def _class(kind: str) -> str:
    return f' class="{kind}"' if kind else ""
